"""Environments of the kinds that are not MineStudio's, which check the actions that they get."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Checking(gym.Env):
    """Random observations; the reward is 1 if all numbers of the action are 0.

    Config:
        length: Steps per episode (default 6); it ends by termination and by truncation in turn.
    """

    def __init__(self, config: Any = None) -> None:
        self._length = (config or {}).get("length", 6)
        self.observation_space = copy.deepcopy(self.observation_space)  # seeded for itself
        self._episode = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._t = 0
        self._episode += 1
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action), action
        self._t += 1
        ends = self._t == self._length
        terminated, truncated = ends and self._episode % 2 == 0, ends and self._episode % 2 == 1
        reward = float(not spaces.flatten(self.action_space, action)[1:].any())
        return self.observation_space.sample(), reward, terminated, truncated, {}


class Pictures(Checking):
    """Small frames without a name; two numbers per action."""

    observation_space = spaces.Box(0, 255, (20, 24, 3), np.uint8)
    action_space = spaces.MultiDiscrete([3, 2])


class Mixed(Checking):
    """Observations of several parts, and actions of several entries that count from elsewhere."""

    observation_space = spaces.Dict(
        room=spaces.Discrete(5, start=2),
        inner=spaces.Dict(speed=spaces.Box(-9.0, 9.0, (3,), np.float64)),
        doors=spaces.MultiBinary(4),
    )
    action_space = spaces.Dict(
        way=spaces.Discrete(3, start=-1),
        arms=spaces.MultiDiscrete([2, 4], start=[0, 1]),
        jump=spaces.MultiBinary(2),
    )


class Steering(Checking):
    """Its actions are numbers."""

    observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)


class Talking(Checking):
    """Its observations are texts among other things."""

    observation_space = spaces.Dict(room=spaces.Discrete(3), said=spaces.Text(9))
    action_space = spaces.Discrete(2)
