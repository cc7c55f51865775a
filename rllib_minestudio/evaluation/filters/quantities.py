"""The numbers of an episode that conditions compare."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.option_checks import not_a_choice

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.filters.world_facts import WorldFact

INFO_SHORTHANDS = {
    "x": "player_pos.x",
    "y": "player_pos.y",
    "z": "player_pos.z",
    "health": "health",
    "food_level": "food_level",
}
"""Short names of numbers in the last info, by their paths."""

_NOTHING = ("none", "air")
"""Types of empty slots."""


class Quantity(ABC):
    """A number that an episode has; its text form is `str` of it."""

    @abstractmethod
    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the episode's number; None if it has none, which meets no comparison."""

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return the facts of the world that have to be in the info."""
        return frozenset()


class Measure(Quantity):
    """One of `MEASURES`: `return`."""

    def __init__(self, name: str) -> None:
        """Take the measure called `name`."""
        if name not in MEASURES:
            raise InvalidOptionsError(not_a_choice("measure", name, MEASURES))
        self.name = name

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the measure."""
        return MEASURES[self.name](episode)

    def __str__(self) -> str:
        """Return the text form."""
        return self.name


class Statistic(Quantity):
    """What the game counted in the episode: `kill_entity:cow`."""

    def __init__(self, statistic: str, pattern: str) -> None:
        """Take a sum of counters.

        Args:
            statistic: Info key that holds counters, such as `mine_block`.
            pattern: Shell pattern of the names to sum over, such as `*_ore`; names count with
                and without `minecraft:`.
        """
        self.statistic, self.pattern = statistic, pattern

    def measured(self, episode: EvaluatedEpisode) -> float:
        """Return the sum of the matching counters; 0 if the game has counted nothing."""
        counters = episode.counter(self.statistic)
        return sum(count for name, count in counters.items() if matches(name, self.pattern))

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.statistic}:{self.pattern}"


class InfoValue(Quantity):
    """A number of the last info: `info:player_pos.y`."""

    def __init__(self, path: str) -> None:
        """Take the entry at `path`, keys separated by dots."""
        self.path = path

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the entry; None if there is none, or it is no number."""
        return _number(episode.info, self.path)

    def __str__(self) -> str:
        """Return the text form."""
        shorthands = {full: short for short, full in INFO_SHORTHANDS.items()}
        return shorthands.get(self.path, f"info:{self.path}")


class Has(Quantity):
    """How many of an item the player has: `has:oak_planks`."""

    def __init__(self, pattern: str) -> None:
        """Take the items whose names fit the shell pattern.

        What is worn or in the off hand, whose number no info tells, counts as one.
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
        """Return the text form."""
        return f"has:{self.pattern}"


def matches(name: str, pattern: str) -> bool:
    """Return whether a name of Minecraft, with or without `minecraft:`, fits a shell pattern."""
    return fnmatchcase(name, pattern) or fnmatchcase(name.removeprefix("minecraft:"), pattern)


def lookup(info: Mapping[str, Any], path: str) -> Any:
    """Return the entry at a dotted path, None if there is none."""
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
    """Yield the stacks that are carried, and what is worn or in the off hand."""
    carried, equipped = info.get("inventory", {}), info.get("equipped_items", {})
    yield from (stack for stack in carried.values() if stack["type"] not in _NOTHING)
    for place, stack in equipped.items():
        if place != "mainhand" and stack["type"] not in _NOTHING:
            yield {"type": stack["type"], "quantity": 1}


def _moved(episode: EvaluatedEpisode, axis: str) -> float | None:
    """Return how far the player is from where it began along an axis, in blocks."""
    path = INFO_SHORTHANDS[axis]
    before, now = _number(episode.first_info, path), _number(episode.info, path)
    return None if before is None or now is None else now - before


def _distance(episode: EvaluatedEpisode) -> float | None:
    """Return the horizontal distance from where the player began, in blocks."""
    x, z = _moved(episode, "x"), _moved(episode, "z")
    return None if x is None or z is None else math.hypot(x, z)


def _alive(episode: EvaluatedEpisode) -> float | None:
    """Return the steps lived so far; 0 for a player who is dead."""
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
"""Numbers that every episode has, those of the player where the info tells its state."""
