"""VPTNetwork reproduces the numbers of MineStudio's VPTPolicy (golden/make_golden.py)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork, VPTState
from rllib_minestudio.models.vpt.network import entropy, kl_divergence, log_prob
from tests.models.value_statistics import take_in

TOLERANCE = 5e-5
ONE_RELU = 1e-3
"""What one ReLU may change gradients by that falls to the other side. Without AVX2, torch's float32
convolutions round one of those in the golden chunk so, which moves gradients by 2.5e-4."""


def _import_script():
    path = Path(__file__).parent / "golden" / "make_golden.py"
    spec = importlib.util.spec_from_file_location("make_golden", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _import_script()
STEPS, KEPT = script.STEPS, script.KEPT_BUTTONS


@pytest.fixture(scope="module")
def golden():
    with np.load(script.GOLDEN_FILE) as arrays:
        return {
            name: torch.from_numpy(array) if array.dtype.kind != "U" else array
            for name, array in arrays.items()
        }


@pytest.fixture(scope="module")
def inputs():
    return script.Inputs()


@pytest.fixture
def network():
    network = VPTNetwork(VPTConfig(**script.NETWORK_ARGUMENTS, temperature=script.TEMPERATURE))
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    network.load_state_dict(script.random_weights(shapes))
    return network


def _close(actual, expected, scale=1.0, tolerance=TOLERANCE):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance * scale)


def _play_steps(network, inputs):
    """The first STEPS frames one by one: logits and values concatenated, and the last state."""
    state, outputs = network.initial_state(2), []
    with torch.no_grad():
        for t in range(STEPS):
            output = network(inputs.image[:, t : t + 1], inputs.first[:, t : t + 1], state)
            state = output.state
            outputs.append(output)
    logits = {
        name: torch.cat([output.logits[name] for output in outputs], 1)
        for name in ("buttons", "camera")
    }
    return logits, torch.cat([output.value_bt for output in outputs], 1), state


def _run_chunk(network, inputs):
    *_, state = _play_steps(network, inputs)
    return network(inputs.image[:, STEPS:], inputs.first[:, STEPS:], state)


def _check_state(state: VPTState, golden, prefix):
    for layer in range(state.keys.shape[1]):
        mask, keys, values = (golden[f"{prefix}/state{3 * layer + i}"] for i in range(3))
        assert torch.equal(state.mask, mask[:, 0])
        _close(state.keys[:, layer], keys)
        _close(state.values[:, layer], values)


def test_parameter_names_are_those_of_minestudio(golden, network):
    assert sorted(network.state_dict()) == list(golden["names"])


def test_forty_steps_with_episode_starts(golden, inputs, network):
    logits, value, state = _play_steps(network, inputs)
    _close(logits["buttons"][..., KEPT], golden["steps/buttons"])
    _close(logits["camera"], golden["steps/camera"])
    _close(value, golden["steps/value"])
    _check_state(state, golden, "steps")


def test_chunk_with_episode_starts_inside(golden, inputs, network):
    output = _run_chunk(network, inputs)
    _close(output.logits["buttons"][..., KEPT], golden["chunk/buttons"])
    _close(output.logits["camera"], golden["chunk/camera"])
    _close(output.value_bt, golden["chunk/value"])
    _check_state(output.state, golden, "chunk")


def test_head_formulas(golden, inputs, network):
    logits = _run_chunk(network, inputs).logits
    _close(log_prob(logits, inputs.actions), golden["chunk/log_prob"])
    _close(entropy(logits), golden["chunk/entropy"])
    _close(kl_divergence(logits, inputs.prior), golden["chunk/kl"])


def _compute_in_float64(module):
    module.double()
    module.register_forward_pre_hook(lambda module, inputs: tuple(x.double() for x in inputs))
    module.register_forward_hook(lambda module, inputs, output: output.float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_of_a_ppo_like_loss(golden, inputs, network, dtype):
    """With convolutions in float64, ReLUs and max pools decide alike on every processor."""
    if dtype == torch.float64:
        _compute_in_float64(network.net.img_process.cnn)
    tolerance = ONE_RELU if dtype == torch.float32 else TOLERANCE
    output = _run_chunk(network, inputs)
    returns = inputs.returns[0]
    take_in(network.value_head, returns)
    value_error = output.value_bt - network.value_head.normalize(returns)
    loss = (
        -script.ADVANTAGE_COEFFICIENT
        * (inputs.advantage * log_prob(output.logits, inputs.actions)).mean()
        + script.KL_COEFFICIENT * kl_divergence(output.logits, inputs.prior).mean()
        + script.VALUE_COEFFICIENT * value_error.square().mean()
        - script.ENTROPY_COEFFICIENT * entropy(output.logits).mean()
    )
    loss.backward()
    _close(loss, golden["chunk/loss"])
    for name, parameter in network.named_parameters():
        expected = golden[f"grad/{name}"]
        gradient = parameter.grad[KEPT] if name.startswith("pi_head.buttons") else parameter.grad
        scale = max(1.0, expected.abs().max().item())
        _close(gradient.float(), expected, scale, tolerance)


def test_value_statistics(golden, inputs, network):
    head = network.value_head
    for i, returns in enumerate(inputs.returns):
        take_in(head, returns)
        normalizer = head.normalizer
        running = [normalizer.running_mean, normalizer.running_mean_sq]
        running.append(normalizer.debiasing_term.reshape(1))
        torch.testing.assert_close(
            torch.cat(running), golden[f"statistics/running{i}"], rtol=1e-6, atol=0
        )
        _close(head.normalize(returns), golden[f"statistics/normalized{i}"], scale=10)
    _close(head.denormalize(inputs.advantage), golden["statistics/denormalized"], scale=10)
