"""The conditions that filters are made of."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters.base import EpisodeFilter
from rllib_minestudio.option_checks import not_a_choice

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}

MEASURES: dict[str, Callable[[EvaluatedEpisode], float]] = {
    "return": lambda episode: episode.undiscounted_return,
    "length": lambda episode: episode.length,
    "seconds": lambda episode: episode.seconds,
}
"""Numbers that every episode has."""

FLAGS: dict[str, Callable[[EvaluatedEpisode], bool]] = {
    "success": lambda episode: bool(episode.success),
    "terminated": lambda episode: episode.terminated,
    "truncated": lambda episode: episode.truncated,
}
"""Yes or no, by themselves."""

INFO_SHORTHANDS = {
    "x": "player_pos.x",
    "y": "player_pos.y",
    "z": "player_pos.z",
    "health": "health",
    "food_level": "food_level",
}
"""Short names of numbers in the last info, by their paths."""


class _Comparison(EpisodeFilter):
    """Compares a number of the episode with a constant."""

    subject: str

    def __init__(self, comparison: str, number: float) -> None:
        if comparison not in COMPARISONS:
            raise InvalidOptionsError(not_a_choice("comparison", comparison, COMPARISONS))
        self.comparison = comparison
        self.number = number

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the episode's number; None if it has none, which meets no comparison."""
        raise NotImplementedError

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the comparison holds."""
        value = self.measured(episode)
        return value is not None and COMPARISONS[self.comparison](value, self.number)

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.subject}{self.comparison}{self.number:g}"


class Measure(_Comparison):
    """Compares the return, the length or the duration: `return>=5`."""

    def __init__(self, name: str, comparison: str, number: float) -> None:
        """Compare `name`, one of `MEASURES`, with `number`."""
        super().__init__(comparison, number)
        if name not in MEASURES:
            raise InvalidOptionsError(not_a_choice("measure", name, MEASURES))
        self.subject = name

    def measured(self, episode: EvaluatedEpisode) -> float:
        """Return the measure."""
        return MEASURES[self.subject](episode)


class Statistic(_Comparison):
    """Compares what the game counted in the episode: `kill_entity:cow>=3`."""

    def __init__(self, statistic: str, pattern: str, comparison: str, number: float) -> None:
        """Compare a sum of counters with `number`.

        Args:
            statistic: Info key that holds counters, such as `mine_block`.
            pattern: Shell pattern of the names to sum over, such as `*_ore`; names count with
                and without `minecraft:`.
            comparison: One of `COMPARISONS`.
            number: What to compare with.
        """
        super().__init__(comparison, number)
        self.statistic, self.pattern = statistic, pattern
        self.subject = f"{statistic}:{pattern}"

    def measured(self, episode: EvaluatedEpisode) -> float:
        """Return the sum of the matching counters; 0 if the game has counted nothing."""
        counters = episode.counter(self.statistic)
        return sum(count for name, count in counters.items() if matches(name, self.pattern))


class InfoValue(_Comparison):
    """Compares a number of the last info: `info:player_pos.y<12`."""

    def __init__(self, path: str, comparison: str, number: float) -> None:
        """Compare the entry at `path`, keys separated by dots, with `number`."""
        super().__init__(comparison, number)
        shorthands = {full: short for short, full in INFO_SHORTHANDS.items()}
        self.path = path
        self.subject = shorthands.get(path, f"info:{path}")

    def measured(self, episode: EvaluatedEpisode) -> float | None:
        """Return the entry; None if there is none, or it is no number."""
        entry = lookup(episode.info, self.path)
        return float(entry) if isinstance(entry, (int, float)) else None


class Flag(EpisodeFilter):
    """Asks for one of `FLAGS`: `success`."""

    def __init__(self, name: str) -> None:
        """Ask for the flag called `name`."""
        if name not in FLAGS:
            raise InvalidOptionsError(not_a_choice("flag", name, FLAGS))
        self.name = name

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return the flag."""
        return FLAGS[self.name](episode)

    def __str__(self) -> str:
        """Return the text form."""
        return self.name


class Task(EpisodeFilter):
    """Asks for the task's name: `task:hunt_*`."""

    def __init__(self, pattern: str) -> None:
        """Accept tasks whose names fit the shell pattern."""
        self.pattern = pattern

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the name fits."""
        return fnmatchcase(episode.task, self.pattern)

    def __str__(self) -> str:
        """Return the text form."""
        return f"task:{self.pattern}"


class HeldItem(EpisodeFilter):
    """Asks what the main hand held in the end: `held:*_sword`."""

    PATH = "equipped_items.mainhand.type"

    def __init__(self, pattern: str) -> None:
        """Accept items whose names fit the shell pattern."""
        self.pattern = pattern

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the item's name fits."""
        item = lookup(episode.info, self.PATH)
        return isinstance(item, str) and matches(item, self.pattern)

    def __str__(self) -> str:
        """Return the text form."""
        return f"held:{self.pattern}"


class FunctionFilter(EpisodeFilter):
    """Asks a function of the user's: `function:my_package.my_module.is_good`."""

    def __init__(self, path: str) -> None:
        """Import the function.

        Args:
            path: Dotted path of a function from an `EvaluatedEpisode` to a bool.

        Raises:
            InvalidOptionsError: It cannot be imported, or is no function.
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
        """Return what the function answers."""
        return bool(self._function(episode))

    def __str__(self) -> str:
        """Return the text form."""
        return f"function:{self.path}"


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
