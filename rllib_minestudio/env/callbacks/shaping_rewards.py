"""Shaping rewards: help on the way to a reward that chance alone hardly ever finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rllib_minestudio.env.callbacks.base import Info, Obs, StepResult
from rllib_minestudio.env.callbacks.rewards import RewardsCallback

if TYPE_CHECKING:
    from rllib_minestudio.env.simulator import MinecraftSim

SHAPING_REWARD = "shaping_reward"
"""Info key: how much of the step's reward is not the task's. Absent where there is no shaping."""


class ShapingRewardsCallback(RewardsCallback):
    """Adds to the reward, by the same kind of rules, and says how much of it is not the task's.

    The agent trains on the sum; episode returns leave the shaping out, so that they mean the same
    with and without it. Stands after `Rewards` in the list, which replaces the reward. MineStudio
    has no such callback: it starts from a policy that can already play.
    """

    def after_step(
        self,
        sim: MinecraftSim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Pay on top of what other callbacks paid."""
        earned = self._earned(info)
        info = {**info, SHAPING_REWARD: info.get(SHAPING_REWARD, 0.0) + earned}
        return obs, reward + earned, terminated, truncated, info
