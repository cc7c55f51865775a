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
from numba import float32, int64, uint8
from numpy.typing import NDArray

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
_PARTS = (_HEAD, *_BODY)
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


def figure_angles(x: float, y: float) -> tuple[float, float]:
    """Angles, in degrees, by which the figure turns to its right and leans back.

    The head does both once more, relative to the body.

    Args:
        x: Place of the cursor from the left edge of `FIGURE_AREA`.
        y: Place of the cursor from its upper edge.
    """
    turn = math.atan((FEET[0] - x) / DISTANCE) * TURN
    return turn, math.atan((FEET[1] - EYES_UP - y) / DISTANCE) * LEAN


def _turned(degrees: float) -> NDArray[np.float64]:
    """Rotation that turns what faces the viewer to the viewer's left."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return np.array([[cos, 0, -sin], [0, 1, 0], [sin, 0, cos]])


def _leaned(degrees: float) -> NDArray[np.float64]:
    """Rotation that makes what faces the viewer look up."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    return np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])


@render_kernel
def _draw_sides(
    sides: Floats, patches: Ints, shades: Floats, skin: Rgba, picture: Rgba, nearness: Floats
) -> None:
    """Draw parallelograms that parts of a skin lie on; the nearest to the viewer shows.

    Args:
        sides: float32 (n, 9): first corner, direction of the columns and of the rows.
        patches: int32 (n, 4): column, row, width and height of the part of the skin.
        shades: float32 (n,), factor on the colours.
        skin: uint8 (64, 64, 4).
        picture: uint8 (h, w, 4), drawn into.
        nearness: float32 (h, w), updated.
    """
    height, width = picture.shape[0], picture.shape[1]
    for side in range(len(sides)):
        x, y, z = sides[side, 0], sides[side, 1], sides[side, 2]
        ux, uy, uz = sides[side, 3], sides[side, 4], sides[side, 5]
        vx, vy, vz = sides[side, 6], sides[side, 7], sides[side, 8]
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
                if not (0 <= u < 1 and 0 <= v < 1) or near <= nearness[row, column]:
                    continue
                at_x = patches[side, 0] + int64(u * float32(patches[side, 2]))
                at_y = patches[side, 1] + int64(v * float32(patches[side, 3]))
                if skin[at_y, at_x, 3] < 128:
                    continue
                nearness[row, column] = near
                for channel in range(3):
                    shaded = float32(skin[at_y, at_x, channel]) * shades[side]
                    picture[row, column, channel] = uint8(shaded + float32(0.5))
                picture[row, column, 3] = uint8(255)


class Figure:
    """The player's figure in one skin."""

    def __init__(self, skin: Rgba) -> None:
        """Cut up a skin, uint8 (64, 64, 4)."""
        self._skin = np.ascontiguousarray(skin)
        sides, outward, patches, shades = [], [], [], []
        for part in _PARTS:
            size = np.array(part.size)
            width, _, depth = part.size
            for direction, corner, across, down, (column, row), shade in _SIDES:
                sides.append((part.low + corner * size, across * size, down * size))
                outward.append(direction)
                lengths = abs(np.array(across)) @ size, abs(np.array(down)) @ size
                left = part.skin[0] + column[0] * depth + column[1] * width
                patches.append((left, part.skin[1] + row * depth, *lengths))
                shades.append(shade)
        self._sides, self._outward = np.array(sides, float), np.array(outward, float)
        self._patches, self._shades = np.array(patches, np.int32), np.array(shades, np.float32)
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
        turn, lean = figure_angles(x, y)
        body = _leaned(lean) @ _turned(turn)
        head = body @ _turned(turn) @ _leaned(lean)
        count = len(_SIDES)
        sides, outward = self._sides.copy(), self._outward.copy()
        sides[:count], outward[:count] = sides[:count] @ head.T, outward[:count] @ head.T
        sides[count:], outward[count:] = sides[count:] @ body.T, outward[count:] @ body.T
        neck = body @ (0, -NECK_UP, 0)
        sides[:, 0] += neck
        sides *= PER_PIXEL
        sides[:, 0, :2] += FEET
        shown = outward[:, 2] > 0
        self._picture[...] = 0
        self._nearness[...] = -np.inf
        _draw_sides(
            np.ascontiguousarray(sides[shown].reshape(-1, 9), np.float32),
            self._patches[shown],
            self._shades[shown],
            self._skin,
            self._picture,
            self._nearness,
        )
        return self._picture
