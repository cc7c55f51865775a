"""Inventory: how many of some items the player carries, as a part of the observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gymnasium as gym
import numpy as np

from rllib_minestudio.env.backends.minecraft.items import STACK_SIZES
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.errors import did_you_mean
from rllib_minestudio.option_checks import Problems

INVENTORY = "inventory"
"""Key of the observation."""

MOST = 64
"""Where counts end; more is told as this many."""


class InventoryCallback(MinecraftCallback):
    """Adds how many of some items the player carries to the observation, under `inventory`.

    It is one number per item, in their order, (n,) float32: the count divided by 64, at most 1.
    What hangs on the cursor of an open screen or lies in its grid is not counted, nor what is worn.
    MineRL's tasks such as `ObtainDiamond` tell their agents the same (Guss et al. 2019, "MineRL").
    In a small frame, the numbers in the slots cannot be read.
    """

    def __init__(self, items: Sequence[str]) -> None:
        """Check and keep the argument.

        Args:
            items: Names of items. Example: `[oak_log, oak_planks, stick]`.

        Raises:
            InvalidOptionsError: If it is no list of different items of Minecraft 1.16.
        """
        problems = Problems()
        if isinstance(items, str) or not isinstance(items, Sequence) or not items:
            problems.add("items", items, "must be a list of items")
        else:
            for name in items:
                if not isinstance(name, str) or name not in STACK_SIZES:
                    hint = did_you_mean(str(name), STACK_SIZES)
                    problems.messages.append(f"items: Minecraft 1.16 has no item {name!r}.{hint}")
            if len(set(map(str, items))) < len(items):
                problems.add("items", list(items), "must name every item once")
        problems.raise_if_any()
        self.items = tuple(items)

    def observation_spaces(self) -> Mapping[str, gym.Space]:
        """Return the space of the counts."""
        return {INVENTORY: gym.spaces.Box(0.0, 1.0, (len(self.items),), np.float32)}

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Tell what the episode begins with."""
        return {**obs, INVENTORY: self._shares(info)}, info

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Tell what there is after the step."""
        return {**obs, INVENTORY: self._shares(info)}, reward, terminated, truncated, info

    def _shares(self, info: Info) -> np.ndarray:
        counts = dict.fromkeys(self.items, 0)
        for stack in info["inventory"].values():
            if stack["type"] in counts:
                counts[stack["type"]] += stack["quantity"]
        return np.minimum(np.array(list(counts.values()), np.float32) / MOST, 1.0)

    def __repr__(self) -> str:
        """Show the argument."""
        return f"InventoryCallback({list(self.items)!r})"
