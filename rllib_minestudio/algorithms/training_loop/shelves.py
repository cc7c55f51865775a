"""Names sorted onto shelves by how often they were used and how old they are.

The replay buffer asks for the least used of those that are fresh enough, and drops what has become
too old. Neither may look at everything that is stored: both work on whole shelves.
"""

from __future__ import annotations

import random
from typing import Generic, TypeVar

Name = TypeVar("Name")

_Shelf = tuple[int, int]
"""(uses, version): names that are equal to whoever chooses. An empty one goes with its version."""


class Shelves(Generic[Name]):
    """Every operation takes time in proportion to the shelves and to the names it returns."""

    def __init__(self) -> None:
        """Start empty."""
        self._shelves: dict[_Shelf, list[Name]] = {}
        self._places: dict[Name, tuple[list[Name], int]] = {}

    def put(self, name: Name, *, uses: int, version: int) -> None:
        """Put a name that is on no shelf onto one."""
        names = self._shelves.get((uses, version))
        if names is None:
            names = self._shelves[uses, version] = []
        self._places[name] = names, len(names)
        names.append(name)

    def take(self, name: Name) -> None:
        """Take a name away."""
        self._take_from(*self._places[name])

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

    def take_least_used(self, count: int, *, oldest: int, rng: random.Random) -> list[Name]:
        """Take away, and return, names of version `oldest` or later, the least used first.

        Args:
            count: How many; all of them if there are fewer.
            oldest: The oldest version that counts.
            rng: Chooses among the equally used.
        """
        taken: list[Name] = []
        for uses in sorted({uses for uses, version in self._shelves if version >= oldest}):
            equals = [
                self._shelves[shelf]
                for shelf in self._shelves
                if shelf[0] == uses and shelf[1] >= oldest
            ]
            held = sum(map(len, equals))
            for left in range(held, max(held - (count - len(taken)), 0), -1):
                slot = int(rng.random() * left)
                for names in equals:
                    if slot < len(names):
                        break
                    slot -= len(names)
                taken.append(self._take_from(names, slot))
        return taken

    def _take_from(self, names: list[Name], slot: int) -> Name:
        """The last of the shelf fills the gap, so that nothing is moved up."""
        name, last = names[slot], names.pop()
        if slot < len(names):
            names[slot] = last
            self._places[last] = names, slot
        del self._places[name]
        return name

    def clear(self) -> None:
        """Take everything away."""
        self._shelves.clear()
        self._places.clear()
