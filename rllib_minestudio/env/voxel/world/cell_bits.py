"""Two facts of every cell of the window, a bit for each: where the land is hollow, what is thin.

A cell without a *hollow* bit holds a plain block: a full cube that stops rays and light and gives
none. Below the ground nearly all are, so whoever looks there for air, light or the like goes from
bit to bit instead of through all layers. Bits follow from the seed and the edits alone. None is
taken away before its chunk is: a cell with a bit may be plain, too.

A cell with a *thin* bit holds a thin block, a plant. So a frame finds the plants around the eye in
a glance at some thousand words, in the same order always, and an edit changes a bit. These bits
follow from the blocks alone, of each cell by itself.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.blocks import is_thin
from rllib_minestudio.env.voxel.world.box_field import CHUNK, WINDOW, block_index, column_index
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_between,
    bits_from,
)


def new_bits() -> Bits:
    """The bits of a window in which none is set."""
    return np.zeros(WINDOW * WINDOW * COLUMN_WORDS, np.uint64)


# ------------------------------------------------------------------------- where the land is hollow


@kernel()
def open_above(hollow: Bits, top: NDArray[np.uint8], chunk_x: int, chunk_z: int) -> None:
    """Write the bits of a chunk that is plain up to its ground, and empty above.

    Args:
        hollow: The bits.
        top: The window's column tops, uint8 [2**16].
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
    """
    for x in range(chunk_x * CHUNK, (chunk_x + 1) * CHUNK):
        for z in range(chunk_z * CHUNK, (chunk_z + 1) * CHUNK):
            column = column_index(x, z)
            for part in range(COLUMN_WORDS):
                hollow[COLUMN_WORDS * column + part] = bits_from(int64(top[column]) + 1, part)


@kernel()
def open_box(hollow: Bits, x0: int, x1: int, z0: int, z1: int, y0: int, y1: int) -> None:
    """Set the bits of the cells [x0, x1) x [y0, y1) x [z0, z1), whose blocks have changed."""
    for x in range(x0, x1):
        for z in range(z0, z1):
            for part in range(COLUMN_WORDS):
                hollow[COLUMN_WORDS * column_index(x, z) + part] |= bits_between(y0, y1, part)


# -------------------------------------------------------------------------- where thin blocks are


@kernel()
def find_thin(
    blocks: NDArray[np.uint16], thin: Bits, x0: int, x1: int, z0: int, z1: int, y0: int, y1: int
) -> None:
    """Update the bits of the cells [x0, x1) x [y0, y1) x [z0, z1), whose blocks may have changed.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        thin: The bits.
        x0: First column.
        x1: Column after the last.
        z0: First column.
        z1: Column after the last.
        y0: First layer.
        y1: Layer after the last, within the height.
    """
    for x in range(x0, x1):
        for z in range(z0, z1):
            start, first = block_index(x, 0, z), COLUMN_WORDS * column_index(x, z)
            for part in range(COLUMN_WORDS):
                low, high = max(y0, part * WORD_LAYERS), min(y1, (part + 1) * WORD_LAYERS)
                if low < high:
                    thin[first + part] = _renewed(thin[first + part], blocks, start, low, high)


@kernel(inline="always")
def _renewed(word: int, blocks: NDArray[np.uint16], start: int, low: int, high: int) -> int:
    """A column's word with the bits of layers [low, high) renewed."""
    for y in range(low, high):
        bit = uint64(1) << uint64(y & (WORD_LAYERS - 1))
        word = word | bit if is_thin(blocks[start + y]) else word & ~bit
    return word


@kernel()
def enter_thin(
    blocks: NDArray[np.uint16], thin: Bits, x0: int, z0: int, low: int, high: int
) -> None:
    """Write the bits of a chunk whose blocks have just been made, whatever they were.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        thin: The bits.
        x0: First column of the chunk.
        z0: First column of the chunk.
        low: There are no thin blocks below this layer.
        high: Nor from this layer up.
    """
    for x in range(x0, x0 + CHUNK):
        for z in range(z0, z0 + CHUNK):
            start, first = block_index(x, 0, z), COLUMN_WORDS * column_index(x, z)
            for part in range(COLUMN_WORDS):
                y0, y1 = max(low, part * WORD_LAYERS), min(high, (part + 1) * WORD_LAYERS)
                thin[first + part] = _renewed(uint64(0), blocks, start, y0, y1)
