"""The hooks of MineStudio's simulator loop, and the base class of callbacks.

A callback is any object with some of the methods named in `HOOKS`; inheriting from
`MinecraftCallback` is a convenience. Hooks receive the simulator (`MinecraftSim`) first and may
use `sim.env` (`execute_cmd`, `step`, `seed`, `action_space.no_op`), `sim.np_random` (the only
source of randomness, so that seeds reproduce episodes), `sim.obs`, `sim.info`,
`sim.already_reset`, `sim.callback_messages` and `sim._wrap_obs_info`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rllib_minestudio.env.actions import EnvAction
    from rllib_minestudio.env.simulator import MinecraftSim

Obs = dict[str, Any]
Info = dict[str, Any]
StepResult = tuple[Obs, float, bool, bool, Info]
"""Observation, reward, terminated, truncated, info."""

HOOKS = (
    "before_step",
    "after_step",
    "before_reset",
    "after_reset",
    "before_close",
    "after_close",
    "before_render",
    "after_render",
)


class MinecraftCallback:
    """Changes the simulator's behaviour at fixed points of its loop; by default not at all."""

    def before_step(self, sim: MinecraftSim, action: EnvAction) -> EnvAction:
        """Return the environment action to send instead of `action`."""
        return action

    def after_step(
        self,
        sim: MinecraftSim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Return what the step is to report."""
        return obs, reward, terminated, truncated, info

    def before_reset(self, sim: MinecraftSim, reset_flag: bool) -> bool:
        """Return whether the game itself has to be reset; False vetoes it."""
        return reset_flag

    def after_reset(self, sim: MinecraftSim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Prepare the episode; return its first observation and info."""
        return obs, info

    def before_close(self, sim: MinecraftSim) -> None:
        """Clean up while the game still runs."""

    def after_close(self, sim: MinecraftSim) -> None:
        """Clean up after the game has ended."""

    def before_render(self, sim: MinecraftSim, image: np.ndarray) -> np.ndarray:
        """Return the frame, uint8 (H, W, 3), to show instead of `image`."""
        return image

    def after_render(self, sim: MinecraftSim, image: np.ndarray) -> np.ndarray:
        """Like `before_render`, after all callbacks have had their first turn."""
        return image

    def __repr__(self) -> str:
        """Return the class name."""
        return f"{type(self).__name__}()"


def bound_hooks(callbacks: Iterable[Any], name: str) -> list[Callable[..., Any]]:
    """Return hook `name` of each callback that really has one.

    Hooks inherited unchanged from `MinecraftCallback` are left out: a step need not pay for
    them.
    """
    default = getattr(MinecraftCallback, name)
    hooks = (getattr(callback, name, None) for callback in callbacks)
    return [hook for hook in hooks if hook and getattr(hook, "__func__", None) is not default]
