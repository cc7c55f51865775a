"""Advantages of 240 fragments of 256 steps: ours beside MineStudio's loop, in one run.

    python benchmarks/gae.py [--fragments N] [--steps T] [--repeats R]

MineStudio 1.1.6 (`online/utils/train/gae.py`) walks through every step of every fragment in Python,
with results in dictionaries by fragment. The loop here does the same per step; both get the same
numbers, without truncations (which MineStudio takes for terminations), and must agree.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms.learner.gae import compute_gae

GAMMA, LAMBDA = 0.999, 0.95
EPISODE_STEPS = 100
"""Mean length of an episode."""


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fragments", type=int, default=240)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()

    data = make_data(arguments.fragments, arguments.steps)
    advantage, target = step_by_step(data)
    ours = compute_gae(**data, gamma=GAMMA, lambda_=LAMBDA)
    np.testing.assert_allclose(ours.advantage_bt, advantage, atol=1e-4)
    np.testing.assert_allclose(ours.value_target_bt, target, atol=1e-4)

    loop, vectorised = [], []
    for _ in range(arguments.repeats):  # in turns, so that both meet the same machine
        loop.append(seconds(lambda: step_by_step(data)))
        vectorised.append(seconds(lambda: compute_gae(**data, gamma=GAMMA, lambda_=LAMBDA)))
    title = f"GAE of {arguments.fragments} fragments x {arguments.steps} steps"
    table = Table("what", "ms (median)", "min", "max", "times faster", title=title)
    base = statistics.median(loop)
    for name, times in (("loop as MineStudio's", loop), ("compute_gae", vectorised)):
        numbers = (f"{1e3 * f(times):.2f}" for f in (statistics.median, min, max))
        table.add_row(name, *numbers, f"{base / statistics.median(times):.0f}")
    Console().print(table)


def make_data(fragments: int, steps: int) -> dict[str, NDArray]:
    """Random rewards and values; episodes terminate now and then."""
    rng = np.random.default_rng(0)
    reward, value, bootstrap = rng.normal(size=(3, fragments, steps)).astype(np.float32)
    return {
        "reward_bt": reward,
        "value_bt": value,
        "terminated_bt": rng.random((fragments, steps)) < 1 / EPISODE_STEPS,
        "truncated_bt": np.zeros((fragments, steps), np.bool_),
        "bootstrap_value_bt": bootstrap,
        "last_value_b": rng.normal(size=fragments).astype(np.float32),
    }


def step_by_step(data: dict[str, Any]) -> tuple[NDArray, NDArray]:
    """The recursion, one step of one fragment at a time."""
    advantages, targets = {}, {}
    for index in reversed(range(len(data["reward_bt"]))):
        value, reward = data["value_bt"][index], data["reward_bt"][index]
        done = data["terminated_bt"][index]
        next_value, advantage = data["last_value_b"][index], 0.0
        advantages[index], targets[index] = np.zeros_like(value), np.zeros_like(value)
        for t in range(len(done) - 1, -1, -1):
            goes_on = 1.0 - done[t]
            delta = reward[t] + GAMMA * next_value * goes_on - value[t]
            advantage = delta + GAMMA * LAMBDA * goes_on * advantage
            advantages[index][t] = advantage
            targets[index][t] = advantage + value[t]
            next_value = value[t]
            if np.isnan(targets[index][t]) or np.isnan(next_value):
                raise ValueError("a target is NaN")
    order = range(len(advantages))
    return np.stack([advantages[i] for i in order]), np.stack([targets[i] for i in order])


def seconds(function: Callable[[], Any]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
