"""Names sorted onto shelves by how often they were used and how old they are.

The replay buffer asks for the least used of those that are fresh enough, and drops what has become
too old. Neither may look at everything that is stored: both work on whole shelves.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Generic, TypeVar

Name = TypeVar("Name")

_Shelf = tuple[int, int]
"""(uses, version): names that are equal to whoever chooses."""


class Shelves(Generic[Name]):
    """Every operation takes time in proportion to the shelves and to the names it returns."""

    def __init__(self) -> None:
        """Start empty."""
        self._shelves: dict[_Shelf, list[Name]] = {}
        self._places: dict[Name, tuple[_Shelf, int]] = {}

    def put(self, name: Name, *, uses: int, version: int) -> None:
        """Put a name that is on no shelf onto one."""
        names = self._shelves.setdefault((uses, version), [])
        self._places[name] = (uses, version), len(names)
        names.append(name)

    def take(self, name: Name) -> None:
        """Take a name away; the last of its shelf fills the gap, so that nothing is moved up."""
        shelf, slot = self._places.pop(name)
        names = self._shelves[shelf]
        last = names.pop()
        if last != name:
            names[slot] = last
            self._places[last] = shelf, slot
        if not names:
            del self._shelves[shelf]

    def take_older(self, version: int) -> list[Name]:
        """Take away, and return, all names of versions before `version`."""
        taken = []
        for shelf in [shelf for shelf in self._shelves if shelf[1] < version]:
            taken += self._shelves.pop(shelf)
        for name in taken:
            del self._places[name]
        return taken

    def count(self, oldest: int) -> int:
        """How many names are of version `oldest` or later."""
        return sum(len(names) for (_, version), names in self._shelves.items() if version >= oldest)

    def choose(self, count: int, *, oldest: int, rng: random.Random) -> Iterator[Name]:
        """Different names of version `oldest` or later, the least used first.

        Args:
            count: How many; all of them if there are fewer.
            oldest: The oldest version that counts.
            rng: Chooses among the equally used.
        """
        by_uses: dict[int, list[list[Name]]] = {}
        for (uses, version), names in self._shelves.items():
            if version >= oldest:
                by_uses.setdefault(uses, []).append(names)
        for uses in sorted(by_uses):
            shelves = by_uses[uses]
            held = sum(map(len, shelves))
            for place in rng.sample(range(held), min(count, held)):
                for names in shelves:
                    if place < len(names):
                        yield names[place]
                        break
                    place -= len(names)
            count -= min(count, held)
            if not count:
                return

    def clear(self) -> None:
        """Take everything away."""
        self._shelves.clear()
        self._places.clear()
