"""Sun, moon and stars, drawn over those pixels of a frame that show sky."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int64, uint8, uint32

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
from rllib_minestudio.env.voxel.render.pixel_rays import PixelRays
from rllib_minestudio.env.voxel.render.ray_tiles import SKY_DEPTH

# Half the side of each square, seen from a distance of 1.
SUN_SIZE, MOON_SIZE = np.float32(0.09), np.float32(0.07)
# Sun and moon are pictures of 8 x 8 squares.
GRID = np.float32(8)
SUN_CORE, SUN_RIM = (255, 253, 228), (255, 240, 172)
MOON_LIGHT, MOON_DARK = (222, 227, 240), (176, 182, 200)
MOON_SPOTS = 0x0000_1830_0240_6000  # one bit per square, row by row
STAR_COUNT = 400
STAR_SIZE = 0.004
# Even where a pixel is much larger than a star, some of its light remains.
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
    """The pixel at a place, cut to 0..size."""
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
        across: See `pixel_rays.PixelRays`, as for the next three.
        upward: Likewise.
        columns_before: Likewise.
        rows_before: Likewise.
        angle: The sun's angle from the zenith, see `sky.Sky`.
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
