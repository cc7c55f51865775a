"""Light in every cell: two levels in one byte, and how a level spreads from cell to cell.

      7       4 3       0
     +---------+---------+
     |  blocks |   sky   |     both 0 to 15
     +---------+---------+

The light of the sky and that of blocks follow one rule, and differ in where it comes from. A cell's
level is that of its *source*, or one less than the level of any neighbour from which light passes
(see `blocks`), whichever is more:

- A source of the sky's light is any cell from its column's *floor* up, with the full level. That is
  how far this light falls straight down until a block dims it or a full side stops it.
- A source of block light is a block that emits it.

So the light of a cell depends on blocks at most `REACH` columns away, fewer than a chunk has. Since
levels fall with each step, no light can keep itself alive in a circle: the only field in which all
cells obey the rule is the right one. `settle` therefore looks at the cells whose rule a change of
blocks may have broken, and at those only to which it leads from there.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel, shared_with_kernels
from rllib_minestudio.env.voxel.world.blocks import (
    DOWN,
    SIDES,
    UP,
    closes,
    emission,
    is_opaque,
    optics_of,
)
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, WINDOW, block_index

FULL = 15
"""The highest level: light under the open sky."""
REACH = FULL - 1
"""How many columns light reaches from its source."""
SKY, BLOCKS = 0, 4
"""Which of the two lights, by the place of its level in a byte."""

Light = NDArray[np.uint8]
Ids = NDArray[np.uint16]
Columns = NDArray[np.uint8]
Slots = NDArray[np.bool_]
"""Which chunks of the window light may enter, bool [256], by 16 * x + z of their slots."""
Queue = NDArray[np.int32]
"""Indices of cells; it may be longer than what is in use."""

QUEUE = 4096
"""Initial size of a queue, which grows as needed."""
ALL_SLOTS: Slots = np.ones((WINDOW // CHUNK) ** 2, np.bool_)

_SIDES = len(SIDES)
_LEVEL = 15
_INDEX_BITS = 23
_INDEX = (1 << _INDEX_BITS) - 1
_LAST_LAYER = HEIGHT - 1
_X, _Z = (WINDOW - 1) << 15, (WINDOW - 1) << 7  # the place of x and z in a cell's index


@shared_with_kernels
def sky_level(light: int) -> int:
    """Level of the sky's light, 0 to 15, by a cell's byte."""
    return light & _LEVEL


@shared_with_kernels
def block_level(light: int) -> int:
    """Level of the light of blocks, 0 to 15, by a cell's byte."""
    return light >> BLOCKS


@kernel()
def light_at(light: Light, x: int, y: int, z: int) -> int:
    """Byte of a cell; that of the open sky above the world, 0 below it."""
    if y >= HEIGHT:
        return FULL
    return int64(light[block_index(x, y, z)]) if y >= 0 else 0


@shared_with_kernels
def level_of(light: Light, index: int, which: int) -> int:
    """One of the two levels of a cell."""
    return (int64(light[uint32(index)]) >> which) & _LEVEL


@shared_with_kernels
def set_level(light: Light, index: int, which: int, level: int) -> None:
    """Set one of the two levels of a cell."""
    other = int64(light[uint32(index)]) & (_LEVEL << (BLOCKS - which))
    light[uint32(index)] = uint8(other | level << which)


@shared_with_kernels
def optics_at(blocks: Ids, index: int) -> int:
    """What the block in a cell does to light."""
    return optics_of(int64(blocks[uint32(index)]))


@shared_with_kernels
def longer(queue: Queue) -> Queue:
    """A copy of a queue with twice the room."""
    larger = np.empty(2 * len(queue), np.int32)
    larger[: len(queue)] = queue
    return larger


# --------------------------------------------------------------------------------- cells next to it


@shared_with_kernels
def _has_beside(index: int, side: int) -> bool:
    """Whether there is a cell on a side of another: not above the world and below it."""
    layer = index & _LAST_LAYER
    return not ((side == UP and layer == _LAST_LAYER) or (side == DOWN and layer == 0))


@shared_with_kernels
def _beside(index: int, side: int) -> int:
    """Index of the cell on a side of another; x and z wrap around."""
    if side >> 1 == UP >> 1:
        return index + (1 if side == UP else -1)
    field, one = (_X, 1 << 15) if side >> 1 == 0 else (_Z, 1 << 7)
    return index & ~field | (index + (one if side & 1 == 0 else -one)) & field


@shared_with_kernels
def is_open(slots: Slots, index: int) -> bool:
    """Whether light may enter the chunk that a cell is in."""
    return slots[uint32((index >> 19 << 4) | (index >> 11 & 15))]


@shared_with_kernels
def _source(blocks: Ids, floor: Columns, which: int, index: int) -> int:
    """Level of a cell's source, 0 if there is none."""
    if which == BLOCKS:
        return int64(emission(optics_at(blocks, index)))
    return FULL if index & _LAST_LAYER >= int64(floor[uint32(index >> 7)]) else 0


@kernel(allocates=False)
def due(light: Light, blocks: Ids, floor: Columns, slots: Slots, which: int, index: int) -> int:
    """The level that a cell has to have, given those of its neighbours; see `settle`."""
    best = _source(blocks, floor, which, index) + 1
    here = optics_at(blocks, index)
    if is_opaque(here) or best > FULL:
        return best - 1
    if which == SKY and index & _LAST_LAYER == _LAST_LAYER and not closes(here, UP):
        best = max(best, FULL)
    for side in range(_SIDES):
        if not _has_beside(index, side):
            continue
        near = _beside(index, side)
        level = level_of(light, near, which)
        if level > best and not closes(here, side):
            there = optics_at(blocks, near)
            if is_open(slots, near) and not closes(there, side ^ 1):
                best = level
    return best - 1


# ------------------------------------------------------------------------------- the rule is obeyed


@kernel()
def settle(
    light: Light, blocks: Ids, floor: Columns, slots: Slots, which: int, cells: Queue, count: int
) -> int:
    """Make all cells obey the rule again.

    What has more than is due to it is put out, with everything that may have had its light from
    there. Then light spreads from what is lit around that, and from what has become brighter.

    Args:
        light: uint8 [2**23].
        blocks: The window's blocks, uint16 [2**23].
        floor: Floors of the columns, uint8 [2**16].
        slots: The chunks that light may enter.
        which: `SKY` or `BLOCKS`.
        cells: The cells for which the rule may be broken; those with another source, and those in
            and beside which a block has changed.
        count: Their number.

    Returns:
        The highest level that any cell has lost or gained, 0 if nothing has changed.
    """
    gone, lost = np.empty(max(QUEUE, count), np.int32), 0
    highest = 0
    for number in range(count):
        index = int64(cells[number])
        level = level_of(light, index, which)
        if level > 0 and due(light, blocks, floor, slots, which, index) < level:
            set_level(light, index, which, 0)
            gone[lost] = index | level << _INDEX_BITS
            lost += 1
            highest = max(highest, level)
    queue, end = np.empty(max(QUEUE, count), np.int32), 0
    if lost:
        queue, end = _dim(light, blocks, floor, which, gone, lost, queue, end)
    if end + count > len(queue):
        queue = longer(queue)
    for number in range(count):
        index = int64(cells[number])
        level = due(light, blocks, floor, slots, which, index)
        if level > level_of(light, index, which):
            set_level(light, index, which, level)
            queue[end] = index
            end += 1
            highest = max(highest, level)
    spread(light, blocks, slots, which, queue, end)
    return highest


@kernel()
def _dim(
    light: Light, blocks: Ids, floor: Columns, which: int,
    gone: Queue, lost: int, queue: Queue, end: int,
) -> tuple[Queue, int]:  # fmt: skip
    """Put out all cells that may have had their light from others that lost theirs.

    Args:
        light: uint8 [2**23].
        blocks: The window's blocks, uint16 [2**23].
        floor: Floors of the columns, uint8 [2**16].
        which: `SKY` or `BLOCKS`.
        gone: Cells that have lost their light; the bits above the index hold the former level.
        lost: Their number.
        queue: Cells whose light has to spread.
        end: Their number.

    Returns:
        The queue and its length, with what is lit around the cells that are out now, and with those
        among them that have a source: they have its level again.
    """
    begin = 0
    while begin < lost:
        if lost + _SIDES > len(gone):
            gone = longer(gone)
        if end + _SIDES > len(queue):
            queue = longer(queue)
        begin, lost, end = _dim_on(light, which, gone, begin, lost, queue, end)
    while end + lost > len(queue):
        queue = longer(queue)
    for number in range(lost):
        index = int64(gone[number]) & _INDEX
        own = _source(blocks, floor, which, index)
        if own > level_of(light, index, which):
            set_level(light, index, which, own)
            queue[end] = index
            end += 1
    return queue, end


@kernel()
def spread(
    light: Light, blocks: Ids, slots: Slots, which: int, queue: Queue, end: int
) -> tuple[Queue, int]:
    """Spread light from the first `end` cells in a queue, and on from the cells that it reaches.

    Returns:
        The queue and its length, with all those cells but the darkest.
    """
    begin = 0
    while begin < end:
        if end + _SIDES > len(queue):
            queue = longer(queue)
        begin, end = _spread_on(light, blocks, slots, which, queue, begin, end)
    return queue, end


# The two loops that take the time. They return when their work is done, or a queue may be too short
# for the next cell: if they made it longer themselves, each cell would take several times as long.


@kernel(allocates=False)
def _dim_on(
    light: Light, which: int, gone: Queue, begin: int, lost: int, queue: Queue, end: int
) -> tuple[int, int, int]:
    """Put out what may have had its light from `gone[begin:lost]`; return the three numbers."""
    most, room = len(gone) - _SIDES, len(queue) - _SIDES
    while begin < lost and lost <= most and end <= room:
        entry = int64(gone[uint32(begin)])
        index, old = entry & _INDEX, entry >> _INDEX_BITS
        begin += 1
        for side in range(_SIDES):
            if not _has_beside(index, side):
                continue
            near = _beside(index, side)
            level = level_of(light, near, which)
            if level >= old:
                queue[uint32(end)] = near
                end += 1
            elif level > 0:
                set_level(light, near, which, 0)
                gone[uint32(lost)] = near | level << _INDEX_BITS
                lost += 1
    return begin, lost, end


@kernel(allocates=False)
def _spread_on(
    light: Light, blocks: Ids, slots: Slots, which: int, queue: Queue, begin: int, end: int
) -> tuple[int, int]:
    """Spread light from the cells in `queue[begin:end]`; return the two numbers."""
    room = len(queue) - _SIDES
    while begin < end <= room:
        index = int64(queue[uint32(begin)])
        begin += 1
        level = level_of(light, index, which) - 1
        if level < 1:
            continue
        here = optics_at(blocks, index)
        for side in range(_SIDES):
            if not _has_beside(index, side):
                continue
            near = _beside(index, side)
            if level_of(light, near, which) >= level or closes(here, side):
                continue
            there = optics_at(blocks, near)
            if is_opaque(there) or closes(there, side ^ 1) or not is_open(slots, near):
                continue
            set_level(light, near, which, level)
            if level > 1:
                queue[uint32(end)] = near
                end += 1
    return begin, end
