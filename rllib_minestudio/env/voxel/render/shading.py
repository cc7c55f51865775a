"""What a ray shows where it ends: face, texel, shadow, daylight, fog or sky."""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint32

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_SCALE,
    FOG_START,
    HORIZON,
    LIGHT,
    MIP_DEPTH,
    VIEW,
    ZENITH,
    Bytes,
    Floats,
    Ints,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.lanes import (
    BLOCK_INDEX,
    BLUE,
    CELL_X,
    CELL_Y,
    CELL_Z,
    CENTRE,
    COLUMN,
    DEPTH,
    DIR_X,
    DIR_Y,
    DIR_Z,
    FIELD,
    FOG,
    GREEN,
    HALF,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
    ONE,
    RED,
    SKY_DEPTH,
    T_MAX,
    T_NOW,
    TEXEL,
    WINDOW,
    ZERO,
)

# What remains of the light under a tree or a roof.
SHADOW = np.float32(0.66)
# The sky reaches its zenith colour at about 30 degrees; below that it is mostly haze.
SKY_GRADIENT = np.float32(2.0)


@render_kernel
def _mip_level(t: float, depth: float) -> tuple[float, int]:
    """Texels per side of the level to use at depth t, and where it starts in a texture."""
    size, offset = float32(16), int32(0)
    size, offset = (float32(8), int32(256)) if t > depth else (size, offset)
    size, offset = (float32(4), int32(320)) if t > depth * float32(2) else (size, offset)
    size, offset = (float32(2), int32(336)) if t > depth * float32(4) else (size, offset)
    return (float32(1), int32(340)) if t > depth * float32(8) else (size, offset)


@render_kernel
def locate_hits(
    camera: Floats, blocks: Bytes, column_x: int, column_z: int, s: Floats, n: Ints
) -> None:
    """Find face, texel, fog and the column that shades each hit."""
    shift_x = int32(column_x - CENTRE)
    shift_z = int32(column_z - CENTRE)
    x0 = camera[EYE_X] + float32(CENTRE)
    y0 = camera[EYE_Y]
    z0 = camera[EYE_Z] + float32(CENTRE)
    mip_depth = camera[MIP_DEPTH]
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
        size, offset = _mip_level(t, mip_depth)
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
def shade_hits(camera: Floats, atlas: Words, top: Bytes, s: Floats, n: Ints) -> None:
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
