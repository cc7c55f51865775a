"""Rays that have passed a special cell, and wait to go on until a whole tile of them has gathered.

Few rays of a tile pass, and each passes another number of cells. If the tile waited for them, most
of its lanes would idle; so they are put aside, and their pixels are overwritten when they end. A
tile of waiting rays goes through the same kernels as one of the frame; only where it begins and
where its pixels are differs.

The rays are a stack of at most two tiles: at most one tile waits before another tile adds its own.
"""

from __future__ import annotations

from numba import float32, int32, uint8, uint32

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    Bytes,
    Floats,
    Ints,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.ray_tiles import (
    BLUE,
    CELL_X,
    CELL_Y,
    CENTRE,
    CLEAR,
    DEPTH,
    GREEN,
    INV_X,
    LANES,
    MET,
    ONE,
    PASSED,
    PIXEL,
    RAY_X,
    RAY_Y,
    RED,
    T_KEPT,
    T_MAX,
    T_NOW,
    TILE,
    TINT_B,
    TINT_G,
    TINT_R,
    TINTS,
    WAITING,
    WAITING_INTS,
    ZERO,
)
from rllib_minestudio.env.voxel.render.see_through import PASSES

MOST_CELLS = 64
"""Special cells that a ray passes, at most; then its view ends."""

_STACK = 2 * LANES
# Places in the scratch where the stack holds each value of its rays.
_RAY_X, _RAY_Y, _T, _CLEAR, _TINT_R, _TINT_G, _TINT_B = (WAITING + _STACK * row for row in range(7))
_PIXEL, _PASSED, _TINTS = (WAITING_INTS + _STACK * row for row in range(3))


@render_kernel
def begin_pixels(tile_x: int, tile_y: int, width: int, height: int, s: Floats, n: Ints) -> None:
    """Write where in the frame the rays of a tile are (-1 outside), and that nothing tints them."""
    for row in range(TILE):
        for column in range(TILE):
            i = row * TILE + column
            is_inside = (tile_x + column < width) & (tile_y + row < height)
            place = (tile_y + row) * width + tile_x + column
            n[PIXEL + i] = int32(place) if is_inside else int32(-1)
    for i in range(LANES):
        s[CLEAR + i] = ONE
        s[TINT_R + i], s[TINT_G + i], s[TINT_B + i] = ZERO, ZERO, ZERO
        n[TINTS + i], n[PASSED + i] = int32(0), int32(0)


@render_kernel
def put_aside(count: int, camera: Floats, ceiling: float, s: Floats, n: Ints) -> int:
    """Move the rays that pass to their next cell, and let them wait there.

    Those whose view ends before are left in the tile, at the end of their view.

    Args:
        count: Rays that wait already, at most `LANES`.
        camera: The camera vector.
        ceiling: No block is at or above this height.
        s: Float scratch.
        n: Integer scratch.

    Returns:
        How many rays wait.
    """
    for i in range(LANES):
        if n[MET + i] != int32(PASSES):
            continue
        n[PASSED + i] += int32(1)
        _step(i, camera, s)
        y = s[CELL_Y + i]
        is_over = (s[T_NOW + i] >= s[T_MAX + i]) | (y < ZERO) | (y >= ceiling)
        if is_over or n[PASSED + i] > int32(MOST_CELLS):
            s[T_NOW + i] = s[T_MAX + i]
        elif n[PIXEL + i] >= int32(0):
            _put(count, i, s, n)
            count += 1
    return count


@render_kernel
def _put(place: int, i: int, s: Floats, n: Ints) -> None:
    """Put a ray onto the stack."""
    s[_RAY_X + place], s[_RAY_Y + place], s[_T + place] = s[RAY_X + i], s[RAY_Y + i], s[T_NOW + i]
    s[_CLEAR + place], s[_TINT_R + place] = s[CLEAR + i], s[TINT_R + i]
    s[_TINT_G + place], s[_TINT_B + place] = s[TINT_G + i], s[TINT_B + i]
    n[_PIXEL + place], n[_PASSED + place] = n[PIXEL + i], n[PASSED + i]
    n[_TINTS + place] = n[TINTS + i]


@render_kernel
def _step(i: int, camera: Floats, s: Floats) -> None:
    """Move a ray from its cell to the next."""
    leave, across = s[T_MAX + i], 0
    for axis in range(3):
        inverse = s[INV_X + axis * LANES + i]
        eye = camera[EYE_X + axis] + float32(0 if axis == 1 else CENTRE)
        border = s[CELL_X + axis * LANES + i] - eye + (ONE if inverse > ZERO else ZERO)
        if border * inverse < leave:
            leave, across = border * inverse, axis
    s[CELL_X + across * LANES + i] += ONE if s[INV_X + across * LANES + i] > ZERO else -ONE
    s[T_NOW + i] = max(s[T_NOW + i], leave)


@render_kernel
def take(count: int, s: Floats, n: Ints) -> int:
    """Fill a tile with the rays that have come last, and return how many it has.

    They are to be started like others, and then to `resume`.
    """
    taken = min(count, LANES)
    first = uint32(count - taken)
    for i in range(LANES):  # a number known to the compiler; what is beyond those taken is not used
        s[RAY_X + i], s[RAY_Y + i] = s[_RAY_X + first + i], s[_RAY_Y + first + i]
        s[T_KEPT + i], s[CLEAR + i] = s[_T + first + i], s[_CLEAR + first + i]
        s[TINT_R + i] = s[_TINT_R + first + i]
        s[TINT_G + i] = s[_TINT_G + first + i]
        s[TINT_B + i] = s[_TINT_B + first + i]
        n[PIXEL + i], n[PASSED + i] = n[_PIXEL + first + i], n[_PASSED + first + i]
        n[TINTS + i] = n[_TINTS + first + i]
    return taken


@render_kernel
def resume(taken: int, s: Floats) -> None:
    """Put a tile's rays where they have waited, and all others at the end of their view."""
    for i in range(LANES):
        s[T_NOW + i] = s[T_KEPT + i] if i < taken else s[T_MAX + i]


@render_kernel
def store_waiting(taken: int, s: Floats, n: Ints, frame: Bytes, depth: Floats) -> None:
    """Overwrite the pixels of a tile of rays that have waited."""
    for i in range(taken):
        pixel = uint32(n[PIXEL + i])
        frame[pixel * uint32(3)] = uint8(n[RED + i])
        frame[pixel * uint32(3) + uint32(1)] = uint8(n[GREEN + i])
        frame[pixel * uint32(3) + uint32(2)] = uint8(n[BLUE + i])
        depth[pixel] = s[DEPTH + i]
