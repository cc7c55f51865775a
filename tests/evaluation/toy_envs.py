"""Small environments with VPT's spaces whose outcome is known."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from tests.algorithms.toy_envs import IMAGE_SIZE


class CoinToss(gym.Env):
    """Succeeds with probability one half, whatever is done; a success is over much sooner.

    Config:
        success_length: Steps of a success (default 3).
        failure_length: Steps of a failure (default 30).
        die_at: Dotted as "SEED_PARITY"; see `Fragile`.
    """

    def __init__(self, config: Any = None) -> None:
        config = config or {}
        self._lengths = (config.get("failure_length", 30), config.get("success_length", 3))
        self._rng = np.random.default_rng((config.get("seed", 0), config.vector_index))
        shape = (IMAGE_SIZE, IMAGE_SIZE, 3)
        self.observation_space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, shape, np.uint8))
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._succeeds = bool(self._rng.random() < 0.5)
        self._length = self._lengths[self._succeeds]
        self._t = 0
        self._trace = 0
        return self._observe(), {"task": "heads" if seed and seed % 2 else "tails"}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        self._t += 1
        self._trace = hash((self._trace, int(action["buttons"]), int(action["camera"])))
        done = self._t >= self._length
        info = {"success": self._succeeds, "trace": self._trace} if done else {}
        return self._observe(), float(done and self._succeeds), done, False, info

    def _observe(self) -> dict[str, np.ndarray]:
        shape = self.observation_space["image"].shape
        return {"image": self._rng.integers(256, size=shape, dtype=np.uint8)}


class TellsModules(CoinToss):
    """Tells which modules its process has imported."""

    def reset(self, **arguments: Any) -> tuple[Any, dict]:
        obs, info = super().reset(**arguments)
        return obs, {**info, "task": " ".join(sys.modules)}


class Fragile(CoinToss):
    """Fails in its third step, or in its reset, in some episodes and attempts.

    Config:
        folder: Where each attempt at an episode leaves a file, by its seed.
        failures: So many attempts fail (default 1).
        in_reset: Whether the reset fails instead of a step.
        exits: Whether the whole process ends.
    """

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self._config = config

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        result = super().reset(seed=seed)
        attempts = Path(self._config["folder"], str(seed))
        with attempts.open("a") as file:
            file.write(".")
        fails = seed % 3 == 0 and attempts.stat().st_size <= self._config.get("failures", 1)
        if fails and self._config.get("in_reset", False):
            raise RuntimeError("no world")
        self._fails = fails
        return result

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        if self._fails and self._t == 2:
            if self._config.get("exits", False):
                os._exit(1)
            raise RuntimeError("lost the world")
        return super().step(action)


class Slow(CoinToss):
    """The first environment's steps take until one of the others has ended an episode.

    Config:
        folder: Where the others leave a file then.
    """

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self._sign = Path(config["folder"], "ended")
        self._is_slow = config.vector_index == 0

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        deadline = time.monotonic() + 120
        while self._is_slow and not self._sign.exists():
            if time.monotonic() > deadline:
                raise RuntimeError("kept waiting")
            time.sleep(0.01)
        result = super().step(action)
        if result[2]:
            self._sign.touch()
        return result
