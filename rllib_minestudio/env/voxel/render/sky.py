"""The sky: the colours of the hour, of fog and dome, and the glow of sunrise and sunset.

All formulas are Minecraft 1.16's. It mixes fog and sky by its render distance in chunks, and ends
the fog one chunk before it; for us, fog ends at the view distance. So fog and sky are those of a
render distance of one chunk more than the view distance, which is 5 for 64 blocks.

The game measures fog along the ray, not along the line of sight, where the driver has
`GL_NV_fog_distance`, as Nvidia's and Mesa's have. So does this renderer.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import DAY_TICKS, read_csv
from rllib_minestudio.env.voxel.render.camera import (
    BELOW_RGB,
    BLUE,
    CLOUDS_RGB,
    DEPTH,
    DIR_X,
    DIR_Y,
    DIR_Z,
    DOME,
    EYE_Y,
    FOG_RGB,
    FORWARD,
    GLOW_ALPHA,
    GLOW_RGB,
    GREEN,
    HALF,
    HOUR_RGB,
    IS_CLEAR,
    LANES,
    ONE,
    RED,
    RIGHT,
    SKY_DEPTH,
    SKY_RGB,
    SKY_SHARE,
    STEP_X,
    STEP_Y,
    SUN_SIDE,
    T_MAX,
    UP,
    ZERO,
    Bytes,
    Camera,
    Floats,
    Ints,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.textures import Textures, colour
from rllib_minestudio.env.voxel.render.window import Rgba

Colour = tuple[float, float, float]

# -------------------------------------------------------------- what the hour and the biome decide

# Colours change in steps of this many ticks, so that a renderer can reuse them.
SKY_STEP_TICKS = 20

SKY_OF_BIOME: tuple[Colour, ...] = tuple(colour(row["sky"]) for row in read_csv("biomes.csv"))
"""Colour of the sky by day, for each of `BIOMES` (`sky_color` in the game's files of biomes)."""
FOG_BY_DAY: Colour = (192.0, 216.0, 255.0)
"""Colour of the fog (`fog_color` of all biomes of the overworld)."""
MOON_PHASES = 8
GLOW_REACH = 0.4
"""The sky glows while the cosine of the sun's angle is between this and its negative."""


class Sky(NamedTuple):
    """Everything that depends on the hour.

    Attributes:
        sun_angle: Radians from the zenith, growing after noon; pi at midnight.
        moon_phase: Picture of the moon, 0 for the full moon, 0 to 7.
        overhead: RGB of the sky, 0..255; black at night.
        fog: RGB of the fog, before the sky and the glow are mixed into it.
        glow: RGB of sunrise and sunset.
        glow_alpha: How much of the glow shows where the sun crosses the horizon, 0..1.
        stars: Brightness of the stars, 0..0.5.
        clouds: RGB of the clouds' upper side.
    """

    sun_angle: float
    moon_phase: int
    overhead: Colour
    fog: Colour
    glow: Colour
    glow_alpha: float
    stars: float
    clouds: Colour


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def sun_angle(daytime: float) -> float:
    """The sun's angle from the zenith in radians, 0 at noon (tick 6000).

    Args:
        daytime: Ticks since sunrise; any number, taken modulo a day.
    """
    turn = (daytime / DAY_TICKS - 0.25) % 1.0
    return 2 * math.pi * (turn + (0.5 - math.cos(math.pi * turn) / 2 - turn) / 3)


def sky_at(time: float, by_day: Colour = SKY_OF_BIOME[0]) -> Sky:
    """Compute the sky at a time.

    Args:
        time: Ticks since the first sunrise; the day decides the moon's phase.
        by_day: Colour of the biome's sky by day.
    """
    angle = sun_angle(time)
    height = math.cos(angle)
    day = _clamp(2 * height + 0.5)
    night = _clamp(0.75 - 2 * height)
    grey, blue = day * 0.94 + 0.06, day * 0.91 + 0.09
    glow, glow_alpha = _glow(height)
    bright = 255 * (day * 0.9 + 0.1)
    return Sky(
        sun_angle=angle,
        moon_phase=int(time // DAY_TICKS) % MOON_PHASES,
        overhead=(by_day[0] * day, by_day[1] * day, by_day[2] * day),
        fog=(FOG_BY_DAY[0] * grey, FOG_BY_DAY[1] * grey, FOG_BY_DAY[2] * blue),
        glow=glow,
        glow_alpha=glow_alpha,
        stars=night * night / 2,
        clouds=(bright, bright, 255 * (day * 0.85 + 0.15)),
    )


def _glow(height: float) -> tuple[Colour, float]:
    """Colour and alpha of the glow, given the cosine of the sun's angle."""
    if abs(height) > GLOW_REACH:
        return (0.0, 0.0, 0.0), 0.0
    share = height / GLOW_REACH / 2 + 0.5
    colour = 255 * (0.3 * share + 0.7), 255 * (0.7 * share * share + 0.2), 255 * 0.2
    return colour, (0.01 + 0.99 * math.sin(math.pi * share)) ** 2


def render_distance(view_distance: float) -> float:
    """The game's render distance, in chunks, whose fog ends at a view distance in blocks."""
    return view_distance / 16 + 1


def sky_share(render_distance: float) -> float:
    """Share of the sky's colour in the fog's, at a render distance in chunks."""
    return 1 - (0.25 + 0.75 * render_distance / 32) ** 0.25


def apply_sky(camera: Camera, sky: Sky) -> None:
    """Write the hour's colours into the camera vector; `mix_fog` then follows the eye."""
    vector, distance = camera.vector, render_distance(camera.view_distance)
    vector[SKY_RGB : SKY_RGB + 3] = sky.overhead
    vector[HOUR_RGB : HOUR_RGB + 3] = sky.fog
    vector[GLOW_RGB : GLOW_RGB + 3] = sky.glow
    vector[GLOW_ALPHA] = sky.glow_alpha
    vector[SUN_SIDE] = -1.0 if math.sin(sky.sun_angle) > 0 else 1.0
    vector[SKY_SHARE] = sky_share(distance)
    vector[DOME] = camera.view_distance / distance
    vector[CLOUDS_RGB : CLOUDS_RGB + 3] = sky.clouds
    vector[IS_CLEAR] = sky.glow_alpha == 0 and sky.stars == 0


# ------------------------------------------------------------------------------------- fog and dome
# Fog has one colour in a frame, which depends on where the camera looks, and hides the sky's lower
# part. The sky is a plane 16 blocks above the eye, in fog that begins at the eye and ends at the
# render distance. A ray that rises by the angle e meets it 16 / sin(e) blocks away.

DOME_HEIGHT = 16.0
HORIZON_HEIGHT = np.float32(63)
"""Below this height of the eye, a black plane lies below the horizon."""
BLACK_PLANE = np.float32(4 / DOME_HEIGHT)
"""How far below the eye that plane is, relative to the sky above it."""
DARK_HEIGHT = np.float32(32)
"""Below this height of the eye, the fog darkens."""
FAN_SLOPE = np.float32(1 / 3)
"""How steeply the glow's rim rises towards the sun, for an alpha of 1: by 40 in 120."""
FAN_REACH = np.float32(1.2)
"""Radius of the glow's rim over the distance of its centre: 120 to 100."""


@render_kernel
def mix_fog(camera: Floats) -> None:
    """Write the colours of the fog, and of what lies below the horizon, for the camera's place."""
    toward = max(camera[FORWARD] * camera[SUN_SIDE], ZERO) * camera[GLOW_ALPHA]
    depth = min(max(camera[EYE_Y] / DARK_HEIGHT, ZERO), ONE)
    below = ONE if camera[EYE_Y] >= HORIZON_HEIGHT else ZERO
    for c in range(3):
        fog = camera[HOUR_RGB + c]
        fog += (camera[GLOW_RGB + c] - fog) * toward
        fog += (camera[SKY_RGB + c] - fog) * camera[SKY_SHARE]
        camera[FOG_RGB + c] = fog * depth * depth
        camera[BELOW_RGB + c] = fog * depth * depth * below


def brighten_fog(camera: Floats, night_vision: float) -> None:
    """Raise the fog's colour to full brightness in its own tone, by a share of 0 to 1."""
    fog = camera[FOG_RGB : FOG_RGB + 3]
    fog *= 1.0 + night_vision * (255.0 / max(float(fog.max()), 1.0) - 1.0)


@render_kernel
def show_sky(camera: Floats, s: Floats, n: Ints) -> None:
    """Write the dome along each ray as three integer channels, and its depth."""
    fr, fg, fb = camera[FOG_RGB], camera[FOG_RGB + 1], camera[FOG_RGB + 2]
    sr, sg, sb = camera[SKY_RGB] - fr, camera[SKY_RGB + 1] - fg, camera[SKY_RGB + 2] - fb
    br, bg, bb = camera[BELOW_RGB] - fr, camera[BELOW_RGB + 1] - fg, camera[BELOW_RGB + 2] - fb
    # Divided by the ray's slope times its length, this is the fog's share.
    above, below = camera[DOME], camera[DOME] * BLACK_PLANE
    for i in range(LANES):
        rise = s[DIR_Y + i] * s[T_MAX + i]
        is_up = rise > ZERO
        clear = ONE - min((above if is_up else below) / abs(rise), ONE)
        s[DEPTH + i] = SKY_DEPTH
        n[RED + i] = int32(fr + (sr if is_up else br) * clear + HALF)
        n[GREEN + i] = int32(fg + (sg if is_up else bg) * clear + HALF)
        n[BLUE + i] = int32(fb + (sb if is_up else bb) * clear + HALF)
    if camera[GLOW_ALPHA] > ZERO:
        _add_glow(camera, s, n)


@render_kernel
def lowest_slope(camera: Floats) -> float:
    """Rays below this slope see nothing of glow, sun, moon and stars: the black plane hides it."""
    return ZERO if camera[EYE_Y] < HORIZON_HEIGHT else -SKY_DEPTH


@render_kernel
def _add_glow(camera: Floats, s: Floats, n: Ints) -> None:
    """Lay the glow of sunrise or sunset over the dome.

    The game draws a fan of 16 triangles around the eye: its centre, 100 away on the horizon where
    the sun crosses it, has the full alpha, and its rim, a circle of radius 120, none. The circle is
    tilted: its plane rises by 40 * alpha on the sun's side. Here, the rim is round. For a ray
    (forward, up, side), with slope k of that plane, alpha falls off as
    `M / (M + W)`, M = 1.2 (k forward - up) and W = hypot(k side, up).
    """
    red, green, blue = camera[GLOW_RGB], camera[GLOW_RGB + 1], camera[GLOW_RGB + 2]
    alpha, lowest = camera[GLOW_ALPHA], lowest_slope(camera)
    slope = alpha * FAN_SLOPE
    sunward = slope * camera[SUN_SIDE]
    for i in range(LANES):
        up, side = s[DIR_Y + i], slope * s[DIR_Z + i]
        inside = max(FAN_REACH * (sunward * s[DIR_X + i] - up), ZERO)
        inside = inside if up >= lowest else ZERO
        share = alpha * inside / (inside + np.sqrt(side * side + up * up))
        r, g, b = float32(n[RED + i]), float32(n[GREEN + i]), float32(n[BLUE + i])
        n[RED + i] = int32(r + (red - r) * share + HALF)
        n[GREEN + i] = int32(g + (green - g) * share + HALF)
        n[BLUE + i] = int32(b + (blue - b) * share + HALF)


# ---------------- sun, moon and stars, which are added to those pixels of a frame that show the sky
# As in Minecraft 1.16, all of them turn around the eye once a day, about an axis from north to
# south: two squares with pictures, opposite each other, and white squares for stars.

SUN_HALF, MOON_HALF = 0.3, 0.2
"""Half the side of each square, seen from a distance of 1."""
TOO_FAR_ASIDE = np.float32(0.05)
"""Cosine of the angle to the line of sight from which on directions have no place in the window."""
LARGEST_STAR = np.float32(2 * 0.0025)
"""Side of the largest star. Where pixels are larger, a star's light is spread over one."""
# Columns of a star: its direction, two edges of its square, and its area.
EDGE_ONE, EDGE_TWO, AREA, STAR_SIZE = 3, 6, 9, 10


class Body(NamedTuple):
    """The picture of the sun, or of a phase of the moon.

    Attributes:
        picture: uint8 (h, w, 3), what is added to the sky.
        lit: Half the side of the square in its middle beyond which it is black, 0..1.
    """

    picture: NDArray[np.uint8]
    lit: float


class Bodies(NamedTuple):
    """The pictures of the sun and of the moon's phases."""

    sun: Body
    moon: tuple[Body, ...]


def bodies_of(textures: Textures) -> Bodies:
    """Return the pictures of sun and moon."""
    sheet = textures.picture("environment/moon_phases")
    height, width = sheet.shape[0] // 2, sheet.shape[1] // 4
    moons = (
        sheet[row * height : (row + 1) * height, column * width : (column + 1) * width]
        for row in range(2)
        for column in range(4)
    )
    return Bodies(_body(textures.picture("environment/sun")), tuple(map(_body, moons)))


def _body(picture: Rgba) -> Body:
    added = (picture[..., :3] * (picture[..., 3:] / 255) + 0.5).astype(np.uint8)
    lit = 0.0
    for axis, size in enumerate(added.shape[:2]):
        places = np.flatnonzero(added.any((1 - axis, 2)))
        if len(places):
            lit = max(lit, 1 - 2 * places[0] / size, 2 * (places[-1] + 1) / size - 1)
    return Body(np.ascontiguousarray(added), float(lit))


@lru_cache(maxsize=1)
def star_table() -> Floats:
    """The stars at noon, float32 (780, STAR_SIZE).

    The game draws 1500 random points in a cube around the eye with Java's generator, from a fixed
    seed, and keeps those between two spheres, so that its stars are always the same.
    """
    random = _JavaRandom(10842)
    stars = []
    for _ in range(1500):
        x, y, z = (2 * random.single() - 1 for _ in range(3))
        half = (0.15 + 0.1 * random.single()) / 100
        if not 0.01 < x * x + y * y + z * z < 1:
            continue
        turn = 2 * math.pi * random.double()
        length, flat = math.hypot(x, y, z), math.hypot(x, z)
        # Two directions across the line of sight, in the axes of the stars' own sphere ...
        north = np.array((-y * x / flat, flat, -y * z / flat)) / length
        east = np.array((-z / flat, 0.0, x / flat))
        one = (math.cos(turn) * north + math.sin(turn) * east) / half
        two = (math.cos(turn) * east - math.sin(turn) * north) / half
        # ... whose x is the world's z, and whose z points west at noon.
        vectors = (np.array((x, y, z)) / length, one, two)
        stars.append([*(v for x, y, z in vectors for v in (-z, y, x)), (2 * half) ** 2])
    return np.array(stars, np.float32)


class _JavaRandom:
    """java.util.Random: a linear congruential generator of 48 bits, specified in its docs."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def _next(self, bits: int) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return self._state >> (48 - bits)

    def single(self) -> float:
        """Return a float in [0, 1), as nextFloat."""
        return self._next(24) / (1 << 24)

    def double(self) -> float:
        """Return a float in [0, 1), as nextDouble."""
        return ((self._next(26) << 27) + self._next(27)) / (1 << 53)


@render_kernel
def _project(
    camera: Floats, x: float, y: float, z: float, width: int, height: int
) -> tuple[float, float, float]:
    """Place of a direction in the window, and the cosine of its angle to the line of sight."""
    ahead = x * camera[FORWARD] + y * camera[FORWARD + 1] + z * camera[FORWARD + 2]
    side = x * camera[RIGHT] + y * camera[RIGHT + 1] + z * camera[RIGHT + 2]
    rise = x * camera[UP] + y * camera[UP + 1] + z * camera[UP + 2]
    per = ONE / max(ahead, float32(1e-3))
    column = float32(width) * HALF + side * per / camera[STEP_X]
    row = float32(height) * HALF - rise * per / camera[STEP_Y]
    return column, row, ahead


@render_kernel
def _cut(place: float, size: int) -> int:
    """The pixel at a place, clipped to 0..size."""
    return int64(min(max(place, ZERO), float32(size)))


@render_kernel
def _cover(
    camera: Floats, rays: PixelRays, x: float, y: float, half: float
) -> tuple[int, int, int, int]:
    """The drawn pixels (left, right, upper, lower; ends excluded) around a square at (x, y, 0)."""
    columns, rows = rays.columns_before, rays.rows_before
    width, height = len(columns) - 1, len(rows) - 1
    ahead = x * camera[FORWARD] + y * camera[FORWARD + 1]
    # Angles from the middle to a corner, of the window and of the square, by their tangents.
    wide, tall = camera[STEP_X] * width * HALF, camera[STEP_Y] * height * HALF
    window, square = np.sqrt(wide * wide + tall * tall), half * float32(math.sqrt(2))
    if ahead * ahead * (ONE + window * window) * (ONE + square * square) < (
        max(ONE - window * square, ZERO) ** 2
    ) or (ahead < ZERO and window * square < ONE):
        return 0, 0, 0, 0
    left, right, upper, lower = float32(width), ZERO, float32(height), ZERO
    nearest, farthest = ONE, -ONE
    for corner in range(4):
        across = half if corner & 1 else -half
        along = half if corner & 2 else -half
        column, row, ahead = _project(camera, x - y * along, y + x * along, across, width, height)
        nearest, farthest = min(nearest, ahead), max(farthest, ahead)
        left, right = min(left, column), max(right, column)
        upper, lower = min(upper, row), max(lower, row)
    if farthest < TOO_FAR_ASIDE:
        return 0, 0, 0, 0
    if nearest < TOO_FAR_ASIDE:
        left, right, upper, lower = ZERO, float32(width), ZERO, float32(height)
    return (
        columns[_cut(left, width)],
        columns[_cut(right + ONE, width)],
        rows[_cut(upper, height)],
        rows[_cut(lower + ONE, height)],
    )


@render_kernel
def _add_light(frame: Bytes, at: int, light: float) -> None:
    frame[at] = uint8(min(float32(frame[at]) + light + HALF, float32(255)))


@render_kernel
def _add_body(
    camera: Floats, rays: PixelRays, x: float, y: float, half: float, lit: float, upright: float,
    picture: Bytes, frame: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Add the picture of sun or moon in the direction (x, y, 0); its sides follow the sun's path.

    `upright` is 1 for the sun, whose picture's columns run southwards and rows along its path, and
    -1 for the moon, whose picture is turned around.
    """
    left, right, upper, lower = _cover(camera, rays, x, y, half * lit)
    stride = rays.columns_before[-1]
    tall, wide = picture.shape[0], picture.shape[1]
    lowest = lowest_slope(camera)
    for py in range(upper, lower):
        sy = rays.upward[py]
        for px in range(left, right):
            p = uint32(py * stride + px)
            if depth[p] < SKY_DEPTH:
                continue
            sx = rays.across[px]
            dx = camera[FORWARD] + sx * camera[RIGHT] + sy * camera[UP]
            dy = camera[FORWARD + 1] + sx * camera[RIGHT + 1] + sy * camera[UP + 1]
            dz = camera[FORWARD + 2] + sx * camera[RIGHT + 2] + sy * camera[UP + 2]
            scale = upright / ((dx * x + dy * y) * half)
            across, along = dz * scale, (dy * x - dx * y) * scale
            if abs(across) >= lit or abs(along) >= lit or scale * upright < 0 or dy < lowest:
                continue
            column = min(int64((across + ONE) * HALF * wide), wide - 1)
            row = min(int64((along + ONE) * HALF * tall), tall - 1)
            for channel in range(3):
                light = float32(picture[row, column, channel])
                _add_light(frame, p * uint32(3) + uint32(channel), light)


@render_kernel
def _covers(star: Floats, i: int, x: float, y: float, z: float) -> bool:
    """Whether a ray, turned back with the stars, meets a star's square."""
    near = x * star[i, 0] + y * star[i, 1] + z * star[i, 2]
    one = x * star[i, EDGE_ONE] + y * star[i, EDGE_ONE + 1] + z * star[i, EDGE_ONE + 2]
    two = x * star[i, EDGE_TWO] + y * star[i, EDGE_TWO + 1] + z * star[i, EDGE_TWO + 2]
    return max(abs(one), abs(two)) <= near


@render_kernel
def _add_stars(
    camera: Floats, rays: PixelRays, stars: Floats, sin: float, cos: float, shine: float,
    frame: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Add each star to the pixels whose middle it covers; to a single one if pixels are large."""
    columns, rows = rays.columns_before, rays.rows_before
    width, height = len(columns) - 1, len(rows) - 1
    f0, f1, f2 = camera[FORWARD], camera[FORWARD + 1], camera[FORWARD + 2]
    r0, r1, r2 = camera[RIGHT], camera[RIGHT + 1], camera[RIGHT + 2]
    u0, u1, u2 = camera[UP], camera[UP + 1], camera[UP + 2]
    step_x, step_y = camera[STEP_X], camera[STEP_Y]
    far_right, far_up = step_x * width * HALF + LARGEST_STAR, step_y * height * HALF + LARGEST_STAR
    lowest, is_coarse = lowest_slope(camera), step_x * step_y > LARGEST_STAR * LARGEST_STAR
    for i in range(len(stars)):
        x, z = stars[i, 0] * cos - stars[i, 1] * sin, stars[i, 2]
        y = stars[i, 0] * sin + stars[i, 1] * cos
        ahead = x * f0 + y * f1 + z * f2
        side, rise = x * r0 + y * r1 + z * r2, x * u0 + y * u1 + z * u2
        # Also false for all that is behind the eye.
        if not (abs(side) < far_right * ahead and abs(rise) < far_up * ahead) or y < lowest:
            continue
        # Half a star's diagonal, in pixels; none if its light goes to one pixel.
        reach = ZERO if is_coarse else np.sqrt(stars[i, AREA] * HALF) / (ahead * ahead)
        column = float32(width) * HALF + side / (ahead * step_x)
        row = float32(height) * HALF - rise / (ahead * step_y)
        left, upper = _cut(column - reach / step_x, width), _cut(row - reach / step_y, height)
        right = _cut(column + reach / step_x + ONE, width)
        lower = _cut(row + reach / step_y + ONE, height)
        # The farther from the line of sight, the more pixels a square covers.
        share = stars[i, AREA] / (step_x * step_y * ahead * ahead * ahead)
        light = shine * min(share, ONE) if is_coarse else shine
        for py in range(rows[upper], rows[lower]):
            sy = rays.upward[py]
            for px in range(columns[left], columns[right]):
                p = uint32(py * columns[width] + px)
                sx = rays.across[px]
                dx, dy = f0 + sx * r0 + sy * u0, f1 + sx * r1 + sy * u1
                dz = f2 + sx * r2 + sy * u2
                is_met = is_coarse or _covers(
                    stars, i, dx * cos + dy * sin, dy * cos - dx * sin, dz
                )
                if is_met and depth[p] >= SKY_DEPTH:
                    for channel in range(3):
                        _add_light(frame, p * uint32(3) + uint32(channel), light)


@render_kernel
def render_celestial(
    camera: Floats, across: Floats, upward: Floats, columns_before: Ints, rows_before: Ints,
    angle: float, star_light: float, stars: Floats, sun: Bytes, sun_lit: float, moon: Bytes,
    moon_lit: float, frame: Bytes, depth: Floats,
) -> None:  # fmt: skip
    """Add sun, moon and stars.

    Args:
        camera: float32 (CAMERA_SIZE,).
        across: See `hand.PixelRays`.
        upward: See `hand.PixelRays`.
        columns_before: See `hand.PixelRays`.
        rows_before: See `hand.PixelRays`.
        angle: The sun's angle from the zenith, see `Sky`.
        star_light: Brightness of the stars, see `Sky`.
        stars: See `star_table`.
        sun: See `Body`.
        sun_lit: See `Body`.
        moon: See `Body`; of the present phase.
        moon_lit: See `Body`.
        frame: uint8 (h * w * 3,), drawn into.
        depth: float32 (h * w,), `camera.SKY_DEPTH` where there is sky.
    """
    rays = PixelRays(across, upward, columns_before, rows_before)
    # The sun rises in the east (+x) and sets in the west.
    sin, cos = float32(math.sin(angle)), float32(math.cos(angle))
    half, lit = float32(SUN_HALF), float32(sun_lit)
    _add_body(camera, rays, -sin, cos, half, lit, ONE, sun, frame, depth)
    half, lit = float32(MOON_HALF), float32(moon_lit)
    _add_body(camera, rays, sin, -cos, half, lit, -ONE, moon, frame, depth)
    if star_light > 0:
        # Drawn in a grey of this brightness with the same alpha.
        shine = float32(255 * star_light * star_light)
        _add_stars(camera, rays, stars, sin, cos, shine, frame, depth)
