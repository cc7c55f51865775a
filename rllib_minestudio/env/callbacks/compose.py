"""Compose: several callbacks as one, all of them or a random few per episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from rllib_minestudio.env.callbacks.declared import declared_spaces
from rllib_minestudio.option_checks import Problems, is_integer, is_list

ALL = -1


class Compose(MinecraftCallback):
    """Runs `callbacks` in order, or `options` of them drawn anew for every episode.

    Unlike MineStudio's, it runs `after_render` (not `before_render` twice), closes every
    callback, and draws from the simulator's generator.

    Where a few are drawn, what they add to observations has to be there whichever they are: of n
    callbacks, more than n - `options` must declare it, such as each of several `TaskFile`s. All
    else is refused when the environment is built.
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
            InvalidOptionsError: Some draws would lack a part; lists all problems.
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
        """Show what is composed."""
        return f"Compose({self.callbacks!r}, options={self.options})"
