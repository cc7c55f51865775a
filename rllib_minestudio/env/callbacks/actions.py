"""PrevAction, MaskActions: the last action as an observation, and keys held at fixed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import KEYS, EnvAction, check_env_action
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.errors import InvalidActionError
from rllib_minestudio.foundation.options import Problems

ENV_PREV_ACTION = "env_prev_action"
"""Key of the observation."""

_CAMERA = "camera"
_MAX_DEGREES = 180.0
"""Largest turn in MineStudio's action space, either way."""


class PrevActionCallback(MinecraftCallback):
    """Adds the previous action, which led to the observation, under `env_prev_action`.

    It is a mapping with a number for each key, 0 or 1, () int64, and an array for `camera`, (pitch,
    yaw) in degrees, (2,) float64; all are zero after a reset. Every step has all keys, whereas
    MineStudio's callback has only those of the action. It holds the agent's action as changed by
    the callbacks listed before this one, so list `MaskActions` first.

    Degrees beyond 180, which the game accepts from `MaskActions` and from callers who send keys,
    are reported as 180.
    """

    def __init__(self) -> None:
        self.prev_action: EnvAction = {}

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of an action."""
        keys: dict[str, gym.Space] = {key: gym.spaces.Discrete(2) for key in KEYS}
        camera = gym.spaces.Box(-_MAX_DEGREES, _MAX_DEGREES, (2,), np.float64)
        return {ENV_PREV_ACTION: gym.spaces.Dict({**keys, _CAMERA: camera})}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Add an action that does nothing."""
        self.prev_action = {}
        return {**obs, ENV_PREV_ACTION: _told({})}, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Remember the action."""
        self.prev_action = action
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
        """Add the action."""
        obs = {**obs, ENV_PREV_ACTION: _told(self.prev_action)}
        return obs, reward, terminated, truncated, info


def _told(action: EnvAction) -> dict[str, Any]:
    """Return every key of an action, pressed or not, and its camera, as NumPy types."""
    # Callbacks may have inserted arrays of one element.
    told: dict[str, Any] = {key: np.int64(np.asarray(action.get(key, 0)).item()) for key in KEYS}
    camera = np.asarray(action.get(_CAMERA, (0.0, 0.0)), np.float64).reshape(2)
    told[_CAMERA] = np.clip(camera, -_MAX_DEGREES, _MAX_DEGREES)
    return told


# -------------------------------------------------------------------------------------- MaskActions
# Keys held at fixed values, whatever the agent does.


class MaskActionsCallback(MinecraftCallback):
    """Overrides parts of every environment action, such as `inventory=0`."""

    def __init__(self, **action_settings: Any) -> None:
        """Check and keep the overrides.

        Args:
            **action_settings: Key name -> 0 or 1; `camera` -> (pitch, yaw) in degrees.

        Raises:
            InvalidOptionsError: If a key is unknown or a value impossible; lists all problems.
        """
        problems = Problems()
        for key, value in action_settings.items():
            if key not in KEYS and key != "camera":
                problems.unknown("key", key, (*KEYS, "camera"))
                continue
            try:
                check_env_action({key: value})
            except InvalidActionError as error:
                problems.messages.append(str(error))
        problems.raise_if_any()
        self.action_settings = action_settings

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Return the action with the overrides in place."""
        return {**action, **self.action_settings}

    def __repr__(self) -> str:
        return f"MaskActionsCallback(**{self.action_settings!r})"
