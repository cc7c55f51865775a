"""What the toolmaker has seen: a map of the blocks that its eyes have met, and of the air between.

It knows nothing else of the world. A block that it has not seen is unknown, which is neither solid
nor air, and one that has changed since is remembered as it was.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.survey import VisibleBlocks

Cell = tuple[int, int, int]
"""A block's coordinates."""
Point = tuple[float, float, float]

AIR = "air"
COLUMNS, ROWS = 49, 27
"""Rays per glance, 2 to 3 degrees apart; odd, so that one goes through the crosshair."""

_AIR_REACH = 6.0
"""Blocks up to which the air along a ray is noted: where the player walks and builds next."""
_AIR_STEP = 0.35
_AIR_RAYS = (slice(1, None, 2), slice(0, None, 2))
"""Every other row and column of a glance, which is dense enough near by."""
_BEFORE_HIT = 0.02
_OFFSET = 1 << 20
"""Added to coordinates so that three of them can be packed into one integer."""
_STEP_OF_LINE = 0.05


class Memory:
    """The blocks seen so far."""

    def __init__(self) -> None:
        self._blocks: dict[Cell, str] = {}
        self._cells: dict[str, set[Cell]] = defaultdict(set)

    def note(self, seen: VisibleBlocks) -> None:
        """Remember the blocks and the air that a glance shows."""
        for cell in _air_cells(seen):
            self._put(cell, AIR)
        hit = seen.kind > 0
        packed, first = np.unique(_pack(seen.cell[hit]), return_index=True)
        kinds = seen.kind[hit][first].tolist()
        for cell, kind in zip(_unpack(packed), kinds, strict=True):
            self._put(cell, seen.names[kind])

    def note_air(self, cell: Cell) -> None:
        """Remember that a cell is empty."""
        self._put(cell, AIR)

    def _put(self, cell: Cell, name: str) -> None:
        before = self._blocks.get(cell)
        if before == name:
            return
        if before is not None and before != AIR:
            self._cells[before].discard(cell)
        self._blocks[cell] = name
        if name != AIR:
            self._cells[name].add(cell)

    def name_of(self, cell: Cell) -> str | None:
        """The block at `cell`, `AIR`, or None if it has not been seen."""
        return self._blocks.get(cell)

    def is_solid(self, cell: Cell) -> bool:
        """Whether a block has been seen at `cell`."""
        return self._blocks.get(cell, AIR) != AIR

    def is_air(self, cell: Cell) -> bool:
        """Whether `cell` has been seen to be empty."""
        return self._blocks.get(cell) == AIR

    def find(self, names: Iterable[str]) -> list[Cell]:
        """The places of all blocks of these names, in a fixed order."""
        return sorted(cell for name in names for cell in self._cells.get(name, ()))

    def names(self) -> list[str]:
        """The names of the blocks seen, in a fixed order."""
        return sorted(name for name, cells in self._cells.items() if cells)

    def obstacles(self, eye: Point, aim: Point) -> list[Cell]:
        """The known blocks on the line from `eye` to `aim`, the nearest first."""
        return [cell for cell in cells_on_line(eye, aim) if self.is_solid(cell)]


def middle(cell: Cell) -> Point:
    """The middle of a block."""
    return cell[0] + 0.5, cell[1] + 0.5, cell[2] + 0.5


def cells_on_line(start: Point, end: Point) -> Iterator[Cell]:
    """The cells that a line passes through; may miss one whose corner it only cuts."""
    length = math.dist(start, end)
    count = max(int(length / _STEP_OF_LINE), 1)
    last = None
    for step in range(count + 1):
        share = step / count
        x, y, z = (a + (b - a) * share for a, b in zip(start, end, strict=True))
        cell = math.floor(x), math.floor(y), math.floor(z)
        if cell != last:
            yield cell
        last = cell


def _pack(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number per cell: [n, 3] -> [n]."""
    x, y, z = (cells + _OFFSET).T
    packed: NDArray[np.int64] = x << 42 | y << 21 | z
    return packed


def _unpack(packed: NDArray[np.int64]) -> Iterable[Cell]:
    mask = (1 << 21) - 1
    columns = (packed >> 42, packed >> 21 & mask, packed & mask)
    return zip(*((column - _OFFSET).tolist() for column in columns), strict=True)


def _air_cells(seen: VisibleBlocks) -> Iterable[Cell]:
    """The cells near the eye that rays went through."""
    steps = np.arange(0.0, _AIR_REACH, _AIR_STEP)
    direction = seen.direction[_AIR_RAYS].reshape(-1, 3)
    inside = steps < seen.distance[_AIR_RAYS].reshape(-1, 1) - _BEFORE_HIT  # [rays, steps]
    ray, step = np.nonzero(inside)
    points = seen.eye + direction[ray] * steps[step, None]
    return _unpack(np.unique(_pack(np.floor(points).astype(np.int64))))
