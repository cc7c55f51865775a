"""VPT here and MineStudio's `VPTPolicy`: what the benchmarks time of each, and how.

Where MineStudio is importable (docs/vpt.md says how to install it), both have the same weights and
are called in turn, so that other load on the machine hits both.
"""

from __future__ import annotations

import copy
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession
from rllib_minestudio.models.vpt.network import kl_divergence, log_prob
from rllib_minestudio.models.vpt.weights import arguments_from_config

GOLDEN_SCRIPT = Path(__file__).parents[1] / "tests" / "models" / "vpt" / "golden" / "make_golden.py"
CHUNK = 64
WARMUP = 2


def import_vpt_policy() -> Any:
    """Returns MineStudio's class, or None where it cannot be imported."""
    if importlib.util.find_spec("minestudio") is None:
        return None
    spec = importlib.util.spec_from_file_location("make_golden", GOLDEN_SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.import_vpt_policy()


def make_both(config: VPTConfig, policy_class: Any, device: str) -> tuple[Any, VPTNetwork]:
    """The two policies with the same weights."""
    torch.manual_seed(0)
    with torch.device(device):  # to draw half a billion numbers elsewhere takes long
        network = VPTNetwork(config)
    network.to(device)
    if policy_class is None:
        return None, network
    policy = policy_class(arguments_from_config(config), temperature=config.temperature)
    policy.load_state_dict(network.state_dict())
    return policy.to(device).eval(), network


def images(config: VPTConfig, batch: int, time_: int, device: str) -> Tensor:
    """Noise: [batch, time, H, W, 3] bytes."""
    shape = (batch, time_, *config.img_shape)
    return torch.randint(0, 256, shape, dtype=torch.uint8, device=device)


def their_step(policy: Any, image: Tensor, batch: int) -> Callable[[], None]:
    """A step as MineStudio's rollout worker takes it."""
    states = [policy.initial_state(1) for _ in range(batch)]

    def step() -> None:
        nonlocal states
        with torch.inference_mode():
            latents, state = policy({"image": image}, policy.merge_state(states))
            policy.pi_head.sample(latents["pi_logits"], deterministic=False)
            policy.value_head.denormalize(latents["vpred"]).cpu()
        states = policy.split_state(state, batch)

    return step


def our_step(network: VPTNetwork, image: Tensor, batch: int) -> Callable[[], None]:
    """A step as an env runner takes it."""
    session = InferenceSession(network, batch)
    first = torch.zeros(batch, dtype=torch.bool, device=image.device)

    def step() -> None:
        session.act(image, first).value_b.cpu()

    return step


def their_forward(policy: Any, image: Tensor, batch: int) -> Callable[[], None]:
    """The network's part of a step, with a state that is at hand."""
    state = policy.initial_state(batch)

    def forward() -> None:
        with torch.inference_mode():
            policy({"image": image}, state)

    return forward


def our_forward(network: VPTNetwork, image: Tensor, batch: int) -> Callable[[], None]:
    """The network's part of a step."""
    session = InferenceSession(network, batch)
    first = torch.zeros(batch, dtype=torch.bool, device=image.device)

    def forward() -> None:
        session.value(image, first)  # all of the network; the states stay as they are

    return forward


class Chunk:
    """Frames, actions and targets of one or several environments."""

    def __init__(self, config: VPTConfig, device: str, envs: int = 1) -> None:
        """Draws them."""
        self.envs, shape = envs, (envs, CHUNK)
        self.image = images(config, envs, CHUNK, device)
        self.first = torch.zeros(shape, dtype=torch.bool, device=device)
        self.actions = {
            "buttons": torch.randint(0, 8641, (*shape, 1), device=device),
            "camera": torch.randint(0, 121, (*shape, 1), device=device),
        }
        self.advantage = torch.randn(shape, device=device)
        self.target = torch.randn(shape, device=device)


def their_update(policy: Any, chunk: Chunk) -> Callable[[], None]:
    """Old values, policy, reference, loss, backward, as MineStudio's trainer goes through them."""
    reference = copy.deepcopy(policy)

    def update() -> None:
        state = policy.initial_state(chunk.envs)
        with torch.no_grad():
            old, _ = policy({"image": chunk.image}, state)
            old_logp = policy.pi_head.logprob(chunk.actions, old["pi_logits"])
        out, _ = policy({"image": chunk.image}, state)
        with torch.inference_mode():
            kept, _ = reference({"image": chunk.image}, reference.initial_state(chunk.envs))
        kl = policy.pi_head.kl_divergence(out["pi_logits"], kept["pi_logits"]).mean()
        logp = policy.pi_head.logprob(chunk.actions, out["pi_logits"])
        value = policy.value_head.loss(out["vpred"].reshape(chunk.envs, CHUNK), chunk.target)
        loss = _policy_loss(logp, old_logp, chunk.advantage) + 0.2 * kl + 0.5 * value.mean()
        loss.backward()
        policy.zero_grad(set_to_none=True)

    return update


def our_update(
    network: VPTNetwork, prior: VPTNetwork, chunk: Chunk, kept_latent: Tensor | None
) -> None:
    """The same with behaviour log-probabilities at hand, and perhaps the reference's latent."""
    latent = prior_latent(prior, chunk) if kept_latent is None else kept_latent
    out = network(chunk.image, chunk.first, network.initial_state(chunk.envs))
    with torch.no_grad():
        reference = {name: head(latent) for name, head in prior.pi_head.items()}
    logp = log_prob(out.logits, chunk.actions)
    kl = kl_divergence(out.logits, reference).mean()
    target = chunk.target
    network.value_head.normalizer.update(target.mean(), target.square().mean())
    value = (out.value_bt - network.value_head.normalize(target)).square().mean()
    loss = _policy_loss(logp, logp.detach(), chunk.advantage) + 0.2 * kl + 0.5 * value
    loss.backward()
    network.zero_grad(set_to_none=True)


@torch.no_grad()
def prior_latent(prior: VPTNetwork, chunk: Chunk) -> Tensor:
    """What the frozen prior's trunk makes of a chunk; its heads are cheap."""
    return prior.net(chunk.image, chunk.first, prior.initial_state(chunk.envs))[0]


def _policy_loss(logp: Tensor, old_logp: Tensor, advantage: Tensor) -> Tensor:
    ratio = (logp - old_logp).exp()
    return -torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()


def time_alternately(*, repeats: int, **calls: Callable[[], None] | None) -> dict[str, float]:
    """Calls all in turn; returns the median of the wall time of each, in seconds."""
    times: dict[str, list[float]] = {name: [] for name, call in calls.items() if call is not None}
    for repeat in range(WARMUP + repeats):
        for name, durations in times.items():
            start = time.perf_counter()
            calls[name]()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if repeat >= WARMUP:
                durations.append(time.perf_counter() - start)
    return {name: median(durations) for name, durations in times.items()}
