"""Slow environments: one process each, the policy acting for those that are ready, or lock-step.

    python benchmarks/pool.py [--num-envs 8 16] [--seconds 15]

A step takes between 20 and 80 ms, at random, asleep as if a game ran elsewhere; the policy is
`nano`. Lock-step is gymnasium's `AsyncVectorEnv`: a process each, too, but every step waits for
the slowest. The pool is measured for several `inference_batch_size`s; variants take turns, and
each turn is timed alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms.env_pool import ProcessEnvs
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.acting import InferenceSession

LATENCY_S = (0.02, 0.08)
SIDE = 64
TURN_S = 3.0
"""How long a variant plays before it is the next one's turn."""
LOCK_STEP = "lock-step (AsyncVectorEnv)"

Act = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, np.ndarray]]


class SlowEnv(gym.Env):
    """Sleeps through its steps."""

    def __init__(self, seed: int) -> None:
        """Make the spaces."""
        image = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        self.observation_space = gym.spaces.Dict(image=image)
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )
        self._rng = np.random.default_rng(seed)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Begin the only episode."""
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sleep."""
        time.sleep(self._rng.uniform(*LATENCY_S))
        return self._observe(), 0.0, False, False, {}

    def _observe(self) -> dict[str, np.ndarray]:
        return {"image": self._rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)}


def main() -> None:
    """Measure and print a table per number of environments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--seconds", type=float, default=15.0, help="per variant")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for num_envs in arguments.num_envs:
        measure(num_envs, max(1, round(arguments.seconds / TURN_S)))


def measure(num_envs: int, turns: int) -> None:
    """Let the variants play in turns."""
    makers = [partial(SlowEnv, i) for i in range(num_envs)]
    lock_step = LockStep(makers)
    pool = Pool(makers)
    variants = {LOCK_STEP: lock_step.play}
    for size in sorted({1, num_envs // 4, num_envs // 2}):
        variants[f"pool, inference_batch_size={size}"] = partial(pool.play, size)
    rates: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(turns + 1):
        for name, play in variants.items():
            rate = play()
            if turn:  # the first warms up
                rates[name].append(rate)
    lock_step.close()
    pool.close()

    table = Table("what", "env steps/s", "min", "max", "ratio", title=f"{num_envs} environments")
    base = statistics.median(rates[LOCK_STEP])
    for name, found in rates.items():
        median = statistics.median(found)
        numbers = [f"{number:.0f}" for number in (median, min(found), max(found))]
        table.add_row(name, *numbers, f"{median / base:.2f}")
    Console().print(table)


class LockStep:
    """All environments, then the policy, then all environments."""

    def __init__(self, makers: list[Any]) -> None:
        """Start the environments."""
        self._envs = gym.vector.AsyncVectorEnv(makers)
        self._obs, _ = self._envs.reset()
        self._act = policy(len(makers))
        self._rows = np.arange(len(makers))

    def play(self) -> float:
        """Play for a turn; returns steps per second."""
        first = np.zeros(len(self._rows), np.bool_)
        started, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < TURN_S:
            tokens = self._act(self._rows, self._obs["image"], first)
            action = {name: values[:, None] for name, values in tokens.items()}
            self._obs = self._envs.step(action)[0]
            steps += len(self._rows)
        return steps / elapsed

    def close(self) -> None:
        """End the environments."""
        self._envs.close()


class Pool:
    """The policy acts for those that are ready."""

    def __init__(self, makers: list[Any]) -> None:
        """Start the environments."""
        self._pool = ProcessEnvs(makers, gamma=1.0)
        self._pool.reset()
        self._act = policy(len(makers))

    def play(self, batch_size: int) -> float:
        """Play for a turn; returns steps per second."""
        started, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < TURN_S:
            step = self._pool.recv(batch_size)
            self._pool.send(step.rows, self._act(step.rows, step.obs["image"], ~step.answered))
            steps += len(step.rows)
        return steps / elapsed

    def close(self) -> None:
        """End the environments."""
        self._pool.close()


def policy(num_envs: int) -> Act:
    """An untrained `nano`, acting for any of so many environments."""
    options = {"preset": "nano", "img_shape": [SIDE, SIDE, 3]}
    session = InferenceSession(VPTNetwork(VPTConfig.from_options(options)), num_envs)

    def act(rows: np.ndarray, obs: np.ndarray, first: np.ndarray) -> dict[str, np.ndarray]:
        which = None if len(rows) == num_envs else torch.from_numpy(rows)
        decision = session.act(torch.from_numpy(obs), torch.from_numpy(first), rows=which)
        return {name: tokens[:, 0].numpy() for name, tokens in decision.actions.items()}

    return act


if __name__ == "__main__":
    main()
