"""The box field, by which a ray leaps through empty space.

For every air cell it holds a box around the cell that contains no block: a square of columns and a
run of layers. It is computed in two stages:

- A cell's *layer radius* depends only on the blocks of its layer within `REACH` columns.
- A cell's *box* depends only on the layer radius of its own column within `MAX_RUN` layers.

So a change of blocks in layers [y0, y1) can alter the layer radius only in these layers and in
columns within `REACH`, and boxes only in layers [y0 - MAX_RUN, y1 + MAX_RUN) of the columns whose
layer radius changed. `build` computes both from the blocks alone; `refresh` only redoes that part.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, uint8, uint16, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel, shared_with_kernels
from rllib_minestudio.env.voxel.world.blocks import stops_rays
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_from,
    lowest_bit,
    without_lowest,
)

# --------------------------------------------------------------------------------- the layer radius
# The first stage of the box field: how far away the nearest block of a cell's own layer is.
#
# The loops run over *slabs* of 32 layers. They are fast because the number is constant, so that
# LLVM keeps a slab of a column in one register; because indices are unsigned, which saves the check
# for negative ones; and because plain copies move words of eight layers. A change in one layer,
# such as a block put or broken, is followed in that layer alone.

MAX_RADIUS = 15
"""Largest layer radius stored, in columns; it means that no block is nearer than that."""
REACH = MAX_RADIUS - 1
"""Columns within which a block counts for a cell's layer radius."""

SLAB, WORD = 32, 8
"""Layers in a slab and in a 64-bit word."""
SOLID, OPEN = uint8(0), uint8(MAX_RADIUS)
"""The layer radius of a block, and the largest."""

_LAYER_STEP = uint8(1)
_LAYER_LANES, _WORDS = np.uint64(SLAB), np.uint64(SLAB // WORD)
_BYTE = np.uint64(255)
_OPENED = np.array(
    [sum(MAX_RADIUS << WORD * i for i in range(WORD) if bits >> i & 1) for bits in range(256)],
    np.uint64,
)
"""Words of eight layers, open where a bit is set and solid elsewhere."""
_SPAN = REACH + 1  # the columns that a change reaches, and one that it does not

Columns = NDArray[np.int32]
"""Indices in the window's arrays at which columns begin."""


@kernel()
def build_layer_radius(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    hollow: Bits,
    layer_radius: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    low: int,
    high: int,
) -> Columns:
    """Compute the layer radius of the columns [x0, x1) x [z0, z1), in all layers.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, see `cell_bits`.
        layer_radius: Overwritten in these columns, uint8 [2**23].
        x0: First column.
        x1: Column after the last, at most 256 - 2 * REACH away from the first.
        z0: First column.
        z1: Column after the last.
        low: These columns, and those within `REACH` of them, are solid below this layer.
        high: From this layer up, nothing is solid within `REACH` columns of them.

    Returns:
        Where these columns begin.
    """
    begin, end = low // SLAB * SLAB, -(-high // SLAB) * SLAB
    for x in range(x0, x1):
        for z in range(z0, z1):
            column = block_index(x, 0, z)
            layer_radius[column : column + begin] = SOLID
            layer_radius[column + end : column + HEIGHT] = OPEN
    all_x0, all_x1, all_z0, all_z1 = x0 - REACH, x1 + REACH, z0 - REACH, z1 + REACH
    size = (all_x1 - all_x0 + 2) * (all_z1 - all_z0 + 2) * SLAB  # with a ring of columns around
    for slab in range(begin, end, SLAB):
        distances = np.full(size, OPEN, np.uint8)
        _mark(blocks, top, hollow, distances, all_x0, all_x1, all_z0, all_z1, slab)
        for side in (-1, 1):
            _spread(distances, all_x0, all_x1, all_z0, all_z1, side)
        _store(distances, layer_radius, x0, x1, z0, z1, slab, REACH)
    return _columns_of(np.ones((x1 - x0, z1 - z0), np.bool_), x0, z0)


@kernel()
def refresh_layer_radius(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    hollow: Bits,
    layer_radius: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    y0: int,
    y1: int,
) -> tuple[Columns, NDArray[np.uint8]]:
    """Update the layer radius after blocks of [x0, x1) x [y0, y1) x [z0, z1) changed.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, the change included.
        layer_radius: uint8 [2**23], exact before within `REACH` + 1 columns of the change.
        x0: First column.
        x1: Column after the last.
        z0: First column.
        z1: Column after the last.
        y0: First layer.
        y1: Layer after the last.

    Returns:
        Where the columns begin in which it has changed, and a number for each, at most
        `MAX_RADIUS`: columns with the same number are likely to be alike in all layers.
    """
    if y1 - y0 == 1:
        return _refresh_layer(blocks, layer_radius, x0, x1, z0, z1, y0)
    x0, x1, z0, z1 = x0 - REACH, x1 + REACH, z0 - REACH, z1 + REACH
    size = (x1 - x0 + 2) * (z1 - z0 + 2) * SLAB  # with a ring of columns around
    changed = np.zeros((x1 - x0, z1 - z0), np.bool_)
    for slab in range(y0 // SLAB * SLAB, y1, SLAB):
        distances = np.full(size, OPEN, np.uint8)
        _surround(distances, layer_radius, x0, x1, z0, z1, slab)
        _mark(blocks, top, hollow, distances, x0, x1, z0, z1, slab)
        for side in (-1, 1):
            _spread(distances, x0, x1, z0, z1, side)
        changed |= _store(distances, layer_radius, x0, x1, z0, z1, slab, 0)
    columns = _columns_of(changed, x0, z0)
    alike = np.empty(len(columns), np.uint8)
    for number in range(len(columns)):
        alike[number] = layer_radius[columns[number] + y0]
    return columns, alike


@kernel()
def _columns_of(chosen: NDArray[np.bool_], x0: int, z0: int) -> Columns:
    """Where the chosen columns begin; `chosen` is counted from (x0, z0)."""
    columns = np.empty(chosen.size, np.int32)
    count = 0
    for x in range(chosen.shape[0]):
        for z in range(chosen.shape[1]):
            if chosen[x, z]:
                columns[count] = block_index(x0 + x, 0, z0 + z)
                count += 1
    return columns[:count]


@kernel()
def _surround(
    distances: NDArray[np.uint8],
    layer_radius: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    slab: int,
) -> None:
    """Fill the ring around the columns [x0, x1) x [z0, z1) with the stored layer radius."""
    words, kept = distances.view(np.uint64), layer_radius.view(np.uint64)
    row = z1 - z0 + 2
    for x in range(x0 - 1, x1 + 1):
        inside = x0 <= x < x1
        for z in range(z0 - 1, z1 + 1, z1 - z0 + 1 if inside else 1):
            here = ((x - x0 + 1) * row + z - z0 + 1) * SLAB
            _copy_slab(kept, block_index(x, slab, z), words, here)


@kernel()
def _mark(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    hollow: Bits,
    distances: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    slab: int,
) -> None:
    """Set the distances of blocks that stop rays to 0, in the columns [x0, x1) x [z0, z1).

    Blocks are looked up only where the land is hollow below a column's top: these are few.
    """
    row, shift = (z1 - z0 + 2) * SLAB, uint64(slab % WORD_LAYERS)
    words, part = distances.view(np.uint64), slab // WORD_LAYERS
    for x in range(x0, x1):
        for z in range(z0, z1):
            here = uint64((x - x0 + 1) * row + (z - z0 + 1) * SLAB)
            column = uint64(block_index(x, slab, z))
            index = column_index(x, z)
            word = hollow[COLUMN_WORDS * index + part]
            lanes, at = uint32(word >> shift), here // uint64(WORD)
            if lanes == uint32(0):
                for i in range(_WORDS):
                    words[at + i] = uint64(0)
                continue
            for i in range(_WORDS):
                words[at + i] = _OPENED[uint64(lanes >> uint32(uint64(WORD) * i)) & _BYTE]
            left = uint64(uint32((word & ~bits_from(int64(top[index]) + 1, part)) >> shift))
            while left:
                i = uint64(lowest_bit(left))
                block = blocks[column + i]
                if block != 0 and stops_rays(block):
                    distances[here + i] = SOLID
                left = without_lowest(left)


@kernel()
def _spread(distances: NDArray[np.uint8], x0: int, x1: int, z0: int, z1: int, side: int) -> None:
    """Make one pass of the distance transform over the columns [x0, x1) x [z0, z1).

    One pass for each side makes the chamfer transform of Rosenfeld and Pfaltz (1966), which is
    exact for the Chebyshev distance. A pass lowers distances (uint8, flat; at first 0 in blocks and
    `MAX_RADIUS` elsewhere) to one more than the smallest of four neighbours that it has visited, or
    that are in the ring: three at x + side, and the one at z + side. The latter is kept in
    `beside`, so that LLVM sees that the loop reads nothing that it writes.
    """
    words = distances.view(np.uint64)
    beside = np.empty(SLAB, np.uint8)
    row, beside_words = (z1 - z0 + 2) * SLAB, beside.view(np.uint64)
    # An array, as LLVM's check for overlaps considers loops that run down memory unsafe.
    visited = np.arange(z0, z1)[::-side]
    for step_x in range(x1 - x0):
        x = x0 + step_x if side < 0 else x1 - 1 - step_x
        at = (x - x0 + 1) * row
        _copy_slab(words, at + (0 if side < 0 else row - SLAB), beside_words, 0)
        for z in visited:
            to = at + (z - z0 + 1) * SLAB
            here, straight = uint64(to), uint64(to + side * row)
            for i in range(_LAYER_LANES):
                near = min(distances[straight - _LAYER_LANES + i], distances[straight + i])
                near = min(near, min(distances[straight + _LAYER_LANES + i], beside[i]))
                beside[i] = min(uint8(near + _LAYER_STEP), distances[here + i])
            _copy_slab(beside_words, 0, words, to)


@kernel(inline="always")
def _copy_slab(source: NDArray[np.uint64], at: int, target: NDArray[np.uint64], to: int) -> None:
    """Copy a slab of a column between arrays of words; the indices count layers."""
    first, first_to = uint64(at // WORD), uint64(to // WORD)
    for i in range(_WORDS):
        target[first_to + i] = source[first + i]


@kernel()
def _store(
    distances: NDArray[np.uint8],
    layer_radius: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    slab: int,
    margin: int,
) -> NDArray[np.bool_]:
    """Store the distances of [x0, x1) x [z0, z1), which have a margin of columns around.

    Returns:
        Which columns have changed, bool [x1 - x0, z1 - z0].
    """
    changed = np.empty((x1 - x0, z1 - z0), np.bool_)
    words, kept = distances.view(np.uint64), layer_radius.view(np.uint64)
    row = z1 - z0 + 2 * margin + 2
    for x in range(x0, x1):
        for z in range(z0, z1):
            here = uint64(((x - x0 + margin + 1) * row + z - z0 + margin + 1) * SLAB // WORD)
            column = uint64(block_index(x, slab, z) // WORD)
            difference = uint64(0)
            for i in range(_WORDS):
                difference |= words[here + i] ^ kept[column + i]
                kept[column + i] = words[here + i]
            changed[x - x0, z - z0] = difference != uint64(0)
    return changed


@kernel()
def _refresh_layer(
    blocks: NDArray[np.uint16],
    layer_radius: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    y: int,
) -> tuple[Columns, NDArray[np.uint8]]:
    """Update the layer radius after blocks of [x0, x1) x [z0, z1) of a layer changed.

    A cell that is nearer to another block than to the changed ones was exact before, and represents
    that block to the other cells. So only the changed blocks have to be read.

    Returns:
        Where the columns begin whose layer radius has changed, and its new value: around a block
        in the open, columns with the same radius are alike in all layers.
    """
    row, rows = z1 - z0 + 2 * _SPAN, x1 - x0 + 2 * _SPAN
    before = np.empty(rows * row, np.uint8)
    distances = np.empty(rows * row, np.uint8)
    opened = False
    for x in range(x0, x1):
        for z in range(z0, z1):
            opened |= not stops_rays(blocks[block_index(x, y, z)])
    for i in range(rows):
        x = x0 - _SPAN + i
        away_x = max(x0 - x, x - x1 + 1, 0)
        for j in range(row):
            z = z0 - _SPAN + j
            away = max(away_x, z0 - z, z - z1 + 1)
            index = block_index(x, y, z)
            radius = layer_radius[index]
            before[i * row + j] = radius
            if opened:
                if away == 0:
                    radius = SOLID if stops_rays(blocks[index]) else OPEN
                elif away < _SPAN and radius >= away:
                    radius = OPEN
            else:
                radius = min(radius, uint8(away))
            distances[i * row + j] = radius
    if opened:
        for side in (-1, 1):
            _spread_in_layer(distances, rows, row, side)
    columns, radii = np.empty(rows * row, np.int32), np.empty(rows * row, np.uint8)
    count = 0
    for i in range(1, rows - 1):
        for j in range(1, row - 1):
            radius = distances[i * row + j]
            if radius != before[i * row + j]:
                column = block_index(x0 - _SPAN + i, 0, z0 - _SPAN + j)
                layer_radius[column + y] = radius
                columns[count], radii[count] = column, radius
                count += 1
    return columns[:count], radii[:count]


@kernel()
def _spread_in_layer(distances: NDArray[np.uint8], rows: int, row: int, side: int) -> None:
    """Do as `_spread` in one layer, whose blocks are already 0; its margin is one column wide."""
    for step_x in range(1, rows - 1):
        i = step_x if side < 0 else rows - 1 - step_x
        beside = distances[i * row + (0 if side < 0 else row - 1)]
        for step_z in range(1, row - 1):
            here = i * row + (step_z if side < 0 else row - 1 - step_z)
            straight = here + side * row
            near = min(distances[straight - 1], distances[straight])
            near = min(near, distances[straight + 1])
            beside = min(uint8(min(near, beside) + _LAYER_STEP), distances[here])
            distances[here] = beside


# ----------------------------------- where a block and a column lie in the flat arrays of a `World`
# x and z wrap around at the borders of the window, so that every column of the world has a place in
# it. Bits 15 to 22 of a block's index are x, bits 7 to 14 z, bits 0 to 6 y: the layers of a column
# are contiguous. A column's index has 8 bits of x above 8 bits of z.

WINDOW = 256
"""Columns along each side of the window."""
HEIGHT = 128
"""Layers; blocks exist for 0 <= y < HEIGHT."""
CHUNK = 16
"""Columns along each side of a chunk."""

_LAST_COLUMN = WINDOW - 1
_LAST_LAYER = HEIGHT - 1


@shared_with_kernels
def block_index(x: int, y: int, z: int) -> int:
    """Index of block (x, y, z), whose y is within the height."""
    return ((x & _LAST_COLUMN) << 15 | (z & _LAST_COLUMN) << 7) + y


@shared_with_kernels
def column_index(x: int, z: int) -> int:
    """Index of column (x, z)."""
    return (x & _LAST_COLUMN) << 8 | z & _LAST_COLUMN


@shared_with_kernels
def place_in_window(index: int) -> tuple[int, int, int]:
    """The inverse of `block_index`: x, y and z, with x and z within the window."""
    return index >> 15, index & _LAST_LAYER, index >> 7 & _LAST_COLUMN


@shared_with_kernels
def narrow_block_index(x: int, y: int, z: int) -> int:
    """`block_index` from int32 to int32, for loops to be vectorised; y wraps around, too."""
    return (
        int32((x & int32(_LAST_COLUMN)) << int32(15))
        | int32((z & int32(_LAST_COLUMN)) << int32(7))
        | int32(y & int32(_LAST_LAYER))
    )


@kernel(fastmath=True)  # LLVM inlines it only into functions that are compiled alike
def neighbour_index(index: int, x: int, y: int, z: int) -> int:
    """Index, int32, of the block that is (x, y, z) steps away from another."""
    return (
        ((index + int32(x << int32(15))) & int32(_LAST_COLUMN << 15))
        | ((index + int32(z << int32(7))) & int32(_LAST_COLUMN << 7))
        | ((index + y) & int32(_LAST_LAYER))
    )


@shared_with_kernels
def column_of_block(index: int) -> int:
    """Index, int32, of the column that a block is in."""
    return index >> int32(7)


MAX_RUN = 15
"""Longest run of layers stored in each direction."""

_LANES, _STEP = np.uint64(SLAB), uint8(1)
_PAD_WORDS = np.uint64(2)
_LAST_SLAB = HEIGHT - SLAB
_ALL_OPEN = uint16(MAX_RADIUS | MAX_RUN << 5 | MAX_RUN << 10)

# Scratch of `_update_boxes`: layer radius around a slab with `_PAD` layers at either end for what
# lies below and above the world, then the slab's runs up and down.
_PAD = 2 * WORD
# Words that hold a slab and `MAX_RUN` layers at either end, wherever in a word they begin.
_AROUND = 9
# And those that hold the slab alone.
_WITHIN = 5
_WORDS_WITHIN = np.uint64(_WITHIN)
_WORDS_AROUND, _LAST_AROUND = np.uint64(_AROUND), HEIGHT // WORD - _AROUND
_UP, _DOWN = np.uint64(128), np.uint64(160)
_SCRATCH = 192


@kernel()
def build(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    hollow: Bits,
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    high: int,
) -> None:
    """Compute layer radius and boxes of the columns [x0, x1) x [z0, z1), in all layers.

    Only the blocks within `REACH` columns of them are read, whatever the fields held.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, see `cell_bits`.
        layer_radius: Overwritten in these columns, uint8 [2**23].
        box: Overwritten in these columns, uint16 [2**23].
        x0: First column.
        x1: Column after the last, at most 256 - 2 * REACH away from the first.
        z0: First column.
        z1: Column after the last.
        high: From this layer up, nothing is solid within `REACH` columns of them.
    """
    low = _lowest_hollow(hollow, x0 - REACH, x1 + REACH, z0 - REACH, z1 + REACH)
    # Boxes reach up to `MAX_RUN` layers farther than blocks.
    begin, end = low // SLAB * SLAB, min(-(-(high + MAX_RUN) // SLAB) * SLAB, HEIGHT)
    for x in range(x0, x1):
        for z in range(z0, z1):
            column = block_index(x, 0, z)
            box[column : column + begin] = uint16(SOLID)
            box[column + end : column + HEIGHT] = _ALL_OPEN
    columns = build_layer_radius(blocks, top, hollow, layer_radius, x0, x1, z0, z1, low, high)
    alike = np.zeros(len(columns), np.uint8)
    _update_boxes(layer_radius, box, columns, alike, begin, end)


@kernel()
def _lowest_hollow(hollow: Bits, x0: int, x1: int, z0: int, z1: int) -> int:
    """The lowest layer in which the columns [x0, x1) x [z0, z1) are hollow, `HEIGHT` if none."""
    for part in range(COLUMN_WORDS):
        word = uint64(0)
        for x in range(x0, x1):
            for z in range(z0, z1):
                word |= hollow[COLUMN_WORDS * column_index(x, z) + part]
        if word != uint64(0):
            return part * WORD_LAYERS + lowest_bit(word)
    return HEIGHT


@kernel()
def refresh(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    hollow: Bits,
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    y0: int,
    y1: int,
) -> None:
    """Update both fields after blocks of [x0, x1) x [y0, y1) x [z0, z1) changed.

    Both must have been exact before within `REACH` + 1 columns of the change: the columns just
    beyond its reach stand for all blocks farther away.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, the change included.
        layer_radius: uint8 [2**23].
        box: uint16 [2**23].
        x0: First column.
        x1: Column after the last.
        z0: First column.
        z1: Column after the last.
        y0: First layer.
        y1: Layer after the last.
    """
    columns, alike = refresh_layer_radius(blocks, top, hollow, layer_radius, x0, x1, z0, z1, y0, y1)
    low, high = max(y0 - MAX_RUN, 0), min(y1 + MAX_RUN, HEIGHT)
    _update_boxes(layer_radius, box, columns, alike, low, high)


@kernel()
def _update_boxes(
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    columns: NDArray[np.int32],
    alike: NDArray[np.uint8],
    low: int,
    high: int,
) -> None:
    """Compute the boxes of layers [low, high) of some columns, rounded up to whole slabs.

    Args:
        layer_radius: uint8 [2**23].
        box: uint16 [2**23].
        columns: Where they begin.
        alike: A number for each, at most `MAX_RADIUS`. A column that equals the previous one with
            the same number, in all layers that count, has the same boxes, which are reused.
        low: First layer.
        high: Layer after the last.
    """
    kept = layer_radius.view(np.uint64)
    scratch = np.empty(_SCRATCH, np.uint8)
    words = scratch.view(np.uint64)
    found = np.empty((MAX_RADIUS + 1, _AROUND), np.uint64)
    boxes = np.empty((MAX_RADIUS + 1, SLAB), np.uint16)
    for start in range(low, high, SLAB):
        first = min(start, _LAST_SLAB)
        bottom = min(max(first - MAX_RUN, 0) // WORD, _LAST_AROUND)
        # Below the world everything is solid, above it everything is open.
        scratch[:_PAD] = SOLID
        scratch[_PAD:] = OPEN
        here = uint64(_PAD + first - bottom * WORD)
        counts = np.zeros(_AROUND * WORD, np.uint8)
        begin = max(first - MAX_RUN, 0) - bottom * WORD
        counts[begin : first + SLAB + MAX_RUN - bottom * WORD] = uint8(0xFF)
        mask = counts.view(np.uint64)
        within = uint64(min(first // WORD - bottom, _AROUND - _WITHIN))
        in_slab = np.zeros(_WITHIN * WORD, np.uint8)
        begin = first - (bottom + int64(within)) * WORD
        in_slab[begin : begin + SLAB] = uint8(0xFF)
        slab_mask = in_slab.view(np.uint64)
        is_found = np.zeros(MAX_RADIUS + 1, np.bool_)
        for number in range(len(columns)):
            kind, column = alike[number], columns[number]
            around, at = uint64(column // WORD + bottom), uint64(column + first)
            differs, is_open = uint64(0), uint64(0)
            for i in range(_WORDS_WITHIN):
                is_open |= kept[around + within + i] & slab_mask[i]
            if not is_open:
                for i in range(_LANES):
                    box[at + i] = uint16(SOLID)
                continue
            for i in range(_WORDS_AROUND):
                differs |= (kept[around + i] ^ found[kind, i]) & mask[i]
            if differs or not is_found[kind]:
                for i in range(_WORDS_AROUND):
                    found[kind, i] = words[_PAD_WORDS + i] = kept[around + i]
                _find_runs(scratch, here)
                _find_boxes(scratch, here, boxes[kind])
                is_found[kind] = True
            for i in range(_LANES):
                box[at + i] = boxes[kind, i]


@kernel()
def _find_runs(scratch: NDArray[np.uint8], here: int) -> None:
    """Find the runs of a slab, whose layer radius is at `here` in the scratch."""
    for i in range(_LANES):
        radius = scratch[here + i]
        up, down = uint8(0), uint8(0)
        goes_up, goes_down = _STEP, _STEP
        for step in range(1, MAX_RUN + 1):
            goes_up = uint8(goes_up & uint8(scratch[here + i + uint64(step)] >= radius))
            goes_down = uint8(goes_down & uint8(scratch[here + i - uint64(step)] >= radius))
            up = uint8(up + goes_up)
            down = uint8(down + goes_down)
        scratch[_UP + i] = up
        scratch[_DOWN + i] = down


@kernel()
def _find_boxes(scratch: NDArray[np.uint8], here: int, boxes: NDArray[np.uint16]) -> None:
    """Pack the layer radius and the runs of a slab, which are in the scratch, into its boxes."""
    for i in range(_LANES):
        radius = uint16(scratch[here + i])
        up = uint16(uint16(scratch[_UP + i]) << uint16(5))
        down = uint16(uint16(scratch[_DOWN + i]) << uint16(10))
        open_box = uint16(uint16(radius | up) | down)
        boxes[i] = open_box if radius != uint16(0) else uint16(0)
