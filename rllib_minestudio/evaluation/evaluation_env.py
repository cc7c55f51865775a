"""The environment's side of an evaluation.

It runs in the environment's own process, which imports neither Ray nor torch: this is why it is
not part of `env_runner`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from rllib_minestudio.env.minestudio_env import blank_observation
from rllib_minestudio.env.recorder import EpisodeRecorder

EVALUATION = "evaluation"
"""Key in `reset`'s `options` that begins an episode, and key of the report in its last info."""


class StepLimit(gym.Wrapper):
    """Truncates an episode after `max_steps` of its reset options, if given."""

    _limit: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and restart the count."""
        self._limit, self._steps = (options or {}).get(EVALUATION, {}).get("max_steps"), 0
        return self.env.reset(seed=seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        reached = self._limit is not None and self._steps >= self._limit
        return obs, float(reward), terminated, truncated or (reached and not terminated), info


class EvaluationEnv(gym.Wrapper):
    """An environment that only begins episodes on request, and is parked otherwise.

    A pool resets an environment whenever an episode has ended. Here, only a reset whose options
    contain `EVALUATION` begins an episode. Any other reset parks the environment at no cost, so
    that no world is built for an environment without further episodes. A step of a parked
    environment truncates at once, whereupon the pool resets it, perhaps with an episode.
    """

    def __init__(self, env: gym.Env) -> None:
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
        """Play one step; the last info reports how the episode ended."""
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
    """Build an environment and wrap it."""
    return EvaluationEnv(make())
