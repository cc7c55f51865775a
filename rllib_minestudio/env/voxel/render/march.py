"""The march: rays walk the block world from one empty box to the next.

For an air cell, the *box field* (see `box_field`) holds how far its layer is empty sideways, and
for how many layers above and below, so one leap crosses a whole empty box. A tile of 8 x 8 rays
advances in lockstep inside one flat scratch array. Index arithmetic, gathers and float arithmetic
are separate loops, which lets LLVM vectorise them. These habits matter (each cost a factor of two
or more when it was missing):

- Indices are cast to uint32 before use.
- Gathers stay out of the arithmetic loops. So do loads that depend on a condition: both values are
  loaded, and one is chosen.
- Flags and sums that a loop collects are cast to int32 in each step, which numba makes int64.
- The origin is nudged along the ray by `NUDGE` rather than t by an epsilon, which could stall.

Coordinates inside the kernels: the eye's column is at x = z = 128, so the 256 x 256 window around
it is positive and truncation is floor. There are no blocks above `ceiling` and below 0, and the
box field is undefined there: rays from outside begin where they enter, or end at once, and no ray
turns back. A ray that leaves through the floor stays in the lowest cell, which is air, and shows
the sky.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint32

from rllib_minestudio.env.voxel.render.camera import (
    BLOCK_INDEX,
    CELL_X,
    CELL_Y,
    CELL_Z,
    CENTRE,
    DIR_X,
    DIR_Y,
    DIR_Z,
    EYE_X,
    EYE_Y,
    EYE_Z,
    FIELD,
    FORWARD,
    HALF,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
    NUDGE,
    ONE,
    ORG_X,
    ORG_Y,
    ORG_Z,
    RAY_X,
    RAY_Y,
    RIGHT,
    SMALLEST_SLOPE,
    T_MAX,
    T_NOW,
    UP,
    VIEW,
    ZERO,
    Floats,
    Ints,
    Shorts,
    either,
    inlined_kernel,
    render_kernel,
)
from rllib_minestudio.env.voxel.world.box_field import narrow_block_index

MOST_LEAPS = 256
"""Leaps after which a ray ends. Each crosses a border between cells at least, and a ray as long as
the longest view, 80 blocks, crosses fewer than 80 * sqrt(3) + 3."""


@inlined_kernel
def _away_from_zero(value: float) -> float:
    return SMALLEST_SLOPE if abs(value) < SMALLEST_SLOPE else value


@inlined_kernel
def start_rays(camera: Floats, ceiling: float, s: Floats) -> None:
    """Write a tile's directions and origins; rays from outside begin at the ceiling or at y = 0."""
    x = camera[EYE_X] + float32(CENTRE)
    y = camera[EYE_Y]
    z = camera[EYE_Z] + float32(CENTRE)
    view = camera[VIEW]
    f0, f1, f2 = camera[FORWARD], camera[FORWARD + 1], camera[FORWARD + 2]
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    u0, u1, u2 = camera[UP], camera[UP + 1], camera[UP + 2]
    outside = (y > ceiling) | (y < ZERO)
    border = ceiling if y > ceiling else ZERO
    for i in range(LANES):
        sx, sy = s[RAY_X + i], s[RAY_Y + i]
        dx = _away_from_zero(f0 + sx * r0 + sy * u0)
        dy = _away_from_zero(f1 + sx * r1 + sy * u1)
        dz = _away_from_zero(f2 + sx * r2 + sy * u2)
        s[DIR_X + i] = dx
        s[DIR_Y + i] = dy
        s[DIR_Z + i] = dz
        s[INV_X + i] = ONE / dx
        inverse_y = ONE / dy
        s[INV_Y + i] = inverse_y
        s[INV_Z + i] = ONE / dz
        t_max = view / np.sqrt(dx * dx + dy * dy + dz * dz)
        t = (border - y) * inverse_y if outside else ZERO
        t = t_max if t < ZERO else t
        s[T_NOW + i] = min(t, t_max)
        s[T_MAX + i] = t_max
        s[ORG_X + i] = x + (NUDGE if dx > ZERO else -NUDGE)
        s[ORG_Y + i] = y + (NUDGE if dy > ZERO else -NUDGE)
        s[ORG_Z + i] = z + (NUDGE if dz > ZERO else -NUDGE)


@inlined_kernel
def march(
    box: Shorts, camera: Floats, ceiling: float, column_x: int, column_z: int, s: Floats, n: Ints
) -> None:
    """Let all rays of a tile go on from `T_NOW` until they end in a block or with their view."""
    for _ in range(MOST_LEAPS):
        _enter_cells(box, column_x, column_z, s, n)
        if not _leap(camera, ceiling, s, n):
            break


@inlined_kernel
def _enter_cells(box: Shorts, column_x: int, column_z: int, s: Floats, n: Ints) -> None:
    """Find each ray's cell and its entry in the box field."""
    shift_x = int32(column_x - CENTRE)
    shift_z = int32(column_z - CENTRE)
    for i in range(LANES):
        t = s[T_NOW + i]
        x = int32(s[ORG_X + i] + s[DIR_X + i] * t)
        y = int32(s[ORG_Y + i] + s[DIR_Y + i] * t)
        z = int32(s[ORG_Z + i] + s[DIR_Z + i] * t)
        s[CELL_X + i] = float32(x)
        s[CELL_Y + i] = float32(y)
        s[CELL_Z + i] = float32(z)
        n[BLOCK_INDEX + i] = narrow_block_index(x + shift_x, y, z + shift_z)
    for i in range(LANES):
        n[FIELD + i] = int32(box[uint32(n[BLOCK_INDEX + i])])


@inlined_kernel
def _to_end_of_box(
    field: int, x: float, y: float, z: float, ix: float, iy: float, iz: float
) -> float:
    """Return the parameter at which a ray from the eye leaves a cell's empty box.

    `field` is the cell's entry in the box field, (x, y, z) leads from the eye to the middle of the
    cell, and (ix, iy, iz) are the reciprocals of the ray's direction.
    """
    radius = float32(field & int32(31)) - HALF
    up = float32((field >> int32(5)) & int32(31))
    down = float32((field >> int32(10)) & int32(31))
    layers = (up if iy > ZERO else down) + HALF
    tx = x * ix + abs(ix) * radius
    ty = y * iy + abs(iy) * layers
    tz = z * iz + abs(iz) * radius
    return min(tx, min(ty, tz))


@inlined_kernel
def _leap(camera: Floats, ceiling: float, s: Floats, n: Ints) -> bool:
    """Move each ray to the end of its empty box, and return whether any moved."""
    to_x = HALF - (camera[EYE_X] + float32(CENTRE))
    to_y = HALF - camera[EYE_Y]
    to_z = HALF - (camera[EYE_Z] + float32(CENTRE))
    highest = ceiling - HALF
    moved = int32(0)
    for i in range(LANES):
        field = n[FIELD + i]
        t, t_max = s[T_NOW + i], s[T_MAX + i]
        x, y, z = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i]
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        t_next = min(_to_end_of_box(field, x + to_x, y + to_y, z + to_z, ix, iy, iz), t_max)
        t_next = t if field == int32(0) else t_next
        # The field is undefined above the highest block, and 0 there would mean solid.
        t_next = max(t, t_max if y > highest else t_next)
        s[T_NOW + i] = t_next
        moved = either(moved, t_next > t)
    return moved != int32(0)


@render_kernel
def field_around_eye(
    box: Shorts, camera: Floats, ceiling: float, column_x: int, column_z: int
) -> int:
    """The box field's entry for the cell in which all rays begin; 0 if there is no such cell."""
    y = camera[EYE_Y]
    if not ZERO < y < ceiling:
        return int32(0)
    for fraction in (camera[EYE_X], y - np.floor(y), camera[EYE_Z]):
        if not float32(2) * NUDGE < fraction < ONE - float32(2) * NUDGE:
            return int32(0)
    return int32(box[uint32(narrow_block_index(int32(column_x), int32(y), int32(column_z)))])


@inlined_kernel
def leap_from_eye(camera: Floats, field: int, s: Floats) -> None:
    """Move all rays, which begin in one cell, to the end of that cell's empty box."""
    x, y, z = HALF - camera[EYE_X], HALF - camera[EYE_Y] % ONE, HALF - camera[EYE_Z]
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        t_next = min(_to_end_of_box(field, x, y, z, ix, iy, iz), s[T_MAX + i])
        s[T_NOW + i] = max(t_next, ZERO)
