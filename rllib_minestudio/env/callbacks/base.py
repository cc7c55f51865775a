"""The hooks of MineStudio's simulator loop, and the base class of callbacks.

A callback is any object with some of the methods named in `HOOKS`; inheriting from
`MinecraftCallback` is a convenience. Hooks receive the simulator as their first argument, and may
use what `Sim` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.backends.protocol import Backend

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


class Sim(Protocol):
    """What callbacks may use of the simulator, under MineStudio's names.

    Attributes:
        env: The game.
        np_random: The only source of randomness for callbacks, so that seeds reproduce episodes.
        obs: The latest observation: `image`, uint8 (H, W, 3), and what callbacks have added.
        info: The latest info, including the frame (`pov`).
        already_reset: Whether the game is running, so that a callback may veto a hard reset.
        is_restored: Whether the episode begins in a saved game, which callbacks leave as it is.
        callback_messages: Texts that callbacks want shown, such as help.
        obs_size: (width, height) of observations in pixels.
        render_size: (width, height) of rendered frames in pixels.
        worker_index: Index of the worker among those with the same options.
        vector_index: Index of the environment in its worker.
    """

    env: Backend
    np_random: np.random.Generator
    obs: Obs
    info: Info
    already_reset: bool
    is_restored: bool
    callback_messages: set[str]
    obs_size: tuple[int, int]
    render_size: tuple[int, int]
    worker_index: int
    vector_index: int

    def begin_in(self, snapshot: bytes) -> None:
        """Have the episode begin in a saved game; for `before_reset`, whose veto is implied.

        Raises:
            InvalidOptionsError: If the engine has no snapshots.
            SnapshotError: If the snapshot is damaged, or of another version; nothing has happened
                then.
        """

    def _wrap_obs_info(self, raw_obs: Mapping[str, Any], raw_info: Info) -> tuple[Obs, Info]:
        """Return the results of `env.step` as an observation and an info.

        Callbacks that step the game return its last step this way. The name is MineStudio's.
        """


class MinecraftCallback:
    """Base class of callbacks; its hooks change nothing.

    Attributes:
        summons_mobs: Whether it summons mobs in the episodes that it prepares. By default, there
            are no natural animals then: see `EnvOptions.natural_animals`. Any callback may have
            this attribute.
    """

    summons_mobs: bool = False

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return what this callback adds to every observation: key -> space.

        Called before the game starts. Declared keys reach policies and recordings, and must be in
        the observation of every reset and step. A space may be a `Box`, `Discrete`,
        `MultiDiscrete`, `MultiBinary`, or a `Dict` of these. Any callback may have this method,
        whatever it inherits from.
        """
        return {}

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Return the environment action to play instead of `action`."""
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
        """Return what the step is to report."""
        return obs, reward, terminated, truncated, info

    def before_reset(self, sim: Sim, reset_flag: bool) -> bool:
        """Return whether the game itself must be reset; False vetoes it."""
        return reset_flag

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Prepare the episode; return its first observation and info."""
        return obs, info

    def before_close(self, sim: Sim) -> None:
        """Clean up while the game still runs."""

    def after_close(self, sim: Sim) -> None:
        """Clean up after the game has ended."""

    def before_render(self, sim: Sim, image: np.ndarray) -> np.ndarray:
        """Return the frame, uint8 (H, W, 3), to show instead of `image`."""
        return image

    def after_render(self, sim: Sim, image: np.ndarray) -> np.ndarray:
        """Like `before_render`, but after the `before_render` of all callbacks."""
        return image

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def bound_hooks(callbacks: Iterable[Any], name: str) -> list[Callable[..., Any]]:
    """Return hook `name` of each callback that really has one.

    Hooks inherited unchanged from `MinecraftCallback` are left out, to save their cost in every
    step.
    """
    default = getattr(MinecraftCallback, name)
    hooks = (getattr(callback, name, None) for callback in callbacks)
    return [hook for hook in hooks if hook and getattr(hook, "__func__", None) is not default]
