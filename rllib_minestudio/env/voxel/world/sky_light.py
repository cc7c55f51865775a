"""The light of the sky in every cell; see `light_field` for the rule that it follows.

`enter_chunk` adds a chunk whose blocks are new, `refresh` follows changes of blocks. Both keep the
field exact in all cells that have only made chunks within reach. Other cells may be brighter or
darker: they are in chunks that are not ready (see `land`), and become exact when the missing chunks
are made, because a chunk that returns is as it was.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint8, uint32

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.blocks import DOWN, UP, closes, dims_sky, is_opaque
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_between,
    lowest_bit,
    without_lowest,
)
from rllib_minestudio.env.voxel.world.light_field import (
    FULL,
    QUEUE,
    SKY,
    Columns,
    Ids,
    Light,
    Slots,
    due,
    is_open,
    level_of,
    longer,
    optics_at,
    set_level,
    settle,
    sky_level,
    spread,
)


@kernel()
def _find_floor(blocks: Ids, top: Columns, x: int, z: int) -> int:
    """The layer from which up a column has the full light, 0 to 128."""
    for y in range(int64(top[column_index(x, z)]), -1, -1):
        here = optics_at(blocks, block_index(x, y, z))
        if dims_sky(here) or closes(here, UP):
            return y + 1
        if closes(here, DOWN):
            return y
    return 0


@kernel(inline="always")
def _lowest_lit(floor: Columns, x: int, z: int) -> int:
    """The lowest layer of a column next to the full light: in one beside it, or in its own."""
    beside = min(
        min(floor[column_index(x - 1, z)], floor[column_index(x + 1, z)]),
        min(floor[column_index(x, z - 1)], floor[column_index(x, z + 1)]),
    )
    return min(int64(beside), int64(floor[column_index(x, z)]) - 1)


@kernel(inline="always")
def _is_dark_around(light: Light, x: int, y: int, z: int) -> bool:
    """Whether no cell next to one has light of the sky; the layers 0 and 127 are never dark."""
    if y == 0 or y == HEIGHT - 1:
        return False
    around = light[uint32(block_index(x, y - 1, z))] | light[uint32(block_index(x, y + 1, z))]
    around |= light[uint32(block_index(x - 1, y, z))] | light[uint32(block_index(x + 1, y, z))]
    around |= light[uint32(block_index(x, y, z - 1))] | light[uint32(block_index(x, y, z + 1))]
    return sky_level(around) == 0


@kernel()
def enter_chunk(
    light: Light, blocks: Ids, top: Columns, hollow: Bits, floor: Columns, slots: Slots,
    x0: int, z0: int,
) -> None:  # fmt: skip
    """Add a chunk whose blocks have just been made to the field; it gets no light of blocks.

    Args:
        light: uint8 [2**23].
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, see `cell_bits`.
        floor: Floors of the columns, uint8 [2**16]; set in the chunk.
        slots: The slots of the chunk, and of those around it that are made.
        x0: First column of the chunk.
        z0: First column of the chunk.
    """
    x1, z1 = x0 + CHUNK, z0 + CHUNK
    for x in range(x0, x1):
        for z in range(z0, z1):
            first, lowest = block_index(x, 0, z), _find_floor(blocks, top, x, z)
            floor[column_index(x, z)] = uint8(lowest)
            light[first : first + lowest] = uint8(0)
            light[first + lowest : first + HEIGHT] = uint8(FULL)
    queue, end = np.empty(QUEUE, np.int32), 0
    # The cells next to the chunk may get light from it. Inside, all is dark yet below the floors;
    # columns at its sides may get any light that the chunks beside it have.
    for x in range(x0 - 1, x1 + 1):
        for z in range(z0 - 1, z1 + 1):
            if not is_open(slots, block_index(x, 0, z)):
                continue
            if end + HEIGHT > len(queue):
                queue = longer(queue)
            column = column_index(x, z)
            low = _lowest_lit(floor, x, z) if x0 < x < x1 - 1 and z0 < z < z1 - 1 else 0
            for part in range(COLUMN_WORDS):
                word = hollow[COLUMN_WORDS * column + part]
                word &= bits_between(low, int64(floor[column]), part)
                while word:
                    y = part * WORD_LAYERS + lowest_bit(word)
                    word = without_lowest(word)
                    index = block_index(x, y, z)
                    if _is_dark_around(light, x, y, z) or is_opaque(optics_at(blocks, index)):
                        continue
                    level = due(light, blocks, floor, slots, SKY, index)
                    if level > level_of(light, index, SKY):
                        set_level(light, index, SKY, level)
                        queue[end] = index
                        end += 1
    spread(light, blocks, slots, SKY, queue, end)


@kernel()
def refresh(
    light: Light, blocks: Ids, top: Columns, floor: Columns, slots: Slots,
    x0: int, x1: int, y0: int, y1: int, z0: int, z1: int,
) -> None:  # fmt: skip
    """Update the field after changes of blocks in [x0, x1) x [y0, y1) x [z0, z1).

    Args:
        light: uint8 [2**23], exact before the change within `REACH` columns of it.
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        floor: Floors of the columns, uint8 [2**16]; updated.
        slots: All slots.
        x0: First column.
        x1: Column after the last.
        y0: First layer.
        y1: Layer after the last.
        z0: First column.
        z1: Column after the last.
    """
    cells, count = np.empty(QUEUE, np.int32), 0
    for x in range(x0 - 1, x1 + 1):
        for z in range(z0 - 1, z1 + 1):
            if count + 2 * HEIGHT > len(cells):
                cells = longer(cells)
            # A full side of a block counts for the cell beside it as well.
            low, high = max(y0 - 1, 0), min(y1 + 1, HEIGHT)
            for y in range(low, high):
                cells[count] = block_index(x, y, z)
                count += 1
            if not (x0 <= x < x1 and z0 <= z < z1):
                continue
            column = column_index(x, z)
            before, now = int64(floor[column]), _find_floor(blocks, top, x, z)
            floor[column] = uint8(now)
            for y in range(min(before, now), max(before, now)):
                if not low <= y < high:
                    cells[count] = block_index(x, y, z)
                    count += 1
    settle(light, blocks, floor, slots, SKY, cells, count)
