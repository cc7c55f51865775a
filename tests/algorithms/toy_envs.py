"""Small environments with VPT's spaces, for tests of learning that take seconds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

IMAGE_SIZE = 16
ATTACK_STRIDE = 4
"""The attack bit of a buttons token: the groups after it are jump (2) and camera (2)."""


def tiny_model(**overrides: Any) -> dict[str, Any]:
    """Options of the smallest useful network for these environments."""
    return {
        "preset": "nano",
        "img_shape": [IMAGE_SIZE, IMAGE_SIZE, 3],
        "hidsize": 32,
        "attention_heads": 2,
        "n_recurrence_layers": 1,
        "attention_memory_size": 24,
        "timesteps": 16,
        **overrides,
    }


class AttackOnRed(gym.Env):
    """Reward 1 for attacking while the image is red and for not attacking while it is blue.

    Config:
        length: Steps per episode (default 20); the end is a truncation.
        delay: The colour is shown only every `delay`-th step and counts until the next showing, so
            that more than one needs memory (default 1).
        nan_reward_at: The step of this instance's life whose reward is NaN; -1 for all steps.
        worker_index, vector_index: Make each instance's episodes differ.
    """

    def __init__(self, config: Any = None) -> None:
        config = config or {}
        self._length = config.get("length", 20)
        self._delay = config.get("delay", 1)
        self._nan_reward_at = config.get("nan_reward_at")
        self._steps = 0
        self._seed = (
            config.get("seed", 0),
            getattr(config, "worker_index", 0),
            getattr(config, "vector_index", 0),
        )
        self._rng = np.random.default_rng(self._seed)
        shape = (IMAGE_SIZE, IMAGE_SIZE, 3)
        self.observation_space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, shape, np.uint8))
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._t = 0
        return self._observe(), {}

    def step(self, action: dict[str, Any]) -> tuple[Any, float, bool, bool, dict]:
        token = int(np.asarray(action["buttons"]).item())
        attacks = token < 8640 and bool(token // ATTACK_STRIDE % 2)
        reward = float(attacks == self._red)
        if self._nan_reward_at in (-1, self._steps):
            reward = float("nan")
        self._t += 1
        self._steps += 1
        return self._observe(), reward, False, self._t >= self._length, {}

    def _observe(self) -> dict[str, np.ndarray]:
        image = np.zeros(self.observation_space["image"].shape, np.uint8)
        if self._t % self._delay == 0:
            self._red = bool(self._rng.random() < 0.5)
            image[..., 0 if self._red else 2] = 255
        return {"image": image}
