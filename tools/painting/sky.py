"""The sky's pictures: the sun, the moon's phases, and where clouds are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tools.painting.art import RGB, Rgba, fill

SIZE, DISC = 32, 8
"""Pixels per side of a square of the sky, and of the disc in its middle; the rest adds no light."""
FIRST, LAST = (SIZE - DISC) // 2, (SIZE + DISC) // 2
SUN: RGB = (255, 252, 226)
HALO: RGB = (255, 206, 112)
HALO_WIDTH = 4
MOON: RGB = (222, 227, 240)
CRATER: RGB = (172, 179, 198)
SHADOW: RGB = (15, 17, 24)
CRATERS = (
    ".......C",
    ".CC.....",
    ".CC...C.",
    "........",
    "...C....",
    "....CC..",
    ".C..CC..",
    "...C....",
)
LIT = (DISC, 6, 4, 2, 0, 2, 4, 6)
"""Columns of the moon that are lit, by phase; up to the fourth phase from the left."""
CLOUDS = 256
COVER = 0.36
"""Share of the cells that hold a cloud."""


def paint_sky() -> Iterator[tuple[str, Rgba]]:
    """Yield the name and picture of everything in the sky."""
    yield "environment/sun", _sun()
    yield "environment/moon_phases", _moon_phases()
    yield "environment/clouds", _clouds()


def _sun() -> Rgba:
    picture = np.zeros((SIZE, SIZE, 4), np.uint8)
    fill(picture, 0, 0, SIZE, SIZE, 0)
    for ring in range(HALO_WIDTH, 0, -1):
        light = 0.6 * (1 - (ring - 1) / HALO_WIDTH) ** 1.5
        side = DISC + 2 * ring
        red, green, blue = (round(light * channel) for channel in HALO)
        fill(picture, FIRST - ring, FIRST - ring, side, side, (red, green, blue))
    fill(picture, FIRST, FIRST, DISC, DISC, SUN)
    return picture


def _moon_phases() -> Rgba:
    sheet = np.zeros((2 * SIZE, 4 * SIZE, 4), np.uint8)
    fill(sheet, 0, 0, 4 * SIZE, 2 * SIZE, 0)
    for phase, lit in enumerate(LIT):
        x, y = phase % 4 * SIZE + FIRST, phase // 4 * SIZE + FIRST
        for row, line in enumerate(CRATERS):
            for column, character in enumerate(line):
                from_edge = column if phase < 4 else DISC - 1 - column
                # The edge of the light is curved, except at half moon.
                bend = (row in (0, DISC - 1)) * np.sign(lit - DISC // 2) * (lit < DISC)
                is_lit = from_edge < lit - bend and lit > 0
                tone = (CRATER if character == "C" else MOON) if is_lit else SHADOW
                fill(sheet, x + column, y + row, 1, 1, tone)
    return sheet


def _clouds() -> Rgba:
    """White where noise, which repeats without a seam, is above its quantile."""
    rng = np.random.RandomState(12)
    noise = sum(weight * _smooth(rng, cells) for cells, weight in ((16, 1.0), (32, 0.9), (64, 0.6)))
    picture = np.zeros((CLOUDS, CLOUDS, 4), np.uint8)
    picture[..., :3] = 255
    picture[..., 3] = 255 * (noise > np.quantile(noise, 1 - COVER))
    return picture


def _smooth(rng: np.random.RandomState, cells: int) -> NDArray[np.float64]:
    """Random values on a torus of `cells` x `cells` points, interpolated to the picture's size."""
    values = rng.rand(cells, cells)
    places = np.arange(CLOUDS) * cells / CLOUDS
    low = places.astype(int)
    share = places - low
    share = share * share * (3 - 2 * share)
    rows = values[low] + (values[(low + 1) % cells] - values[low]) * share[:, None]
    return rows[:, low] + (rows[:, (low + 1) % cells] - rows[:, low]) * share
