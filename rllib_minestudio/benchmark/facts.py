"""The facts of the world that conditions ask for, told after every step of an episode.

Blocks are looked at again only when one of the world has changed, and counted again only when one
of the box has. While a part of a box is not loaded nothing in it can change, and what was there
last still counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.benchmark.blocks import matching_blocks
from rllib_minestudio.benchmark.structures import find_structures, known_structures
from rllib_minestudio.errors import EngineError
from rllib_minestudio.evaluation.filters import WorldFact
from rllib_minestudio.evaluation.filters.conditions import (
    BLOCK,
    CHEST,
    INSIDE,
    NEAR,
    PLACED,
    STRUCTURE,
    Box,
    matches,
)

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.survey import Corner, Survey

Observer = Callable[[], float]
"""Tells what a fact is now."""

CHEST_REACH = 16
"""Blocks between a chest that counts and where the player began, along each axis."""


def make_observer(fact: WorldFact, survey: Survey, start: Corner) -> Observer:
    """Return what tells a fact during an episode that begins now.

    Args:
        fact: What to tell.
        survey: Answers questions about the game.
        start: The block that the player's feet are in.
    """
    if fact.kind == INSIDE:
        fits = matching_blocks(fact.pattern)
        return lambda: float(any(fits[block] for block in survey.body_blocks()))
    if fact.kind == CHEST:
        return lambda: _in_chests(survey, start, fact.pattern)
    return _IN_BOX[fact.kind](fact, survey, start)


def _in_chests(survey: Survey, start: Corner, pattern: str) -> float:
    """Return how many items that fit a pattern lie in the chests around."""
    found = survey.chest_items(start, CHEST_REACH)
    return sum(quantity for name, quantity in found.items() if matches(name, pattern))


class _BoxObserver(ABC):
    """Tells a number that depends on the blocks of a box."""

    def __init__(self, fact: WorldFact, survey: Survey, start: Corner) -> None:
        """Look at the box as it is when the episode begins."""
        self._survey = survey
        self._box = survey.box(*_corners(fact.box or NEAR, start))
        blocks = self._box.block_ids()
        if blocks is None:  # a box that reaches no farther than one can ask for is always loaded
            raise EngineError(f"The land around the player, {fact.key}, is not loaded.")
        self._before = blocks
        self._begin(fact.pattern)
        self._seen, self._last = survey.changes, blocks.tobytes()
        self._told = self._count(blocks)

    def __call__(self) -> float:
        """Return the number; the box is looked at if a block has changed anywhere."""
        changes = self._survey.changes
        if self._seen != changes:
            blocks = self._box.block_ids()
            if blocks is not None:
                self._seen = changes
                now = blocks.tobytes()  # for a few blocks compared faster than arrays are
                if now != self._last:
                    self._last = now
                    self._told = self._count(blocks)
        return self._told

    @abstractmethod
    def _begin(self, pattern: str) -> None:
        """Note what of the box, `_before`, the number is compared with."""

    @abstractmethod
    def _count(self, blocks: NDArray[np.uint16]) -> float:
        """Return the number for the box's block ids, [x, y, z]."""


class _Matching(_BoxObserver):
    """Counts the blocks that match."""

    def _begin(self, pattern: str) -> None:
        self._fits = matching_blocks(pattern)

    def _count(self, blocks: NDArray[np.uint16]) -> float:
        return float(np.count_nonzero(self._fits[blocks]))


class _Placed(_BoxObserver):
    """Counts the blocks that match and did not when the episode began."""

    def _begin(self, pattern: str) -> None:
        self._fits = matching_blocks(pattern)
        self._did_not = ~self._fits[self._before]

    def _count(self, blocks: NDArray[np.uint16]) -> float:
        return float(np.count_nonzero(self._fits[blocks] & self._did_not))


class _Structures(_BoxObserver):
    """Counts where a structure stands and did not when the episode began."""

    def _begin(self, pattern: str) -> None:
        self._structure = known_structures()[pattern]
        self._stood = find_structures(self._structure, self._before, self._before)

    def _count(self, blocks: NDArray[np.uint16]) -> float:
        stand = find_structures(self._structure, blocks, self._before)
        return float(
            sum(
                np.count_nonzero(now & ~before)
                for now, before in zip(stand, self._stood, strict=True)
            )
        )


_IN_BOX: dict[str, type[_BoxObserver]] = {
    BLOCK: _Matching,
    PLACED: _Placed,
    STRUCTURE: _Structures,
}


def _corners(box: Box, start: Corner) -> tuple[Corner, Corner]:
    """Return the lowest and highest corner of a box around a block."""
    (x0, x1), (y0, y1), (z0, z1) = box
    x, y, z = start
    return (x + x0, y + y0, z + z0), (x + x1, y + y1, z + z1)
