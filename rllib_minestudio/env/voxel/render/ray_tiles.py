"""Layout of the scratch memory in which a tile of rays advances in lockstep.

One flat array per type, one row of `LANES` values per quantity: constant offsets into a single
array let LLVM see that the rows do not overlap, and so vectorise.
"""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.render.camera import Floats, Ints
from rllib_minestudio.env.voxel.world.box_field import WINDOW

TILE = 8
LANES = TILE * TILE
(
    DIR_X, DIR_Y, DIR_Z,  # ray direction
    INV_X, INV_Y, INV_Z,  # its reciprocal
    ORG_X, ORG_Y, ORG_Z,  # nudged origin
    CELL_X, CELL_Y, CELL_Z,  # block the ray is in
    T_NOW, T_MAX,  # ray parameter reached, and where the view ends
    RAY_X, RAY_Y,  # where the ray passes on the plane one block ahead
    POINT_X, POINT_Y, POINT_Z,  # where in its block the ray ends, 0 to 1
    FOG, DEPTH, OPENNESS,  # of what the ray shows
    LIGHT_R, LIGHT_G, LIGHT_B,  # light on what the ray shows
    LEVEL_ABOVE, GLOW_ABOVE,  # how far that is from one level of light to the next
) = [LANES * row for row in range(27)]  # fmt: skip
FLOAT_SCRATCH = 27 * LANES
(
    BLOCK_INDEX, FIELD,  # block the ray is in, and its entry of the box field
    FACE, FRONT, TEXEL, COLUMN,  # side hit, cell in front of it, its texel, that cell's column
    FRONT_FIELD,  # entry of the box field of that cell
    RED, GREEN, BLUE,
    KEY, FACE_OF,  # number of the face hit, its place in the list of the tile's faces
    FACE_KEY, WORD, LEVEL, GLOW,  # of each face in that list, see `corner_light`
) = [LANES * row for row in range(16)]  # fmt: skip
# Of each face in the list, the eight cells around the one in front of it.
NEIGHBOUR, AROUND = 16 * LANES, 24 * LANES
LIGHT_MAP = 32 * LANES  # colour of each byte of light, kept from frame to frame
INT_SCRATCH = LIGHT_MAP + 256

SKY_DEPTH = np.float32(1e9)
NUDGE = np.float32(2e-4)
# Rays are never exactly parallel to an axis, so that no kernel divides by zero.
SMALLEST_SLOPE = np.float32(1e-6)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1), np.float32(0)
# The eye's column inside the kernels' window.
CENTRE = WINDOW // 2


def new_scratch() -> tuple[Floats, Ints]:
    """Allocate the working memory of `render_terrain`; one pair per renderer."""
    return np.zeros(FLOAT_SCRATCH, np.float32), np.zeros(INT_SCRATCH, np.int32)
