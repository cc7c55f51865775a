"""Light: the shading of hits, the colours of sky and hour, and the sun, moon and stars."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import DAY_TICKS
from rllib_minestudio.env.voxel.render.block_atlas import FACE_BITS
from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOG_SCALE,
    FOG_START,
    FORWARD,
    HORIZON,
    LEVELS,
    LIGHT,
    MIP_DEPTH,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    VIEW,
    ZENITH,
    Bytes,
    Camera,
    Floats,
    Ints,
    Shorts,
    Words,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.corner_light import TOP_LAYER, is_cube
from rllib_minestudio.env.voxel.render.hand import PixelRays
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
    FRONT_FIELD,
    GREEN,
    HALF,
    INV_X,
    INV_Y,
    INV_Z,
    LANES,
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
from rllib_minestudio.env.voxel.world.box_field import column_of_block, neighbour_index

# The sky reaches its zenith colour at about 30 degrees; below that it is mostly haze.
SKY_GRADIENT = np.float32(2.0)
ALMOST_ONE = np.float32(0.9999)


@render_kernel
def is_hit(i: int, s: Floats, n: Ints) -> bool:
    """Whether a ray has ended in a block."""
    return (n[FIELD + i] == int32(0)) & (s[T_NOW + i] < s[T_MAX + i])


@render_kernel
def hits_any(s: Floats, n: Ints) -> bool:
    """Whether any ray is a hit; nearly half the tiles of a view over plains show sky alone."""
    hits = int32(0)
    for i in range(LANES):
        hits |= int32(1) if is_hit(i, s, n) else int32(0)
    return hits != int32(0)


@render_kernel
def show_sky(camera: Floats, s: Floats, n: Ints) -> None:
    """Write the sky of each ray as three integer channels, and its depth."""
    for i in range(LANES):
        r, g, b = _sky_colour(camera, i, s)
        s[DEPTH + i] = SKY_DEPTH
        n[RED + i], n[GREEN + i], n[BLUE + i] = int32(r), int32(g), int32(b)


@render_kernel
def _sky_colour(camera: Floats, i: int, s: Floats) -> tuple[float, float, float]:
    """Colour of the sky along a ray, into which the fog fades distant blocks."""
    hr, hg, hb = camera[HORIZON], camera[HORIZON + 1], camera[HORIZON + 2]
    zr, zg, zb = camera[ZENITH] - hr, camera[ZENITH + 1] - hg, camera[ZENITH + 2] - hb
    up = min(max(s[DIR_Y + i] * s[T_MAX + i] * (SKY_GRADIENT / camera[VIEW]), ZERO), ONE)
    return hr + zr * up, hg + zg * up, hb + zb * up


@render_kernel
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


@render_kernel
def _step_out(index: int, face: int) -> int:
    """Index of the cell in front of a face."""
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


@render_kernel
def _is_covered(i: int, s: Floats, n: Ints) -> bool:
    """Whether another block covers the face of a hit; nothing covers the world's highest faces."""
    is_highest = (n[FACE + i] == int32(2)) & (int32(s[CELL_Y + i]) == TOP_LAYER)
    is_covered = is_cube(n[FRONT_FIELD + i]) & (s[DEPTH + i] < SKY_DEPTH)
    return is_covered & (not is_highest)


@render_kernel
def find_fronts(camera: Floats, box: Shorts, s: Floats, n: Ints) -> None:
    """Find the cell in front of each face, which is where its light comes from, and its field.

    A ray that passes within `NUDGE` of an edge may enter the block behind the edge by a face that
    another block covers. That face would show as a speck, so it is replaced by its neighbour. The
    box field, 0 in a block, tells whether a face is covered: the ray has just read it there.
    """
    covered = int32(0)
    for i in range(LANES):
        n[FRONT + i] = _step_out(n[BLOCK_INDEX + i], n[FACE + i])
    for i in range(LANES):
        n[FRONT_FIELD + i] = int32(box[uint32(n[FRONT + i])])
    for i in range(LANES):
        covered |= int32(1) if _is_covered(i, s, n) else int32(0)
    if covered == int32(0):
        return
    for i in range(LANES):
        if _is_covered(i, s, n):
            n[FACE + i] = _other_face(camera, i, s, n)
            n[FRONT + i] = _step_out(n[BLOCK_INDEX + i], n[FACE + i])
            n[FRONT_FIELD + i] = int32(box[uint32(n[FRONT + i])])


@render_kernel
def mip_level(t: float, depth: float) -> tuple[float, int]:
    """Texels per side of the level to use at depth t, and where it starts in a texture."""
    size, offset = float32(16), int32(0)
    size, offset = (float32(8), int32(256)) if t > depth else (size, offset)
    size, offset = (float32(4), int32(320)) if t > depth * float32(2) else (size, offset)
    size, offset = (float32(2), int32(336)) if t > depth * float32(4) else (size, offset)
    return (float32(1), int32(340)) if t > depth * float32(8) else (size, offset)


@render_kernel
def choose_texels(camera: Floats, blocks: Shorts, faces: Ints, s: Floats, n: Ints) -> None:
    """Find the texel of each hit, and the column of the cell in front of it."""
    mip_depth = camera[MIP_DEPTH]
    for i in range(LANES):
        block = int32(blocks[uint32(n[BLOCK_INDEX + i])])
        n[TEXEL + i] = faces[uint32((block << int32(FACE_BITS)) | n[FACE + i])]
    for i in range(LANES):
        face, depth = n[FACE + i], s[DEPTH + i]
        axis = face >> int32(1)
        u = s[POINT_Z + i] if axis == int32(0) else s[POINT_X + i]
        v = s[POINT_Z + i] if axis == int32(1) else ALMOST_ONE - s[POINT_Y + i]
        size, offset = mip_level(depth, mip_depth)
        row = float32(int32(v * size))
        texture = n[TEXEL + i] if depth < SKY_DEPTH else int32(0)
        n[TEXEL + i] = texture + offset + int32(row * size) + int32(u * size)
        n[COLUMN + i] = column_of_block(n[FRONT + i])


@render_kernel
def shade_hits(camera: Floats, atlas: Words, s: Floats, n: Ints) -> None:
    """Combine texel, light, fog and sky of each ray into three integer channels."""
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


# ----------------------------------------- how bright the sky's light is, by its level and the hour
# Minecraft 1.16.5's light map: the game computes a colour for each level of light, 0 to 15, and
# multiplies textures by it (`LightTexture`). The light of torches and the like is not simulated, so
# only the sky's counts.

# Each colour is moved this far towards a light grey, twice, so that nothing is quite black.
GREY, TOWARDS_GREY = 0.75, 0.04
# How far the night's blue is moved towards white.
TOWARDS_WHITE = 0.35


def daylight(sun_angle: float) -> float:
    """Share of the sun's light at an hour: 0.2 at night, 1 by day (`getSunBrightness`).

    Args:
        sun_angle: Radians from the zenith, see the function `sun_angle`.
    """
    darkness = min(max(1 - (math.cos(sun_angle) * 2 + 0.2), 0.0), 1.0)
    return (1 - darkness) * 0.8 + 0.2


def level_brightness() -> NDArray[np.float64]:
    """Share of the light at each level, float64 (16,): 0 at level 0, 1 at 15, a third at 10."""
    share = np.arange(LEVELS) / (LEVELS - 1)
    return share / (4 - 3 * share)


def light_map(sun_angle: float, gamma: float) -> NDArray[np.float32]:
    """Factors on red, green and blue at each level of the sky's light.

    Args:
        sun_angle: Radians from the zenith, see the function `sun_angle`.
        gamma: 0 leaves colours as they are, 1 corrects them fully. Beyond 1 they overshoot and are
            clipped, as in the game.

    Returns:
        float32 (16, 3), 0 to 1, in steps of 1/255: the game keeps them in a texture.
    """
    sun = daylight(sun_angle)
    sky = _towards(np.array([sun, sun, 1.0]), 1.0, TOWARDS_WHITE)
    colours = level_brightness()[:, None] * (sun * 0.95 + 0.05) * sky
    colours = np.clip(_towards(colours, GREY, TOWARDS_GREY), 0, 1)
    colours = _towards(colours, 1 - (1 - colours) ** 4, gamma)
    colours = np.clip(_towards(colours, GREY, TOWARDS_GREY), 0, 1)
    return (np.rint(colours * 255) / 255).astype(np.float32)


def _towards(
    colours: NDArray[np.float64], goal: float | NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    return colours + (goal - colours) * share


# ------------------------------------------------------------------------------ colours of the hour
# The formulas are Minecraft 1.16's (as documented on minecraft.wiki, "Daylight cycle" and "Light"):
# the sun's angle advances a little unevenly, and everything else follows from its cosine.

# Colours change in steps of this many ticks, so that a renderer can reuse them.
SKY_STEP_TICKS = 20

Colour = tuple[float, float, float]
DAY_ZENITH: Colour = (110.0, 158.0, 255.0)
DAY_HORIZON: Colour = (188.0, 212.0, 255.0)
SUNSET: Colour = (232.0, 132.0, 62.0)


class Sky(NamedTuple):
    """Everything that depends on the time of day.

    Attributes:
        sun_angle: Radians from the zenith, growing after noon; pi at midnight.
        horizon: RGB of fog and of the sky's lower rim.
        zenith: RGB of the sky overhead.
        stars: Brightness of the stars, 0..1.
    """

    sun_angle: float
    horizon: Colour
    zenith: Colour
    stars: float


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _mix(one: Colour, other: Colour, amount: float) -> Colour:
    return (
        one[0] + (other[0] - one[0]) * amount,
        one[1] + (other[1] - one[1]) * amount,
        one[2] + (other[2] - one[2]) * amount,
    )


def sun_angle(daytime: float) -> float:
    """The sun's angle from the zenith in radians, 0 at noon (tick 6000).

    Args:
        daytime: Ticks since sunrise; any number, taken modulo a day.
    """
    turn = (daytime / DAY_TICKS - 0.25) % 1.0
    return 2 * math.pi * (turn + (0.5 - math.cos(math.pi * turn) / 2 - turn) / 3)


def sky_at(daytime: float) -> Sky:
    """Compute the sky at a time of day.

    Args:
        daytime: Ticks since sunrise; any number, taken modulo a day.
    """
    angle = sun_angle(daytime)
    height = math.cos(angle)
    day = _clamp(height * 2 + 0.5)
    # 1 while the sun is on the horizon, 0 by day and at night.
    dusk = _clamp(1 - abs(height) / 0.35)
    fog = (day * 0.94 + 0.06, day * 0.94 + 0.06, day * 0.91 + 0.09)
    horizon = (DAY_HORIZON[0] * fog[0], DAY_HORIZON[1] * fog[1], DAY_HORIZON[2] * fog[2])
    zenith = _mix((3.0, 4.0, 9.0), DAY_ZENITH, day)
    return Sky(
        sun_angle=angle,
        horizon=_mix(horizon, SUNSET, 0.45 * dusk),
        zenith=zenith,
        stars=_clamp(0.25 - 2 * height) if height < 0.125 else 0.0,
    )


def apply_sky(camera: Camera, sky: Sky, gamma: float) -> None:
    """Write the hour's colours and light into the camera vector."""
    camera.vector[LIGHT : LIGHT + 3 * LEVELS] = light_map(sky.sun_angle, gamma).reshape(-1)
    camera.vector[HORIZON : HORIZON + 3] = sky.horizon
    camera.vector[ZENITH : ZENITH + 3] = sky.zenith


# ---------------------------- sun, moon and stars, drawn over those pixels of a frame that show sky

# Half the side of each square, seen from a distance of 1.
SUN_SIZE, MOON_SIZE = np.float32(0.09), np.float32(0.07)
# Sun and moon are pictures of 8 x 8 squares.
GRID = np.float32(8)
SUN_CORE, SUN_RIM = (255, 253, 228), (255, 240, 172)
MOON_LIGHT, MOON_DARK = (222, 227, 240), (176, 182, 200)
MOON_SPOTS = 0x0000_1830_0240_6000  # one bit per square, row by row
STAR_COUNT = 400
STAR_SIZE = 0.004
# Even where a pixel is much larger than a star, this share of the star's light remains.
FAINTEST_STAR = 0.3


def star_directions() -> Floats:
    """Unit vectors of the stars and their brightness: float32 (STAR_COUNT, 4)."""
    rng = np.random.RandomState(10842)
    stars = rng.normal(size=(STAR_COUNT, 4))
    stars[:, :3] /= np.linalg.norm(stars[:, :3], axis=1, keepdims=True)
    stars[:, 3] = rng.uniform(0.35, 1.0, STAR_COUNT)
    return stars.astype(np.float32)


@render_kernel
def _project(
    camera: Floats, x: float, y: float, z: float, width: int, height: int
) -> tuple[float, float, float]:
    """Place of a direction in the window, and the cosine of its angle to the line of sight."""
    ahead = x * camera[FORWARD] + y * camera[FORWARD + 1] + z * camera[FORWARD + 2]
    side = x * camera[RIGHT] + y * camera[RIGHT + 1] + z * camera[RIGHT + 2]
    rise = x * camera[UP] + y * camera[UP + 1] + z * camera[UP + 2]
    per = float32(1) / max(ahead, float32(1e-3))
    column = float32(width) / 2 + side * per / camera[STEP_X]
    row = float32(height) / 2 - rise * per / camera[STEP_Y]
    return column, row, ahead


@render_kernel
def _cut(place: float, size: int) -> int:
    """The pixel at a place, clipped to 0..size."""
    return min(max(int64(place), 0), size)


@render_kernel
def _draw_square(
    camera: Floats, rays: PixelRays, x: float, y: float, size: float, is_sun: bool,
    frame: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw sun or moon in the direction (x, y, 0); its sides follow the sun's path."""
    columns, rows = rays.columns_before, rays.rows_before
    width, height = len(columns) - 1, len(rows) - 1
    stride = columns[width]
    column, row, ahead = _project(camera, x, y, float32(0), width, height)
    if ahead < 0.3:
        return
    reach_x = size * 2 / (ahead * ahead * camera[STEP_X])
    reach_y = size * 2 / (ahead * ahead * camera[STEP_Y])
    left, right = _cut(column - reach_x, width), _cut(column + reach_x + 1, width)
    upper, lower = _cut(row - reach_y, height), _cut(row + reach_y + 1, height)
    for py in range(rows[upper], rows[lower]):
        sy = rays.upward[py]
        for px in range(columns[left], columns[right]):
            p = uint32(py * stride + px)
            if depth[p] < SKY_DEPTH:
                continue
            sx = rays.across[px]
            dx = camera[FORWARD] + sx * camera[RIGHT] + sy * camera[UP]
            dy = camera[FORWARD + 1] + sx * camera[RIGHT + 1] + sy * camera[UP + 1]
            dz = camera[FORWARD + 2] + sx * camera[RIGHT + 2] + sy * camera[UP + 2]
            scale = float32(1) / ((dx * x + dy * y) * size)
            u, v = (dx * y - dy * x) * scale, dz * scale
            if abs(u) >= 1 or abs(v) >= 1:
                continue
            square = int64((v + 1) / 2 * GRID) * 8 + int64((u + 1) / 2 * GRID)
            if is_sun:
                colour = SUN_CORE if max(abs(u), abs(v)) < 0.75 else SUN_RIM
            else:
                colour = MOON_DARK if MOON_SPOTS >> square & 1 else MOON_LIGHT
            for channel in range(3):
                frame[p * uint32(3) + uint32(channel)] = uint8(colour[channel])


@render_kernel
def render_celestial(
    camera: Floats, across: Floats, upward: Floats, columns_before: Ints, rows_before: Ints,
    angle: float, star_light: float, stars: Floats, frame: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Draw sun, moon and stars.

    Args:
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        columns_before: See `hand.PixelRays`.
        rows_before: See `hand.PixelRays`.
        angle: The sun's angle from the zenith, see `Sky`.
        star_light: Brightness of the stars, 0..1.
        stars: See `star_directions`.
        frame: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), `ray_tiles.SKY_DEPTH` where there is sky.
    """
    rays = PixelRays(across, upward, columns_before, rows_before)
    columns, rows = columns_before, rows_before
    # The sun rises in the east (+x) and sets in the west.
    width, height = len(columns) - 1, len(rows) - 1
    sin, cos = float32(math.sin(angle)), float32(math.cos(angle))
    if star_light > 0:
        pixel_area = camera[STEP_X] * camera[STEP_Y]
        shine = 255 * star_light * min(max(STAR_SIZE**2 / pixel_area, FAINTEST_STAR), 1.0)
        for i in range(len(stars)):
            x = stars[i, 0] * cos - stars[i, 1] * sin
            y = stars[i, 0] * sin + stars[i, 1] * cos
            column, row, ahead = _project(camera, x, y, stars[i, 2], width, height)
            if ahead < 0.1 or not (0 <= column < width and 0 <= row < height) or y < 0:
                continue
            px, py = columns[int64(column)], rows[int64(row)]
            if px == columns[int64(column) + 1] or py == rows[int64(row) + 1]:
                continue  # that pixel of the window is not drawn
            p = uint32(py * columns[width] + px)
            if depth[p] >= SKY_DEPTH:
                for channel in range(3):
                    at = p * uint32(3) + uint32(channel)
                    frame[at] = uint8(min(frame[at] + shine * stars[i, 3], 255.0))
    _draw_square(camera, rays, -sin, cos, SUN_SIZE, True, frame, depth)
    _draw_square(camera, rays, sin, -cos, MOON_SIZE, False, frame, depth)
