"""The environment's side of an evaluation; it lives in the environment's own process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from rllib_minestudio.env.observation_space import blank_observation
from rllib_minestudio.env.recorder import EpisodeRecorder

EVALUATION = "evaluation"
"""Key of `reset`'s `options` that begins an episode, and of the last info that reports on it."""


class StepLimit(gym.Wrapper):
    """Truncates episodes after the number of steps that their reset's options name, if any."""

    _limit: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and count from 0."""
        self._limit, self._steps = (options or {}).get(EVALUATION, {}).get("max_steps"), 0
        return self.env.reset(seed=seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        reached = self._limit is not None and self._steps >= self._limit
        return obs, float(reward), terminated, truncated or (reached and not terminated), info


class EvaluationEnv(gym.Wrapper):
    """Plays an episode when told to, and is parked otherwise.

    A pool begins an episode whenever one has ended. Here only a reset whose options have an entry
    `EVALUATION` begins one. Any other reset parks the environment and costs nothing, so that an
    environment without further episodes does not build a world in vain. A step of a parked
    environment truncates at once, upon which the pool resets it, perhaps with an episode.
    """

    def __init__(self, env: gym.Env) -> None:
        """Wrap `env`, which is recorded when a reset asks for it."""
        super().__init__(EpisodeRecorder(StepLimit(env)))
        self._blank = blank_observation(env.observation_space)
        self._parked = True
        self._first_info: dict[str, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the episode that `options` describe, or park."""
        self._parked = EVALUATION not in (options or {})
        if self._parked:
            return self._blank, {}
        obs, self._first_info = self.env.reset(seed=seed, options=options)
        return obs, self._first_info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step; the last info says how the episode ended."""
        if self._parked:
            return self._blank, 0.0, False, True, {}
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            report = {
                "terminated": bool(terminated),
                "truncated": bool(truncated),
                "first_info": self._first_info,
            }
            info = {**info, EVALUATION: report}
        return obs, reward, terminated, truncated, info


def make_evaluation_env(make: Callable[[], gym.Env]) -> EvaluationEnv:
    """Build an environment and wrap it, in whatever process this is called."""
    return EvaluationEnv(make())
