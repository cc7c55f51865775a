"""What the prior's latents cost an env runner, in time and in memory.

    python benchmarks/prior.py [--sizes nano 1x 2x] [--envs N] [--steps T] [--repeats R]

An env runner passes every fragment through the frozen prior once, T frames at a time
(`algorithms/prior.py`). The alternative that was weighed is to run the prior step by step
beside the policy, and to store its memory with the fragment instead of its latents. Both are timed
here against acting alone, alternating; bytes are per fragment of 256 steps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms.prior import PriorLatents
from rllib_minestudio.models.acting import RolloutSession
from rllib_minestudio.models.rl_modules import VPTRLModule, spaces_of
from rllib_minestudio.models.vpt import VPTConfig

FRAGMENT_STEPS = 256


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=["nano", "1x", "2x"])
    parser.add_argument("--envs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=16, help="frames per environment and repeat")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.envs} environments, milliseconds per frame (median)")
    for column in (
        *("size", "acting", "latents, whole fragment", "prior step by step", "acting slows down"),
        *("images", "memory", "latents"),
    ):
        table.add_column(column, justify="right")
    for size in arguments.sizes:
        table.add_row(size, *measure(size, arguments.envs, arguments.steps, arguments.repeats))
    Console().print(table)


def measure(size: str, envs: int, steps: int, repeats: int) -> list[str]:
    """One row of the table, without its name."""
    torch.manual_seed(0)
    config = VPTConfig.from_options({"preset": size})
    module = VPTRLModule(model_config={"preset": size}, **spaces_of(config)).eval()
    height, width, channels = config.img_shape
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (envs, steps, height, width, channels), np.uint8)
    first = np.zeros((envs, steps), bool)
    policy, beside = (module.make_rollout_session(envs) for _ in range(2))
    latents = PriorLatents(
        module, num_envs=envs, context_length=steps, batch_size=1, carry_state=True
    )

    def act(session: RolloutSession) -> None:
        for t in range(steps):
            image = torch.from_numpy(frames[:, t].copy())
            session.act({"image": image}, torch.from_numpy(first[:, t].copy()))

    ways: list[Callable[[], object]] = [
        lambda: act(policy),
        lambda: latents.advance(list(range(envs)), [{"image": own} for own in frames], list(first)),
        lambda: act(beside),
    ]
    seconds: list[list[float]] = [[] for _ in ways]
    for way in ways:
        way()  # kernels and buffers
    for _ in range(repeats):
        for way, times in zip(ways, seconds, strict=True):
            started = time.perf_counter()
            way()
            times.append(time.perf_counter() - started)
    acting, whole, stepwise = (1e3 * statistics.median(times) / (envs * steps) for times in seconds)
    memory = sum(t[0].numel() * t.element_size() for t in module.initial_state(1).values())
    megabytes = (
        FRAGMENT_STEPS * height * width * channels,
        memory,
        FRAGMENT_STEPS * config.hidsize * 4,
    )
    slower = f"{whole / acting:.0%} ({stepwise / acting:.0%} step by step)"
    return [
        *(f"{ms:.2f}" for ms in (acting, whole, stepwise)),
        slower,
        *(f"{n / 1e6:.2f} MB" for n in megabytes),
    ]


if __name__ == "__main__":
    main()
