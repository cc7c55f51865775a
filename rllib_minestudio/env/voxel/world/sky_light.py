"""The light of the sky in every cell, 0 to 15: a field over the window, like the box field.

A cell above its column's highest block has 15. Any other cell that lets light pass has one less for
each step on the shortest path from such a cell, and all remaining cells have 0. So the light of a
cell depends on the blocks at most `REACH` columns away, fewer than a chunk has.

`enter_chunk` adds a chunk whose blocks are new, `refresh` follows changes of blocks. Both keep the
field exact in all cells that have only made chunks within reach. Other cells may be brighter or
darker: they are in chunks that are not ready (see `land`), and become exact when the missing chunks
are made, because a chunk that returns is as it was.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, uint8, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.block_states import stops_light
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
    place_in_window,
)

FULL = 15
"""Light under the open sky."""
REACH = FULL - 1
"""How many columns light reaches from where the sky is open."""

Light = NDArray[np.uint8]
Slots = NDArray[np.bool_]
"""Which chunks of the window light may enter, bool [16, 16], by x and z of their slots."""
Queue = NDArray[np.int32]

_SIDES = 6
_ONE = uint8(1)
_BESIDE_FULL = uint8(FULL - 1)  # the least light beside a cell that has the full light
_INDEX_BITS = 23
_INDEX = (1 << _INDEX_BITS) - 1
_QUEUE = 1024
"""Initial size of a queue, which grows as needed."""


@kernel()
def level_at(light: Light, x: int, y: int, z: int) -> int:
    """Light in a cell: full above the world, 0 below it."""
    if y >= HEIGHT:
        return FULL
    return int64(light[block_index(x, y, z)]) if y >= 0 else 0


@kernel(inline="always")
def _beside(x: int, y: int, z: int, side: int) -> tuple[int, int, int]:
    """The neighbour of a cell on one of its six sides, with x and z within the window."""
    step = 1 - 2 * (side & 1)
    axis = side >> 1
    return (
        (x + (step if axis == 0 else 0)) & (WINDOW - 1),
        y + (step if axis == 1 else 0),
        (z + (step if axis == 2 else 0)) & (WINDOW - 1),
    )


@kernel()
def _push(queue: Queue, end: int, entry: int) -> Queue:
    """Append to a queue; return it, or a larger copy if it was full."""
    if end == len(queue):
        larger = np.empty(2 * end, np.int32)
        larger[:end] = queue
        queue = larger
    queue[end] = entry
    return queue


@kernel(inline="always")
def _is_open(slots: Slots, x: int, z: int) -> bool:
    return slots[(x & (WINDOW - 1)) // CHUNK, (z & (WINDOW - 1)) // CHUNK]


@kernel()
def _from_beside(light: Light, slots: Slots, x: int, y: int, z: int) -> int:
    """The light that a cell gets from its neighbours."""
    best = 1
    for side in range(_SIDES):
        i, j, k = _beside(x, y, z, side)
        if _is_open(slots, i, k):
            best = max(best, level_at(light, i, j, k))
    return best - 1


@kernel()
def _let_in(
    light: Light, blocks: NDArray[np.uint16], top: NDArray[np.uint8], slots: Slots,
    x0: int, x1: int, y0: int, z0: int, z1: int, queue: Queue, end: int,
) -> tuple[Queue, int]:  # fmt: skip
    """Let light into the columns [x0, x1) and [z0, z1) from layer y0 up; it still has to spread.

    Returns:
        The queue with the cells that became brighter, and its number of entries.
    """
    for x in range(x0, x1):
        for z in range(z0, z1):
            if not _is_open(slots, x, z):
                continue
            for y in range(y0, int64(top[column_index(x, z)]) + 1):
                index = block_index(x, y, z)
                if stops_light(blocks[index]):
                    continue
                level = _from_beside(light, slots, x, y, z)
                if level > int64(light[index]):
                    light[index] = uint8(level)
                    queue = _push(queue, end, int32(index))
                    end += 1
    return queue, end


@kernel()
def _spread(light: Light, blocks: NDArray[np.uint16], slots: Slots, queue: Queue, end: int) -> None:
    """Spread light from the cells in a queue, and on from the cells that it reaches."""
    begin = 0
    while begin < end:
        index = int64(queue[begin])
        begin += 1
        level = int64(light[index]) - 1
        x, y, z = place_in_window(index)
        for side in range(_SIDES):
            i, j, k = _beside(x, y, z, side)
            if j < 0 or j >= HEIGHT or not _is_open(slots, i, k):
                continue
            near = block_index(i, j, k)
            if int64(light[near]) < level and not stops_light(blocks[near]):
                light[near] = uint8(level)
                queue = _push(queue, end, int32(near))
                end += 1


@kernel()
def enter_chunk(
    light: Light, blocks: NDArray[np.uint16], top: NDArray[np.uint8], slots: Slots,
    x0: int, z0: int, low: int,
) -> None:  # fmt: skip
    """Add a chunk whose blocks have just been made to the field.

    Args:
        light: uint8 [2**23].
        blocks: The window's block ids, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        slots: The slots of the chunk, and of those around it that are made.
        x0: First column of the chunk.
        z0: First column of the chunk.
        low: Everything is solid below this layer, in the chunk and those around it.
    """
    for x in range(x0, x0 + CHUNK):
        for z in range(z0, z0 + CHUNK):
            highest, first = int64(top[column_index(x, z)]), block_index(x, 0, z)
            light[first : first + highest + 1] = uint8(0)
            light[first + highest + 1 : first + HEIGHT] = uint8(FULL)
    # The cells next to the chunk may get light from it.
    x1, z1 = x0 + CHUNK + 1, z0 + CHUNK + 1
    queue = np.empty(_QUEUE, np.int32)
    queue, end = _let_in(light, blocks, top, slots, x0 - 1, x1, low, z0 - 1, z1, queue, 0)
    _spread(light, blocks, slots, queue, end)


@kernel()
def refresh(
    light: Light, blocks: NDArray[np.uint16], top: NDArray[np.uint8],
    x0: int, x1: int, y0: int, y1: int, z0: int, z1: int,
) -> None:  # fmt: skip
    """Update the field after changes of blocks in the columns [x0, x1) and [z0, z1).

    Args:
        light: uint8 [2**23], exact before the change within `REACH` columns of it.
        blocks: The window's block ids, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        x0: First column.
        x1: Column after the last.
        y0: Everything is, and was, solid below this layer.
        y1: No block is, or was, at or above this layer.
        z0: First column.
        z1: Column after the last.
    """
    before = _set_columns(light, top, x0, x1, y0, y1, z0, z1)
    queue, end, gone, count = _find_edges(light, top, before, x0, x1, y0, z0, z1)
    gone, count = _dim(light, gone, count)
    slots = np.ones((WINDOW // CHUNK, WINDOW // CHUNK), np.bool_)
    queue, end = _let_in(light, blocks, top, slots, x0, x1, y0, z0, z1, queue, end)
    for number in range(count):
        index = int64(gone[number]) & _INDEX
        if light[index] == 0 and not stops_light(blocks[index]):
            x, y, z = place_in_window(index)
            level = _from_beside(light, slots, x, y, z)
            if level > 0:
                light[index] = uint8(level)
                queue = _push(queue, end, int32(index))
                end += 1
    _spread(light, blocks, slots, queue, end)


@kernel()
def _set_columns(
    light: Light, top: NDArray[np.uint8], x0: int, x1: int, y0: int, y1: int, z0: int, z1: int
) -> Light:
    """Set full light above the tops of columns, and darkness from there down.

    Returns:
        The former light in layers [y0, y1) of each column, uint8 [columns, y1 - y0].
    """
    before = np.empty(((x1 - x0) * (z1 - z0), y1 - y0), np.uint8)
    number = 0
    for x in range(x0, x1):
        for z in range(z0, z1):
            first, open_from = block_index(x, 0, z), int64(top[column_index(x, z)]) + 1
            before[number] = light[first + y0 : first + y1]
            light[first + y0 : first + open_from] = uint8(0)
            light[first + max(open_from, y0) : first + y1] = uint8(FULL)
            number += 1
    return before


@kernel()
def _find_edges(
    light: Light, top: NDArray[np.uint8], before: Light, x0: int, x1: int, y0: int, z0: int, z1: int
) -> tuple[Queue, int, Queue, int]:
    """Find the few cells, in columns just set, that affect their neighbours.

    Returns:
        The cells whose new light spreads, their number, the cells whose lost light others may have
        had from them (see `_dim`), and their number.
    """
    queue, end = np.empty(_QUEUE, np.int32), 0
    gone, count = np.empty(_QUEUE, np.int32), 0
    height = before.shape[1]
    spreads, dims = np.empty(height, np.uint8), np.empty(height, np.uint8)
    layers = uint64(height)  # unsigned indices, for LLVM to vectorise
    number = 0
    for x in range(x0, x1):
        for z in range(z0, z1):
            here, was = uint64(block_index(x, y0, z)), before[number]
            west, east = uint64(block_index(x - 1, y0, z)), uint64(block_index(x + 1, y0, z))
            north, south = uint64(block_index(x, y0, z - 1)), uint64(block_index(x, y0, z + 1))
            matters = uint8(0)
            for i in range(layers):
                old, new = was[i], light[here + i]
                a, b, c, d = light[west + i], light[east + i], light[north + i], light[south + i]
                darkest = min(min(a, b), min(c, d))
                # Dark cells wrap around, so that this is the minimum over those that are lit.
                faintest = min(
                    min(uint8(a - _ONE), uint8(b - _ONE)), min(uint8(c - _ONE), uint8(d - _ONE))
                )
                spreads[i] = (new > old) & (darkest < _BESIDE_FULL)
                dims[i] = (new < old) & (faintest < uint8(old - _ONE))
                matters |= spreads[i] | dims[i]
            lowest = max(int64(top[column_index(x, z)]) + 1 - y0, 0)
            if lowest < height and was[lowest] < FULL:
                queue = _push(queue, end, int32(block_index(x, y0 + lowest, z)))  # downwards
                end += 1
            for y in range(height if matters else 0):
                index = block_index(x, y0 + y, z)
                if spreads[y]:
                    queue = _push(queue, end, int32(index))
                    end += 1
                elif dims[y]:
                    gone = _push(gone, count, int32(index | int64(was[y]) << _INDEX_BITS))
                    count += 1
            number += 1
    return queue, end, gone, count


@kernel()
def _dim(light: Light, gone: Queue, count: int) -> tuple[Queue, int]:
    """Remove the light of cells that may have had it from others that lost theirs.

    Args:
        light: uint8 [2**23].
        gone: Cells that have lost their light; the bits above the index hold the former level.
        count: Their number.

    Returns:
        All cells that have now lost their light, and their number.
    """
    begin = 0
    while begin < count:
        entry = int64(gone[begin])
        begin += 1
        old = entry >> _INDEX_BITS
        x, y, z = place_in_window(entry & _INDEX)
        for side in range(_SIDES):
            i, j, k = _beside(x, y, z, side)
            if j < 0 or j >= HEIGHT:
                continue
            near = block_index(i, j, k)
            level = int64(light[near])
            if 0 < level < old:
                light[near] = uint8(0)
                gone = _push(gone, count, int32(near | level << _INDEX_BITS))
                count += 1
    return gone, count


# ------------------------------------------------------- the layer above which there is full light
# Most of what is seen has only full light around it. The renderer tells by the column alone.


@kernel()
def find_shade(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], dimmed: NDArray[np.uint8],
    shade: NDArray[np.uint8], x0: int, x1: int, z0: int, z1: int, low: int,
) -> None:  # fmt: skip
    """Update the shade of columns whose blocks are new or have changed, and of those next to them.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        dimmed: For each column the layer above its highest cell that lets light pass and has less
            than the full light, 0 if there is none; uint8 [2**16].
        shade: The largest `dimmed` of a column and the eight around it, uint8 [2**16]: from that
            layer up, all their cells are opaque or have the full light.
        x0: First column.
        x1: Column after the last.
        z0: First column.
        z1: Column after the last.
        low: No cell of these columns lets light pass below this layer.
    """
    for x in range(x0, x1):
        for z in range(z0, z1):
            column, layer = column_index(x, z), 0
            for y in range(int64(top[column]), low - 1, -1):
                if not stops_light(blocks[block_index(x, y, z)]):
                    layer = y + 1
                    break
            dimmed[column] = uint8(layer)
    for x in range(x0 - 1, x1 + 1):
        for z in range(z0 - 1, z1 + 1):
            highest = uint8(0)
            for i in range(x - 1, x + 2):
                for k in range(z - 1, z + 2):
                    highest = max(highest, dimmed[column_index(i, k)])
            shade[column_index(x, z)] = highest
