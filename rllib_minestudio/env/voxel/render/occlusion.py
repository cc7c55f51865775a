"""Soft shade where blocks meet, Minecraft's "smooth lighting".

The air before a hit face has neighbours along the face. Those on the side of the hit point - one
beside, one beyond, one at the corner - darken it the more, the closer the point is to them:

    +-------+-------+
    | beyond| corner|      o is the point hit, in the cell of air before the face;
    +-------+-------+      the plane of the picture is the face.
    |     o | beside|
    +-------+-------+
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint32

from rllib_minestudio.env.voxel.render.camera import Floats, Ints, Shorts, render_kernel
from rllib_minestudio.env.voxel.render.ray_tiles import (
    BESIDE,
    BEYOND,
    CORNER,
    DEPTH,
    FACE,
    FRONT,
    HALF,
    LANES,
    ONE,
    OPENNESS,
    POINT_X,
    POINT_Y,
    POINT_Z,
    SKY_DEPTH,
    ZERO,
)
from rllib_minestudio.env.voxel.world.addressing import neighbour_index

# Share of the light that a neighbour takes right at its edge.
STRENGTH = np.float32(0.36)
# The effect fades out at this depth, and tiles beyond it are spared the work.
REACH = np.float32(32.0)


@render_kernel
def _find_neighbours(s: Floats, n: Ints) -> None:
    none = int32(0)
    for i in range(LANES):
        axis, front = n[FACE + i] >> int32(1), n[FRONT + i]
        is_x, is_z = axis == int32(0), axis == int32(2)
        side_x = int32(-1) if s[POINT_X + i] < HALF else int32(1)
        side_y = int32(-1) if s[POINT_Y + i] < HALF else int32(1)
        side_z = int32(-1) if s[POINT_Z + i] < HALF else int32(1)
        # "Beside" lies along x, or y for a face across x; "beyond" along z, or y for one across z.
        beside_x, beside_y = (none if is_x else side_x), (side_y if is_x else none)
        beyond_y, beyond_z = (side_y if is_z else none), (none if is_z else side_z)
        beside = neighbour_index(front, beside_x, beside_y, none)
        n[BESIDE + i] = beside
        n[BEYOND + i] = neighbour_index(front, none, beyond_y, beyond_z)
        n[CORNER + i] = neighbour_index(beside, none, beyond_y, beyond_z)


@render_kernel
def open_all(s: Floats) -> float:
    """Write that the air before each hit is open; returns the depth of the nearest hit."""
    nearest = SKY_DEPTH
    for i in range(LANES):
        nearest = min(nearest, s[DEPTH + i])
        s[OPENNESS + i] = ONE
    return nearest


@render_kernel
def occlude(box: Shorts, s: Floats, n: Ints) -> None:
    """Write how open the air before each hit is, 1 where no block is near.

    Args:
        box: The box field, 0 in a block.
        s: Float scratch.
        n: Integer scratch.
    """
    _find_neighbours(s, n)
    for i in range(LANES):
        n[BESIDE + i] = int32(box[uint32(n[BESIDE + i])])
        n[BEYOND + i] = int32(box[uint32(n[BEYOND + i])])
        n[CORNER + i] = int32(box[uint32(n[CORNER + i])])
    for i in range(LANES):
        axis = n[FACE + i] >> int32(1)
        across = s[POINT_Y + i] if axis == int32(0) else s[POINT_X + i]
        along = s[POINT_Y + i] if axis == int32(2) else s[POINT_Z + i]
        near_beside = abs(across - HALF) * float32(2)
        near_beyond = abs(along - HALF) * float32(2)
        strength = STRENGTH * max(ONE - s[DEPTH + i] / REACH, ZERO)
        beside = near_beside if n[BESIDE + i] == int32(0) else ZERO
        beyond = near_beyond if n[BEYOND + i] == int32(0) else ZERO
        # A corner hidden behind its sides adds nothing.
        corner = near_beside * near_beyond if n[CORNER + i] == int32(0) else ZERO
        corner = min(corner, ONE - max(beside, beyond))
        s[OPENNESS + i] = (ONE - strength * beside) * (
            (ONE - strength * beyond) * (ONE - strength * corner)
        )
