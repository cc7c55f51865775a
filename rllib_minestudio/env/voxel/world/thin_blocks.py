"""Where the thin blocks of the window are: a bit for each of its cells.

A column has two words of 64 layers. So a frame finds the plants around the eye in a glance at some
thousand words, in the same order always, and an edit changes a bit. The bits follow from the
blocks alone, of each cell by itself.
"""

from __future__ import annotations

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.block_states import is_thin
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
)

WORD_LAYERS = 64
COLUMN_WORDS = HEIGHT // WORD_LAYERS
"""Words of a column, the lower layers first; a layer's bit is its number within the word."""

Bits = NDArray[np.uint64]
"""uint64 [2**17]: those of a column begin at `COLUMN_WORDS * column_index(x, z)`."""


def new_bits() -> Bits:
    """The bits of a window without thin blocks."""
    return np.zeros(WINDOW * WINDOW * COLUMN_WORDS, np.uint64)


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
            start = block_index(x, 0, z)
            first = COLUMN_WORDS * column_index(x, z)
            for part in range(COLUMN_WORDS):
                low, high = max(y0, part * WORD_LAYERS), min(y1, (part + 1) * WORD_LAYERS)
                if low >= high:
                    continue
                word = thin[first + part]
                for y in range(low, high):
                    bit = uint64(1) << uint64(y & (WORD_LAYERS - 1))
                    word = word | bit if is_thin(blocks[start + y]) else word & ~bit
                thin[first + part] = word


@kernel()
def enter_chunk(
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
            first = COLUMN_WORDS * column_index(x, z)
            thin[first : first + COLUMN_WORDS] = uint64(0)
    find_thin(blocks, thin, x0, x0 + CHUNK, z0, z0 + CHUNK, low, high)


@kernel(inline="always")
def lowest_bit(word: int) -> int:
    """The number of the lowest bit that is set in a uint64, which is not 0."""
    number = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word & ((uint64(1) << uint64(step)) - uint64(1)) == uint64(0):
            word = word >> uint64(step)
            number += step
    return number
