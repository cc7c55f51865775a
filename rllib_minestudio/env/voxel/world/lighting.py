"""Both lights of the land, kept with its blocks, and the *shade* of each column.

Most of what is seen has the full light of the sky and no other around it. The renderer tells by the
column alone: from the layer of its shade up, all cells of a column and of the eight around it are
opaque, or have the full light of the sky and none of blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, uint8

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import block_light, sky_light
from rllib_minestudio.env.voxel.world.blocks import is_opaque
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
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
    ALL_SLOTS,
    Columns,
    Ids,
    Light,
    Slots,
    optics_at,
)


class Lighting(NamedTuple):
    """The fields of light in the window.

    Attributes:
        light: Both levels of each cell, uint8 [2**23]; see `light_field`.
        floor: From which layer up there is the full light of the sky, uint8 [2**16], 0 to 128.
        glow: Below which layer there is light of blocks, uint8 [2**16]; see `block_light`.
        dimmed: The layer above a column's highest cell that is not opaque and has less than the
            full light of the sky, 0 if there is none; uint8 [2**16].
        shade: The highest `dimmed` and `glow` of a column and the eight around it, uint8 [2**16].
    """

    light: Light
    floor: Columns
    glow: Columns
    dimmed: Columns
    shade: Columns


def new_lighting() -> Lighting:
    """Allocate dark fields."""
    columns = (np.zeros(WINDOW * WINDOW, np.uint8) for _ in range(4))
    return Lighting(np.zeros(WINDOW * WINDOW * HEIGHT, np.uint8), *columns)


@kernel()
def enter_chunk(
    lighting: Lighting, blocks: Ids, top: Columns, hollow: Bits, slots: Slots,
    x0: int, z0: int, high: int,
) -> None:  # fmt: skip
    """Add a chunk whose blocks have just been made to all fields.

    Args:
        lighting: The fields.
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, see `cell_bits`.
        slots: The slots of the chunk, and of those around it that are made, bool [256].
        x0: First column of the chunk.
        z0: First column of the chunk.
        high: No block of the chunk emits light from this layer up.
    """
    light, floor, glow, dimmed, shade = lighting
    sky_light.enter_chunk(light, blocks, top, hollow, floor, slots, x0, z0)
    reach = block_light.enter_chunk(light, blocks, hollow, glow, slots, x0, z0, high)
    x1, z1 = x0 + CHUNK, z0 + CHUNK
    _find_dimmed(blocks, hollow, floor, dimmed, x0, x1, z0, z1)
    _find_shade(glow, dimmed, shade, x0 - reach, x1 + reach, z0 - reach, z1 + reach)


@kernel()
def refresh(
    lighting: Lighting, blocks: Ids, top: Columns, hollow: Bits,
    x0: int, x1: int, y0: int, y1: int, z0: int, z1: int,
) -> None:  # fmt: skip
    """Update all fields after changes of blocks in [x0, x1) x [y0, y1) x [z0, z1).

    Args:
        lighting: The fields, exact before the change within `light_field.REACH` columns of it.
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        hollow: Where the land is hollow, the changes included.
        x0: First column.
        x1: Column after the last.
        y0: First layer.
        y1: Layer after the last.
        z0: First column.
        z1: Column after the last.
    """
    light, floor, glow, dimmed, shade = lighting
    sky_light.refresh(light, blocks, top, floor, ALL_SLOTS, x0, x1, y0, y1, z0, z1)
    reach = block_light.refresh(light, blocks, floor, glow, ALL_SLOTS, x0, x1, y0, y1, z0, z1)
    _find_dimmed(blocks, hollow, floor, dimmed, x0, x1, z0, z1)
    _find_shade(glow, dimmed, shade, x0 - reach, x1 + reach, z0 - reach, z1 + reach)


@kernel(allocates=False)
def _find_dimmed(
    blocks: Ids, hollow: Bits, floor: Columns, dimmed: Columns, x0: int, x1: int, z0: int, z1: int
) -> None:
    """Update `dimmed` in the columns [x0, x1) and [z0, z1)."""
    for x in range(x0, x1):
        for z in range(z0, z1):
            column, layer = column_index(x, z), 0
            for part in range(COLUMN_WORDS):
                word = hollow[COLUMN_WORDS * column + part]
                word &= ~bits_from(int64(floor[column]), part)
                while word:
                    y = part * WORD_LAYERS + lowest_bit(word)
                    if not is_opaque(optics_at(blocks, block_index(x, y, z))):
                        layer = y + 1
                    word = without_lowest(word)
            dimmed[column] = uint8(layer)


@kernel()
def _find_shade(
    glow: Columns, dimmed: Columns, shade: Columns, x0: int, x1: int, z0: int, z1: int
) -> None:
    """Update the shade after changes in the columns [x0, x1) and [z0, z1)."""
    first = z0 - 2
    count = z1 - z0 + 4
    across = np.empty(count, np.uint8)  # the highest of three columns next to each other along x
    for x in range(x0 - 1, x1 + 1):
        for i in range(count):
            highest = uint8(0)
            for near in range(x - 1, x + 2):
                column = column_index(near, first + i)
                highest = max(highest, max(glow[column], dimmed[column]))
            across[i] = highest
        for i in range(1, count - 1):
            shade[column_index(x, first + i)] = max(across[i - 1], across[i], across[i + 1])
