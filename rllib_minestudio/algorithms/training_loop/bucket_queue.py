"""Names in buckets, one for each number of uses and version of weights.

The replay buffer asks for the least used of those that are fresh enough, and drops what has become
too old. Neither may look at everything that is stored: both work on whole buckets.
"""

from __future__ import annotations

import random
from typing import Generic, TypeVar

Name = TypeVar("Name")

_Bucket = tuple[int, int]
"""(uses, version): which names are interchangeable. An empty one goes with its version."""


class BucketQueue(Generic[Name]):
    """Every operation takes time in proportion to the buckets and to the names it returns."""

    def __init__(self) -> None:
        """Start empty."""
        self._buckets: dict[_Bucket, list[Name]] = {}
        self._places: dict[Name, tuple[list[Name], int]] = {}

    def add(self, name: Name, *, uses: int, version: int) -> None:
        """Add a name that is in no bucket."""
        names = self._buckets.get((uses, version))
        if names is None:
            names = self._buckets[uses, version] = []
        self._places[name] = names, len(names)
        names.append(name)

    def remove(self, name: Name) -> None:
        """Remove a name."""
        self._remove_from(*self._places[name])

    def pop_older(self, version: int) -> list[Name]:
        """Remove, and return, all names of versions before `version`."""
        removed = []
        for bucket in [bucket for bucket in self._buckets if bucket[1] < version]:
            removed += self._buckets.pop(bucket)
        for name in removed:
            del self._places[name]
        return removed

    def count(self, oldest: int, *, unused: bool = False) -> int:
        """How many names are of version `oldest` or later, or how many unused ones of these."""
        return sum(
            len(names)
            for (uses, version), names in self._buckets.items()
            if version >= oldest and not (unused and uses)
        )

    def pop_least_used(self, count: int, *, oldest: int, rng: random.Random) -> list[Name]:
        """Remove, and return, names of version `oldest` or later, the least used first.

        Args:
            count: How many; all of them if there are fewer.
            oldest: The oldest version that counts.
            rng: Chooses among the equally used.
        """
        removed: list[Name] = []
        for uses in sorted({uses for uses, version in self._buckets if version >= oldest}):
            equals = [
                self._buckets[bucket]
                for bucket in self._buckets
                if bucket[0] == uses and bucket[1] >= oldest
            ]
            held = sum(map(len, equals))
            for left in range(held, max(held - (count - len(removed)), 0), -1):
                slot = int(rng.random() * left)
                for names in equals:
                    if slot < len(names):
                        break
                    slot -= len(names)
                removed.append(self._remove_from(names, slot))
        return removed

    def clear(self) -> None:
        """Remove everything."""
        self._buckets.clear()
        self._places.clear()

    def _remove_from(self, names: list[Name], slot: int) -> Name:
        """The last of the bucket fills the gap, so that nothing is moved up."""
        name, last = names[slot], names.pop()
        if slot < len(names):
            names[slot] = last
            self._places[last] = names, slot
        del self._places[name]
        return name
