"""Where the land is hollow: a bit for each cell of the window.

A cell without a bit holds a *plain* block: a full cube that stops rays and light and gives none.
Below the ground nearly all are, so whoever looks there for air, light or the like goes from bit to
bit instead of through all layers.

Bits follow from the seed and the edits alone. None is taken away before its chunk is: a cell with a
bit may be plain, too.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.box_field import CHUNK, WINDOW, column_index
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    Bits,
    bits_between,
    bits_from,
)


def new_bits() -> Bits:
    """The bits of a window that is plain throughout."""
    return np.zeros(WINDOW * WINDOW * COLUMN_WORDS, np.uint64)


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
