"""The conditions that filters are made of."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters.base import EpisodeFilter
from rllib_minestudio.evaluation.filters.quantities import Quantity, lookup, matches
from rllib_minestudio.option_checks import not_a_choice

if TYPE_CHECKING:
    from rllib_minestudio.evaluation.filters.world_facts import WorldFact

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
"""Yes or no, by themselves."""

_ARMOUR = ("head", "chest", "legs", "feet")
"""Entries of `equipped_items` that are worn."""


class Comparison(EpisodeFilter):
    """Compares a number of the episode with a constant: `kill_entity:cow>=3`."""

    def __init__(self, quantity: Quantity, comparison: str, number: float) -> None:
        """Compare `quantity` by `comparison`, one of `COMPARISONS`, with `number`."""
        if comparison not in COMPARISONS:
            raise InvalidOptionsError(not_a_choice("comparison", comparison, COMPARISONS))
        self.quantity, self.comparison, self.number = quantity, comparison, number

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the comparison holds."""
        value = self.quantity.measured(episode)
        return value is not None and COMPARISONS[self.comparison](value, self.number)

    def needed_facts(self) -> frozenset[WorldFact]:
        """Return those of the quantity."""
        return self.quantity.needed_facts()

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.quantity}{self.comparison}{self.number:g}"


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


class WornItem(EpisodeFilter):
    """Asks what armour the player wore in the end: `worn:iron_helmet`."""

    def __init__(self, pattern: str) -> None:
        """Accept items whose names fit the shell pattern."""
        self.pattern = pattern

    def accepts(self, episode: EvaluatedEpisode) -> bool:
        """Return whether the name of something worn fits."""
        worn = [lookup(episode.info, f"equipped_items.{place}.type") for place in _ARMOUR]
        return any(isinstance(item, str) and matches(item, self.pattern) for item in worn)

    def __str__(self) -> str:
        """Return the text form."""
        return f"worn:{self.pattern}"


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
