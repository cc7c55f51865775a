"""Layout of the scratch memory in which a tile of rays advances in lockstep.

One flat array per type, one row of `LANES` values per quantity: constant offsets into a single
array are what LLVM needs to see that the rows do not overlap, and so to vectorise.
"""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.render.camera import Floats, Ints

TILE = 8
LANES = TILE * TILE
# Scratch layout: one row of LANES values per quantity.
(
    DIR_X, DIR_Y, DIR_Z,  # ray direction
    INV_X, INV_Y, INV_Z,  # its reciprocal
    ORG_X, ORG_Y, ORG_Z,  # nudged origin
    CELL_X, CELL_Y, CELL_Z,  # block the ray is in
    T_NOW, T_MAX,  # ray parameter reached, and where the view ends
    TILE_X, TILE_Y,  # pixel inside the tile
    FOG, DEPTH,
) = [LANES * row for row in range(18)]  # fmt: skip
FLOAT_SCRATCH = 18 * LANES
(BLOCK_INDEX, FIELD, COLUMN, TEXEL, RED, GREEN, BLUE) = [LANES * row for row in range(7)]
INT_SCRATCH = 7 * LANES

SKY_DEPTH = np.float32(1e9)
NUDGE = np.float32(2e-4)
# Rays are never exactly parallel to an axis; spares the kernels every division by zero.
SMALLEST_SLOPE = np.float32(1e-6)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1), np.float32(0)
# The eye's column inside the kernels' window, and the window's mask.
CENTRE, WINDOW = 128, 255


def new_scratch() -> tuple[Floats, Ints]:
    """Working memory for `render_terrain`; one pair per renderer."""
    floats = np.zeros(FLOAT_SCRATCH, np.float32)
    lanes = np.arange(LANES)
    floats[TILE_X : TILE_X + LANES] = lanes % TILE
    floats[TILE_Y : TILE_Y + LANES] = lanes // TILE
    return floats, np.zeros(INT_SCRATCH, np.int32)
