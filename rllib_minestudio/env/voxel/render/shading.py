"""What a ray shows where it ends: face, texel, light, fog or sky."""

from __future__ import annotations

import numpy as np
from numba import float32, int32, uint32

from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_SCALE,
    FOG_START,
    FULL_LIGHT,
    HORIZON,
    LEVELS,
    LIGHT,
    MIP_DEPTH,
    VIEW,
    ZENITH,
    Bytes,
    Floats,
    Ints,
    Shorts,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.ray_tiles import (
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
    FACE,
    FIELD,
    FOG,
    FRONT,
    GREEN,
    HALF,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
    LEVEL,
    LIGHT_B,
    LIGHT_G,
    LIGHT_R,
    ONE,
    OPENNESS,
    POINT_X,
    POINT_Y,
    POINT_Z,
    RED,
    SKY_DEPTH,
    T_MAX,
    T_NOW,
    TEXEL,
    ZERO,
)
from rllib_minestudio.env.voxel.world.addressing import (
    HEIGHT,
    column_of_block,
    neighbour_index,
)

# The sky reaches its zenith colour at about 30 degrees; below that it is mostly haze.
SKY_GRADIENT = np.float32(2.0)
ALMOST_ONE = np.float32(0.9999)
TOP_LAYER = np.int32(HEIGHT - 1)


@render_kernel
def is_hit(i: int, s: Floats, n: Ints) -> bool:
    """Whether a ray has ended in a block."""
    return (n[FIELD + i] == int32(0)) & (s[T_NOW + i] < s[T_MAX + i])


@render_kernel
def hits_any(s: Floats, n: Ints) -> bool:
    """Whether one of the rays has. Nearly half the tiles of a view over plains are sky alone."""
    hits = int32(0)
    for i in range(LANES):
        hits |= int32(1) if is_hit(i, s, n) else int32(0)
    return hits != int32(0)


@render_kernel
def show_sky(camera: Floats, s: Floats, n: Ints) -> None:
    """Sky of each ray as three integer channels, and its depth."""
    for i in range(LANES):
        r, g, b = _sky_colour(camera, i, s)
        s[DEPTH + i] = SKY_DEPTH
        n[RED + i], n[GREEN + i], n[BLUE + i] = int32(r), int32(g), int32(b)


@render_kernel
def _sky_colour(camera: Floats, i: int, s: Floats) -> tuple[float, float, float]:
    """Where a ray would show the sky: what it looks like, and blocks far away in the fog."""
    hr, hg, hb = camera[HORIZON], camera[HORIZON + 1], camera[HORIZON + 2]
    zr, zg, zb = camera[ZENITH] - hr, camera[ZENITH + 1] - hg, camera[ZENITH + 2] - hb
    up = min(max(s[DIR_Y + i] * s[T_MAX + i] * (SKY_GRADIENT / camera[VIEW]), ZERO), ONE)
    return hr + zr * up, hg + zg * up, hb + zb * up


@render_kernel
def locate_hits(camera: Floats, s: Floats, n: Ints) -> None:
    """Find the face each ray enters its last block by, the point on it, depth and fog."""
    x0 = camera[EYE_X] + float32(CENTRE)
    y0 = camera[EYE_Y]
    z0 = camera[EYE_Z] + float32(CENTRE)
    fog_start, fog_scale = camera[FOG_START], camera[FOG_SCALE]
    for i in range(LANES):
        ix, iy, iz = s[INV_X + i], s[INV_Y + i], s[INV_Z + i]
        cx, cy, cz = s[CELL_X + i], s[CELL_Y + i], s[CELL_Z + i]
        tx = (cx + HALF - x0) * ix - abs(ix) * HALF
        ty = (cy + HALF - y0) * iy - abs(iy) * HALF
        tz = (cz + HALF - z0) * iz - abs(iz) * HALF
        face_x = int32(1) if ix > ZERO else int32(0)
        face_y = int32(3) if iy > ZERO else int32(2)
        face_z = int32(5) if iz > ZERO else int32(4)
        # The last leap ended on the face, so its crossing is the one at t.
        t = s[T_NOW + i]
        off_x, off_y, off_z = abs(tx - t), abs(ty - t), abs(tz - t)
        face = face_y if off_y <= off_z else face_z
        n[FACE + i] = face_x if off_x < min(off_y, off_z) else face
        s[POINT_X + i] = min(max(x0 + s[DIR_X + i] * t - cx, ZERO), ALMOST_ONE)
        s[POINT_Y + i] = min(max(y0 + s[DIR_Y + i] * t - cy, ZERO), ALMOST_ONE)
        s[POINT_Z + i] = min(max(z0 + s[DIR_Z + i] * t - cz, ZERO), ALMOST_ONE)
        hit = is_hit(i, s, n)
        fog = (t / s[T_MAX + i] - fog_start) * fog_scale
        s[FOG + i] = min(max(fog, ZERO), ONE) if hit else ONE
        s[DEPTH + i] = t if hit else SKY_DEPTH


@render_kernel
def _step_out(index: int, face: int) -> int:
    """Index of the cell before a face."""
    axis = face >> int32(1)
    toward = int32(1) - int32((face & int32(1)) << int32(1))
    none = int32(0)
    return neighbour_index(
        index,
        toward if axis == int32(0) else none,
        toward if axis == int32(1) else none,
        toward if axis == int32(2) else none,
    )


@render_kernel
def _other_face(camera: Floats, i: int, s: Floats, n: Ints) -> int:
    """The face, not of the axis chosen, whose crossing is nearest to where the ray ended."""
    chosen = n[FACE + i] >> 1
    best, nearest = n[FACE + i], SKY_DEPTH
    for axis in range(3):
        inverse = s[INV_X + axis * LANES + i]
        eye = camera[EYE_X + axis] + float32(0 if axis == 1 else CENTRE)
        middle = s[CELL_X + axis * LANES + i] + HALF - eye
        off = abs(middle * inverse - abs(inverse) * HALF - s[T_NOW + i])
        if axis != chosen and off < nearest:
            best, nearest = 2 * axis + (1 if inverse > 0 else 0), off
    return int32(best)


@render_kernel
def find_fronts(camera: Floats, box: Shorts, s: Floats, n: Ints) -> None:
    """Find the cell before each face, which is where its light comes from.

    A ray that passes within the nudge of an edge may enter the block behind the edge by a face
    that another block covers; unless corrected to its neighbour, that face would show as a speck.
    The box field, 0 in a block, tells whether one does: the ray has just read it there.
    """
    covered = int32(0)
    for i in range(LANES):
        n[FRONT + i] = _step_out(n[BLOCK_INDEX + i], n[FACE + i])
    for i in range(LANES):
        is_solid = box[uint32(n[FRONT + i])] == 0
        covered |= int32(1) if is_solid and s[DEPTH + i] < SKY_DEPTH else int32(0)
    if covered == int32(0):
        return
    for i in range(LANES):
        if box[uint32(n[FRONT + i])] == 0 and s[DEPTH + i] < SKY_DEPTH:
            n[FACE + i] = _other_face(camera, i, s, n)
            n[FRONT + i] = _step_out(n[BLOCK_INDEX + i], n[FACE + i])


@render_kernel
def _mip_level(t: float, depth: float) -> tuple[float, int]:
    """Texels per side of the level to use at depth t, and where it starts in a texture."""
    size, offset = float32(16), int32(0)
    size, offset = (float32(8), int32(256)) if t > depth else (size, offset)
    size, offset = (float32(4), int32(320)) if t > depth * float32(2) else (size, offset)
    size, offset = (float32(2), int32(336)) if t > depth * float32(4) else (size, offset)
    return (float32(1), int32(340)) if t > depth * float32(8) else (size, offset)


@render_kernel
def choose_texels(camera: Floats, blocks: Shorts, s: Floats, n: Ints) -> None:
    """Find the texel of each hit, and the column of the cell before it."""
    mip_depth = camera[MIP_DEPTH]
    for i in range(LANES):
        n[TEXEL + i] = int32(blocks[uint32(n[BLOCK_INDEX + i])])
    for i in range(LANES):
        face, depth = n[FACE + i], s[DEPTH + i]
        axis = face >> int32(1)
        u = s[POINT_Z + i] if axis == int32(0) else s[POINT_X + i]
        v = s[POINT_Z + i] if axis == int32(1) else ALMOST_ONE - s[POINT_Y + i]
        size, offset = _mip_level(depth, mip_depth)
        row = float32(int32(v * size))
        block = n[TEXEL + i] if depth < SKY_DEPTH else int32(0)
        texture = int32((block * int32(6) + face) << int32(9))
        n[TEXEL + i] = texture + offset + int32(row * size) + int32(u * size)
        n[COLUMN + i] = column_of_block(n[FRONT + i])


@render_kernel
def are_covered(top: Bytes, n: Ints) -> bool:
    """Whether any of the cells before the faces lies below its column's highest block.

    Most tiles are in the open, which is worth a short cut.

    Args:
        top: uint8 (65536,), highest block of each column.
        n: Integer scratch.
    """
    covered = int32(0)
    for i in range(LANES):
        n[COLUMN + i] = int32(top[uint32(n[COLUMN + i])])
    for i in range(LANES):
        covered |= int32(1) if n[COLUMN + i] > (n[FRONT + i] & TOP_LAYER) else int32(0)
    return covered != int32(0)


@render_kernel
def light_fully(camera: Floats, s: Floats) -> None:
    """Let the light of the open sky fall on all faces."""
    r, g, b = camera[FULL_LIGHT], camera[FULL_LIGHT + 1], camera[FULL_LIGHT + 2]
    for i in range(LANES):
        s[LIGHT_R + i] = r
        s[LIGHT_G + i] = g
        s[LIGHT_B + i] = b


@render_kernel
def light_by_cells(camera: Floats, light: Bytes, s: Floats, n: Ints) -> None:
    """Find the light that falls on each face: that of the cell before it.

    Args:
        camera: float32 (CAMERA_SIZE,).
        light: uint8 (2**23,), level of the sky's light.
        s: Float scratch.
        n: Integer scratch.
    """
    for i in range(LANES):
        n[LEVEL + i] = int32(light[uint32(n[FRONT + i])])
    for i in range(LANES):
        # The cell above the highest layer would be the lowest one.
        is_above = (n[FACE + i] == int32(2)) & (int32(s[CELL_Y + i]) == TOP_LAYER)
        level = int32(LEVELS - 1) if is_above else n[LEVEL + i]
        colour = uint32(LIGHT + 3 * level)
        s[LIGHT_R + i] = camera[colour]
        s[LIGHT_G + i] = camera[colour + uint32(1)]
        s[LIGHT_B + i] = camera[colour + uint32(2)]


@render_kernel
def shade_hits(camera: Floats, atlas: Words, s: Floats, n: Ints) -> None:
    """Texel, light, fog and sky of each ray, as three integer channels."""
    for i in range(LANES):
        n[TEXEL + i] = int32(atlas[uint32(n[TEXEL + i])])
    for i in range(LANES):
        rgb = n[TEXEL + i]
        sky_r, sky_g, sky_b = _sky_colour(camera, i, s)
        lit = s[OPENNESS + i]
        r = float32(rgb & int32(255)) * lit * s[LIGHT_R + i]
        g = float32((rgb >> int32(8)) & int32(255)) * lit * s[LIGHT_G + i]
        b = float32((rgb >> int32(16)) & int32(255)) * lit * s[LIGHT_B + i]
        fog = s[FOG + i]
        n[RED + i] = int32(r + (sky_r - r) * fog)
        n[GREEN + i] = int32(g + (sky_g - g) * fog)
        n[BLUE + i] = int32(b + (sky_b - b) * fog)
