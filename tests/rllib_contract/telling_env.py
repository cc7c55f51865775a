"""An environment whose processes need not import Ray to know it."""

from __future__ import annotations

import numpy as np

from tests.algorithms.toy_envs import AttackOnRed


class Telling(AttackOnRed):
    """Tells its step in the info; raises in step 3 of its second episode if asked to."""

    def __init__(self, config=None):
        super().__init__(config)
        self._fails = (config or {}).get("fails", False)
        self._episode = 0

    def reset(self, *, seed=None, options=None):
        self._episode += 1
        obs, info = super().reset(seed=seed, options=options)
        return obs, {**info, "step": 0, "frame": np.zeros((8, 9, 3))}

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        if self._fails and self._episode == 2 and self._t == 3:
            raise RuntimeError("the game is gone")
        return obs, reward, terminated, truncated, {**info, "step": self._t}
