"""Do processor and device compute the same? Outputs, gradients, and steps of acting.

On a machine without a device the processor is compared with itself, which tests this file only.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_stages.rows import Row, Setting
from rllib_minestudio.models.acting import DTYPES, set_arithmetic
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.network import log_prob

LIMITS = {"outputs": 1e-4, "gradients": 1e-3, "acting": 1e-4}
"""Of differences in full float32."""

ROUNDING, DRAWS = 6e-7, 3
"""A ReLU or a pixel of a max pool that falls to the other side changes a gradient much more than an
output. How much so is measured on the processor, by so many changes of all weights by about what
float32 rounds away; where that exceeds the limit, a difference beyond it is no defect."""

ENVS, FRAMES = 2, 8

Results = dict[str, list[Tensor]]


class _Inputs:
    """Frames, episode starts and actions of `ENVS` environments, in the host's memory."""

    def __init__(self, config: VPTConfig) -> None:
        """Draw them."""
        generator = torch.Generator().manual_seed(0)

        def integers(end: int, *shape: int) -> Tensor:
            return torch.randint(0, end, (ENVS, FRAMES, *shape), generator=generator)

        self.image = integers(256, *config.img_shape).to(torch.uint8)
        self.first = integers(FRAMES) == 0
        self.actions = {"buttons": integers(8641, 1), "camera": integers(121, 1)}


def measure(setting: Setting) -> Iterator[Row]:
    """Relative differences: the norm of the difference over the norm of the numbers."""
    for preset in ("nano",) if setting.short else ("nano", "1x"):
        torch.manual_seed(0)
        network = VPTNetwork(VPTConfig.from_options({"preset": preset}))
        for head in network.pi_head.values():  # new ones are nearly constant
            torch.nn.init.normal_(head.linear_layer.weight, std=network.config.hidsize**-0.5)
        inputs = _Inputs(network.config)
        expected = _run(network, inputs, "cpu")
        by_rounding = max(_by_rounding(network, inputs, expected) for _ in range(DRAWS))
        yield Row(f"{preset}, gradients on cpu, weights changed by {ROUNDING:g}", by_rounding)
        for name in DTYPES:
            set_arithmetic(name)  # also of the backward pass, as learners do
            found = _run(_with_precision(network, name), inputs, setting.device)
            for part, limit in LIMITS.items():
                difference = _difference(found[part], expected[part])
                is_judged = name == "float32"
                yield Row(
                    f"{preset}, {part}, {name} on {setting.device} against float32 on cpu",
                    difference,
                    goal=f"at most {limit:g}" if is_judged else "",
                    met=difference <= limit if is_judged else None,
                )


def _by_rounding(network: VPTNetwork, inputs: _Inputs, expected: Results) -> float:
    """How much gradients change when all weights do a little."""
    other = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1 + ROUNDING * torch.randn_like(parameter))
    return _difference(_run(other, inputs, "cpu")["gradients"], expected["gradients"])


def _with_precision(network: VPTNetwork, precision: str) -> VPTNetwork:
    other = VPTNetwork(dataclasses.replace(network.config, precision=precision))
    other.load_state_dict(network.state_dict())
    return other


def _run(network: VPTNetwork, inputs: _Inputs, device: str) -> Results:
    """A pass over a chunk with gradients, and the same frames one by one in a rollout session."""
    network = copy.deepcopy(network).to(device)
    image, first = inputs.image.to(device), inputs.first.to(device)
    actions = {name: tokens.to(device) for name, tokens in inputs.actions.items()}
    out = network(image, first, network.initial_state(ENVS))
    (log_prob(out.logits, actions).mean() + out.value_bt.square().mean()).backward()
    session = InferenceSession(network, ENVS)
    steps = []
    for t in range(FRAMES):
        decision = session.act(image[:, t], first[:, t])
        steps += [scores.log_softmax(-1) for scores in decision.logits.values()]
    results = {
        "outputs": [*out.logits.values(), out.value_bt],
        "gradients": [p.grad for p in network.parameters() if p.grad is not None],
        "acting": steps,
    }
    return {name: [t.detach().cpu() for t in tensors] for name, tensors in results.items()}


def _difference(found: list[Tensor], expected: list[Tensor]) -> float:
    """Norm of the difference over the norm, of all tensors together."""
    pairs = list(zip(found, expected, strict=True))
    difference = sum((a.double() - b.double()).square().sum() for a, b in pairs)
    return float((difference / sum(b.double().square().sum() for _, b in pairs)).sqrt())
