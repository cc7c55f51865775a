"""Cursor: where the hand has moved the cursor of an open screen, as a part of the observation."""

from __future__ import annotations

from collections.abc import Mapping

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult

CURSOR = "cursor"
"""Key of the observation."""

_DEGREES_TO_EDGE = np.array([180 * 360 / 2400, 320 * 360 / 2400])
"""Turn of the camera, (pitch, yaw), from the middle of the 640 x 360 window to its edges: MineRL's
cursor moves by 2400/360 pixels per degree."""


class CursorCallback(MinecraftCallback):
    """Adds the place of a screen's cursor to the observation, under `cursor`.

    It is (open, right, down), (3,) float32: 1 while a screen is open, and the way from the middle
    of the window, where -1 and 1 are its edges. All are zero while no screen is open.

    The place is what a player's hand knows, not what the game tells: every screen opens with the
    cursor in the middle, and from there on the camera's part of each action moves it. Callbacks
    that change actions come first, such as `MaskActions`.
    """

    def __init__(self) -> None:
        """Begin without a screen."""
        self._open = False
        self._place = np.zeros(2)
        self._turn = np.zeros(2)

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of the place."""
        low = np.array([0, -1, -1], np.float32)
        return {CURSOR: gym.spaces.Box(low, np.ones(3, np.float32))}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Begin in the middle."""
        self._open = False
        return {**obs, CURSOR: self._followed(info)}, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Remember how the mouse moves."""
        self._turn = np.asarray(action.get("camera", (0.0, 0.0)), np.float64).reshape(2)
        return action

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Tell the place."""
        return {**obs, CURSOR: self._followed(info)}, reward, terminated, truncated, info

    def _followed(self, info: Info) -> np.ndarray:
        """Return the place after the step that led to `info`."""
        was_open, self._open = self._open, bool(info["isGuiOpen"])
        if not self._open:
            return np.zeros(3, np.float32)
        if was_open:
            self._place = np.clip(self._place + self._turn / _DEGREES_TO_EDGE, -1, 1)
        else:
            self._place = np.zeros(2)
        down, right = self._place
        return np.array([1, right, down], np.float32)
