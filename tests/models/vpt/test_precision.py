"""Any sizes in any precision on any path: layers agree about types, and numbers stay close."""

from __future__ import annotations

import logging

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from rllib_minestudio.models.acting import DTYPES, advise, arithmetic, set_arithmetic
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt import network as network_module
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.config import PRECISIONS
from tests.algorithms.toy_envs import AttackOnRed, tiny_model
from tests.correctness.harness import config_of

CLOSE = {"float32": 1e-4, "tf32": 1e-4, "bfloat16": 0.1}
"""Largest difference relative to the numbers' norm; without a GPU, tf32 is float32."""

SIDE = 32
NUM_ENVS, STEPS = 2, 3


def _network(precision, width, channels):
    options = {"preset": "nano", "img_shape": [SIDE, SIDE, 3], "hidsize": 32}
    options |= {"attention_heads": 2, "n_recurrence_layers": 1}
    options |= {"attention_memory_size": 8, "timesteps": 4, "precision": precision}
    options |= {"impala_width": width, "impala_chans": channels}
    torch.manual_seed(0)
    return VPTNetwork(VPTConfig.from_options(options))


def _difference(found, expected):
    return float((found - expected).norm() / expected.norm())


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    precision=st.sampled_from(PRECISIONS),
    width=st.sampled_from([0.5, 1, 1.5, 2]),
    channels=st.lists(st.sampled_from([8, 16, 32, 64]), min_size=1, max_size=3),
)
def test_acting_and_training_agree_with_float32(pretended, precision, width, channels):
    network, exact = (_network(p, width, channels) for p in (precision, "float32"))
    image = torch.randint(0, 256, (NUM_ENVS, STEPS, SIDE, SIDE, 3), dtype=torch.uint8)
    first = torch.zeros(NUM_ENVS, STEPS, dtype=torch.bool)
    outputs, expected = (
        each(image, first, each.initial_state(NUM_ENVS)) for each in (network, exact)
    )
    limit = CLOSE[precision]
    assert _difference(outputs.value_bt, expected.value_bt) < limit
    outputs.value_bt.square().sum().backward()
    for name, parameter in network.net.named_parameters():
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all(), name
    session = InferenceSession(network, NUM_ENVS)
    values = torch.stack([session.act(image[:, t], first[:, t]).value_b for t in range(STEPS)], 1)
    assert values.dtype == torch.float32
    assert _difference(values, network.value_head.denormalize(expected.value_bt)) < limit


@pytest.mark.parametrize("width", [1, 1.5])
@pytest.mark.parametrize("channels", [[16, 32, 32], [32, 16, 8]])
def test_stacks_by_kernels_and_by_torch_follow_each_other_in_bfloat16(width, channels):
    """MineStudio's own default is a width of 1."""
    session = InferenceSession(_network("bfloat16", width, channels), NUM_ENVS)
    image = torch.zeros(NUM_ENVS, SIDE, SIDE, 3, dtype=torch.uint8)
    decision = session.act(image, torch.ones(NUM_ENVS, dtype=torch.bool))
    assert decision.value_b.isfinite().all()


# ---------------------------------------------------------------- TensorFloat-32


@pytest.fixture
def flags():
    """What torch may round on a GPU; put back afterwards."""
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    yield lambda: (torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision())
    torch.backends.cudnn.allow_tf32 = before[0]
    torch.set_float32_matmul_precision(before[1])


EXPECTED = {
    "float32": (False, "highest"),
    "tf32": (True, "high"),
    "bfloat16": (False, "highest"),
}


def test_precisions_are_those_of_the_arithmetic():
    assert tuple(DTYPES) == PRECISIONS == tuple(EXPECTED)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_convolutions_and_products_follow_the_precision(flags, precision):
    torch.backends.cudnn.allow_tf32 = precision != "tf32"
    before = flags()
    with arithmetic(precision, torch.device("cuda")):
        assert flags() == EXPECTED[precision]
    assert flags() == before
    with arithmetic(precision, torch.device("cpu")):
        assert flags() == before
    set_arithmetic(precision)
    assert flags() == EXPECTED[precision]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_learners_and_env_runners_compute_in_their_policys_precision(flags, precision):
    """Both set what holds for their process, whatever it was."""
    model = tiny_model(precision=precision)
    config = config_of(AttackOnRed, model=model, num_envs=1, fragment_length=8)
    _set_otherwise(precision)
    module = MineStudioEnvRunner(config=config, worker_index=0, num_workers=0).module
    assert flags() == EXPECTED[precision]
    spaces = {"default_policy": (module.observation_space, module.action_space)}
    learner = config.build_learner(spaces=spaces)
    _set_otherwise(precision)
    learner.build()
    assert flags() == EXPECTED[precision]


def _set_otherwise(precision):
    torch.backends.cudnn.allow_tf32 = precision != "tf32"
    torch.set_float32_matmul_precision("medium")


def test_exact_products_are_advised_against_on_a_gpu_once(caplog):
    advise.cache_clear()
    with caplog.at_level(logging.WARNING):
        for precision, device in (("float32", "cpu"), ("tf32", "cuda"), ("bfloat16", "cuda")):
            advise(precision, device)
        assert not caplog.records
        advise("float32", "cuda")
        advise("float32", "cuda")
    assert ["tf32" in record.message for record in caplog.records] == [True]
    advise.cache_clear()


def test_torch_compile_is_advised_against_without_a_gpu(caplog):
    network_module._note_if_slower.cache_clear()
    options = {"preset": "nano", "img_shape": [32, 32, 3], "compile": True}
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            VPTNetwork(VPTConfig.from_options(options))
    warned = [record for record in caplog.records if "model.compile is true" in record.message]
    assert len(warned) == (not torch.cuda.is_available())
