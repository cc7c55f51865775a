"""Sun, moon and stars, which are added to those pixels of a frame that show the sky.

As in Minecraft 1.16, all of them turn around the eye once a day, about an axis from north to south:
two squares with pictures, opposite each other, and white squares for stars.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import float32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import (
    FORWARD,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    Bytes,
    Floats,
    Ints,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.hand import PixelRays
from rllib_minestudio.env.voxel.render.ray_tiles import HALF, ONE, SKY_DEPTH, ZERO
from rllib_minestudio.env.voxel.render.sky import lowest_slope
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba

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
        depth: float32 (h * w,), `ray_tiles.SKY_DEPTH` where there is sky.
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
