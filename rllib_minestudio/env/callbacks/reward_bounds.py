"""What the callbacks of a task promise about its returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rllib_minestudio.env.callbacks.builder import CALLBACKS, check_callbacks
from rllib_minestudio.env.callbacks.compose import Compose
from rllib_minestudio.env.callbacks.gate_rewards import GateRewardsCallback
from rllib_minestudio.env.callbacks.rewards import RewardsCallback
from rllib_minestudio.env.callbacks.tech_tree import TechTreeRewardsCallback

_BOUNDED = (RewardsCallback, TechTreeRewardsCallback)
_MAY_CHANGE_REWARDS = (Compose, GateRewardsCallback)


def highest_return(specs: Sequence[Any]) -> float | None:
    """Return what no episode's undiscounted return exceeds; no class of a user's is built for it.

    Args:
        specs: The environment's callbacks, as for `build_callbacks`.

    Returns:
        The limit of the last `Rewards` or `TechTreeRewards`; None if there is none, if it pays for
        something each time, or if a callback behind it may change the reward.

    Raises:
        InvalidOptionsError: If any name is unknown or any argument wrong; lists all problems.
    """
    bound = None
    for callback in check_callbacks(specs):
        if isinstance(callback, _BOUNDED):
            highest = callback.highest_return
            bound = highest if math.isfinite(highest) else None
        elif type(callback) not in CALLBACKS.values() or isinstance(callback, _MAY_CHANGE_REWARDS):
            bound = None
    return bound
