"""Layout of the scratch memory in which a tile of rays advances in lockstep.

One flat array per type, one row of `LANES` values per quantity: constant offsets into a single
array let LLVM see that the rows do not overlap, and so vectorise.
"""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.render.camera import Floats, Ints
from rllib_minestudio.env.voxel.world.box_field import WINDOW

TILE_BITS = 3
TILE = 1 << TILE_BITS
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
    CLEAR, TINT_R, TINT_G, TINT_B,  # share of what is behind glass, and the glass' own colour
    FROM_EYE_X, FROM_EYE_Y, FROM_EYE_Z,  # from the eye to the cell's lowest corner
    MET_AT, BEYOND,  # where the ray enters and leaves the box that it meets
    ENTERED, INSIDE_UNTIL,  # where it entered the last one, and will have left all
    T_KEPT,  # where it enters the cell from which it goes on
    HELD_X, HELD_Y, HELD_Z, HELD_T,  # cell and parameter of those that have ended, see `hold`
) = [LANES * row for row in range(43)]  # fmt: skip
WAITING = 43 * LANES  # seven values of each ray of two tiles, see `waiting_rays`
FLOAT_SCRATCH = WAITING + 7 * 2 * LANES
(
    BLOCK_INDEX, FIELD,  # block the ray is in, and its entry of the box field
    FACE, FRONT, TEXEL, COLUMN,  # side hit, cell in front of it, its texel, that cell's column
    FRONT_FIELD,  # entry of the box field of that cell
    RED, GREEN, BLUE,
    KEY, FACE_OF,  # number of the face hit, its place in the list of the tile's faces
    FACE_KEY, WORD, LEVEL, GLOW,  # of each face in that list, see `corner_light`
    BLOCK, LOOK,  # block that the ray has ended in, and its special look; see `see_through`
    MET, SEEN_FACE,  # what becomes of the ray in a special cell, and the face on which it ends
    MODEL, MODEL_KNOWN,  # the boxes in its cell, see `see_through`
    SIDE, SURFACE,  # face of the box that the ray meets, and whether it is seen
    TINTS, PASSED,  # number of texels and of special cells that the ray has passed
    PIXEL,  # where in the frame it is
    WAITS,  # the tile's rays that begin to wait
    HELD_INDEX,  # cell of those that have ended
) = [LANES * row for row in range(29)]  # fmt: skip
# Of each face in the list, the eight cells around the one in front of it.
NEIGHBOUR, AROUND = 29 * LANES, 37 * LANES
WAITING_INTS = 45 * LANES  # three values of each ray of two tiles, see `waiting_rays`
# Models of cells that rays have met, each in the one slot in which it may be.
MODELS_KNOWN = 2048
MODEL_CELL = WAITING_INTS + 3 * 2 * LANES
MODEL_IN_CELL = MODEL_CELL + MODELS_KNOWN
LIGHT_MAP = MODEL_IN_CELL + MODELS_KNOWN  # colour of each byte of light, kept from frame to frame
INT_SCRATCH = LIGHT_MAP + 256

SKY_DEPTH = np.float32(1e9)
NUDGE = np.float32(2e-4)
# Rays are never exactly parallel to an axis, so that no kernel divides by zero.
SMALLEST_SLOPE = np.float32(1e-6)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1), np.float32(0)
INSIDE = 8
"""Bit of a face that is inside its cell, so that the cell in front of it is its own."""
# The eye's column inside the kernels' window.
CENTRE = WINDOW // 2


def new_scratch() -> tuple[Floats, Ints]:
    """Allocate the working memory of `render_terrain`; one pair per renderer."""
    return np.zeros(FLOAT_SCRATCH, np.float32), np.zeros(INT_SCRATCH, np.int32)
