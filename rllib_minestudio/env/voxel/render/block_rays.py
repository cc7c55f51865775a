"""Blocks as boxes with pictures on their faces, seen by rays: in slots and in the hand.

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
# Minecraft's display of a block in a slot: turned by 225 about y, by 30 about x, and scaled. Our
# blocks have their front in the south, not in the north, so they are turned half a circle less.
SLOT_TURN_Y, SLOT_TURN_X, SLOT_SCALE = 45.0, 30.0, 0.625
# The left side (west) is lit more than the right (south).
SLOT_SHADES = np.array((0.8, 0.8, 1.0, 0.5, 0.6, 0.6), np.float32)
MOST_SURFACES = 8
"""See-through texels of so many surfaces are looked through."""


@lru_cache(maxsize=1)
def _shapes() -> dict[str, Boxes]:
    with _SHAPES.open() as file:
        return {
            name: np.array(boxes, np.float32).reshape(-1, 6) / TEXTURE_SIZE
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
    """What the kernels take of a pose: float32 (3, 4), from view space to the pose's own."""
    return np.ascontiguousarray(np.linalg.inv(pose)[:3], np.float32)


@kernel(fastmath=True, inline="always")
def _first_texel(
    eye: Floats, ray: Floats, per: Floats, perspective: bool, boxes: Boxes, faces: Rgba
) -> int:
    """The first texel that a ray cannot look through: face << 8 | row << 4 | column; -1 for none.

    Args:
        eye: float32 (3,), where the ray begins, in the block's space.
        ray: float32 (3,), its direction.
        per: float32 (3,), 1 / `ray`.
        perspective: Whether what lies behind the eye is out of sight.
        boxes: See `trace_boxes`.
        faces: See `trace_boxes`.
    """
    found = int32(-1)
    after = float32(1e-3) if perspective else float32(-1e9)
    for _ in range(MOST_SURFACES):
        nearest, axis_hit, outside = float32(1e9), int32(-1), False
        for box in range(boxes.shape[0]):
            enter, leave = float32(-1e9), float32(1e9)
            enter_axis = leave_axis = int32(0)
            for axis in range(3):
                one = (boxes[box, axis] - eye[axis]) * per[axis]
                two = (boxes[box, axis + 3] - eye[axis]) * per[axis]
                if min(one, two) > enter:
                    enter, enter_axis = min(one, two), int32(axis)
                if max(one, two) < leave:
                    leave, leave_axis = max(one, two), int32(axis)
            if enter >= leave:
                continue
            if enter > after and enter < nearest:
                nearest, axis_hit, outside = enter, enter_axis, True
            elif enter <= after and leave > after and leave < nearest:
                nearest, axis_hit, outside = leave, leave_axis, False
        if axis_hit < 0:
            break
        # East, top and south are the high sides of x, y and z.
        is_low = (ray[axis_hit] > 0) == outside
        face = 2 * axis_hit + (int32(1) if is_low else int32(0))
        x = eye[0] + ray[0] * nearest
        y = eye[1] + ray[1] * nearest
        z = eye[2] + ray[2] * nearest
        u = z if axis_hit == X else x
        v = z if axis_hit == Y else float32(1) - y
        if face == 0 or face == 5:  # seen from outside, these run against the axis
            u = float32(1) - u
        column = min(max(int32(u * float32(16)), int32(0)), int32(15))
        row = min(max(int32(v * float32(16)), int32(0)), int32(15))
        if faces[face, row, column, 3] > 127:
            found = face << 8 | row << 4 | column
            break
        after = nearest + float32(1e-5)
    return found


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
        perspective: Whether rays leave the eye through (column, row, -1); else they are parallel
            to the line of sight.
        columns: float32 (w * per_pixel,), x of the rays in view space, one block ahead.
        rows: float32 (h * per_pixel,), y of the rays.
        per_pixel: Rays per pixel and axis.
        boxes: float32 (n, 6), see `boxes_of`.
        faces: uint8 (6, 16, 16, 4), pictures in the order of `texels`.
        shades: float32 (6,), factors on their colours.
        picture: uint8 (h, w, 4) to draw on, multiplied by coverage; it is overwritten.
    """
    share = float32(1) / float32(per_pixel * per_pixel)
    eye, per, ray = np.zeros(3, np.float32), np.zeros(3, np.float32), np.zeros(3, np.float32)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            red = green = blue = cover = float32(0)
            for sub_row in range(per_pixel):
                y = rows[row * per_pixel + sub_row]
                for sub_column in range(per_pixel):
                    x = columns[column * per_pixel + sub_column]
                    for axis in range(3):
                        if perspective:
                            start = float32(0)
                            along = inverse[axis, 0] * x + inverse[axis, 1] * y - inverse[axis, 2]
                        else:
                            start = inverse[axis, 0] * x + inverse[axis, 1] * y
                            along = -inverse[axis, 2]
                        along = along if abs(along) > float32(1e-7) else float32(1e-7)
                        eye[axis], ray[axis] = start + inverse[axis, 3], along
                        per[axis] = float32(1) / along
                    texel = _first_texel(eye, ray, per, perspective, boxes, faces)
                    if texel >= 0:
                        face, v, u = texel >> 8, texel >> 4 & 15, texel & 15
                        red += shades[face] * float32(faces[face, v, u, 0])
                        green += shades[face] * float32(faces[face, v, u, 1])
                        blue += shades[face] * float32(faces[face, v, u, 2])
                        cover += float32(255)
            picture[row, column, 0] = uint8(red * share + float32(0.5))
            picture[row, column, 1] = uint8(green * share + float32(0.5))
            picture[row, column, 2] = uint8(blue * share + float32(0.5))
            picture[row, column, 3] = uint8(cover * share + float32(0.5))


def block_icon(faces: list[Rgba], boxes: Boxes) -> Rgba:
    """A block as Minecraft's slots show it: from a corner, slightly above.

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
