"""The player's figure in the inventory, which turns towards the cursor.

Minecraft 1.16 shows the player's model at 30 pixels a block. It leans by 20 times the angle, in
radians, under which the cursor is seen 40 pixels in front of the figure; its body turns by as much
and its head by twice that (`InventoryScreen.renderEntityInInventory`). Here its arms hang still,
nothing is worn or held, and its faces are as bright as their side.

Coordinates are (x, y, towards the viewer) in pixels of the window, x to the right and y down. Each
side of each of the model's boxes is a parallelogram on which its part of the skin lies.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float32, int32, int64, uint8, uint32

from rllib_minestudio.env.voxel.render.camera import Floats, Ints, render_kernel
from rllib_minestudio.env.voxel.render.window import Rect, Rgba

FIGURE_AREA = Rect(26, 8, 49, 70)
"""Where the figure is drawn on the inventory's panel."""
FEET = 51 - FIGURE_AREA.x, 75 - FIGURE_AREA.y
EYES_UP = 50
"""Pixels from the feet up to the place from which the cursor is seen."""
DISTANCE, LEAN, TURN = 40.0, 20.0, 20.0
"""How far in front of the figure the cursor is, and degrees per radian by which it leans, by which
its body turns, and by which its head does both once more."""
PER_PIXEL = 30 * 0.9375 / 16
"""Pixels of the window per pixel of the model."""
NECK_UP = 24
"""From the feet to the neck, in pixels of the model."""


class _Part(NamedTuple):
    """A box of the model: lowest corner from the neck, size, and its place in the skin."""

    low: tuple[int, int, int]
    size: tuple[int, int, int]
    skin: tuple[int, int]


_HEAD = _Part((-4, -8, -4), (8, 8, 8), (0, 0))
_BODY = (
    _Part((-4, 0, -2), (8, 12, 4), (16, 16)),
    _Part((-8, 0, -2), (4, 12, 4), (40, 16)),
    _Part((4, 0, -2), (4, 12, 4), (32, 48)),
    _Part((-4, 12, -2), (4, 12, 4), (0, 16)),
    _Part((0, 12, -2), (4, 12, 4), (16, 48)),
)
# Of each side: outward direction, the corner where its part of the skin begins and the directions
# of the skin's columns and rows (in units of the box), that part's place (depths and widths from
# the left, depths from the top), and brightness. The right hand is at low x.
_SIDES = (
    ((0, 0, 1), (0, 0, 1), (1, 0, 0), (0, 1, 0), ((1, 0), 1), 1.0),  # front
    ((0, 0, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), ((2, 1), 1), 1.0),  # back
    ((-1, 0, 0), (0, 0, 0), (0, 0, 1), (0, 1, 0), ((0, 0), 1), 0.8),  # right
    ((1, 0, 0), (1, 0, 1), (0, 0, -1), (0, 1, 0), ((1, 1), 1), 0.8),  # left
    ((0, -1, 0), (0, 0, 0), (1, 0, 0), (0, 0, 1), ((1, 0), 0), 1.0),  # top
    ((0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1), ((1, 1), 0), 0.6),  # bottom
)
HEAD_SIDES = len(_SIDES)
SIDE_SIZE = 13


def figure_angles(x: float, y: float) -> tuple[float, float]:
    """Angles, in degrees, by which the figure turns to its right and leans back.

    The head does both once more, relative to the body.

    Args:
        x: Place of the cursor from the left edge of `FIGURE_AREA`.
        y: Place of the cursor from its upper edge.
    """
    turn = math.atan((FEET[0] - x) / DISTANCE) * TURN
    return turn, math.atan((FEET[1] - EYES_UP - y) / DISTANCE) * LEAN


@render_kernel
def _turned(x: float, y: float, z: float, degrees: float) -> tuple[float, float, float]:
    """Turn a vector about the vertical, so that what faces the viewer faces the viewer's left."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return x * cos - z * sin, y, x * sin + z * cos


@render_kernel
def _leaned(x: float, y: float, z: float, degrees: float) -> tuple[float, float, float]:
    """Tilt a vector, so that what faces the viewer looks up."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return x, y * cos - z * sin, y * sin + z * cos


@render_kernel
def _posed(
    x: float, y: float, z: float, is_head: bool, turn: float, lean: float
) -> tuple[float, float, float]:
    """Bring a direction from the model's space, in which it faces the viewer, to the window's."""
    if is_head:
        x, y, z = _leaned(x, y, z, lean)
        x, y, z = _turned(x, y, z, turn)
    x, y, z = _turned(x, y, z, turn)
    x, y, z = _leaned(x, y, z, lean)
    return float32(x * PER_PIXEL), float32(y * PER_PIXEL), float32(z * PER_PIXEL)


@render_kernel
def _draw_sides(
    sides: Floats, patches: Ints, skin: Rgba, turn: float, lean: float,
    picture: Rgba, nearness: Floats,
) -> None:  # fmt: skip
    """Draw the sides of the boxes that face the viewer; the nearest shows.

    Args:
        sides: float32 (n, SIDE_SIZE), see `Figure`; those of the head come first.
        patches: int32 (n, 4): column, row, width and height of each side's part of the skin.
        skin: uint8 (64, 64, 4).
        turn: See `figure_angles`.
        lean: See `figure_angles`.
        picture: uint8 (h, w, 4), overwritten.
        nearness: float32 (h, w), working memory.
    """
    height, width = picture.shape[0], picture.shape[1]
    picture[:] = uint8(0)
    nearness[:] = float32(-1e9)
    neck_x, neck_y, neck_z = _posed(0.0, -NECK_UP, 0.0, False, turn, lean)
    for number in range(len(sides)):
        side, patch, is_head = sides[number], patches[number], number < HEAD_SIDES
        if _posed(side[9], side[10], side[11], is_head, turn, lean)[2] <= 0:
            continue  # looks away
        x, y, z = _posed(side[0], side[1], side[2], is_head, turn, lean)
        x, y, z = x + neck_x + float32(FEET[0]), y + neck_y + float32(FEET[1]), z + neck_z
        ux, uy, uz = _posed(side[3], side[4], side[5], is_head, turn, lean)
        vx, vy, vz = _posed(side[6], side[7], side[8], is_head, turn, lean)
        area = ux * vy - uy * vx
        if abs(area) < float32(1e-3):
            continue
        per = float32(1) / area
        first_x = max(int64(x + min(ux, float32(0)) + min(vx, float32(0))), 0)
        last_x = min(int64(x + max(ux, float32(0)) + max(vx, float32(0))) + 1, width)
        first_y = max(int64(y + min(uy, float32(0)) + min(vy, float32(0))), 0)
        last_y = min(int64(y + max(uy, float32(0)) + max(vy, float32(0))) + 1, height)
        for row in range(first_y, last_y):
            for column in range(first_x, last_x):
                dx, dy = float32(column) + float32(0.5) - x, float32(row) + float32(0.5) - y
                u, v = (dx * vy - dy * vx) * per, (dy * ux - dx * uy) * per
                near = z + u * uz + v * vz
                if min(u, v) < 0 or max(u, v) >= 1 or near <= nearness[row, column]:
                    continue
                at_x = uint32(patch[0] + int32(u * float32(patch[2])))
                at_y = uint32(patch[1] + int32(v * float32(patch[3])))
                if skin[at_y, at_x, 3] < 128:
                    continue
                nearness[row, column] = near
                for channel in range(3):
                    shaded = float32(skin[at_y, at_x, channel]) * side[12]
                    picture[row, column, channel] = uint8(shaded + float32(0.5))
                picture[row, column, 3] = uint8(255)


class Figure:
    """The player's figure in one skin.

    Its sides are rows of SIDE_SIZE numbers, in pixels of the model from the neck: the corner where
    the side's part of the skin begins, the directions of the skin's columns and rows, the outward
    direction, and the side's brightness.
    """

    def __init__(self, skin: Rgba) -> None:
        """Cut up a skin, uint8 (64, 64, 4)."""
        self._skin = np.ascontiguousarray(skin)
        sides, patches = [], []
        for part in (_HEAD, *_BODY):
            size = np.array(part.size)
            width, _, depth = part.size
            for outward, corner, across, down, (column, row), shade in _SIDES:
                place = part.low + corner * size
                sides.append((*place, *across * size, *down * size, *outward, shade))
                lengths = abs(np.array(across)) @ size, abs(np.array(down)) @ size
                left = part.skin[0] + column[0] * depth + column[1] * width
                patches.append((left, part.skin[1] + row * depth, *lengths))
        self._sides, self._patches = np.array(sides, np.float32), np.array(patches, np.int32)
        self._picture = np.zeros((FIGURE_AREA.height, FIGURE_AREA.width, 4), np.uint8)
        self._nearness = np.zeros(self._picture.shape[:2], np.float32)

    def draw(self, x: float, y: float) -> Rgba:
        """Draw the figure as it looks at the cursor.

        Args:
            x: Place of the cursor from the left edge of `FIGURE_AREA`.
            y: Place of the cursor from its upper edge.

        Returns:
            uint8 (h, w, 4), not multiplied by alpha; valid until the next call.
        """
        angles = figure_angles(x, y)
        _draw_sides(self._sides, self._patches, self._skin, *angles, self._picture, self._nearness)
        return self._picture
