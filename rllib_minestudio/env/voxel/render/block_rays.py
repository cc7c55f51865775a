"""Blocks in slots and in the hand: ray-traced boxes with pictures on their faces.

A block's space is the unit cube, y upwards. A face shows the part of its picture that lies on it,
so a slab's side is the lower half of a plank.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import float32, int32, uint8
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.render.camera import Floats, render_kernel
from rllib_minestudio.env.voxel.render.texels import TEXTURE_SIZE
from rllib_minestudio.env.voxel.render.window import Rgba

Boxes = NDArray[np.float32]
Matrix = NDArray[np.floating[Any]]

X, Y, Z = 0, 1, 2
_SHAPES = Path(__file__).parent / "block_shapes.json"
# Minecraft's display of a block in a slot: turned by 225 degrees about y and 30 about x, scaled.
# Our blocks have their front in the south, not in the north, so they are turned 180 degrees less.
SLOT_TURN_Y, SLOT_TURN_X, SLOT_SCALE = 45.0, 30.0, 0.625
# The left side (west) is lit more than the right (south).
SLOT_SHADES = np.array((0.8, 0.8, 1.0, 0.5, 0.6, 0.6), np.float32)
MOST_SURFACES = 8
"""Surfaces after which a ray ends, if the texels it meets on them are all see-through."""
NOWHERE = np.float32(1e9)
"""Ray parameter of a surface that the ray misses."""


@lru_cache(maxsize=1)
def _shapes() -> dict[str, Boxes]:
    with _SHAPES.open() as file:
        return {
            name: np.array(boxes, np.float32).reshape(-1, 6) / np.float32(TEXTURE_SIZE)
            for name, boxes in json.load(file).items()
        }


def boxes_of(shape: str) -> Boxes:
    """The boxes of a shape of `block_shapes.json`: float32 (n, 6), low x, y, z, high x, y, z."""
    return _shapes()[shape]


def shift(x: float, y: float, z: float) -> Matrix:
    """Homogeneous matrix of a translation."""
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def turn(axis: int, degrees: float) -> Matrix:
    """Homogeneous matrix of a rotation about a coordinate axis."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    one, two = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(4)
    matrix[one, one] = matrix[two, two] = cos
    matrix[one, two], matrix[two, one] = -sin, sin
    return matrix


def scale(factor: float) -> Matrix:
    """Homogeneous matrix of a scaling."""
    return np.diag([factor, factor, factor, 1.0])


def to_space_of(pose: Matrix) -> Floats:
    """Invert a pose for the kernels: float32 (3, 4), from view space to the pose's own space."""
    return np.ascontiguousarray(np.linalg.inv(pose)[:3], np.float32)


@kernel(fastmath=True, inline="always")
def crossing(low: float, high: float, start: float, per: float) -> tuple[float, float]:
    """Return where a ray enters and leaves the slab between two planes across an axis.

    Args:
        low: Place of the lower plane along the axis.
        high: Place of the upper plane.
        start: Where the ray begins.
        per: Reciprocal of its direction.
    """
    one, two = (low - start) * per, (high - start) * per
    return min(one, two), max(one, two)


@kernel(fastmath=True, inline="always")
def away_from_zero(value: float) -> float:
    """Return `value`, or 1e-7 where it is too small to divide by."""
    return value if abs(value) > float32(1e-7) else float32(1e-7)


@kernel(fastmath=True, inline="always")
def put_mean(
    picture: Rgba, row: int, column: int, share: float,
    red: float, green: float, blue: float, cover: float,
) -> None:  # fmt: skip
    """Write a pixel from the sums over its rays and the share of each ray."""
    picture[row, column, 0] = uint8(red * share + float32(0.5))
    picture[row, column, 1] = uint8(green * share + float32(0.5))
    picture[row, column, 2] = uint8(blue * share + float32(0.5))
    picture[row, column, 3] = uint8(cover * share + float32(0.5))


@render_kernel
def _nearest_surface(
    boxes: Boxes, x: float, y: float, z: float, per_x: float, per_y: float, per_z: float,
    after: float,
) -> tuple[float, int, bool]:  # fmt: skip
    """The nearest surface beyond `after`: where, across which axis, whether seen from outside."""
    nearest, axis, outside = NOWHERE, int32(X), True
    for box in range(boxes.shape[0]):
        in_x, out_x = crossing(boxes[box, 0], boxes[box, 3], x, per_x)
        in_y, out_y = crossing(boxes[box, 1], boxes[box, 4], y, per_y)
        in_z, out_z = crossing(boxes[box, 2], boxes[box, 5], z, per_z)
        enter = max(in_x, in_y, in_z)
        leave = min(out_x, out_y, out_z)
        if enter >= leave or leave <= after:
            continue
        if enter > after:
            if enter < nearest:
                nearest, outside = enter, True
                axis = int32(X if enter == in_x else (Y if enter == in_y else Z))
        elif leave < nearest:
            nearest, outside = leave, False
            axis = int32(X if leave == out_x else (Y if leave == out_y else Z))
    return nearest, axis, outside


@render_kernel
def _texel_at(
    axis: int, outside: bool, x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> tuple[int, int, int]:
    """Face, row and column of the texel where a ray meets a surface at (x, y, z)."""
    # East, top and south are the high sides of x, y and z.
    if axis == X:
        face = int32(1) if (dx > 0) == outside else int32(0)
        u, v = z, float32(1) - y
    elif axis == Y:
        face = int32(3) if (dy > 0) == outside else int32(2)
        u, v = x, z
    else:
        face = int32(5) if (dz > 0) == outside else int32(4)
        u, v = x, float32(1) - y
    if face == 0 or face == 5:  # seen from outside, these run against the axis
        u = float32(1) - u
    column = min(max(int32(u * float32(16)), int32(0)), int32(15))
    row = min(max(int32(v * float32(16)), int32(0)), int32(15))
    return face, row, column


@render_kernel
def _first_texel(
    boxes: Boxes, faces: Rgba, x: float, y: float, z: float, dx: float, dy: float, dz: float,
    begin: float,
) -> tuple[int, int, int]:  # fmt: skip
    """Face, row and column of the first opaque texel that a ray meets; face -1 if there is none."""
    per_x, per_y, per_z = float32(1) / dx, float32(1) / dy, float32(1) / dz
    after = begin
    for _ in range(MOST_SURFACES):
        t, axis, outside = _nearest_surface(boxes, x, y, z, per_x, per_y, per_z, after)
        if t == NOWHERE:
            break
        at_x, at_y, at_z = x + dx * t, y + dy * t, z + dz * t
        face, row, column = _texel_at(axis, outside, at_x, at_y, at_z, dx, dy, dz)
        if faces[face, row, column, 3] > 127:
            return face, row, column
        after = t + float32(1e-5)
    return int32(-1), int32(0), int32(0)


@render_kernel
def trace_boxes(
    inverse: Floats,
    perspective: bool,
    columns: Floats,
    rows: Floats,
    per_pixel: int,
    boxes: Boxes,
    faces: Rgba,
    shades: Floats,
    picture: Rgba,
) -> None:
    """Draw boxes.

    Args:
        inverse: float32 (3, 4), see `to_space_of`.
        perspective: Whether rays leave the eye through (column, row, -1); otherwise they are
            parallel to the line of sight.
        columns: float32 (w * per_pixel,), x of the rays in view space, one block ahead.
        rows: float32 (h * per_pixel,), y of the rays.
        per_pixel: Rays per pixel and axis.
        boxes: float32 (n, 6), see `boxes_of`.
        faces: uint8 (6, 16, 16, 4), pictures in the order of `texels`.
        shades: float32 (6,), factor on the colours of each face.
        picture: uint8 (h, w, 4), overwritten; RGB multiplied by coverage.
    """
    share = float32(1) / float32(per_pixel * per_pixel)
    spread, ahead = (float32(0), float32(1)) if perspective else (float32(1), float32(0))
    begin = float32(1e-3) if perspective else float32(-1e9)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            red = green = blue = cover = float32(0)
            for sub in range(per_pixel * per_pixel):
                sub_row = sub // per_pixel
                right = columns[column * per_pixel + sub - sub_row * per_pixel]
                up = rows[row * per_pixel + sub_row]
                # The ray in the blocks' space: from (x, y, z) along (dx, dy, dz).
                aside_x = inverse[0, 0] * right + inverse[0, 1] * up
                aside_y = inverse[1, 0] * right + inverse[1, 1] * up
                aside_z = inverse[2, 0] * right + inverse[2, 1] * up
                x, dx = inverse[0, 3] + spread * aside_x, ahead * aside_x - inverse[0, 2]
                y, dy = inverse[1, 3] + spread * aside_y, ahead * aside_y - inverse[1, 2]
                z, dz = inverse[2, 3] + spread * aside_z, ahead * aside_z - inverse[2, 2]
                dx, dy, dz = away_from_zero(dx), away_from_zero(dy), away_from_zero(dz)
                face, line, texel = _first_texel(boxes, faces, x, y, z, dx, dy, dz, begin)
                if face >= 0:
                    red += shades[face] * float32(faces[face, line, texel, 0])
                    green += shades[face] * float32(faces[face, line, texel, 1])
                    blue += shades[face] * float32(faces[face, line, texel, 2])
                    cover += float32(255)
            put_mean(picture, row, column, share, red, green, blue, cover)


def block_icon(faces: list[Rgba], boxes: Boxes) -> Rgba:
    """Draw a block as Minecraft's slots show it: from a corner, slightly above.

    Args:
        faces: uint8 (16, 16, 4) each, in the order of `texels`.
        boxes: See `boxes_of`.

    Returns:
        uint8 (16, 16, 4); alpha is 0 or 255.
    """
    pose = turn(X, SLOT_TURN_X) @ turn(Y, SLOT_TURN_Y) @ scale(SLOT_SCALE) @ shift(-0.5, -0.5, -0.5)
    middles = ((np.arange(TEXTURE_SIZE) + 0.5) / TEXTURE_SIZE - 0.5).astype(np.float32)
    icon = np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)
    inverse = to_space_of(pose)
    trace_boxes(inverse, False, middles, -middles, 1, boxes, np.stack(faces), SLOT_SHADES, icon)
    return icon
