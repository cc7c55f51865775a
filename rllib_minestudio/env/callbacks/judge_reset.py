"""JudgeReset: the time limit of an episode."""

from __future__ import annotations

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.option_checks import Problems, is_integer

_LONGEST = 10**9
"""Steps of an episode: a year and a half of play."""


class JudgeResetCallback(MinecraftCallback):
    """Truncates an episode after a number of steps.

    MineStudio reports `terminated` instead. The difference matters to learners: the return does
    not end at a time limit, so the value of the last observation still counts.
    """

    def __init__(self, time_limit: int = 600) -> None:
        """Check and keep the limit.

        Args:
            time_limit: Steps per episode; 20 are one second of game time.

        Raises:
            InvalidOptionsError: If it is not an integer of at least 1.
        """
        problems = Problems()
        if not is_integer(time_limit) or not 1 <= time_limit <= _LONGEST:
            problems.add("time_limit", time_limit, f"must be an integer from 1 to {_LONGEST}")
        problems.raise_if_any()
        self.time_limit = time_limit
        self.time_step = 0

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Start counting."""
        self.time_step = 0
        return obs, info

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Count, and truncate at the limit an episode that has not ended by itself."""
        self.time_step += 1
        if self.time_step >= self.time_limit and not terminated:
            truncated = True
        return obs, reward, terminated, truncated, info

    def __repr__(self) -> str:
        """Show the limit."""
        return f"JudgeResetCallback(time_limit={self.time_limit})"
