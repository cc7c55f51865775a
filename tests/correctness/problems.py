"""Environments with VPT's spaces whose answers are known in closed form."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from tests.algorithms.toy_envs import ATTACK_STRIDE, IMAGE_SIZE


class Problem(gym.Env):
    """Base: spaces of VPT, images of one colour.

    Config:
        size: Of the images, in pixels.
    """

    def __init__(self, config: Any = None) -> None:
        self.config = dict(config or {})
        size = self.config.get("size", IMAGE_SIZE)
        shape = (size, size, 3)
        self.observation_space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, shape, np.uint8))
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )
        self._rng = np.random.default_rng(
            (getattr(config, "worker_index", 0), getattr(config, "vector_index", 0))
        )

    def image(self, red: int, green: int = 0, blue: int = 0) -> dict[str, np.ndarray]:
        """An observation of one colour."""
        image = np.empty(self.observation_space["image"].shape, np.uint8)
        image[:] = red, green, blue
        return {"image": image}

    @staticmethod
    def attacks(action: dict[str, Any]) -> bool:
        """Whether an action presses the attack key."""
        token = int(np.asarray(action["buttons"]).item())
        return token < 8640 and bool(token // ATTACK_STRIDE % 2)


class RewardOne(Problem):
    """Reward 1 at every step; all observations look the same.

    Config:
        length: Steps per episode; None: it never ends.
        end: "truncated" or "terminated".
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        self._t = 0
        return self.image(128), {}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        self._t += 1
        ends = self._t == self.config.get("length")
        how = self.config.get("end", "truncated")
        return self.image(128), 1.0, ends and how == "terminated", ends and how == "truncated", {}


class Noise(Problem):
    """Every frame is a colour of its own, rewards are noise: numbers that tell steps apart.

    Config:
        length: Steps per episode, which a time limit cuts (default 11).
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        self._t = 0
        return self._observe(), {}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        self._t += 1
        truncated = self._t == self.config.get("length", 11)
        return self._observe(), float(self._rng.normal()), False, truncated, {}

    def _observe(self) -> dict[str, np.ndarray]:
        return self.image(*self._rng.integers(0, 256, 3))


class Bandit(Problem):
    """Two arms: reward 1 for attacking, else 0; every step is an episode."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        return self.image(128), {}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        return self.image(128), float(self.attacks(action)), True, False, {}


class Recall(Problem):
    """Red or blue is shown at first, then grey; after `distance` steps it pays to remember.

    Reward 1 at the last step of an episode for attacking after red, or for not attacking after
    blue; 0 at all others.

    Config:
        distance: Steps between what is seen and what it is needed for.
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        self._t = 0
        self._red = bool(self._rng.random() < 0.5)
        return self.image(255 * self._red, 0, 255 * (not self._red)), {}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        ends = self._t == self.config["distance"]
        self._t += 1
        reward = float(ends and self.attacks(action) == self._red)
        return self.image(128, 128, 128), reward, ends, False, {}
