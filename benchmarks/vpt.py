"""Speed of the VPT network against MineStudio's `VPTPolicy`, paired in one process.

    python benchmarks/vpt.py rollout --sizes 1x 2x --batches 1 4 8 16
    python benchmarks/vpt.py forward --sizes 1x
    python benchmarks/vpt.py train --sizes 1x

Where MineStudio is importable (docs/vpt.md says how to install it), both play with the same
weights and alternate call by call, so that other load on the machine hits both; elsewhere only
this package is measured. Times are medians; the ratio is MineStudio's over ours.

`rollout` is what a step of acting costs: collecting the environments' states, forward pass,
sampling, denormalised value, handing the states back. `forward` is the network's part of it, from
images to logits and value, with states that are at hand. `train` is what a chunk of 64 frames of
one environment costs: MineStudio passes over it for old values, for the policy and for the
reference; here old values come with the fragment, and the reference's outputs are kept for the
second use.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.heads import kl_divergence, log_prob
from rllib_minestudio.models.vpt.network_arguments import arguments_from_config
from rllib_minestudio.models.vpt.rollout_session import RolloutSession

GOLDEN_SCRIPT = Path(__file__).parents[1] / "tests" / "models" / "vpt" / "golden" / "make_golden.py"
CHUNK = 64
WARMUP = 2

ROLLOUT_THRESHOLDS = {
    ("float32", 1): 1.25,
    ("float32", 4): 1.25,
    ("float32", 8): 1.1,
    ("float32", 16): 1.1,
    ("bfloat16", 1): 2.2,
    ("bfloat16", 4): 2.2,
    ("bfloat16", 8): 2.2,
    ("bfloat16", 16): 2.2,
}
"""Least ratios on two CPU cores, for 1x and 2x."""

TRAIN_THRESHOLDS = {"float32": 1.6, "bfloat16": 3.0}

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**36)}
"""glibc would give memory back after every chunk; page faults would then be half of the time."""


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["rollout", "forward", "train"])
    parser.add_argument("--sizes", nargs="+", default=["nano", "1x", "2x"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 8, 16])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    _pin_allocator()
    torch.set_num_threads(arguments.threads)
    policy_class = _import_vpt_policy()
    _describe(arguments, policy_class)
    measure = _training if arguments.what == "train" else _acting
    for size in arguments.sizes:
        measure(size, policy_class, arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\npeak memory of the process: {peak:.1f} GiB")


def _pin_allocator() -> None:
    """Starts over with the allocator set; it reads its settings when a process starts."""
    if any(os.environ.get(name) != value for name, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})


def _import_vpt_policy() -> Any:
    """Returns MineStudio's class, or None where it cannot be imported."""
    if importlib.util.find_spec("minestudio") is None:
        return None
    spec = importlib.util.spec_from_file_location("make_golden", GOLDEN_SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.import_vpt_policy()


def _describe(arguments: argparse.Namespace, policy_class: Any) -> None:
    device = platform.processor() or platform.machine()
    if arguments.device == "cuda":
        device = torch.cuda.get_device_name()
    print(
        f"device {device}, torch {torch.__version__}, {arguments.threads} threads, "
        f"MineStudio {'present' if policy_class else 'absent'}"
    )


def _make_both(config: VPTConfig, policy_class: Any, device: str) -> tuple[Any, VPTNetwork]:
    """The two policies with the same weights."""
    torch.manual_seed(0)
    network = VPTNetwork(config).to(device)
    if policy_class is None:
        return None, network
    policy = policy_class(arguments_from_config(config), temperature=config.temperature)
    policy.load_state_dict(network.state_dict())
    return policy.to(device).eval(), network


def _config(size: str, precision: str = "float32", compiled: bool = False) -> VPTConfig:
    """MineStudio has joint heads only."""
    options = {"preset": size, "action_head": "joint", "precision": precision}
    return VPTConfig.from_options({**options, "compile": compiled})


# ---------------------------------------------------------------------------- rollout


def _acting(size: str, policy_class: Any, arguments: argparse.Namespace) -> None:
    is_rollout = arguments.what == "rollout"
    make_theirs, make_ours = (
        (_their_step, _our_step) if is_rollout else (_their_forward, _our_forward)
    )
    print(
        f"\n{arguments.what} {size}: ms a call\n"
        f"{'':10}{'batch':>6}{'theirs':>10}{'ours':>10}{'ratio':>7}"
    )
    for batch in arguments.batches:
        for precision in arguments.precisions:
            config = _config(size, precision, arguments.compile)
            policy, network = _make_both(config, policy_class, arguments.device)
            image = _images(config, batch, 1, arguments.device)
            theirs = policy and make_theirs(policy, image, batch)
            ours = make_ours(network, image[:, 0], batch)
            times = _time_alternately(theirs=theirs, ours=ours, repeats=arguments.repeats)
            judged = is_rollout and size in ("1x", "2x")
            least = ROLLOUT_THRESHOLDS.get((precision, batch)) if judged else None
            _print_row(precision, batch, times.get("theirs"), times["ours"], least)


def _images(config: VPTConfig, batch: int, time_: int, device: str) -> Tensor:
    shape = (batch, time_, *config.img_shape)
    return torch.randint(0, 256, shape, dtype=torch.uint8, device=device)


def _their_step(policy: Any, image: Tensor, batch: int) -> Callable[[], None]:
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


def _our_step(network: VPTNetwork, image: Tensor, batch: int) -> Callable[[], None]:
    session = RolloutSession(network, batch)
    first = torch.zeros(batch, dtype=torch.bool, device=image.device)

    def step() -> None:
        session.act(image, first).value_b.cpu()

    return step


def _their_forward(policy: Any, image: Tensor, batch: int) -> Callable[[], None]:
    state = policy.initial_state(batch)

    def forward() -> None:
        with torch.inference_mode():
            policy({"image": image}, state)

    return forward


def _our_forward(network: VPTNetwork, image: Tensor, batch: int) -> Callable[[], None]:
    session = RolloutSession(network, batch)
    first = torch.zeros(batch, dtype=torch.bool, device=image.device)

    def forward() -> None:
        session.value(image, first)  # all of the network; the states stay as they are

    return forward


# ---------------------------------------------------------------------------- training


def _training(size: str, policy_class: Any, arguments: argparse.Namespace) -> None:
    print(f"\ntraining {size}: s a chunk of {CHUNK} frames, used twice (reference kept)")
    print(f"{'':10}{'use':>6}{'theirs':>10}{'ours':>10}{'ratio':>7}")
    for precision in arguments.precisions:
        config = _config(size, precision, arguments.compile)
        policy, network = _make_both(config, policy_class, arguments.device)
        _, prior = _make_both(config, None, arguments.device)
        chunk = _Chunk(config, arguments.device)
        theirs = policy and _their_update(policy, chunk)
        kept = _prior_latent(prior, chunk)
        update = partial(_our_update, network, prior, chunk)
        times = _time_alternately(
            theirs=theirs,
            first=partial(update, None),
            again=partial(update, kept),
            repeats=arguments.repeats,
        )
        times["mean"] = (times["first"] + times["again"]) / 2
        for use in ("first", "again", "mean"):
            judged = use == "mean" and size in ("1x", "2x")
            least = TRAIN_THRESHOLDS[precision] if judged else None
            _print_row(precision, use, times.get("theirs"), times[use], least, unit=1.0)


class _Chunk:
    """One environment's frames, actions and targets."""

    def __init__(self, config: VPTConfig, device: str) -> None:
        self.image = _images(config, 1, CHUNK, device)
        self.first = torch.zeros(1, CHUNK, dtype=torch.bool, device=device)
        self.actions = {
            "buttons": torch.randint(0, 8641, (1, CHUNK, 1), device=device),
            "camera": torch.randint(0, 121, (1, CHUNK, 1), device=device),
        }
        self.advantage = torch.randn(1, CHUNK, device=device)
        self.target = torch.randn(1, CHUNK, device=device)


def _their_update(policy: Any, chunk: _Chunk) -> Callable[[], None]:
    """Old values, policy, reference, loss, backward, as MineStudio's trainer goes through them."""
    reference = copy.deepcopy(policy)

    def update() -> None:
        state = policy.initial_state(1)
        with torch.no_grad():
            old, _ = policy({"image": chunk.image}, state)
            old_logp = policy.pi_head.logprob(chunk.actions, old["pi_logits"])
        out, _ = policy({"image": chunk.image}, state)
        with torch.inference_mode():
            kept, _ = reference({"image": chunk.image}, reference.initial_state(1))
        kl = policy.pi_head.kl_divergence(out["pi_logits"], kept["pi_logits"]).mean()
        logp = policy.pi_head.logprob(chunk.actions, out["pi_logits"])
        value = policy.value_head.loss(out["vpred"].reshape(1, CHUNK), chunk.target)
        loss = _policy_loss(logp, old_logp, chunk.advantage) + 0.2 * kl + 0.5 * value.mean()
        loss.backward()
        policy.zero_grad(set_to_none=True)

    return update


def _our_update(
    network: VPTNetwork, prior: VPTNetwork, chunk: _Chunk, kept_latent: Tensor | None
) -> None:
    """The same with behaviour log-probabilities at hand, and perhaps the reference's latent."""
    latent = _prior_latent(prior, chunk) if kept_latent is None else kept_latent
    out = network(chunk.image, chunk.first, network.initial_state(1))
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
def _prior_latent(prior: VPTNetwork, chunk: _Chunk) -> Tensor:
    return prior.net(chunk.image, chunk.first, prior.initial_state(1))[0]


def _policy_loss(logp: Tensor, old_logp: Tensor, advantage: Tensor) -> Tensor:
    ratio = (logp - old_logp).exp()
    return -torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()


# ---------------------------------------------------------------------------- measuring


def _time_alternately(*, repeats: int, **calls: Callable[[], None] | None) -> dict[str, float]:
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


def _print_row(
    precision: str,
    label: object,
    theirs: float | None,
    ours: float,
    least: float | None,
    unit: float = 1e3,
) -> None:
    row = f"{precision:10}{label!s:>6}"
    if theirs is None:
        print(f"{row}{'-':>10}{ours * unit:10.2f}", flush=True)
        return
    ratio = theirs / ours
    verdict = "" if least is None else f"  {'ok' if ratio >= least else 'MISSED'} (>= {least})"
    print(f"{row}{theirs * unit:10.2f}{ours * unit:10.2f}{ratio:7.2f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
