"""Light: the shading of hits, and the light map: the colour of each level, at an hour."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.block_atlas import (
    BOXES,
    FACE_BITS,
    FULL_LEAVES,
    LEAVES,
    LOOK_SHIFT,
    SPECIAL,
    TINTED_BIT,
)
from rllib_minestudio.env.voxel.render.camera import (
    BLOCK,
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
    EYE_X,
    EYE_Y,
    EYE_Z,
    FACE,
    FIELD,
    FOG,
    FOG_RGB,
    FOG_SCALE,
    FOG_START,
    FRONT,
    FRONT_FIELD,
    GREEN,
    HALF,
    INSIDE,
    INV_X,
    INV_Y,
    INV_Z,
    KEY,
    LANES,
    LEVELS,
    LIGHT,
    LIGHT_B,
    LIGHT_G,
    LIGHT_MAP,
    LIGHT_R,
    LOOK,
    MIP_DEPTH,
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
    VIEW,
    ZERO,
    Bytes,
    Camera,
    Floats,
    Ints,
    Shorts,
    Words,
    either,
    inlined_kernel,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.corner_light import TOP_LAYER
from rllib_minestudio.env.voxel.render.textures import FACE_TOP, TEXTURE_SHIFT
from rllib_minestudio.env.voxel.world.blocks import SNOW, SNOW_BLOCK
from rllib_minestudio.env.voxel.world.box_field import (
    HEIGHT,
    WINDOW,
    column_of_block,
    neighbour_index,
)
from rllib_minestudio.env.voxel.world.worldgen import MANY_TINTS

ALMOST_ONE = np.float32(0.9999)
_LAST_BLOCK = np.int32(WINDOW * WINDOW * HEIGHT - 1)


@inlined_kernel
def is_hit(i: int, s: Floats, n: Ints) -> bool:
    """Whether a ray has ended in a block."""
    return (n[FIELD + i] == int32(0)) & (s[T_NOW + i] < s[T_MAX + i])


@inlined_kernel
def count_hits(s: Floats, n: Ints) -> int:
    """How many rays are hits; nearly half the tiles of a view over plains have none."""
    hits = int32(0)
    for i in range(LANES):
        hits = int32(hits + int32(is_hit(i, s, n)))
    return hits


@inlined_kernel
def locate_hits(camera: Floats, s: Floats, n: Ints) -> None:
    """Find the face by which each ray enters its last block, the point on it, depth and fog."""
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


@inlined_kernel
def step_out(index: int, face: int) -> int:
    """Index of the cell in front of a face: of its own cell if it is `INSIDE` that."""
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
    """The face, across another axis than the chosen one, that is nearest to the ray's end."""
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


@inlined_kernel
def _is_covered(i: int, s: Floats, n: Ints) -> bool:
    """Whether a block is in front of the face of a hit; nothing is above the world's highest."""
    face = n[FACE + i]
    is_highest = (face == int32(2)) & (int32(s[CELL_Y + i]) == TOP_LAYER)
    is_covered = (n[FRONT_FIELD + i] == int32(0)) & (s[DEPTH + i] < SKY_DEPTH)
    return is_covered & (not is_highest)


@inlined_kernel
def find_fronts(box: Shorts, s: Floats, n: Ints) -> bool:
    """Find the cell in front of each face, where its light comes from, its field and its column.

    Faces lose the bit `INSIDE`: those have their own cell in front.

    Returns:
        Whether a face may be covered by another block. The box field, 0 in a block, tells: the ray
        has just read it there.
    """
    covered = int32(0)
    for i in range(LANES):
        n[FRONT + i] = step_out(n[BLOCK_INDEX + i], n[FACE + i])
    for i in range(LANES):
        n[FRONT_FIELD + i] = int32(box[uint32(n[FRONT + i])])
    for i in range(LANES):
        n[COLUMN + i] = column_of_block(n[FRONT + i])
        covered = either(covered, _is_covered(i, s, n) & (n[FACE + i] < int32(INSIDE)))
        n[FACE + i] = int32(n[FACE + i] & int32(INSIDE - 1))
    return covered != int32(0)


@inlined_kernel
def mip_level(t: float, depth: float) -> tuple[float, int]:
    """Texels per side of the level to use at depth t, and where it starts in a texture."""
    size, offset = float32(16), int32(0)
    size, offset = (float32(8), int32(256)) if t > depth else (size, offset)
    size, offset = (float32(4), int32(320)) if t > depth * float32(2) else (size, offset)
    size, offset = (float32(2), int32(336)) if t > depth * float32(4) else (size, offset)
    return (float32(1), int32(340)) if t > depth * float32(8) else (size, offset)


@inlined_kernel
def face_entry(block: int, face: int) -> int:
    """Place of a block's face among the entries of all faces; the bit `INSIDE` is ignored."""
    entry = (uint32(block) << uint32(FACE_BITS)) | (uint32(face) & uint32(INSIDE - 1))
    return uint32(entry)


@inlined_kernel
def tint_faces(tints: Bytes, only_tint: int, n: Ints) -> None:
    """Let the entries of tinted faces in `TEXEL` be those for the tints of their columns."""
    for i in range(LANES):
        n[KEY + i] = int32(only_tint)
    if only_tint == MANY_TINTS:
        for i in range(LANES):
            n[KEY + i] = int32(tints[uint32(column_of_block(n[BLOCK_INDEX + i]))])
    for i in range(LANES):
        is_tinted = (n[TEXEL + i] >> int32(LOOK_SHIFT + TINTED_BIT)) & int32(1)
        n[TEXEL + i] += is_tinted * (n[KEY + i] << int32(TEXTURE_SHIFT))


@inlined_kernel
def paint_snow(blocks: Shorts, faces: Ints, n: Ints) -> None:
    """Let the top of a cube below a single layer of snow show it: rays pass the layer itself."""
    painted = faces[uint32((SNOW_BLOCK << FACE_BITS) | FACE_TOP)]
    for i in range(LANES):
        n[KEY + i] = int32(blocks[uint32((n[BLOCK_INDEX + i] + int32(1)) & _LAST_BLOCK)])
    for i in range(LANES):
        index, word = n[BLOCK_INDEX + i], n[TEXEL + i]
        is_snowy = (n[FACE + i] == int32(FACE_TOP)) & (n[KEY + i] == int32(SNOW))
        is_snowy &= (word & int32(BOXES << LOOK_SHIFT)) == int32(0)
        is_snowy &= (index & int32(TOP_LAYER)) != int32(TOP_LAYER)
        n[TEXEL + i] = painted if is_snowy else word


@inlined_kernel
def choose_texels(
    camera: Floats,
    blocks: Shorts,
    tints: Bytes,
    only_tint: int,
    has_snow: bool,
    faces: Ints,
    s: Floats,
    n: Ints,
) -> int:
    """Find the block and the texel of each hit, and the block's look where it is special, else 0.

    Returns:
        The bits of all these looks.
    """
    mip_depth, near = camera[MIP_DEPTH], float32(FULL_LEAVES) / camera[VIEW]
    found = int32(0)
    for i in range(LANES):
        block = int32(blocks[uint32(n[BLOCK_INDEX + i])])
        n[BLOCK + i], n[TEXEL + i] = block, faces[face_entry(block, n[FACE + i])]
    tint_faces(tints, only_tint, n)
    if has_snow:
        paint_snow(blocks, faces, n)
    for i in range(LANES):
        face, depth = int32(n[FACE + i] & int32(INSIDE - 1)), s[DEPTH + i]
        axis = int32(face >> int32(1))
        x, y, z = s[POINT_X + i], s[POINT_Y + i], s[POINT_Z + i]
        u = z if axis == int32(0) else x
        v = z if axis == int32(1) else ALMOST_ONE - y
        size, offset = mip_level(depth, mip_depth)
        row = float32(int32(v * size))
        word, hit = n[TEXEL + i], depth < SKY_DEPTH
        look = int32(word >> int32(LOOK_SHIFT))
        is_full = ((look & int32(LEAVES)) != int32(0)) & (depth > near * s[T_MAX + i])
        look = look if hit & ((look & int32(SPECIAL)) != int32(0)) & (not is_full) else int32(0)
        found = either(found, look)
        n[LOOK + i] = look
        texture = int32(word & int32((1 << LOOK_SHIFT) - 1)) if hit else int32(0)
        n[TEXEL + i] = int32(texture + offset) + int32(int32(row * size) + int32(u * size))
    return found


@render_kernel
def uncover(
    camera: Floats,
    blocks: Shorts,
    box: Shorts,
    tints: Bytes,
    only_tint: int,
    has_snow: bool,
    faces: Ints,
    looks: Bytes,
    s: Floats,
    n: Ints,
) -> None:
    """Replace the faces that opaque cubes cover, and their texels.

    A ray that passes within `NUDGE` of an edge may enter the block behind the edge by a face that
    another block covers. That face would show as a speck, so it is replaced by its neighbour.
    """
    covered = int32(0)
    for i in range(LANES):
        n[KEY + i] = int32(blocks[uint32(n[FRONT + i])])
    for i in range(LANES):
        n[KEY + i] = int32(looks[uint32(n[KEY + i])])
    for i in range(LANES):
        is_opaque = (n[KEY + i] & int32(SPECIAL)) == int32(0)
        is_opaque &= _is_covered(i, s, n)  # a face inside a cell has that special cell in front
        n[KEY + i] = int32(1) if is_opaque else int32(0)
        covered = either(covered, is_opaque)
    if covered == int32(0):
        return
    for i in range(LANES):
        if n[KEY + i] != int32(0):
            n[FACE + i] = _other_face(camera, i, s, n)
            n[FRONT + i] = step_out(n[BLOCK_INDEX + i], n[FACE + i])
            n[FRONT_FIELD + i] = int32(box[uint32(n[FRONT + i])])
            n[COLUMN + i] = column_of_block(n[FRONT + i])
    choose_texels(camera, blocks, tints, only_tint, has_snow, faces, s, n)


@inlined_kernel
def shade_hits(camera: Floats, atlas: Words, s: Floats, n: Ints) -> None:
    """Combine texel, light and fog of each hit into three integer channels."""
    fog_r, fog_g, fog_b = camera[FOG_RGB], camera[FOG_RGB + 1], camera[FOG_RGB + 2]
    for i in range(LANES):
        n[TEXEL + i] = int32(atlas[uint32(n[TEXEL + i])])
    for i in range(LANES):
        rgb, hit = n[TEXEL + i], s[DEPTH + i] < SKY_DEPTH
        red, green, blue = n[RED + i], n[GREEN + i], n[BLUE + i]
        lit = s[OPENNESS + i]
        r = float32(rgb & int32(255)) * lit * s[LIGHT_R + i]
        g = float32((rgb >> int32(8)) & int32(255)) * lit * s[LIGHT_G + i]
        b = float32((rgb >> int32(16)) & int32(255)) * lit * s[LIGHT_B + i]
        fog = s[FOG + i]
        n[RED + i] = int32(r + (fog_r - r) * fog + HALF) if hit else red
        n[GREEN + i] = int32(g + (fog_g - g) * fog + HALF) if hit else green
        n[BLUE + i] = int32(b + (fog_b - b) * fog + HALF) if hit else blue


# ------------------------------------------------ how bright light is, by its levels and the hour
# Minecraft 1.16.5's light map: the game computes a colour for each pair of levels, of block light
# and of the sky's, and multiplies textures by it (`LightTexture`). The light of torches is warm
# where it is weak. In the game it flickers, by a tenth up and down; here it is steady.

# Each colour is moved this far towards a light grey, twice, so that nothing is quite black.
GREY, TOWARDS_GREY = 0.75, 0.04
# How far the night's blue is moved towards white.
TOWARDS_WHITE = 0.35
# How much brighter block light is than the sky's at the same level.
BLOCK_BOOST = 1.5


def daylight(sun_angle: float) -> float:
    """Share of the sun's light at an hour: 0.2 at night, 1 by day (`getSunBrightness`).

    Args:
        sun_angle: Radians from the zenith, see `sky.sun_angle`.
    """
    darkness = min(max(1 - (math.cos(sun_angle) * 2 + 0.2), 0.0), 1.0)
    return (1 - darkness) * 0.8 + 0.2


def level_brightness() -> NDArray[np.float64]:
    """Share of the light at each level, float64 (16,): 0 at level 0, 1 at 15, a third at 10."""
    share = np.arange(LEVELS) / (LEVELS - 1)
    return share / (4 - 3 * share)


def light_map(sun_angle: float, gamma: float, night_vision: float = 0.0) -> NDArray[np.float32]:
    """Factors on red, green and blue at each level of block light and of the sky's.

    Args:
        sun_angle: Radians from the zenith, see `sky.sun_angle`.
        gamma: 0 leaves colours as they are, 1 corrects them fully. Beyond 1 they overshoot and are
            clipped, as in the game.
        night_vision: How far each colour is raised to full brightness in its own tone, 0 to 1.

    Returns:
        float32 (16, 16, 3), 0 to 1, in steps of 1/255, as the game keeps them in a texture; by
        level of block light, then of the sky's. So the byte of a cell's light is the number of its
        colour.
    """
    sun = daylight(sun_angle)
    sky = _towards(np.array([sun, sun, 1.0]), 1.0, TOWARDS_WHITE)
    from_sky = level_brightness()[:, None] * (sun * 0.95 + 0.05) * sky
    colours = _block_colours()[:, None] + from_sky
    colours = np.clip(_towards(colours, GREY, TOWARDS_GREY), 0, 1)
    colours = _towards(colours, colours / colours.max(-1, keepdims=True), night_vision)
    colours = _towards(colours, 1 - (1 - colours) ** 4, gamma)
    colours = np.clip(_towards(colours, GREY, TOWARDS_GREY), 0, 1)
    # Where both lights are strong, the game's gamma makes them a hundredth darker than one alone.
    # Here white stays white, so that the renderer need not look for torches under the open sky.
    for axis in (0, 1):
        colours = np.maximum.accumulate(colours, axis)
    return (np.rint(colours * 255) / 255).astype(np.float32)


def _block_colours() -> NDArray[np.float64]:
    """Light of blocks at each level, before it is corrected, float64 (16, 3)."""
    red = BLOCK_BOOST * level_brightness()
    return np.stack([red, red * ((red * 0.6 + 0.4) * 0.6 + 0.4), red * (red * red * 0.6 + 0.4)], 1)


def _towards(
    colours: NDArray[np.float64], goal: float | NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    return colours + (goal - colours) * share


def apply_light(
    camera: Camera, n: Ints, sun_angle: float, gamma: float, night_vision: float
) -> None:
    """Write the light map into the camera vector, and for the terrain into its integer scratch.

    There each colour is a word, `r | g << 8 | b << 16`. Other arguments are as in `light_map`.
    """
    colours = light_map(sun_angle, gamma, night_vision).reshape(-1, 3)
    camera.vector[LIGHT : LIGHT + colours.size] = colours.reshape(-1)
    n[LIGHT_MAP : LIGHT_MAP + len(colours)] = np.rint(colours * 255) @ (1, 1 << 8, 1 << 16)
