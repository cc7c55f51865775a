"""The conditions that filters consist of, and the quantities they compare."""

from __future__ import annotations

import importlib
import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from rllib_minestudio.env.voxel.data import NAMESPACE
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import STATUS, YES, EvaluatedEpisode
from rllib_minestudio.foundation.options import not_a_choice

# ------------------------------------------------------------------- filters and their combinations

NO = "no"


class EpisodeFilter(ABC):
    """A condition on episodes.

    Example:
        >>> class Rich(EpisodeFilter):
        ...     def accepts(self, episode):
        ...         return episode.undiscounted_return > 10
        >>> hunter_or_rich = Rich() | parse_filter("kill_entity:cow>=3")

    Attributes:
        label: Name of the label that `filter` writes; its value is `yes` or `no`.
    """

    label: str = STATUS

    @abstractmethod
    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the episode meets the condition."""

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the world facts that the info must contain; see `WORLD_FACTS`."""
        return frozenset()

    def filter(self, episodes: Iterable[EvaluatedEpisode]) -> Iterator[EvaluatedEpisode]:
        """Label episodes as they arrive; none is dropped.

        An episode in which the environment failed for good is labelled `no`.
        """
        for episode in episodes:
            answer = YES if episode.error is None and self.accepts(episode) else NO
            yield replace(episode, labels={**episode.labels, self.label: answer})

    def __and__(self, other: EpisodeFilter) -> EpisodeFilter:
        """Return the condition that both hold."""
        return AllOf(self, other)

    def __or__(self, other: EpisodeFilter) -> EpisodeFilter:
        """Return the condition that at least one holds."""
        return AnyOf(self, other)

    def __invert__(self) -> EpisodeFilter:
        """Return the condition that this one does not hold."""
        return Not(self)


class Every(EpisodeFilter):
    """The filter that accepts every episode."""

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return True."""
        return True

    def __str__(self) -> str:
        """Return a description; this filter has no text form."""
        return "every episode"


class AllOf(EpisodeFilter):
    """The filter that accepts what all of its parts accept."""

    def __init__(self, *parts: EpisodeFilter) -> None:
        """Combine `parts`; evaluation stops at the first that refuses."""
        self.parts = parts

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether all parts accept the episode."""
        return all(part.accepts(episode) for part in self.parts)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the facts that any part needs."""
        return _facts_of(self.parts)

    def __str__(self) -> str:
        return " and ".join(_bracketed(part, AnyOf) for part in self.parts)


class AnyOf(EpisodeFilter):
    """The filter that accepts what at least one of its parts accepts."""

    def __init__(self, *parts: EpisodeFilter) -> None:
        """Combine `parts`; evaluation stops at the first that accepts."""
        self.parts = parts

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether any part accepts the episode."""
        return any(part.accepts(episode) for part in self.parts)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the facts that any part needs."""
        return _facts_of(self.parts)

    def __str__(self) -> str:
        return " or ".join(str(part) for part in self.parts)


class Not(EpisodeFilter):
    """The filter that accepts what its part refuses."""

    def __init__(self, part: EpisodeFilter) -> None:
        self.part = part

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the part refuses the episode."""
        return not self.part.accepts(episode)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the facts that the part needs."""
        return self.part.needed_facts()

    def __str__(self) -> str:
        return f"not {_bracketed(self.part, AnyOf, AllOf)}"


def _bracketed(part: EpisodeFilter, *weaker: type) -> str:
    """Return the text of `part`, in brackets if its operator binds less tightly (`weaker`)."""
    return f"({part})" if isinstance(part, weaker) else str(part)


def _facts_of(parts: Iterable[EpisodeFilter]) -> frozenset[WorldFact]:
    return frozenset().union(*(part.needed_facts() for part in parts))


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}

FLAGS: dict[str, Callable[[EvaluatedEpisode], bool]] = {
    "success": lambda episode: bool(episode.success),
    "terminated": lambda episode: episode.terminated,
    "truncated": lambda episode: episode.truncated,
}
"""Conditions that need no comparison, by name."""

_ARMOUR = ("head", "chest", "legs", "feet")
"""Armour slots in `equipped_items`."""


class Threshold(EpisodeFilter):
    """Comparison of an episode's quantity with a constant: `kill_entity:cow>=3`."""

    def __init__(self, quantity: Quantity, comparison: str, number: float) -> None:
        """Take a quantity, a key of `COMPARISONS`, and the constant."""
        if comparison not in COMPARISONS:
            raise InvalidOptionsError(not_a_choice("comparison", comparison, COMPARISONS))
        self.quantity, self.comparison, self.number = quantity, comparison, number

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the comparison holds."""
        value = self.quantity.measured(episode)
        return value is not None and COMPARISONS[self.comparison](value, self.number)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the facts that the quantity needs."""
        return self.quantity.needed_facts()

    def __str__(self) -> str:
        return f"{self.quantity}{self.comparison}{self.number:g}"


class OutcomeFlag(EpisodeFilter):
    """One of `FLAGS`: `success`."""

    def __init__(self, name: str) -> None:
        if name not in FLAGS:
            raise InvalidOptionsError(not_a_choice("flag", name, FLAGS))
        self.name = name

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return the flag."""
        return FLAGS[self.name](episode)

    def __str__(self) -> str:
        return self.name


class Task(EpisodeFilter):
    """Test of the task's name: `task:hunt_*`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the name matches."""
        return fnmatchcase(episode.task, self.pattern)

    def __str__(self) -> str:
        return f"task:{self.pattern}"


class HeldItem(EpisodeFilter):
    """Test of the item in the main hand at the end: `held:*_sword`."""

    PATH = "equipped_items.mainhand.type"

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the item's name matches."""
        item = lookup(episode.info, self.PATH)
        return isinstance(item, str) and matches(item, self.pattern)

    def __str__(self) -> str:
        return f"held:{self.pattern}"


class WornItem(EpisodeFilter):
    """Test of the armour that the player wears at the end: `worn:iron_helmet`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the name of any worn item matches."""
        worn = [lookup(episode.info, f"equipped_items.{place}.type") for place in _ARMOUR]
        return any(isinstance(item, str) and matches(item, self.pattern) for item in worn)

    def __str__(self) -> str:
        return f"worn:{self.pattern}"


class FunctionFilter(EpisodeFilter):
    """A user's function: `function:my_package.my_module.is_good`."""

    def __init__(self, path: str) -> None:
        """Import the function.

        Args:
            path: Dotted path of a function from an `EvaluatedEpisode` to a bool.

        Raises:
            InvalidOptionsError: It cannot be imported, or is not a function.
        """
        self.path = path
        module, _, name = path.replace(":", ".").rpartition(".")
        try:
            function = getattr(importlib.import_module(module or name), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidOptionsError(
                f"the filter function {path!r} cannot be imported: {error}"
            ) from error
        if not callable(function):
            raise InvalidOptionsError(f"the filter function {path!r} is no function: {function!r}.")
        self._function = function

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return the function's answer."""
        return bool(self._function(episode))

    def __str__(self) -> str:
        return f"function:{self.path}"


# ------------------------------------------------ the numbers of an episode that conditions compare

INFO_SHORTHANDS = {
    "x": "player_pos.x",
    "y": "player_pos.y",
    "z": "player_pos.z",
    "health": "health",
    "food_level": "food_level",
}
"""Short name -> path of a number in the last info."""

_NOTHING = ("none", "air")
"""Item types of empty slots."""


class Quantity(ABC):
    """A number that can be measured of an episode; `str` returns its text form."""

    @abstractmethod
    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the number, or None if the episode has none; None fails every comparison."""

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the world facts that the info must contain."""
        return frozenset()


class Measure(Quantity):
    """One of `MEASURES`: `return`."""

    def __init__(self, name: str) -> None:
        if name not in MEASURES:
            raise InvalidOptionsError(not_a_choice("measure", name, MEASURES))
        self.name = name

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the measure."""
        return MEASURES[self.name](episode)

    def __str__(self) -> str:
        return self.name


class Statistic(Quantity):
    """A sum of the game's counters over the episode: `kill_entity:cow`."""

    def __init__(self, statistic: str, pattern: str) -> None:
        """Choose the counters to sum.

        Args:
            statistic: Info key of the counters, such as `mine_block`.
            pattern: Shell pattern of the names to sum over, such as `*_ore`; names match with or
                without `minecraft:`.
        """
        self.statistic, self.pattern = statistic, pattern

    def measured(self, episode: EvaluatedEpisode) -> float:
        """Return the sum of the matching counters; 0 if the game has counted nothing."""
        counters = episode.counter(self.statistic)
        return sum(count for name, count in counters.items() if matches(name, self.pattern))

    def __str__(self) -> str:
        return f"{self.statistic}:{self.pattern}"


class InfoValue(Quantity):
    """A number in the last info: `info:player_pos.y`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the entry, or None if it is missing or not a number."""
        return _number(episode.info, self.path)

    def __str__(self) -> str:
        shorthands = {full: short for short, full in INFO_SHORTHANDS.items()}
        return shorthands.get(self.path, f"info:{self.path}")


class Has(Quantity):
    """The number of items of a kind that the player has: `has:oak_planks`."""

    def __init__(self, pattern: str) -> None:
        """Count the items whose names match a shell pattern.

        Worn items and the off hand, whose quantities infos do not contain, count as one item each.
        """
        self.pattern = pattern

    def measured(self, episode: EvaluatedEpisode) -> float:
        """Return the sum of the matching stacks."""
        return sum(
            stack["quantity"]
            for stack in _stacks(episode.info)
            if matches(stack["type"], self.pattern)
        )

    def __str__(self) -> str:
        return f"has:{self.pattern}"


def matches(name: str, pattern: str) -> bool:
    """Return whether a Minecraft name, with or without `minecraft:`, matches a shell pattern."""
    return fnmatchcase(name, pattern) or fnmatchcase(name.removeprefix(NAMESPACE), pattern)


def lookup(info: Mapping[str, Any], path: str) -> Any:
    """Return the entry at a dotted path, or None."""
    entry: Any = info
    for key in path.split("."):
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(key, entry.get(int(key)) if key.isdigit() else None)
    return entry


def _number(info: Mapping[str, Any], path: str) -> float | None:
    entry = lookup(info, path)
    return float(entry) if isinstance(entry, (int, float)) else None


def _stacks(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the stacks in the inventory, worn, and in the off hand."""
    carried, equipped = info.get("inventory", {}), info.get("equipped_items", {})
    yield from (stack for stack in carried.values() if stack["type"] not in _NOTHING)
    for place, stack in equipped.items():
        if place != "mainhand" and stack["type"] not in _NOTHING:
            yield {"type": stack["type"], "quantity": 1}


def _moved(episode: EvaluatedEpisode, axis: str) -> float | None:
    """Return the player's displacement since the reset along an axis, in blocks."""
    path = INFO_SHORTHANDS[axis]
    before, now = _number(episode.first_info, path), _number(episode.info, path)
    return None if before is None or now is None else now - before


def _distance(episode: EvaluatedEpisode) -> float | None:
    """Return the player's horizontal distance from its starting point, in blocks."""
    x, z = _moved(episode, "x"), _moved(episode, "z")
    return None if x is None or z is None else math.hypot(x, z)


def _alive(episode: EvaluatedEpisode) -> float | None:
    """Return the episode's length in steps, or 0 if the player is dead."""
    health = _number(episode.info, INFO_SHORTHANDS["health"])
    if health is None:
        return None
    return episode.length if health > 0 else 0


MEASURES: dict[str, Callable[[EvaluatedEpisode], float | None]] = {
    "return": lambda episode: episode.undiscounted_return,
    "length": lambda episode: episode.length,
    "seconds": lambda episode: episode.seconds,
    "distance": _distance,
    "height": lambda episode: _moved(episode, "y"),
    "alive": _alive,
}
"""Numbers of every episode; those about the player need its state in the info."""


# ----------------------------------------------- facts of the world: blocks, containers, structures
# Infos do not contain these facts. The judge of a benchmark task queries the game for those that
# the task's condition names, and stores them in the info under `WORLD_FACTS` and the fact's key.

WORLD_FACTS = "world_facts"
"""Info key: a mapping from `WorldFact.key` to a number."""

PLACED, BLOCK, CHEST, MOBS = "placed", "block", "chest", "mobs"
STRUCTURE, INSIDE = "structure", "inside"

Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Inclusive bounds of x, y and z relative to the player's starting point, in blocks."""

NEAR_NAME = "near"
NEAR: Box = ((-8, 8), (-8, 8), (-8, 8))

FARTHEST = 48
"""Largest distance from the starting point, in blocks; chunks farther away may be unloaded."""
MOST_BLOCKS = 32768
"""Most blocks in a box, which is the limit of `/fill`."""

_SPAN = re.compile(r"([-+]?\d{1,4})(?:\.\.([-+]?\d{1,4}))?")
_RULE = (
    f"must be @{NEAR_NAME}, or @x0..x1,y0..y1,z0..z1 in whole blocks from where the player began, "
    f"lowest first, at most {FARTHEST} away and {MOST_BLOCKS} blocks in all"
)


@dataclass(frozen=True)
class WorldFact:
    """A number that must be queried from the game.

    Attributes:
        kind: `placed`: blocks in the box that match now but did not at the reset; `block`: blocks
            in the box that match; `chest`: items in nearby chests; `mobs`: living mobs near by;
            `structure`: named structures that exist now but did not at the reset; `inside`: 1 if
            the block at the player's feet or head matches.
        pattern: Shell pattern of the names, or the structure's name.
        box: The box to search; None for the kinds without one.
    """

    kind: str
    pattern: str
    box: Box | None = None

    @cached_property
    def key(self) -> str:
        """Its key in the info, which is also its text form."""
        place = "" if self.box is None else f"@{_box_text(self.box)}"
        return f"{self.kind}:{self.pattern}{place}"


class WorldQuantity(Quantity):
    """The number of a world fact, as the judge stored it: `placed:oak_planks@near`."""

    def __init__(self, fact: WorldFact) -> None:
        self.fact = fact

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the number, or None if the game was not queried for it."""
        told = episode.info.get(WORLD_FACTS, {}).get(self.fact.key)
        return None if told is None else float(told)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the fact."""
        return frozenset({self.fact})

    def __str__(self) -> str:
        return self.fact.key


class Inside(EpisodeFilter):
    """Test of the block that the player is in: `inside:water`."""

    def __init__(self, pattern: str) -> None:
        """Take the shell pattern of block names, tested at the player's feet and head."""
        self._told = WorldQuantity(WorldFact(INSIDE, pattern))

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the block at the player's feet or head matched."""
        return bool(self._told.measured(episode))

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the fact."""
        return self._told.needed_facts()

    def __str__(self) -> str:
        return str(self._told)


def located_fact(kind: str, text: str) -> WorldFact:
    """Parse the pattern and box of a fact, such as `oak_planks@-3..3,0..4,2`.

    Raises:
        InvalidOptionsError: There is no pattern or no box, or the box is too large.
    """
    pattern, _, box = text.partition("@")
    if not pattern:
        raise InvalidOptionsError(f"expected a name or a pattern after '{kind}:'")
    return WorldFact(kind, pattern, _read_box(box))


def _read_box(text: str) -> Box:
    """Parse `near`, or three spans.

    Raises:
        InvalidOptionsError: It is neither, or too large.
    """
    if text == NEAR_NAME:
        return NEAR
    found = [_SPAN.fullmatch(part) for part in text.split(",")]
    if len(found) != 3 or not all(found):
        raise InvalidOptionsError(f"the box {'@' + text!r} {_RULE}")
    spans = [(int(m[1]), int(m[1] if m[2] is None else m[2])) for m in found if m]
    volume = 1
    for low, high in spans:
        if not -FARTHEST <= low <= high <= FARTHEST:
            raise InvalidOptionsError(f"the box {'@' + text!r} {_RULE}")
        volume *= high - low + 1
    if volume > MOST_BLOCKS:
        raise InvalidOptionsError(f"the box {'@' + text!r} {_RULE}")
    x, y, z = spans
    return x, y, z


def _box_text(box: Box) -> str:
    """Return the text of a box, as `_read_box` parses it."""
    if box == NEAR:
        return NEAR_NAME
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in box)


# ------------------------------------------------------------------------------ MineStudio's filter


class InfoBaseFilter(EpisodeFilter):
    """A filter that labels an episode `yes` if a sum of the game's counters reaches a threshold.

    Like MineStudio's `InfoBaseFilter` (inference/filter/info_base_filter.py), except that counts
    from before the episode's reset are subtracted, and that other episodes are labelled `no`.

    Example:
        >>> InfoBaseFilter(key="mine_block", regex=".*diamond_ore.*", num=1)
    """

    def __init__(
        self,
        key: str,
        regex: str | None = None,
        num: int = 1,
        label: str = STATUS,
        *,
        val: str = "",
    ) -> None:
        """Set the condition.

        Args:
            key: Info key of a statistic, such as `mine_block`.
            regex: Regular expression that names must match from their beginning.
            num: The least sum of the matching counts.
            label: Name of the label.
            val: Instead of `regex`, one exact name, as in older versions of MineStudio.

        Raises:
            InvalidOptionsError: The regular expression is invalid, or both or neither of `regex`
                and `val` are given.
        """
        if (regex is None) == (not val):
            raise InvalidOptionsError(
                f"InfoBaseFilter takes either regex or val; got regex={regex!r}, val={val!r}."
            )
        expression = f"{re.escape(val)}$" if regex is None else regex
        try:
            self._regex = re.compile(expression)
        except re.error as error:
            raise InvalidOptionsError(
                f"InfoBaseFilter: regex is {regex!r}, which is no regular expression: {error}."
            ) from error
        self.key, self.regex, self.num, self.label = key, expression, num, label

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the sum reaches `num`."""
        counters = episode.counter(self.key)
        return sum(n for name, n in counters.items() if self._regex.match(name)) >= self.num

    def __str__(self) -> str:
        """Return the arguments; the text form has no regular expressions."""
        return f"InfoBaseFilter(key={self.key!r}, regex={self.regex!r}, num={self.num})"
