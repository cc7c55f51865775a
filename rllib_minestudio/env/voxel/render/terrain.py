"""Ray casting of the block world into colour and depth.

Rays walk the *box field* (see `accel`): for an air cell it tells how far the surrounding layer is
empty sideways and how many such layers lie above and below, so one step leaves a whole empty box.
A tile of 8 x 8 rays advances in lockstep inside one flat scratch array; index arithmetic, gathers
and float arithmetic are separate loops, which is what lets LLVM vectorise them. Three habits matter
(each cost a factor of two or more when it was missing): indices are cast to uint32 before use,
gathers stay out of the arithmetic loops, and the origin is nudged along the ray by `NUDGE` rather
than t by an epsilon, which could loop for ever.

Coordinates inside the kernels: the eye's column is at x = z = 128, so the 256 x 256 window around
it is positive and truncation is floor.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_SCALE,
    FOG_START,
    FORWARD,
    HORIZON,
    LIGHT,
    MIP_DEPTH,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    VIEW,
    ZENITH,
    Bytes,
    Floats,
    Ints,
    Words,
    render_kernel,
)

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
# What remains of the light under a tree or a roof.
SHADOW = np.float32(0.66)
# The sky reaches its zenith colour at about 30 degrees; below that it is mostly haze.
SKY_GRADIENT = np.float32(2.0)
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


@render_kernel
def _away_from_zero(value: float) -> float:
    return SMALLEST_SLOPE if abs(value) < SMALLEST_SLOPE else value


@render_kernel
def _start_rays(
    camera: Floats, tile_x: int, tile_y: int, width: int, height: int, ceiling: float, s: Floats
) -> None:
    """Directions and origins of a tile; rays from above the highest block start at the ceiling."""
    x = camera[EYE_X] + float32(CENTRE)
    y = camera[EYE_Y]
    z = camera[EYE_Z] + float32(CENTRE)
    left = float32(tile_x) + HALF - float32(width) * HALF
    upper = float32(height) * HALF - HALF - float32(tile_y)
    step_x, step_y, view = camera[STEP_X], camera[STEP_Y], camera[VIEW]
    f0, f1, f2 = camera[FORWARD], camera[FORWARD + 1], camera[FORWARD + 2]
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    u0, u1, u2 = camera[UP], camera[UP + 1], camera[UP + 2]
    above = y > ceiling
    for i in range(LANES):
        sx = (left + s[TILE_X + i]) * step_x
        sy = (upper - s[TILE_Y + i]) * step_y
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
        t = (ceiling - y) * inverse_y if above else ZERO
        t = t_max if t < ZERO else t
        s[T_NOW + i] = min(t, t_max)
        s[T_MAX + i] = t_max
        s[ORG_X + i] = x + (NUDGE if dx > ZERO else -NUDGE)
        s[ORG_Y + i] = y + (NUDGE if dy > ZERO else -NUDGE)
        s[ORG_Z + i] = z + (NUDGE if dz > ZERO else -NUDGE)


@render_kernel
def _walk(
    camera: Floats,
    box: NDArray[np.uint16],
    column_x: int,
    column_z: int,
    ceiling: float,
    s: Floats,
    n: Ints,
) -> None:
    """Advance all rays of a tile until each is in a solid block or out of view."""
    shift_x = int32(column_x - CENTRE)
    shift_z = int32(column_z - CENTRE)
    to_x = HALF - (camera[EYE_X] + float32(CENTRE))
    to_y = HALF - camera[EYE_Y]
    to_z = HALF - (camera[EYE_Z] + float32(CENTRE))
    highest = ceiling - HALF
    while True:
        for i in range(LANES):
            t = s[T_NOW + i]
            x = int32(s[ORG_X + i] + s[DIR_X + i] * t)
            y = int32(s[ORG_Y + i] + s[DIR_Y + i] * t)
            z = int32(s[ORG_Z + i] + s[DIR_Z + i] * t)
            s[CELL_X + i] = float32(x)
            s[CELL_Y + i] = float32(y)
            s[CELL_Z + i] = float32(z)
            n[BLOCK_INDEX + i] = (
                int32(((x + shift_x) & int32(WINDOW)) << int32(15))
                | int32(((z + shift_z) & int32(WINDOW)) << int32(7))
                | int32(y & int32(127))
            )
        for i in range(LANES):
            n[FIELD + i] = int32(box[uint32(n[BLOCK_INDEX + i])])
        moved = int32(0)
        for i in range(LANES):
            field = n[FIELD + i]
            radius = float32(field & int32(31)) - HALF
            up = float32((field >> int32(5)) & int32(31))
            down = float32((field >> int32(10)) & int32(31))
            ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
            t = s[T_NOW + i]
            y = s[CELL_Y + i]
            layers = (up if iy > ZERO else down) + HALF
            tx = (s[CELL_X + i] + to_x) * ix + abs(ix) * radius
            ty = (y + to_y) * iy + abs(iy) * layers
            tz = (s[CELL_Z + i] + to_z) * iz + abs(iz) * radius
            t_next = min(min(tx, min(ty, tz)), s[T_MAX + i])
            t_next = t if field == int32(0) else t_next
            # The field is undefined above the highest block, and 0 there would mean solid.
            t_next = s[T_MAX + i] if y > highest else t_next
            s[T_NOW + i] = t_next
            moved |= int32(1) if t_next > t else int32(0)
        if moved == int32(0):
            break


@render_kernel
def _locate(
    camera: Floats, blocks: Bytes, column_x: int, column_z: int, s: Floats, n: Ints
) -> None:
    """Find face, texel, fog and the column that shades each hit."""
    shift_x = int32(column_x - CENTRE)
    shift_z = int32(column_z - CENTRE)
    x0 = camera[EYE_X] + float32(CENTRE)
    y0 = camera[EYE_Y]
    z0 = camera[EYE_Z] + float32(CENTRE)
    m1 = camera[MIP_DEPTH]
    m2, m3, m4 = m1 * float32(2), m1 * float32(4), m1 * float32(8)
    fog_start, fog_scale = camera[FOG_START], camera[FOG_SCALE]
    for i in range(LANES):
        n[TEXEL + i] = int32(blocks[uint32(n[BLOCK_INDEX + i])])
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        cx, cy, cz = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i]
        tx = (cx + HALF - x0) * ix - abs(ix) * HALF
        ty = (cy + HALF - y0) * iy - abs(iy) * HALF
        tz = (cz + HALF - z0) * iz - abs(iz) * HALF
        is_x = tx > max(ty, tz)
        is_y = ty >= tz
        t = max(max(tx, max(ty, tz)), ZERO)
        hit = (n[FIELD + i] == int32(0)) & (s[T_NOW + i] < s[T_MAX + i])
        wx = x0 + s[DIR_X + i] * t - cx
        wy = y0 + s[DIR_Y + i] * t - cy
        wz = z0 + s[DIR_Z + i] * t - cz
        u = wz if is_x else wx
        v = wz if (is_y and not is_x) else ONE - wy
        size, offset = float32(16), int32(0)
        size, offset = (float32(8), int32(256)) if t > m1 else (size, offset)
        size, offset = (float32(4), int32(320)) if t > m2 else (size, offset)
        size, offset = (float32(2), int32(336)) if t > m3 else (size, offset)
        size, offset = (float32(1), int32(340)) if t > m4 else (size, offset)
        column = int32(min(max(u, ZERO), float32(0.9999)) * size)
        row = float32(int32(min(max(v, ZERO), float32(0.9999)) * size))
        face_x = int32(1) if ix > ZERO else int32(0)
        face_y = int32(3) if iy > ZERO else int32(2)
        face_z = int32(5) if iz > ZERO else int32(4)
        face = face_x if is_x else (face_y if is_y else face_z)
        block = n[TEXEL + i] if hit else int32(0)
        n[TEXEL + i] = (
            int32((block * int32(6) + face) << int32(9)) + offset + int32(row * size) + column
        )
        # The air cell in front of the face decides whether it lies in shadow.
        toward_x = (int32(-1) if ix > ZERO else int32(1)) if is_x else int32(0)
        toward_z = (int32(-1) if iz > ZERO else int32(1)) if not (is_x or is_y) else int32(0)
        n[COLUMN + i] = int32(
            ((int32(cx) + shift_x + toward_x) & int32(WINDOW)) << int32(8)
        ) | int32((int32(cz) + shift_z + toward_z) & int32(WINDOW))
        fog = (t / s[T_MAX + i] - fog_start) * fog_scale
        s[FOG + i] = min(max(fog, ZERO), ONE) if hit else ONE
        s[DEPTH + i] = t if hit else SKY_DEPTH


@render_kernel
def _shade(camera: Floats, atlas: Words, top: Bytes, s: Floats, n: Ints) -> None:
    """Texel, shadow, daylight, fog and sky of each ray, as three integer channels."""
    hr, hg, hb = camera[HORIZON], camera[HORIZON + 1], camera[HORIZON + 2]
    zr, zg, zb = camera[ZENITH] - hr, camera[ZENITH + 1] - hg, camera[ZENITH + 2] - hb
    lr, lg, lb = camera[LIGHT], camera[LIGHT + 1], camera[LIGHT + 2]
    per_view = SKY_GRADIENT / camera[VIEW]
    for i in range(LANES):
        n[TEXEL + i] = int32(atlas[uint32(n[TEXEL + i])])
        n[COLUMN + i] = int32(top[uint32(n[COLUMN + i])])
    for i in range(LANES):
        rgb = n[TEXEL + i]
        up = min(max(s[DIR_Y + i] * s[T_MAX + i] * per_view, ZERO), ONE)
        sky_r, sky_g, sky_b = hr + zr * up, hg + zg * up, hb + zb * up
        lit = SHADOW if float32(n[COLUMN + i]) > s[CELL_Y + i] else ONE
        r = float32(rgb & int32(255)) * lit * lr
        g = float32((rgb >> int32(8)) & int32(255)) * lit * lg
        b = float32((rgb >> int32(16)) & int32(255)) * lit * lb
        fog = s[FOG + i]
        n[RED + i] = int32(r + (sky_r - r) * fog)
        n[GREEN + i] = int32(g + (sky_g - g) * fog)
        n[BLUE + i] = int32(b + (sky_b - b) * fog)


@render_kernel
def _store(
    tile_x: int,
    tile_y: int,
    width: int,
    height: int,
    s: Floats,
    n: Ints,
    frame: Bytes,
    depth: Floats,
) -> None:
    """Copy a tile into the frame, cutting off what lies beyond its right and lower edge."""
    columns = min(TILE, width - tile_x)
    for row in range(min(TILE, height - tile_y)):
        start = (tile_y + row) * width + tile_x
        pixels = frame[start * 3 : (start + columns) * 3]
        depths = depth[start : start + columns]
        for column in range(columns):
            i = row * TILE + column
            pixels[3 * column] = uint8(n[RED + i])
            pixels[3 * column + 1] = uint8(n[GREEN + i])
            pixels[3 * column + 2] = uint8(n[BLUE + i])
            depths[column] = s[DEPTH + i]


@render_kernel
def render_terrain(
    blocks: Bytes,
    box: NDArray[np.uint16],
    top: Bytes,
    ceiling: int,
    atlas: Words,
    camera: Floats,
    column_x: int,
    column_z: int,
    width: int,
    height: int,
    frame: Bytes,
    depth: Floats,
    s: Floats,
    n: Ints,
) -> None:
    """Draw blocks and sky.

    Args:
        blocks: uint8 (2**23,), the world's block ids.
        box: uint16 (2**23,), the world's box field.
        top: uint8 (65536,), highest block of each column.
        ceiling: No block is at or above this height.
        atlas: uint32, see `block_textures.build_block_atlas`.
        camera: float32 (CAMERA_SIZE,).
        column_x: Block column of the eye, modulo 256.
        column_z: Block column of the eye, modulo 256.
        width: Pixels per row.
        height: Rows.
        frame: uint8 (height * width * 3,), overwritten.
        depth: float32 (height * width,), overwritten with planar depth, `SKY_DEPTH` for sky.
        s: Float scratch of `new_scratch`.
        n: Integer scratch of `new_scratch`.
    """
    roof = float32(ceiling)
    for tile_y in range(0, height, TILE):
        for tile_x in range(0, width, TILE):
            _start_rays(camera, tile_x, tile_y, width, height, roof, s)
            _walk(camera, box, column_x, column_z, roof, s, n)
            _locate(camera, blocks, column_x, column_z, s, n)
            _shade(camera, atlas, top, s, n)
            _store(tile_x, tile_y, width, height, s, n, frame, depth)
