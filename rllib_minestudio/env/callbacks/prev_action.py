"""PrevAction: what the agent has just done, as a part of the observation."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.actions import KEYS, EnvAction
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult

ENV_PREV_ACTION = "env_prev_action"
"""Key of the observation."""

_CAMERA = "camera"


class PrevActionCallback(MinecraftCallback):
    """Adds the action that led to an observation to it, under `env_prev_action`.

    It is a mapping with one array for each key, 0 or 1, () int64, and for `camera`, (pitch, yaw)
    in degrees, (2,) float64; all are zero after a reset. Every step has all keys, whereas
    MineStudio's has those that the action has. It holds what callbacks listed before this one have
    made of the agent's action, so list `MaskActions` first.

    Other callbacks find it in `sim.obs`. The observations of `MineStudioEnv` are frames only: the
    policies of this package do not see the previous action, and a warning says so.
    """

    def __init__(self) -> None:
        """Begin with no action."""
        self.prev_action: EnvAction = {}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Tell that nothing was done."""
        self.prev_action = {}
        return {**obs, ENV_PREV_ACTION: _as_arrays({})}, info

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
        """Tell the action."""
        obs = {**obs, ENV_PREV_ACTION: _as_arrays(self.prev_action)}
        return obs, reward, terminated, truncated, info


def _as_arrays(action: EnvAction) -> dict[str, np.ndarray]:
    """Return every key of an action, pressed or not, and its camera, in fresh arrays."""
    arrays = {key: np.array(action.get(key, 0), np.int64) for key in KEYS}
    arrays[_CAMERA] = np.array(action.get(_CAMERA, (0.0, 0.0)), np.float64)
    return arrays
