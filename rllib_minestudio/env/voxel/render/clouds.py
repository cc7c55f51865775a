"""Clouds: a layer of flat boxes high above the land, through which rays walk cell by cell.

As in Minecraft 1.16 with fancy graphics, a picture of 256 x 256 pixels, repeated, tells which cells
of 12 x 12 blocks hold a box, four blocks thick. The layer drifts westwards. Only the face that a
ray meets first is seen, and what is behind it shows through.

The game counts the drift from the start of the program, for us it begins with the world.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import (
    CLOUDS_RGB,
    DOME,
    EYE_Y,
    FOG_RGB,
    FOG_SCALE,
    FOG_START,
    FORWARD,
    HALF,
    IS_CLEAR,
    ONE,
    RIGHT,
    SKY_DEPTH,
    SMALLEST_SLOPE,
    UP,
    VIEW,
    ZERO,
    Bytes,
    Camera,
    Floats,
    Ints,
    either,
    inlined_kernel,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.textures import Textures

CELL = 12
"""Blocks per side of a cell."""
CELLS = 256
"""Cells after which the layer repeats, in both directions."""
BOTTOM, TOP = np.float32(128.33), np.float32(132.33)
"""Heights of the layer: a third of a block above the game's cloud height, which is 128."""
DRIFT = 0.03
"""Blocks per tick to the west."""
SHIFT_Z = 0.33 * CELL
"""How far the picture is shifted to the north, in blocks."""
ALPHA = np.float32(0.8)
FROM_BELOW, FROM_ABOVE = np.float32(0.7), np.float32(1)
ACROSS_X, ACROSS_Z = np.float32(0.9), np.float32(0.8)
"""Shades of the faces: bottom and top, and the sides across x and z."""
FIRST, LAST = np.float32(-24), np.float32(39)
"""Cells that are drawn, counted from the eye's, in both directions."""
REACHED = np.float32(math.sqrt(2) * CELL * (float(LAST) + 1))
"""No cell that is drawn is farther away than this, sideways, in blocks."""
FAINTEST = 26
"""Alpha of a pixel, of 255, from which on a cell has a box: the game's alpha test, at 0.1."""
FARTHEST = np.float32(5000)
"""Depth that is beyond all cells, so that cells' numbers stay small."""

REACH = 2
"""Cells in each direction of which `boxes_around` tells whether they hold a box."""
_SIDE = 2 * REACH + 1
_MIDDLE = _SIDE * REACH + REACH

LANES = 64
"""Rays that advance in lockstep, side by side in a row of the frame."""
(
    RAY_X, KNOWN,  # how far to the right the ray passes, and the depth of what it shows so far
    DIR_X, DIR_Y, DIR_Z, INV_X, INV_Z,  # direction of the ray, and reciprocals, in cells
    PLACE_X, PLACE_Z,  # cell the ray is in
    T_X, T_Z,  # where the ray leaves that cell across x and across z
    T_NOW, T_END,  # of the face met, and where the ray leaves the layer; -1 once it is done
    T_ONE, SIDE_ONE, T_TWO, SIDE_TWO,  # the next two borders: where, and their shade; 0 for none
    SHADE,  # of the face that the ray has met; 0 while there is none
) = [LANES * row for row in range(18)]  # fmt: skip
_FLOATS = 18 * LANES
(
    CELL_ONE, CELL_TWO,  # cells behind those borders
    BOX, BOX_ONE, BOX_TWO,  # boxes in this cell and in those
    GOES_ON, MEETS,  # whether the ray goes further; whether its pixel shows a cloud
    RED, GREEN, BLUE,  # what it adds to its pixel, in units of 1 / `WHOLE`
) = [LANES * row for row in range(10)]  # fmt: skip
_INTS = 10 * LANES
WHOLE_BITS = 16
WHOLE = np.float32(1 << WHOLE_BITS)
KEPT = round((1 - float(ALPHA)) * (1 << WHOLE_BITS))
"""What is left of a pixel behind a cloud, in the same units."""


class Clouds:
    """The clouds of one renderer."""

    def __init__(self, textures: Textures) -> None:
        """Read the picture of the clouds."""
        picture = textures.picture("environment/clouds").astype(np.int32)
        rgb = picture[..., 0] | picture[..., 1] << 8 | picture[..., 2] << 16
        cells = np.where(picture[..., 3] >= FAINTEST, rgb | 1 << 24, 0)
        self._cells = np.ascontiguousarray(cells.reshape(-1), np.int32)
        self._around = boxes_around(cells != 0)
        self._scratch = np.zeros(_FLOATS, np.float32), np.zeros(_INTS, np.int32)

    def draw(
        self,
        camera: Camera,
        eye: NDArray[np.float64],
        rays: PixelRays,
        drawn: Bytes,
        depth: Floats,
        ticks: int,
    ) -> None:
        """Blend the clouds into the drawn pixels.

        Args:
            camera: Where the layer is seen from, and in which colours.
            eye: float64 (3,), place of the eye in the world.
            rays: Rays of the drawn pixels.
            drawn: uint8 (h * w * 3,), drawn into.
            depth: float32 (h * w,), planar depth of what is there.
            ticks: Ticks since the world began.
        """
        # In cells, and so far from 0 that truncation is floor.
        x = (eye.item(0) + DRIFT * ticks) / CELL % CELLS + CELLS
        z = (eye.item(2) + SHIFT_Z) / CELL % CELLS + CELLS
        cells = self._cells, self._around
        render_clouds(camera.vector, *rays, *cells, x, z, drawn, depth, *self._scratch)


def boxes_around(boxes: NDArray[np.bool_]) -> Ints:
    """Which cells around each cell hold a box, as bits.

    Args:
        boxes: bool (CELLS, CELLS), whether a cell holds a box, row by row southwards.

    Returns:
        int32 (CELLS * CELLS,). The cell `x` further east and `z` further south, both from -`REACH`
        to `REACH`, has the bit `x + _SIDE * z` beyond the middle one, `_MIDDLE`.
    """
    words = np.zeros(boxes.shape, np.int32)
    for z in range(-REACH, REACH + 1):
        for x in range(-REACH, REACH + 1):
            words |= np.roll(boxes, (-z, -x), (0, 1)).astype(np.int32) << _MIDDLE + x + _SIDE * z
    return words.reshape(-1)


@render_kernel
def _away_from_zero(value: float) -> float:
    return SMALLEST_SLOPE if abs(value) < SMALLEST_SLOPE else value


@render_kernel
def _index(x: float, z: float) -> int:
    """Index, int32, of the picture's pixel for a cell."""
    return int32((int32(z) & int32(CELLS - 1)) << int32(8)) | (int32(x) & int32(CELLS - 1))


@inlined_kernel
def _enter_layer(camera: Floats, x0: float, z0: float, sy: float, s: Floats, n: Ints) -> bool:
    """Find where and in which cell the rays enter the layer, and return whether any does."""
    y, per = camera[EYE_Y], ONE / float32(CELL)
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    f0 = camera[FORWARD] + sy * camera[UP]
    f1 = camera[FORWARD + 1] + sy * camera[UP + 1]
    f2 = camera[FORWARD + 2] + sy * camera[UP + 2]
    low_x, high_x = np.floor(x0) + FIRST, np.floor(x0) + LAST + ONE
    low_z, high_z = np.floor(z0) + FIRST, np.floor(z0) + LAST + ONE
    entered = int32(0)
    for i in range(LANES):
        sx = s[RAY_X + i]
        dx, dy = _away_from_zero((f0 + sx * r0) * per), _away_from_zero(f1 + sx * r1)
        dz = _away_from_zero((f2 + sx * r2) * per)
        inverse = ONE / dy
        one, two = (BOTTOM - y) * inverse, (TOP - y) * inverse
        t = min(max(min(one, two), ZERO), FARTHEST)
        end = max(one, two)
        x, z = x0 + dx * t, z0 + dz * t
        inside = min(min(x - low_x, high_x - x), min(z - low_z, high_z - z))
        enters = min(min(end, s[KNOWN + i]) - t, inside) > ZERO
        s[DIR_X + i], s[DIR_Y + i], s[DIR_Z + i] = dx, dy, dz
        ix, iz, cell_x, cell_z = ONE / dx, ONE / dz, float32(int32(x)), float32(int32(z))
        s[INV_X + i], s[INV_Z + i] = ix, iz
        s[PLACE_X + i], s[PLACE_Z + i] = cell_x, cell_z
        s[T_X + i] = (cell_x + (ONE if dx > ZERO else ZERO) - x0) * ix
        s[T_Z + i] = (cell_z + (ONE if dz > ZERO else ZERO) - z0) * iz
        s[T_NOW + i] = t
        s[T_END + i] = end if enters else -ONE
        n[CELL_ONE + i] = _index(x, z) if enters else int32(0)
        entered = either(entered, enters)
    return entered != int32(0)


@inlined_kernel
def _meet_first(s: Floats, n: Ints) -> bool:
    """Shade the rays that enter the layer through a box, and return whether others go on."""
    going = int32(0)
    for i in range(LANES):
        end, shade = s[T_END + i], FROM_BELOW if s[DIR_Y + i] > ZERO else FROM_ABOVE
        is_met = min(min(float32(n[BOX + i]), s[T_NOW + i]), end) > ZERO
        end = -ONE if is_met else end
        s[SHADE + i] = shade if is_met else ZERO
        s[T_END + i] = end
        going = either(going, end > ZERO)
    return going != int32(0)


@inlined_kernel
def _cross_borders(x0: float, z0: float, s: Floats, n: Ints) -> None:
    """Find the next two borders between cells that each ray crosses in the layer, if any.

    A ray that began inside a box may instead meet the box's floor or ceiling.
    """
    low_x, high_x = np.floor(x0) + FIRST, np.floor(x0) + LAST
    low_z, high_z = np.floor(z0) + FIRST, np.floor(z0) + LAST
    for i in range(LANES):
        end, t_x, t_z = s[T_END + i], s[T_X + i], s[T_Z + i]
        now, shade, box = s[T_NOW + i], s[SHADE + i], n[BOX + i]
        per_x, per_z = abs(s[INV_X + i]), abs(s[INV_Z + i])
        step_x = ONE if s[DIR_X + i] > ZERO else -ONE
        step_z = ONE if s[DIR_Z + i] > ZERO else -ONE
        one, is_x = min(t_x, t_z), t_x < t_z
        side_one = ACROSS_X if is_x else ACROSS_Z
        x1, z1 = s[PLACE_X + i] + (step_x if is_x else ZERO), s[PLACE_Z + i]
        z1 = z1 if is_x else z1 + step_z
        t_x, t_z = t_x + (per_x if is_x else ZERO), t_z + (ZERO if is_x else per_z)
        two, is_x = min(t_x, t_z), t_x < t_z
        side_two = ACROSS_X if is_x else ACROSS_Z
        x2, z2 = x1 + (step_x if is_x else ZERO), z1 + (ZERO if is_x else step_z)
        t_x, t_z = t_x + (per_x if is_x else ZERO), t_z + (ZERO if is_x else per_z)
        in_one = min(min(x1 - low_x, high_x - x1), min(z1 - low_z, high_z - z1))
        in_two = min(min(x2 - low_x, high_x - x2), min(z2 - low_z, high_z - z2))
        # Done rays have an end of -1, which no border is before.
        crosses_one = (one < end) & (in_one >= ZERO)
        crosses_two = crosses_one & (two < end) & (in_two >= ZERO)
        s[T_ONE + i], s[SIDE_ONE + i] = one, (side_one if crosses_one else ZERO)
        s[T_TWO + i], s[SIDE_TWO + i] = two, (side_two if crosses_two else ZERO)
        n[CELL_ONE + i] = _index(x1, z1) if crosses_one else int32(0)
        n[CELL_TWO + i] = _index(x2, z2) if crosses_two else int32(0)
        s[PLACE_X + i], s[PLACE_Z + i], s[T_X + i], s[T_Z + i] = x2, z2, t_x, t_z
        n[GOES_ON + i] = int32(1) if crosses_two & (min(t_x, t_z) < end) else int32(0)
        leaves_box = (end > ZERO) & (one >= end) & (box != int32(0))
        from_inside = FROM_ABOVE if s[DIR_Y + i] > ZERO else FROM_BELOW
        s[SHADE + i] = from_inside if leaves_box else shade
        s[T_NOW + i] = end if leaves_box else now


@inlined_kernel
def _meet_sides(s: Floats, n: Ints) -> bool:
    """Shade the rays that crossed the side of a box, and return whether others go on."""
    going = int32(0)
    for i in range(LANES):
        box, one, two = n[BOX + i], n[BOX_ONE + i], n[BOX_TWO + i]
        side_one, side_two, shade = s[SIDE_ONE + i], s[SIDE_TWO + i], s[SHADE + i]
        t_one, t_two, t, end = s[T_ONE + i], s[T_TWO + i], s[T_NOW + i], s[T_END + i]
        meets_one = (side_one > ZERO) & ((box | one) != int32(0))
        meets_two = (side_two > ZERO) & (two != int32(0))
        goes_on = (n[GOES_ON + i] != int32(0)) & (two == int32(0))
        shade, t = (side_two if meets_two else shade), (t_two if meets_two else t)
        end = end if goes_on else -ONE
        end = -ONE if meets_one else end
        s[SHADE + i] = side_one if meets_one else shade
        s[T_NOW + i] = t_one if meets_one else t
        met_one, met_two = (one if box == int32(0) else box), (two if meets_two else box)
        n[BOX + i] = met_one if meets_one else met_two
        s[T_END + i] = end
        going = either(going, end > ZERO)
    return going != int32(0)


@inlined_kernel
def _colour_faces(camera: Floats, s: Floats, n: Ints) -> None:
    """Compute what each ray adds to its pixel: its face's colour, in fog as all that is distant."""
    per_view, fog_start, fog_scale = ONE / camera[VIEW], camera[FOG_START], camera[FOG_SCALE]
    fr, fg, fb = camera[FOG_RGB], camera[FOG_RGB + 1], camera[FOG_RGB + 2]
    whole = ONE / float32(255)
    cr, cg = camera[CLOUDS_RGB] * whole, camera[CLOUDS_RGB + 1] * whole
    cb = camera[CLOUDS_RGB + 2] * whole
    square = float32(CELL * CELL)
    for i in range(LANES):
        dx, dy, dz = s[DIR_X + i], s[DIR_Y + i], s[DIR_Z + i]
        length = np.sqrt((dx * dx + dz * dz) * square + dy * dy)
        fog = min(max((s[T_NOW + i] * length * per_view - fog_start) * fog_scale, ZERO), ONE)
        shade, rgb = s[SHADE + i], n[BOX + i]
        r = float32(rgb & int32(255)) * cr * shade
        g = float32((rgb >> int32(8)) & int32(255)) * cg * shade
        b = float32((rgb >> int32(16)) & int32(255)) * cb * shade
        n[RED + i] = int32(((r + (fr - r) * fog) * ALPHA + HALF) * WHOLE)
        n[GREEN + i] = int32(((g + (fg - g) * fog) * ALPHA + HALF) * WHOLE)
        n[BLUE + i] = int32(((b + (fb - b) * fog) * ALPHA + HALF) * WHOLE)
        n[MEETS + i] = int32(1) if (shade > ZERO) & (s[T_NOW + i] < s[KNOWN + i]) else int32(0)


@inlined_kernel
def _meet_faces(
    camera: Floats, x0: float, z0: float, sy: float, cells: Ints, s: Floats, n: Ints
) -> bool:
    """Find the face that each ray meets first, and return whether any reaches the layer."""
    if not _enter_layer(camera, x0, z0, sy, s, n):
        return False
    for i in range(LANES):
        n[BOX + i] = cells[uint32(n[CELL_ONE + i])]
    going = _meet_first(s, n)
    while going:
        _cross_borders(x0, z0, s, n)
        for i in range(LANES):
            n[BOX_ONE + i] = cells[uint32(n[CELL_ONE + i])]
            n[BOX_TWO + i] = cells[uint32(n[CELL_TWO + i])]
        going = _meet_sides(s, n)
    _colour_faces(camera, s, n)
    return True


# ------------------------------------------------------------------------- clouds beyond the view
# Seen from the ground, clouds are so far away that they have the colour of the fog. Then all that
# matters is whether a ray meets a box, and a ray that rises crosses few cells within the layer.

FROM_X, FROM_Z = PLACE_X, PLACE_Z
"""Where in its first cell the ray enters the layer, 0 to 1."""
RUN_X, RUN_Z = T_X, T_Z
"""Cells that it passes within the layer."""
LEFT_X, LEFT_Z = T_ONE, T_TWO
"""Cells that are drawn beyond the first one, in the direction of the ray."""
MISSES, SHORT, LONG = np.int32(0), np.int32(1), np.int32(2)
"""Whether any ray of a group meets a cloud, and whether one passes `REACH` cells or more."""


@inlined_kernel
def _enter_from_below(camera: Floats, x0: float, z0: float, sy: float, s: Floats, n: Ints) -> int:
    """Find where the rays that see the sky enter the layer, and how far they pass within it.

    Returns:
        `MISSES`, `SHORT` or `LONG`.
    """
    to_bottom, to_top = BOTTOM - camera[EYE_Y], TOP - camera[EYE_Y]
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    f0 = camera[FORWARD] + sy * camera[UP]
    f1 = camera[FORWARD + 1] + sy * camera[UP + 1]
    f2 = camera[FORWARD + 2] + sy * camera[UP + 2]
    low_x, high_x = np.floor(x0) + FIRST, np.floor(x0) + LAST
    low_z, high_z = np.floor(z0) + FIRST, np.floor(z0) + LAST
    per, passes = ONE / float32(CELL), MISSES
    for i in range(LANES):
        sx = s[RAY_X + i]
        per_rise = per / max(f1 + sx * r1, SMALLEST_SLOPE)
        dx, dz = (f0 + sx * r0) * per_rise, (f2 + sx * r2) * per_rise
        x, z = x0 + dx * to_bottom, z0 + dz * to_bottom
        inside = min(min(x - low_x, high_x + ONE - x), min(z - low_z, high_z + ONE - z)) > ZERO
        enters = inside & (s[KNOWN + i] == SKY_DEPTH)
        x, z = (x if enters else x0), (z if enters else z0)
        cell_x, cell_z = float32(int32(x)), float32(int32(z))
        run_x = _away_from_zero(dx * (to_top - to_bottom))
        run_z = _away_from_zero(dz * (to_top - to_bottom))
        s[FROM_X + i], s[FROM_Z + i] = x - cell_x, z - cell_z
        s[RUN_X + i], s[RUN_Z + i] = run_x, run_z
        s[LEFT_X + i] = high_x - cell_x if run_x > ZERO else cell_x - low_x
        s[LEFT_Z + i] = high_z - cell_z if run_z > ZERO else cell_z - low_z
        n[CELL_ONE + i] = _index(x, z)
        n[MEETS + i] = int32(1) if enters else int32(0)
        is_long = max(abs(run_x), abs(run_z)) >= float32(REACH)
        passes = max(passes, (LONG if is_long else SHORT) if enters else MISSES)
    return passes


@inlined_kernel
def _find_boxes(s: Floats, n: Ints) -> bool:
    """Write whether each ray meets a box, given those around the cell in which it enters.

    Returns:
        Whether any does.
    """
    some_meet = int32(0)
    for i in range(LANES):
        run_x, run_z, boxes = s[RUN_X + i], s[RUN_Z + i], n[BOX + i]
        per_x, per_z = ONE / abs(run_x), ONE / abs(run_z)
        # Where, of the way through the layer, the ray crosses the next border of either kind.
        next_x = (ONE - s[FROM_X + i] if run_x > ZERO else s[FROM_X + i]) * per_x
        next_z = (ONE - s[FROM_Z + i] if run_z > ZERO else s[FROM_Z + i]) * per_z
        step_x = int32(1) if run_x > ZERO else int32(-1)
        step_z = int32(_SIDE) if run_z > ZERO else int32(-_SIDE)
        left_x, left_z = s[LEFT_X + i], s[LEFT_Z + i]
        bit = int32(_MIDDLE)
        met = int32(boxes >> bit)
        for _ in range(2 * REACH):
            is_x = next_x < next_z
            crosses = min(next_x, next_z) < ONE
            next_x, next_z = next_x + (per_x if is_x else ZERO), next_z + (ZERO if is_x else per_z)
            left_x, left_z = left_x - (ONE if is_x else ZERO), left_z - (ZERO if is_x else ONE)
            bit = int32(bit + (step_x if is_x else step_z))
            is_drawn = crosses & (min(left_x, left_z) >= ZERO)
            met = either(met, (boxes >> int32(bit & int32(31))) if is_drawn else int32(0))
        met = int32(n[MEETS + i] & met)
        n[MEETS + i] = met
        some_meet = either(some_meet, met)
    return some_meet != int32(0)


@inlined_kernel
def _meet_fog(
    camera: Floats, x0: float, z0: float, sy: float, around: Ints, s: Floats, n: Ints
) -> int:
    """Do as `_meet_faces` where clouds have the colour of the fog, unless the way is `LONG`."""
    passes = _enter_from_below(camera, x0, z0, sy, s, n)
    if passes != SHORT:
        return passes
    for i in range(LANES):
        n[BOX + i] = around[uint32(n[CELL_ONE + i])]
    return SHORT if _find_boxes(s, n) else MISSES


# ------------------------------------------------------------------------------------ a whole frame


@inlined_kernel
def _blended(before: int, kept: int, added: int) -> int:
    """A channel, uint8, of a pixel; `kept` and `added` in units of 1 / `WHOLE`."""
    return uint8(uint32(uint32(before) * uint32(kept) + uint32(added)) >> uint32(WHOLE_BITS))


@inlined_kernel
def _blend_faces(lanes: int, start: int, n: Ints, frame: Bytes) -> None:
    """Blend the faces that the first `lanes` rays meet into the pixels from `start` on."""
    for i in range(lanes):
        if n[MEETS + i]:
            at = uint32(start + i) * uint32(3)
            for channel in range(3):
                p = uint32(at + uint32(channel))
                frame[p] = _blended(frame[p], KEPT, n[RED + channel * LANES + i])


@inlined_kernel
def _blend_fog(camera: Floats, lanes: int, start: int, n: Ints, frame: Bytes) -> None:
    """Do as `_blend_faces` where all faces have the colour of the fog."""
    red = uint32((camera[FOG_RGB] * ALPHA + HALF) * WHOLE)
    green = uint32((camera[FOG_RGB + 1] * ALPHA + HALF) * WHOLE)
    blue = uint32((camera[FOG_RGB + 2] * ALPHA + HALF) * WHOLE)
    # All pixels, as no processor could predict which ones meet a cloud.
    for i in range(lanes):
        meets, p = n[MEETS + i] != int32(0), uint32(start + i) * uint32(3)
        kept = uint32(KEPT) if meets else uint32(1 << WHOLE_BITS)
        r, g = (red if meets else uint32(0)), (green if meets else uint32(0))
        b = blue if meets else uint32(0)
        frame[p] = _blended(frame[p], kept, r)
        frame[p + uint32(1)] = _blended(frame[p + uint32(1)], kept, g)
        frame[p + uint32(2)] = _blended(frame[p + uint32(2)], kept, b)


@render_kernel
def _highest_slope(camera: Floats, left: float, right: float, sy: float) -> float:
    """Sine of an angle above which no ray of a row rises, given the row's ends."""
    middle = camera[FORWARD + 1] + sy * camera[UP + 1]
    one, two = middle + left * camera[RIGHT + 1], middle + right * camera[RIGHT + 1]
    return max(one, two) / np.sqrt(ONE + sy * sy)


@render_kernel
def render_clouds(
    camera: Floats, across: Floats, upward: Floats, columns_before: Ints, rows_before: Ints,
    cells: Ints, around: Ints, eye_x: float, eye_z: float, frame: Bytes, depth: Floats,
    s: Floats, n: Ints,
) -> None:  # fmt: skip
    """Blend the clouds into a frame.

    Args:
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        columns_before: See `hand.PixelRays`.
        rows_before: See `hand.PixelRays`.
        cells: int32 (CELLS * CELLS,), RGB and a bit for a box, 0 for none, row by row southwards.
        around: int32 (CELLS * CELLS,), see `boxes_around`.
        eye_x: Place of the eye in the picture, in cells, from `CELLS` to twice that.
        eye_z: The same, along z.
        frame: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), planar depth of what is there.
        s: float32 (_FLOATS,), working memory.
        n: int32 (_INTS,), working memory.
    """
    x0, z0 = float32(eye_x), float32(eye_z)
    width, height = columns_before[-1], rows_before[-1]
    # No block reaches the layer, so from below it is seen only where the sky is.
    rise, view = BOTTOM - camera[EYE_Y], camera[VIEW]
    is_below = rise > ZERO
    # Along the horizon, sky and clouds both have the colour of the fog by day.
    hazy = camera[DOME] / view
    lowest = hazy if camera[IS_CLEAR] > ZERO and rise >= view * hazy else ZERO
    # Rays that rise less reach the layer beyond all cells that are drawn.
    lowest = max(lowest, rise / np.sqrt(rise * rise + REACHED * REACHED))
    for py in range(height):
        sy = upward[py]
        highest = _highest_slope(camera, across[0], across[width - 1], sy)
        if is_below and highest <= lowest:
            continue
        is_far = is_below and rise >= view * highest
        for first in range(0, width, LANES):
            lanes, start = min(LANES, width - first), py * width + first
            farthest = ZERO
            for i in range(lanes):
                farthest = max(farthest, depth[uint32(start + i)])
            if is_below and farthest < SKY_DEPTH:
                continue
            for i in range(lanes):
                s[KNOWN + i] = depth[uint32(start + i)]
                s[RAY_X + i] = across[uint32(first + i)]
            for i in range(lanes, LANES):
                s[KNOWN + i] = ZERO
            passes = _meet_fog(camera, x0, z0, sy, around, s, n) if is_far else LONG
            if passes == SHORT:
                _blend_fog(camera, lanes, start, n, frame)
            if passes == LONG and _meet_faces(camera, x0, z0, sy, cells, s, n):
                _blend_faces(lanes, start, n, frame)
