"""The hooks of MineStudio's simulator loop, and the base class of callbacks.

A callback is any object with some of the methods named in `HOOKS`; inheriting from
`MinecraftCallback` is a convenience. Hooks receive the simulator as their first argument, and may
use what `Sim` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.backends.protocol import Backend
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import IMAGE, parts_of
from rllib_minestudio.foundation.options import Problems, is_integer, is_list, shown

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


# ----------------------- Compose: several callbacks as one, all of them or a random few per episode

ALL = -1


class Compose(MinecraftCallback):
    """Runs `callbacks` in order, or `options` of them, drawn again for every episode.

    Unlike MineStudio's, it runs `after_render` (not `before_render` twice), closes every callback,
    and draws from the simulator's generator.

    If only some are drawn, every draw must add the same keys to observations: of n callbacks, more
    than n - `options` must declare a key, as several `TaskFile`s do. Anything else is refused when
    the environment is built.
    """

    def __init__(self, callbacks: Sequence[Any], options: int = ALL) -> None:
        """Check and keep the arguments.

        Args:
            callbacks: Objects with some of the callback hooks.
            options: How many of them take part in an episode; -1 means all.

        Raises:
            InvalidOptionsError: If `options` is not -1 or between 0 and the number of callbacks.
        """
        problems = Problems()
        if not is_list(callbacks):
            problems.add("callbacks", callbacks, "must be a list")
        elif not is_integer(options) or not ALL <= options <= len(callbacks):
            rule = f"must be -1 (all) or an integer from 0 to the {len(callbacks)} callbacks"
            problems.add("options", options, rule)
        problems.raise_if_any()
        self.callbacks = list(callbacks)
        self.options = options
        self.activate_callbacks: list[Any] = []

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return what every episode's callbacks add to observations.

        Raises:
            InvalidOptionsError: If some draws would lack a key; lists all problems.
        """
        spaces = declared_spaces(self.callbacks)
        if self.options == ALL:
            return spaces
        problems = Problems("Compose")
        of_each = [declared_spaces([callback]) for callback in self.callbacks]
        for key in spaces:
            without = sum(key not in declared for declared in of_each)
            if without >= self.options:
                problems.add(
                    "options",
                    self.options,
                    f"can draw callbacks without {key!r}, which is declared by "
                    f"{len(of_each) - without} of {len(of_each)}: list what declares it outside "
                    "of the Compose",
                )
        problems.raise_if_any()
        return spaces

    def before_reset(self, sim: Sim, reset_flag: bool) -> bool:
        """Draw the callbacks of the coming episode and ask them about the reset."""
        if self.options == ALL:
            self.activate_callbacks = self.callbacks
        else:
            chosen = sim.np_random.permutation(len(self.callbacks))[: self.options]
            self.activate_callbacks = [self.callbacks[i] for i in sorted(chosen)]
        for hook in bound_hooks(self.activate_callbacks, "before_reset"):
            reset_flag = hook(sim, reset_flag)
        return reset_flag

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Let the active callbacks prepare the episode."""
        for hook in bound_hooks(self.activate_callbacks, "after_reset"):
            obs, info = hook(sim, obs, info)
            sim.obs, sim.info = obs, info  # for the next one, as the simulator does
        return obs, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Pass the action through the active callbacks."""
        for hook in bound_hooks(self.activate_callbacks, "before_step"):
            action = hook(sim, action)
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
        """Pass the step's results through the active callbacks."""
        result = (obs, reward, terminated, truncated, info)
        for hook in bound_hooks(self.activate_callbacks, "after_step"):
            result = hook(sim, *result)
            sim.obs, sim.info = result[0], result[4]
        return result

    def before_close(self, sim: Sim) -> None:
        """Tell every callback, active or not."""
        for hook in bound_hooks(self.callbacks, "before_close"):
            hook(sim)

    def after_close(self, sim: Sim) -> None:
        """Tell every callback, active or not."""
        for hook in bound_hooks(self.callbacks, "after_close"):
            hook(sim)

    def before_render(self, sim: Sim, image: np.ndarray) -> np.ndarray:
        """Pass the frame through the active callbacks."""
        for hook in bound_hooks(self.activate_callbacks, "before_render"):
            image = hook(sim, image)
        return image

    def after_render(self, sim: Sim, image: np.ndarray) -> np.ndarray:
        """Pass the frame through the active callbacks."""
        for hook in bound_hooks(self.activate_callbacks, "after_render"):
            image = hook(sim, image)
        return image

    def __repr__(self) -> str:
        return f"Compose({self.callbacks!r}, options={self.options})"


# ---------------------------------------------------- what callbacks declare to add to observations
# Their declarations, checked and merged.

METHOD = "observation_spaces"
"""Name of the declaring method, which takes no arguments and returns key -> space."""


def declared_spaces(callbacks: Iterable[Any]) -> dict[str, gym.Space]:
    """Return the spaces of everything that callbacks declare, by key.

    Args:
        callbacks: Objects; those without the method declare nothing.

    Raises:
        InvalidOptionsError: If a declaration is not a mapping from strings to spaces of numbers,
            names the frame, or contradicts another one; lists all problems.
    """
    problems = Problems("callbacks")
    found: dict[str, gym.Space] = {}
    owners: dict[str, str] = {}
    for callback in callbacks:
        try:
            spaces = _declaration(callback)
        except InvalidOptionsError as error:
            problems.include(error)
            continue
        for key, space in spaces.items():
            owner = owners.setdefault(key, type(callback).__name__)
            if found.setdefault(key, space) != space:
                problems.add(
                    f"{METHOD}() of {type(callback).__name__}",
                    space,
                    f"must agree with {owner}, which declares {key!r} as {shown(found[key])}: "
                    "rename one of the two, or give both the same arguments",
                )
    problems.raise_if_any()
    return found


def declaring(callbacks: Iterable[Any], key: str) -> str:
    """Return the name of the class of the first callback that declares `key`; "" if none does."""
    for callback in callbacks:
        if isinstance(callback, Compose):
            if name := declaring(callback.callbacks, key):
                return name
        elif key in _declaration(callback):
            return type(callback).__name__
    return ""


def declares(kind: Any) -> bool:
    """Return whether a callback or a callback class has a declaration of its own."""
    method = getattr(kind, METHOD, None)
    default = MinecraftCallback.observation_spaces
    return callable(method) and getattr(method, "__func__", method) is not default


def _declaration(callback: Any) -> Mapping[str, gym.Space]:
    """Return what one callback declares, checked on its own.

    Raises:
        InvalidOptionsError: If it is invalid.
    """
    if not declares(callback):
        return {}
    where = f"{METHOD}() of {type(callback).__name__}"
    try:
        spaces = getattr(callback, METHOD)()
    except InvalidOptionsError:
        raise
    except Exception as error:
        raise InvalidOptionsError(f"{where} raised {type(error).__name__}: {error}") from error
    problems = Problems()
    if not isinstance(spaces, Mapping):
        problems.add(where, spaces, "must return a mapping from keys to gymnasium spaces")
        spaces = {}
    for key, space in spaces.items():
        if key == IMAGE:
            problems.add(where, key, "must not declare the frame, which every observation has")
        elif not isinstance(space, gym.Space):
            problems.add(f"{where}, key {key!r},", space, "must be a gymnasium space")
        else:
            try:
                parts_of(_alone(key, space))
            except InvalidOptionsError as error:
                problems.messages.extend(f"{where}: {problem}" for problem in error.problems)
    problems.raise_if_any()
    return spaces


def _alone(key: Any, space: gym.Space) -> gym.spaces.Dict:
    """Return the space of observations with a single key.

    Raises:
        InvalidOptionsError: If the key is not a string, which gymnasium would accept.
    """
    if not isinstance(key, str):
        raise InvalidOptionsError(f"a key must be a text; got {shown(key)}.")
    return gym.spaces.Dict({key: space})
