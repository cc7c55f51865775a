"""Memory on the device against what docs/cluster.md expects, term by term.

On a machine without a device, the bytes of live tensors stand in for the device's allocator.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import torch

from gpu_stages.rows import Row, Setting
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.network import log_prob

FORMULA = "docs/cluster.md"
FEW, MANY = 8, 40
"""Environments; what one more of them takes is the difference."""

LEARNER_ENVS, LEARNER_FRAMES = 2, 64
MIB = 2**20


def measure(setting: Setting) -> Iterator[Row]:
    """MiB of a runner's and a learner's parts; the formula's numbers are beside them."""
    for preset in ("nano",) if setting.short else ("1x", "2x"):
        torch.manual_seed(0)
        network = VPTNetwork(VPTConfig.from_options({"preset": preset})).to(setting.device)
        yield from _runner(preset, network, setting.device)
        yield from _learner(preset, network, setting.device)
        del network


def _runner(preset: str, network: VPTNetwork, device: str) -> Iterator[Row]:
    """One step comes before: what CUDA's libraries set aside at first use is nobody's memory."""
    held, peak = {}, {}
    _act_without_graph(InferenceSession(network, MANY), network, MANY)
    for num_envs in (FEW, MANY):
        before = _start(device)
        session = InferenceSession(network, num_envs)
        held[num_envs] = _allocated(device) - before
        _act_without_graph(session, network, num_envs)
        peak[num_envs] = _peak(device) - before - held[num_envs]
        del session
    per_env = (held[MANY] - held[FEW]) / (MANY - FEW)
    state = network.initial_state(1)
    yield Row(
        f"{preset} runner, per environment",
        per_env / MIB,
        "MiB",
        sum(tensor.nbytes for tensor in state) / MIB,
        FORMULA,
    )
    weights = sum(parameter.nbytes for parameter in network.parameters())
    yield Row(
        f"{preset} runner, weights and their layout for acting",
        (weights + held[FEW] - FEW * per_env) / MIB,
        "MiB",
        weights / MIB,
        FORMULA,
    )
    if device == "cuda":
        per_env = (peak[MANY] - peak[FEW]) / (MANY - FEW)
        yield Row(f"{preset} runner, activations per environment", per_env / MIB, "MiB")


def _learner(preset: str, network: VPTNetwork, device: str) -> Iterator[Row]:
    """One pass comes before, for the same reason."""
    config = network.config
    shape = LEARNER_ENVS, LEARNER_FRAMES
    image = torch.randint(0, 256, (*shape, *config.img_shape), dtype=torch.uint8, device=device)
    first = torch.zeros(shape, dtype=torch.bool, device=device)
    actions = {name: torch.zeros((*shape, 1), dtype=torch.long, device=device) for name in HEADS}
    weights = sum(parameter.nbytes for parameter in network.parameters())

    def backward() -> None:
        out = network(image, first, network.initial_state(LEARNER_ENVS))
        (log_prob(out.logits, actions).mean() + out.value_bt.mean()).backward()

    backward()
    network.zero_grad()
    before = _start(device)
    optimizer = torch.optim.AdamW(network.parameters())
    peaks = []
    for _ in range(2):  # the second step has all moments and gradients there
        optimizer.zero_grad(set_to_none=False)
        backward()
        peaks.append(_peak(device) - before)
        optimizer.step()
    gradients = [parameter.grad for parameter in network.parameters()]
    held = _allocated(device) - before
    yield Row(
        f"{preset} learner, weights, gradients, moments",
        (weights + held) / MIB,
        "MiB",
        16 * sum(parameter.numel() for parameter in network.parameters()) / MIB,
        FORMULA,
    )
    if device == "cuda":
        frames = LEARNER_ENVS * LEARNER_FRAMES
        per_frame = (peaks[-1] - held) / frames
        yield Row(f"{preset} learner, activations per frame", per_frame / MIB, "MiB")
    del gradients
    optimizer.zero_grad()


HEADS = ("buttons", "camera")


def _act_without_graph(session: InferenceSession, network: VPTNetwork, num_envs: int) -> None:
    """One step, whose activations the allocator sees; those of a graph lie in its own pool."""
    device = network.net.final_ln.weight.device
    shape = (num_envs, *network.config.img_shape)
    image = torch.zeros(shape, dtype=torch.uint8, device=device)
    first = torch.zeros(num_envs, dtype=torch.bool, device=device)
    session.act(image, first, rows=torch.arange(num_envs, device=device))


def _start(device: str) -> int:
    """Bytes in use; the peak counts from here."""
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return _allocated(device)


def _allocated(device: str) -> int:
    if device == "cuda":
        return torch.cuda.memory_allocated()
    tensors = [t for t in gc.get_objects() if type(t) in (torch.Tensor, torch.nn.Parameter)]
    sizes = {t.data_ptr(): t.nbytes for t in tensors if not t.is_mkldnn}
    packed = sum(t.numel() * t.element_size() for t in tensors if t.is_mkldnn)
    return sum(sizes.values()) + packed


def _peak(device: str) -> int:
    return torch.cuda.max_memory_allocated() if device == "cuda" else 0
