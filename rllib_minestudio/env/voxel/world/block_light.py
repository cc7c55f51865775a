"""The light of blocks in every cell; see `light_field` for the rule that it follows.

`enter_chunk` and `refresh` keep the field exact where `sky_light` keeps its own, and for the same
reasons.

Few cells have any of this light, so each column has its *glow*: the layer above the highest cell
that has some, rounded up to a multiple of eight; 0 if none has.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint8, uint64

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.blocks import emission
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
    place_in_window,
)
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_from,
    lowest_bit,
    without_lowest,
)
from rllib_minestudio.env.voxel.world.light_field import (
    BLOCKS,
    QUEUE,
    Columns,
    Ids,
    Light,
    Queue,
    Slots,
    is_open,
    level_of,
    longer,
    optics_at,
    set_level,
    settle,
    spread,
)

_WORD = 8  # layers of a column in a 64-bit word
_ANY = np.uint64(0xF0F0F0F0F0F0F0F0)  # the levels of block light in a word


@kernel()
def enter_chunk(
    light: Light, blocks: Ids, hollow: Bits, glow: Columns, slots: Slots,
    x0: int, z0: int, high: int,
) -> int:  # fmt: skip
    """Add a chunk whose blocks have just been made to the field, where it has no light yet.

    Args:
        light: uint8 [2**23].
        blocks: The window's blocks, uint16 [2**23].
        hollow: Where the land is hollow, see `cell_bits`.
        glow: uint8 [2**16], updated.
        slots: The slots of the chunk, and of those around it that are made.
        x0: First column of the chunk.
        z0: First column of the chunk.
        high: No block of the chunk emits light from this layer up.

    Returns:
        How many columns beyond the chunk this light may have changed.
    """
    x1, z1, brightest, highest = x0 + CHUNK, z0 + CHUNK, 1, 0
    queue, end = np.empty(QUEUE, np.int32), 0
    for x in range(x0 - 1, x1 + 1):
        for z in range(z0 - 1, z1 + 1):
            if end + HEIGHT > len(queue):
                queue = longer(queue)
            if x0 <= x < x1 and z0 <= z < z1:
                glow[column_index(x, z)] = uint8(0)
                for part in range(COLUMN_WORDS):
                    word = hollow[COLUMN_WORDS * column_index(x, z) + part]
                    word &= ~bits_from(high, part)
                    while word:
                        y = part * WORD_LAYERS + lowest_bit(word)
                        index = block_index(x, y, z)
                        word = without_lowest(word)
                        level = int64(emission(optics_at(blocks, index)))
                        if level > 0:
                            set_level(light, index, BLOCKS, level)
                            queue[end] = index
                            end += 1
                            brightest, highest = max(brightest, level), max(highest, y)
            elif is_open(slots, block_index(x, 0, z)):
                for y in range(int64(glow[column_index(x, z)])):
                    index = block_index(x, y, z)
                    level = level_of(light, index, BLOCKS)
                    if level > 1:
                        queue[end] = index
                        end += 1
                        brightest, highest = max(brightest, level), max(highest, y)
    if end == 0:
        return 0
    queue, end = spread(light, blocks, slots, BLOCKS, queue, end)
    reach = _reach(queue, end, x0, z0)
    ceiling = min(highest + brightest, HEIGHT)
    _find_glow(light, glow, x0 - reach, x1 + reach, z0 - reach, z1 + reach, 0, ceiling)
    return reach


@kernel(allocates=False)
def _reach(queue: Queue, end: int, x0: int, z0: int) -> int:
    """How many columns beyond the chunk at (x0, z0) there are cells of a queue or next to one."""
    farthest = 0
    for number in range(end):
        x, _, z = place_in_window(int64(queue[number]))
        dx = ((x - x0 + WINDOW // 2) & (WINDOW - 1)) - WINDOW // 2
        dz = ((z - z0 + WINDOW // 2) & (WINDOW - 1)) - WINDOW // 2
        farthest = max(farthest, max(max(-dx, dx - CHUNK + 1), max(-dz, dz - CHUNK + 1)))
    return farthest + 1


@kernel()
def refresh(
    light: Light, blocks: Ids, floor: Columns, glow: Columns, slots: Slots,
    x0: int, x1: int, y0: int, y1: int, z0: int, z1: int,
) -> int:  # fmt: skip
    """Update the field after changes of blocks in [x0, x1) x [y0, y1) x [z0, z1).

    Args:
        light: uint8 [2**23], exact before the change within `REACH` columns of it.
        blocks: The window's blocks, uint16 [2**23].
        floor: Floors of the columns, uint8 [2**16].
        glow: uint8 [2**16], updated.
        slots: All slots.
        x0: First column.
        x1: Column after the last.
        y0: First layer.
        y1: Layer after the last.
        z0: First column.
        z1: Column after the last.

    Returns:
        How many columns beyond these this light may have changed.
    """
    cells, count = np.empty(QUEUE, np.int32), 0
    for x in range(x0 - 1, x1 + 1):
        for z in range(z0 - 1, z1 + 1):
            if count + HEIGHT > len(cells):
                cells = longer(cells)
            is_inside, around = x0 <= x < x1 and z0 <= z < z1, _glow_around(glow, x, z)
            # A full side of a block counts for the cell beside it as well.
            for y in range(max(y0 - 1, 0), min(y1 + 1, HEIGHT)):
                index = block_index(x, y, z)
                # Where no light is near, only a block that emits some matters.
                is_near = around > 0 and y <= around
                if is_near or (is_inside and emission(optics_at(blocks, index)) > 0):
                    cells[count] = index
                    count += 1
    if count == 0:
        return 0
    highest = settle(light, blocks, floor, slots, BLOCKS, cells, count)
    if highest:
        _find_glow(light, glow, x0, x1, z0, z1, highest, HEIGHT)
    return highest


@kernel(allocates=False)
def _glow_around(glow: Columns, x: int, z: int) -> int:
    """The highest glow of a column and the four beside it."""
    return int64(
        max(
            glow[column_index(x, z)],
            max(glow[column_index(x - 1, z)], glow[column_index(x + 1, z)]),
            max(glow[column_index(x, z - 1)], glow[column_index(x, z + 1)]),
        )
    )


@kernel()
def _find_glow(
    light: Light, glow: Columns, x0: int, x1: int, z0: int, z1: int, reach: int, ceiling: int
) -> None:
    """Update the glow of the columns [x0, x1) and [z0, z1), and of all up to `reach` steps away.

    From layer `ceiling` up, light has not changed.
    """
    words, changed = light.view(np.uint64), uint64(-(-ceiling // _WORD))
    for x in range(x0 - reach, x1 + reach):
        left = reach - max(x0 - x, x - x1 + 1, 0)
        for z in range(z0 - left, z1 + left):
            column = column_index(x, z)
            if uint64(glow[column]) > changed * uint64(_WORD):
                continue  # it has light farther up
            first, count = uint64(block_index(x, 0, z) // _WORD), changed
            while count > 0 and words[first + count - uint64(1)] & _ANY == 0:
                count -= uint64(1)
            glow[column] = uint8(count * uint64(_WORD))
