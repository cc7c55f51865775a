"""Rays that have passed a special cell, and go on: at once, or when a whole tile of them waits.

Where many rays of a tile pass, they go on at once, while the others are held where they have ended.
Where few do, most lanes would idle; so they are put aside, and their pixels are overwritten when
they end. A tile of waiting rays goes through the same kernels as one of the frame; only where it
begins and where its pixels are differs.

The rays are a queue of at most two tiles: at most one tile waits before another tile adds its own.
"""

from __future__ import annotations

from numba import float32, int32, uint8, uint32

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    Bytes,
    Floats,
    Ints,
    either,
    inlined_kernel,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.ray_tiles import (
    BLOCK_INDEX,
    BLUE,
    CELL_X,
    CELL_Y,
    CELL_Z,
    CENTRE,
    CLEAR,
    DEPTH,
    FIELD,
    GREEN,
    HELD_INDEX,
    HELD_T,
    HELD_X,
    HELD_Y,
    HELD_Z,
    INV_X,
    INV_Y,
    INV_Z,
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
    TILE_BITS,
    TINT_B,
    TINT_G,
    TINT_R,
    TINTS,
    WAITING,
    WAITING_INTS,
    WAITS,
    ZERO,
)
from rllib_minestudio.env.voxel.render.see_through import PASSES

MOST_CELLS = 64
"""Special cells that a ray passes, at most; then its view ends."""
GOES_BIT = 2
"""Bit of `MET` that is set where a ray goes on."""

_QUEUE = 2 * LANES
_FLOAT_ROWS, _INT_ROWS = 7, 3
# Places in the scratch where the queue holds each value of its rays.
_RAY_X, _RAY_Y, _T, _CLEAR, _TINT_R, _TINT_G, _TINT_B = (
    WAITING + _QUEUE * row for row in range(_FLOAT_ROWS)
)
_PIXEL, _PASSED, _TINTS = (WAITING_INTS + _QUEUE * row for row in range(_INT_ROWS))


@inlined_kernel
def begin_pixels(tile_x: int, tile_y: int, width: int, height: int, s: Floats, n: Ints) -> None:
    """Write where in the frame the rays of a tile are (-1 outside), and that nothing tints them."""
    for i in range(LANES):
        row = int32(tile_y) + int32(int32(i) >> int32(TILE_BITS))
        column = int32(tile_x) + int32(int32(i) & int32(TILE - 1))
        is_inside = (column < int32(width)) & (row < int32(height))
        place = int32(int32(row) * int32(width)) + int32(column)
        n[PIXEL + i] = int32(place) if is_inside else int32(-1)
        s[CLEAR + i] = ONE
        s[TINT_R + i], s[TINT_G + i], s[TINT_B + i] = ZERO, ZERO, ZERO
        n[TINTS + i], n[PASSED + i] = int32(0), int32(0)


@inlined_kernel
def pass_on(camera: Floats, ceiling: float, s: Floats, n: Ints) -> tuple[int, bool]:
    """Find in `T_KEPT` where rays that pass enter their next cell, and set `MET` if they go on.

    In the tile, all that pass are at the end of their view then, so that they cost no shading.

    Args:
        camera: The camera vector.
        ceiling: No block is at or above this height.
        s: Float scratch.
        n: Integer scratch.

    Returns:
        How many rays go on, and whether the view of some ends before their next cell.
    """
    eye_x, eye_z = camera[EYE_X] + float32(CENTRE), camera[EYE_Z] + float32(CENTRE)
    eye_y = camera[EYE_Y]
    going, some_ended = int32(0), int32(0)
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        t, t_max, y = s[T_NOW + i], s[T_MAX + i], s[CELL_Y + i]
        leave_x = (s[CELL_X + i] - eye_x + (ONE if ix > ZERO else ZERO)) * ix
        leave_y = (y - eye_y + (ONE if iy > ZERO else ZERO)) * iy
        leave_z = (s[CELL_Z + i] - eye_z + (ONE if iz > ZERO else ZERO)) * iz
        leave = min(leave_x, min(leave_y, leave_z))
        is_vertical = (leave_y < leave_x) & (leave_y <= leave_z)
        y_next = y + (ONE if iy > ZERO else -ONE) if is_vertical else y
        t_next, passed = max(t, leave), n[PASSED + i] + int32(1)
        ends = (t_next >= t_max) | (y_next < ZERO) | (y_next >= ceiling)
        ends |= passed > int32(MOST_CELLS)
        passes = n[MET + i] == int32(PASSES)
        goes = passes & (not ends) & (n[PIXEL + i] >= int32(0))
        s[T_KEPT + i] = t_next
        s[T_NOW + i] = t_max if passes else t
        n[PASSED + i] = passed
        n[MET + i] = int32(1 << GOES_BIT) if goes else int32(0)
        going = int32(going + int32(goes))
        some_ended = either(some_ended, passes & ends)
    return going, some_ended != int32(0)


@inlined_kernel
def wait(count: int, going: int, s: Floats, n: Ints) -> int:
    """Let the tile's rays that go on wait, behind `count` others; return how many wait now."""
    begun = int32(0)
    for i in range(LANES):
        n[WAITS + uint32(begun)] = int32(i)
        begun = int32(begun + int32(n[MET + i] >> int32(GOES_BIT)))
    for place in range(going):
        _put(uint32(count + place), uint32(n[WAITS + uint32(place)]), s, n)
    return count + going


@inlined_kernel
def hold(s: Floats, n: Ints) -> None:
    """Let the tile's rays that go on enter their next cells, while all others step aside."""
    for i in range(LANES):
        s[HELD_X + i], s[HELD_Y + i], s[HELD_Z + i] = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i]
        s[HELD_T + i], n[HELD_INDEX + i] = s[T_NOW + i], n[BLOCK_INDEX + i]
        next_cell, end = s[T_KEPT + i], s[T_MAX + i]
        s[T_NOW + i] = next_cell if n[MET + i] != int32(0) else end


@inlined_kernel
def release(s: Floats, n: Ints) -> None:
    """Put the others back where they have ended."""
    for i in range(LANES):
        goes = n[MET + i] != int32(0)
        x, y, z, t = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i], s[T_NOW + i]
        held_x, held_y, held_z = s[HELD_X + i], s[HELD_Y + i], s[HELD_Z + i]
        held_t, held_index = s[HELD_T + i], n[HELD_INDEX + i]
        field, index = n[FIELD + i], n[BLOCK_INDEX + i]
        s[CELL_X + i], s[CELL_Y + i] = x if goes else held_x, y if goes else held_y
        s[CELL_Z + i], s[T_NOW + i] = z if goes else held_z, t if goes else held_t
        n[BLOCK_INDEX + i] = index if goes else held_index
        n[FIELD + i] = field if goes else int32(0)


@render_kernel
def _put(place: int, i: int, s: Floats, n: Ints) -> None:
    """Put a ray at the end of the queue."""
    s[_RAY_X + place], s[_RAY_Y + place], s[_T + place] = s[RAY_X + i], s[RAY_Y + i], s[T_KEPT + i]
    s[_CLEAR + place], s[_TINT_R + place] = s[CLEAR + i], s[TINT_R + i]
    s[_TINT_G + place], s[_TINT_B + place] = s[TINT_G + i], s[TINT_B + i]
    n[_PIXEL + place], n[_PASSED + place] = n[PIXEL + i], n[PASSED + i]
    n[_TINTS + place] = n[TINTS + i]


@inlined_kernel
def take(count: int, s: Floats, n: Ints) -> int:
    """Fill a tile with the rays that have waited longest, and return how many it has.

    They are to be started like others, and then to `resume`. Places are known to the compiler, so
    all `LANES` are copied, and all beyond them moved up; what is beyond those taken is not used.
    """
    for i in range(LANES):
        s[RAY_X + i], s[RAY_Y + i] = s[_RAY_X + i], s[_RAY_Y + i]
        s[T_KEPT + i], s[CLEAR + i] = s[_T + i], s[_CLEAR + i]
        s[TINT_R + i], s[TINT_G + i], s[TINT_B + i] = (
            s[_TINT_R + i],
            s[_TINT_G + i],
            s[_TINT_B + i],
        )
        n[PIXEL + i], n[PASSED + i] = n[_PIXEL + i], n[_PASSED + i]
        n[TINTS + i] = n[_TINTS + i]
    for row in range(_FLOAT_ROWS):
        first = WAITING + _QUEUE * row
        for i in range(LANES):
            s[first + i] = s[first + LANES + i]
    for row in range(_INT_ROWS):
        first = WAITING_INTS + _QUEUE * row
        for i in range(LANES):
            n[first + i] = n[first + LANES + i]
    return min(count, LANES)


@inlined_kernel
def resume(taken: int, s: Floats) -> None:
    """Put a tile's rays where they have waited, and all others at the end of their view."""
    for i in range(LANES):
        s[T_NOW + i] = s[T_KEPT + i] if i < taken else s[T_MAX + i]


@inlined_kernel
def store_waiting(taken: int, s: Floats, n: Ints, frame: Bytes, depth: Floats) -> None:
    """Overwrite the pixels of a tile of rays that have waited."""
    for i in range(taken):
        pixel = uint32(n[PIXEL + i])
        frame[pixel * uint32(3)] = uint8(n[RED + i])
        frame[pixel * uint32(3) + uint32(1)] = uint8(n[GREEN + i])
        frame[pixel * uint32(3) + uint32(2)] = uint8(n[BLUE + i])
        depth[pixel] = s[DEPTH + i]
