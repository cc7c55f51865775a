"""TechTreeRewards: VPT's reward for the way from a log to a diamond pickaxe.

    log -> planks -> stick, crafting table -> wooden pickaxe -> cobblestone -> stone pickaxe
        -> furnace, coal, torch, iron ore -> iron ingot -> iron pickaxe -> diamond -> its pickaxe

The items, how many of each are paid and what each one pays are in `tech_tree.csv`, after the
appendix on fine-tuning by reinforcement learning of Baker et al., "Video PreTraining (VPT)", 2022.
Its columns:

    item     name in `info["tech_tree"]` and in `limits`
    paid     how many are paid per episode; empty: all
    each     what one pays
    crafted  pattern of the names that count in `craft_item`, or
    picked   pattern of the names that count in `pickup`, as far as they come from
    mined    blocks of these names in `mine_block`
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.option_checks import Problems, is_integer, is_number

TECH_TREE = "tech_tree"
"""Info key: {item: how many the agent has obtained in this episode}, paid or not."""

_STATISTICS = ("craft_item", "pickup", "mine_block", "use_item")
"""What is looked at; most steps change none of it, and then cost a comparison only."""
_LARGEST_SCALE = 1e6


class TechTreeItem(NamedTuple):
    """A row of the table; the columns are described above.

    Attributes:
        name: Of the item or group of items.
        paid: How many are paid per episode; None if all are.
        each: What one pays.
        crafted: Patterns of items that count when crafted or smelted; empty if it is gathered.
        picked: Patterns of items that count when picked up.
        mined: Patterns of the blocks that they must come from.
    """

    name: str
    paid: int | None
    each: Fraction
    crafted: tuple[str, ...]
    picked: tuple[str, ...]
    mined: tuple[str, ...]


def _read_items() -> tuple[TechTreeItem, ...]:
    text = Path(__file__).with_name("tech_tree.csv").read_text(encoding="utf-8")
    return tuple(
        TechTreeItem(
            row["item"],
            int(row["paid"]) if row["paid"] else None,
            Fraction(row["each"]),
            tuple(row["crafted"].split()),
            tuple(row["picked"].split()),
            tuple(row["mined"].split()),
        )
        for row in csv.DictReader(text.splitlines())
    )


TECH_TREE_ITEMS = _read_items()
"""In the order in which they are obtained."""


class TechTreeRewardsCallback(MinecraftCallback):
    """Replaces the reward of each step by what VPT pays for items on the way to diamond tools.

    Per episode: logs 8 x 1/8, planks 20 x 1/20, sticks 16 x 1/16, crafting table 1, wooden pickaxe
    1, cobblestone 11 x 1/11, stone pickaxe 1, furnace 1, coal 5 x 2/5, torches 16 x 1/8, iron ore
    3 x 4/3, iron ingots 3 x 4/3, iron pickaxe 4; diamonds 8/3 and diamond pickaxes 8, each time.
    All kinds of wood count together. Every info has the counts under `tech_tree`.

    An item is obtained by the agent's own work, and only once:

    - Planks, sticks, tables, tools, furnaces, torches and ingots when they are crafted or smelted,
      as Minecraft's statistic `craft_item` counts them. It counts an ingot when it is taken out of
      the furnace with the mouse, and not if a hotbar key takes it or the furnace is broken; and
      it counts a tool repaired from two as one more.
    - Logs, cobblestone, coal, iron ore and diamonds when they are picked up, but never more than
      the agent has mined of their blocks, less those that it placed. So what is thrown away and
      picked up again, placed and mined again, given by a command or taken out of a chest pays
      nothing.
    """

    def __init__(self, scale: float = 1.0, limits: Mapping[str, int | None] | None = None) -> None:
        """Check and keep the arguments.

        Args:
            scale: What every payment is multiplied by.
            limits: How many of an item are paid per episode, instead of VPT's number, by item;
                null pays for all. Example: `{"diamond": 3, "diamond_pickaxe": 1, "torch": 0}`.

        Raises:
            InvalidOptionsError: If an argument has a wrong type or value; lists all problems.
        """
        problems = Problems()
        if not is_number(scale) or not 0.0 < scale <= _LARGEST_SCALE:
            problems.add("scale", scale, f"must be a number above 0, at most {_LARGEST_SCALE:g}")
        limits = {} if limits is None else limits
        _check_limits(problems, limits)
        problems.raise_if_any()
        self.scale, self.limits = float(scale), dict(limits)
        self._paid = {item.name: self.limits.get(item.name, item.paid) for item in TECH_TREE_ITEMS}
        self._tallies: list[_Crafted | _Gathered] = []
        self._statistics: list[Any] = []

    @property
    def highest_return(self) -> float:
        """What an episode pays at most; infinite where an item is paid each time."""
        return math.fsum(
            math.inf if self._paid[item.name] is None else self._worth(item, math.inf)
            for item in TECH_TREE_ITEMS
        )

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Take the present counts as zero: a fast reset does not clear the game's statistics."""
        self._statistics = []
        self._tallies = [
            _Crafted(item, info) if item.crafted else _Gathered(item, info)
            for item in TECH_TREE_ITEMS
        ]
        return obs, {**info, TECH_TREE: self._counts()}

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Pay for what was obtained since the previous step."""
        earned = 0.0
        statistics = [info.get(name) for name in _STATISTICS]
        changed, self._statistics = statistics != self._statistics, statistics
        for tally in self._tallies if changed else ():
            before = tally.obtained
            tally.update(info)
            if tally.obtained > before:
                earned += self._worth(tally.item, tally.obtained) - self._worth(tally.item, before)
        return obs, earned, terminated, truncated, {**info, TECH_TREE: self._counts()}

    def _counts(self) -> dict[str, int]:
        return {tally.item.name: tally.obtained for tally in self._tallies}

    def _worth(self, item: TechTreeItem, obtained: float) -> float:
        """What so many of an item pay in an episode."""
        limit = self._paid[item.name]
        units = obtained if limit is None else min(obtained, limit)
        return float(units * item.each) * self.scale

    def __repr__(self) -> str:
        """Show the arguments."""
        return f"TechTreeRewardsCallback(scale={self.scale}, limits={self.limits!r})"


class _Crafted:
    """How many of an item were crafted or smelted since the episode began."""

    def __init__(self, item: TechTreeItem, info: Info) -> None:
        self.item, self.obtained = item, 0
        self._at_first = self._count(info)

    def update(self, info: Info) -> None:
        """Take in a step."""
        self.obtained = max(self.obtained, self._count(info) - self._at_first)

    def _count(self, info: Info) -> int:
        return _counted(info, "craft_item", self.item.crafted)


class _Gathered:
    """How many of an item were mined and picked up since the episode began.

    The most that there has been at any step of the lesser of two numbers, each since the reset:

        picked            what was picked up, for the first time or not
        mined - placed    blocks gone for good: one that is placed and mined again cancels out

    Both are states, not sums of changes: a statistic that arrives some steps late makes the payment
    late and not wrong.
    """

    def __init__(self, item: TechTreeItem, info: Info) -> None:
        self.item, self.obtained = item, 0
        self._picked_at_first, self._mined_at_first = self._picked(info), self._mined(info)

    def update(self, info: Info) -> None:
        """Take in a step."""
        picked = self._picked(info) - self._picked_at_first
        mined = self._mined(info) - self._mined_at_first
        self.obtained = max(self.obtained, min(picked, mined))

    def _picked(self, info: Info) -> int:
        return _counted(info, "pickup", self.item.picked)

    def _mined(self, info: Info) -> int:
        """Blocks mined less those placed, whose items have the blocks' names."""
        blocks = self.item.mined
        return _counted(info, "mine_block", blocks) - _counted(info, "use_item", blocks)


def _counted(info: Info, statistic: str, patterns: tuple[str, ...]) -> int:
    """Return what a statistic of the game comes to for all names that fit a pattern."""
    counts = info.get(statistic) or {}
    return int(sum(count for name, count in counts.items() if _fits(name, patterns)))


@cache
def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _check_limits(problems: Problems, limits: object) -> None:
    """Note what is wrong with the limits."""
    if not isinstance(limits, Mapping):
        problems.add("limits", limits, "must be a mapping from items to numbers")
        return
    names = [item.name for item in TECH_TREE_ITEMS]
    for name, limit in limits.items():
        if name not in names:
            problems.unknown("item in limits", name, names)
        elif limit is not None and (not is_integer(limit) or limit < 0):
            rule = "must be an integer of at least 0, or null to pay for all"
            problems.add(f"limits.{name}", limit, rule)
