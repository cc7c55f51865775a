"""Compose: several callbacks as one, all of them or a random few per episode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import (
    Info,
    MinecraftCallback,
    Obs,
    Sim,
    StepResult,
    bound_hooks,
)
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.observations import IMAGE, parts_of
from rllib_minestudio.foundation.options import Problems, is_integer, is_list, shown

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
