"""Rewards, TechTreeRewards, GateRewards: rewards for what the game counts or the world shows."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.callbacks.base import Info, MinecraftCallback, Obs, Sim, StepResult
from rllib_minestudio.env.callbacks.extra_observations import DEFAULT_BOX, VOXELS
from rllib_minestudio.env.voxel.game.statistics import STATISTICS
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.names import TASK
from rllib_minestudio.foundation.options import Problems, is_integer, is_list, is_number

_LARGEST_REWARD = 1e9


@dataclass(frozen=True)
class _Rule:
    """One entry of the reward configuration."""

    event: str
    identity: str
    objects: tuple[str, ...]
    reward: float
    max_reward_times: int
    task: str | None = None

    def count(self, info: Info) -> float:
        """Return how often the event has happened to any of the objects so far."""
        counts = info.get(self.event)
        if not counts:
            return 0.0
        return sum(float(counts.get(name, 0)) for name in self.objects)


class RewardsCallback(MinecraftCallback):
    """Replaces the reward of each step by what the rules pay for it.

    MineStudio pays once per step and rule, however often the event happened; here two cows killed
    in one tick earn two rewards. Each unit of the game's counter is paid; mind that some counters,
    such as `damage_dealt`, count in tenths. `max_reward_times` limits the payments per episode and
    identity. A rule with a `task` pays only in episodes of that task, for what happens in them; the
    callback that names the task, `Task` or `TaskFile`, must be listed before this one.
    """

    def __init__(self, reward_cfg: Sequence[Mapping[str, Any]]) -> None:
        """Check and keep the rules.

        Args:
            reward_cfg: One mapping per rule: `event` (one of `STATISTICS`), `objects` (names
                counted together), `reward` (paid per occurrence), `max_reward_times`,
                `identity` (rules of one identity share the limit) and, for a rule of one task only,
                `task` (its name). Example:
                `[{"event": "kill_entity", "objects": ["cow"], "reward": 1.0,
                "identity": "kill cow", "max_reward_times": 30}]`.

        Raises:
            InvalidOptionsError: If a rule is incomplete or of a wrong type; lists all problems.
        """
        problems = Problems()
        if not is_list(reward_cfg):
            problems.add("reward_cfg", reward_cfg, "must be a list of mappings")
            reward_cfg = []
        for i, entry in enumerate(reward_cfg):
            _check_rule(problems, f"reward_cfg[{i}]", entry)
        problems.raise_if_any()
        self.reward_cfg = [dict(entry) for entry in reward_cfg]
        self._rules = [
            _Rule(**{**entry, "objects": tuple(entry["objects"])}) for entry in self.reward_cfg
        ]
        self._counts = [0.0] * len(self._rules)
        self._times_paid: Counter[str] = Counter()

    @property
    def highest_return(self) -> float:
        """The most that the rules pay per episode: each identity's limit times its best rule."""
        tasks = {rule.task for rule in self._rules}
        return max((self._highest_return_of(task) for task in tasks), default=0.0)

    def _highest_return_of(self, task: str | None) -> float:
        paying = [rule for rule in self._rules if rule.task in (None, task)]
        highest = 0.0
        for identity in {rule.identity for rule in paying}:
            rules = [rule for rule in paying if rule.identity == identity]
            best = max(rule.reward for rule in rules)
            highest += max(0.0, best) * max(rule.max_reward_times for rule in rules)
        return highest

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Take the present counts as zero: a fast reset does not clear the game's statistics."""
        if TASK not in info and any(rule.task is not None for rule in self._rules):
            raise InvalidOptionsError(
                "Rewards has rules with a task, but no callback before it names the episode's: "
                "list Task or TaskFile before Rewards."
            )
        self._counts = [rule.count(info) for rule in self._rules]
        self._times_paid.clear()
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
        """Pay for what happened since the previous step."""
        earned = 0.0
        for i, rule in enumerate(self._rules):
            count = rule.count(info)
            happened = int(count - self._counts[i])
            self._counts[i] = count
            if happened <= 0 or rule.task not in (None, info.get(TASK)):
                continue
            payments = min(happened, rule.max_reward_times - self._times_paid[rule.identity])
            if payments > 0:
                self._times_paid[rule.identity] += payments
                earned += payments * rule.reward
        return obs, earned, terminated, truncated, info

    def __repr__(self) -> str:
        return f"RewardsCallback({self.reward_cfg!r})"


def _check_rule(problems: Problems, where: str, entry: Any) -> None:
    names = [field.name for field in fields(_Rule)]
    if not isinstance(entry, Mapping):
        problems.add(where, entry, f"must be a mapping with {', '.join(names[:-1])}")
        return
    task: Any = entry.get("task")
    if task is not None and (not isinstance(task, str) or not task):
        problems.add(f"{where}.task", task, "must be the name of a task, or be left out")
    problems.known(f"field of {where}", entry, names)
    problems.choice(f"{where}.event", entry.get("event"), STATISTICS)
    if not isinstance(entry.get("identity"), str):
        problems.add(f"{where}.identity", entry.get("identity"), "must be a string")
    objects: Any = entry.get("objects")
    if not is_list(objects) or not objects or not all(isinstance(name, str) for name in objects):
        problems.add(f"{where}.objects", objects, "must be a list of names, such as ['cow']")
    reward: Any = entry.get("reward")
    if not is_number(reward) or abs(reward) > _LARGEST_REWARD:
        rule = f"must be a number between {-_LARGEST_REWARD:g} and {_LARGEST_REWARD:g}"
        problems.add(f"{where}.reward", reward, rule)
    times: Any = entry.get("max_reward_times")
    if not is_integer(times) or times < 0:
        problems.add(f"{where}.max_reward_times", times, "must be an integer of at least 0")


# ---------------------------------------------------------------------------------- TechTreeRewards
# VPT's reward for the way from a log to a diamond pickaxe.
#
#     log -> planks -> stick, crafting table -> wooden pickaxe -> cobblestone -> stone pickaxe
#         -> furnace, coal, torch, iron ore -> iron ingot -> iron pickaxe -> diamond -> its pickaxe
#
# The items, how many of each are paid and what each one pays are in `tech_tree.csv`, after the
# appendix on fine-tuning by reinforcement learning of Baker et al., "Video PreTraining (VPT)",
# 2022. Its columns:
#
#     item     name in `info["tech_tree"]` and in `limits`
#     paid     how many are paid per episode; empty: all
#     each     reward for one
#     crafted  pattern of the names that count in `craft_item`, or
#     picked   pattern of the names that count in `pickup`, as far as they come from
#     mined    blocks of these names in `mine_block`

TECH_TREE = "tech_tree"
"""Info key: {item: how many the agent has obtained in this episode}, paid or not."""

_STATISTICS = ("craft_item", "pickup", "mine_block", "use_item")
"""The statistics used. Most steps change none of them, and cost a comparison only."""
_LARGEST_SCALE = 1e6


class TechTreeItem(NamedTuple):
    """A row of the table; the columns are described above.

    Attributes:
        name: Of the item or group of items.
        paid: How many are paid per episode; None if all are.
        each: Reward for one.
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
    1, cobblestone 11 x 1/11, stone pickaxe 1, furnace 1, coal 5 x 2/5, torches 16 x 1/8, iron ore 3
    x 4/3, iron ingots 3 x 4/3, iron pickaxe 4; diamonds 8/3 and diamond pickaxes 8, each time. All
    kinds of wood count together. Every info has the counts under `tech_tree`.

    Only items that the agent obtains by its own work count, and each only once:

    - Planks, sticks, tables, tools, furnaces, torches and ingots count when they are crafted or
      smelted, by Minecraft's statistic `craft_item`. It counts an ingot when it is taken out of the
      furnace with the mouse, but not if a hotbar key takes it or the furnace is broken; and it
      counts a tool repaired from two as one more.
    - Logs, cobblestone, coal, iron ore and diamonds count when they are picked up, but never more
      than the agent has mined of their blocks, less those that it placed. So items that are thrown
      away and picked up again, placed and mined again, given by a command or taken out of a chest
      pay nothing.
    """

    def __init__(self, scale: float = 1.0, limits: Mapping[str, int | None] | None = None) -> None:
        """Check and keep the arguments.

        Args:
            scale: What every payment is multiplied by.
            limits: By item, how many are paid per episode instead of VPT's number; null pays for
                all. Example: `{"diamond": 3, "diamond_pickaxe": 1, "torch": 0}`.

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
        """The most that an episode pays; infinite if an item is paid each time."""
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
        """Return what `obtained` of an item pay in an episode."""
        limit = self._paid[item.name]
        units = obtained if limit is None else min(obtained, limit)
        return float(units * item.each) * self.scale

    def __repr__(self) -> str:
        return f"TechTreeRewardsCallback(scale={self.scale}, limits={self.limits!r})"


class _Crafted:
    """How many of an item were crafted or smelted since the episode began."""

    def __init__(self, item: TechTreeItem, info: Info) -> None:
        self.item, self.obtained = item, 0
        self._at_first = self._count(info)

    def update(self, info: Info) -> None:
        self.obtained = max(self.obtained, self._count(info) - self._at_first)

    def _count(self, info: Info) -> int:
        return _counted(info, "craft_item", self.item.crafted)


class _Gathered:
    """How many of an item were mined and picked up since the episode began.

    The maximum so far of the lesser of two numbers, each counted since the reset:

        picked            items picked up, for the first time or not
        mined - placed    blocks gone for good: one that is placed and mined again cancels out

    Both are states, not sums of changes: a statistic that arrives some steps late delays the
    payment, but does not change it.
    """

    def __init__(self, item: TechTreeItem, info: Info) -> None:
        self.item, self.obtained = item, 0
        self._picked_at_first, self._mined_at_first = self._picked(info), self._mined(info)

    def update(self, info: Info) -> None:
        picked = self._picked(info) - self._picked_at_first
        mined = self._mined(info) - self._mined_at_first
        self.obtained = max(self.obtained, min(picked, mined))

    def _picked(self, info: Info) -> int:
        return _counted(info, "pickup", self.item.picked)

    def _mined(self, info: Info) -> int:
        """Return the blocks mined less those placed, whose items are named like the blocks."""
        blocks = self.item.mined
        return _counted(info, "mine_block", blocks) - _counted(info, "use_item", blocks)


def _counted(info: Info, statistic: str, patterns: tuple[str, ...]) -> int:
    """Return the sum of a game statistic over all names that match a pattern."""
    counts = info.get(statistic) or {}
    return int(sum(count for name, count in counts.items() if _fits(name, patterns)))


@cache
def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _check_limits(problems: Problems, limits: object) -> None:
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


# -------------------------------------------------------------------------------------- GateRewards
# Rewards for obsidian where the frame of a Nether portal needs it.

_WIDTH, _HEIGHT = 4, 5
"""Blocks of a portal's frame, corners included."""
_USEFUL_FRAME = 12
"""Blocks of a frame beyond which each further one counts twice."""
_PER_BLOCK = 0.1
"""What every block of obsidian in the box costs, so that none is wasted."""

_Place = tuple[int, int, int]

_FRAME = tuple(
    (across, up)
    for across in range(_WIDTH)
    for up in range(_HEIGHT)
    if across in (0, _WIDTH - 1) or up in (0, _HEIGHT - 1)
)
_OPENING = tuple((across, up) for across in (1, 2) for up in (1, 2, 3))


class GateRewardsCallback(MinecraftCallback):
    r"""Replaces the reward of each step by the progress towards a complete Nether portal.

    The reward is the difference of two steps' scores. The score is that of the best frame, 4 wide
    and 5 high, in the plane of x or of z, whose lower corner with the smallest coordinates is
    obsidian:

        # # # #      blocks of the frame (#) that are obsidian, those beyond 12 twice,
        # . . #    - blocks of the opening (.) that are obsidian,
        # . . #    - 0.1 for each block of obsidian in the box that is observed,
        # . . #
        # # # #

    and at least 0. Scores and rewards equal MineStudio's to the last bit, with two consequences:
    the first step pays for obsidian that stood there before, and an agent that walks away from a
    portal pays back what leaves the box.

    Two things differ. This callback requests the blocks itself if no callback before it does (a
    `Voxels` after it still sets the box); MineStudio's pays nothing without its `Voxels`. And if
    the game reports no blocks in a step, the score stays, where MineStudio's falls to 0.
    """

    def __init__(self) -> None:
        self._score = 0.0

    def after_reset(self, sim: Sim, obs: Obs, info: Info) -> tuple[Obs, Info]:
        """Reset the score: no blocks are known before the first step."""
        self._score = 0.0
        return obs, info

    def before_step(self, sim: Sim, action: EnvAction) -> EnvAction:
        """Request the blocks around the player."""
        return action if VOXELS in action else {**action, VOXELS: list(DEFAULT_BOX)}

    def after_step(
        self,
        sim: Sim,
        obs: Obs,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Info,
    ) -> StepResult:
        """Pay the difference of the scores."""
        earned = 0.0
        if VOXELS in info:
            score = gate_score(info[VOXELS])
            earned, self._score = score - self._score, score
        return obs, earned, terminated, truncated, info


def gate_score(voxels: Iterable[Mapping[str, Any]]) -> float:
    """Return the score of the best frame of a portal among blocks.

    Args:
        voxels: Blocks with `type`, a name, and `x`, `y`, `z`; as in `info["voxels"]`.
    """
    places = [(block["x"], block["y"], block["z"]) for block in voxels if _counts(block["type"])]
    obsidian = set(places)
    return max((0.0, *(_score(place, axis, obsidian) for place in places for axis in (0, 2))))


def _counts(name: str) -> bool:
    """Whether a block is obsidian; crying obsidian counts, as in MineStudio."""
    return "obsidian" in name


def _score(corner: _Place, axis: int, obsidian: set[_Place]) -> float:
    """Return the score of the frame that extends from `corner` along axis 0 (x) or 2 (z)."""
    x, y, z = corner

    def standing(parts: Iterable[tuple[int, int]]) -> int:
        if axis == 0:
            return sum((x + across, y + up, z) in obsidian for across, up in parts)
        return sum((x, y + up, z + across) in obsidian for across, up in parts)

    frame = standing(_FRAME)
    bonus = max(0, frame - _USEFUL_FRAME)
    return frame + bonus - standing(_OPENING) - _PER_BLOCK * len(obsidian)
