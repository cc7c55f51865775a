"""The arm or the item in hand, drawn once per item and swing pose, then reused.

The poses are those of Minecraft 1.16's first-person view: its chain of translations and rotations
(view space: x right, y up, z towards the viewer, in blocks) with the display settings of handheld
items (turn -90 about y, 25 about z, scale 0.68) and of blocks (turn 45, scale 0.4).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float32, int32, uint8, uint32

from rllib_minestudio.env.voxel.render.block_rays import (
    Boxes,
    Matrix,
    X,
    Y,
    Z,
    boxes_of,
    scale,
    shift,
    to_space_of,
    trace_boxes,
    turn,
)
from rllib_minestudio.env.voxel.render.camera import Bytes, Floats, render_kernel
from rllib_minestudio.env.voxel.render.texels import FACE_SHADE
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba

# Minecraft holds items at (0.56, -0.52, -0.72), where the tip of a sword is out of the picture; a
# little further away the whole blade is seen.
ITEM_PLACE = (0.58, -0.52, -0.92)
# Rays per pixel and axis while a frame is small.
SMALL_FRAME, SMALL_FRAME_RAYS = 300, 2
# A hand that reaches closer than this to the eye may cover any part of the frame.
NEAREST = 0.02
RIM_SHADE, FRONT_SHADE = 0.72, 0.95
# Half the thickness of a sprite, which is one texel thick.
HALF_TEXEL = 0.5 / 16
HANDS_KEPT = 64
_SHADES = np.array(FACE_SHADE, np.float32)
# The arm in the player's skin: the places (x, y, width, height) of its faces in the order of
# `texels`. The arm's own y runs from the shoulder to the hand.
_ARM_FACES = (
    (48, 20, 4, 12),
    (40, 20, 4, 12),
    (48, 16, 4, 4),
    (44, 16, 4, 4),
    (44, 20, 4, 12),
    (52, 20, 4, 12),
)


class Hand(NamedTuple):
    """A hand over a frame, in full light.

    Attributes:
        top: First row that it covers.
        left: First column.
        picture: uint8 (rows, columns, 4), multiplied by coverage.
    """

    top: int
    left: int
    picture: Rgba


def _item_pose(swing: float, is_flat: bool) -> Matrix:
    """From the item's unit cube to view space."""
    strong = math.sin(math.sqrt(swing) * math.pi)
    late = math.sin(swing * swing * math.pi)
    arm = (
        shift(-0.4 * strong, 0.2 * math.sin(math.sqrt(swing) * 2 * math.pi), 0.0)
        @ shift(0.0, 0.0, -0.2 * math.sin(swing * math.pi))
        @ shift(*ITEM_PLACE)
        @ turn(Y, 45 - 20 * late)
        @ turn(Z, -20 * strong)
        @ turn(X, -80 * strong)
        @ turn(Y, -45)
    )
    if is_flat:
        display = shift(1.13 / 16, 3.2 / 16, 1.13 / 16) @ turn(Y, -90) @ turn(Z, 25) @ scale(0.68)
    else:
        display = turn(Y, 45) @ scale(0.4)
    return arm @ display @ shift(-0.5, -0.5, -0.5)


def _arm_pose(swing: float) -> Matrix:
    """From the arm's unit cube (y from the shoulder to the hand) to view space."""
    root = math.sqrt(swing)
    strong = math.sin(root * math.pi)
    return (
        shift(
            0.64 - 0.3 * strong,
            -0.6 + 0.4 * math.sin(root * 2 * math.pi),
            -0.72 - 0.4 * math.sin(swing * math.pi),
        )
        @ turn(Y, 45 + 70 * strong)
        @ turn(Z, -20 * math.sin(swing * swing * math.pi))
        @ shift(-1.0, 3.6, 3.5)
        @ turn(Z, 120)
        @ turn(X, 200)
        @ turn(Y, -135)
        @ shift(5.6, 0.0, 0.0)
        # The right arm of the player's model: 4 x 12 x 4 pixels from (-8, 0, -2).
        @ shift(-8 / 16, 0.0, -2 / 16)
        @ np.diag([4 / 16, 12 / 16, 4 / 16, 1.0])
    )


@render_kernel
def _trace_sprite(
    inverse: Floats,
    columns: Floats,
    rows: Floats,
    per_pixel: int,
    sprite: Rgba,
    picture: Rgba,
) -> None:
    """Draw a sprite one texel thick; arguments as those of `trace_boxes`."""
    share = float32(1) / float32(per_pixel * per_pixel)
    eye_x, eye_y, eye_z = inverse[0, 3], inverse[1, 3], inverse[2, 3]
    near, far = float32(0.5 - HALF_TEXEL), float32(0.5 + HALF_TEXEL)
    tiny = float32(1e-7)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            red = green = blue = cover = float32(0)
            for sub_row in range(per_pixel):
                y = rows[row * per_pixel + sub_row]
                for sub_column in range(per_pixel):
                    x = columns[column * per_pixel + sub_column]
                    dx = inverse[0, 0] * x + inverse[0, 1] * y - inverse[0, 2]
                    dy = inverse[1, 0] * x + inverse[1, 1] * y - inverse[1, 2]
                    dz = inverse[2, 0] * x + inverse[2, 1] * y - inverse[2, 2]
                    dx = dx if abs(dx) > tiny else tiny
                    dy = dy if abs(dy) > tiny else tiny
                    dz = dz if abs(dz) > tiny else tiny
                    one, two = (near - eye_z) / dz, (far - eye_z) / dz
                    enter, leave, through_front = min(one, two), max(one, two), True
                    one, two = -eye_x / dx, (float32(1) - eye_x) / dx
                    if min(one, two) > enter:
                        enter, through_front = min(one, two), False
                    leave = min(leave, max(one, two))
                    one, two = -eye_y / dy, (float32(1) - eye_y) / dy
                    if min(one, two) > enter:
                        enter, through_front = min(one, two), False
                    leave = min(leave, max(one, two))
                    enter = max(enter, float32(1e-3))
                    if enter >= leave:
                        continue
                    # From texel to texel, after Amanatides and Woo (1987); rows run downwards.
                    u = (eye_x + dx * enter) * float32(16)
                    v = (float32(1) - eye_y - dy * enter) * float32(16)
                    texel = min(max(int32(u), int32(0)), int32(15))
                    line = min(max(int32(v), int32(0)), int32(15))
                    step_u = int32(1) if dx > 0 else int32(-1)
                    step_v = int32(1) if dy < 0 else int32(-1)
                    per_u, per_v = abs(float32(1 / 16) / dx), abs(float32(1 / 16) / dy)
                    border_u = (float32(texel + (step_u + 1) // 2) - u) * float32(step_u)
                    border_v = (float32(line + (step_v + 1) // 2) - v) * float32(step_v)
                    t_u, t_v = enter + border_u * per_u, enter + border_v * per_v
                    is_first = True
                    while True:
                        if sprite[line, texel, 3] > 127:
                            shade = float32(RIM_SHADE)
                            if is_first and through_front:
                                shade = float32(FRONT_SHADE)
                            red += shade * float32(sprite[line, texel, 0])
                            green += shade * float32(sprite[line, texel, 1])
                            blue += shade * float32(sprite[line, texel, 2])
                            cover += float32(255)
                            break
                        is_first = False
                        if min(t_u, t_v) >= leave:
                            break
                        if t_u < t_v:
                            t_u += per_u
                            texel += step_u
                        else:
                            t_v += per_v
                            line += step_v
                        if texel < 0 or texel > 15 or line < 0 or line > 15:
                            break
            picture[row, column, 0] = uint8(red * share + float32(0.5))
            picture[row, column, 1] = uint8(green * share + float32(0.5))
            picture[row, column, 2] = uint8(blue * share + float32(0.5))
            picture[row, column, 3] = uint8(cover * share + float32(0.5))


@render_kernel
def blend_hand(
    frame: Bytes, top: int, left: int, picture: Rgba, red: float, green: float, blue: float
) -> None:
    """Blend a hand into a frame.

    Args:
        frame: uint8 (H, W * 3).
        top: See `Hand`.
        left: See `Hand`.
        picture: See `Hand`.
        red: Light on the hand's red, 0..1.
        green: Likewise.
        blue: Likewise.
    """
    light = (float32(red), float32(green), float32(blue))
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            cover = uint32(picture[row, column, 3])
            if cover == 0:
                continue
            at = 3 * (left + column)
            for channel in range(3):
                into = frame[top + row, at + channel]
                over = float32(picture[row, column, channel]) * light[channel]
                rest = (uint32(into) * (uint32(255) - cover) + uint32(127)) // uint32(255)
                frame[top + row, at + channel] = uint8(uint32(over) + rest)


class Hands:
    """Hands for one frame size, each drawn once."""

    def __init__(
        self, width: int, height: int, tan_x: float, tan_y: float, textures: Textures
    ) -> None:
        """Prepare the rays.

        Args:
            width: Pixels per row of the frame.
            height: Rows.
            tan_x: Half the width of the view one block ahead.
            tan_y: Half its height.
            textures: Pictures of items.
        """
        self._size, self._tan = (width, height), (tan_x, tan_y)
        self._per_pixel = SMALL_FRAME_RAYS if height < SMALL_FRAME else 1
        middles = [
            (np.arange(n * self._per_pixel) + 0.5) / (n * self._per_pixel) for n in self._size
        ]
        self._columns = ((2 * middles[0] - 1) * tan_x).astype(np.float32)
        self._rows = ((1 - 2 * middles[1]) * tan_y).astype(np.float32)
        self._textures = textures
        self._arm = _arm_faces(textures.picture("entity/steve"))
        self._drawn: dict[tuple[str, float], Hand] = {}

    def of(self, item: str, swing: float) -> Hand:
        """The hand as it lies over the frame.

        Args:
            item: Name of the item in hand; empty for the bare arm.
            swing: Progress of the arm's swing, 0..1.
        """
        key = item, swing
        hand = self._drawn.get(key)
        if hand is None:
            if len(self._drawn) >= HANDS_KEPT:
                del self._drawn[next(iter(self._drawn))]
            hand = self._drawn[key] = self._draw(item, swing)
        return hand

    def _draw(self, item: str, swing: float) -> Hand:
        if not item:
            return self._trace(_arm_pose(swing), boxes_of("cube"), self._arm)
        if self._textures.is_flat(item):
            return self._trace(_item_pose(swing, True), None, self._textures.icon(item))
        faces = np.stack(self._textures.item_faces(item))
        return self._trace(_item_pose(swing, False), self._textures.shape(item), faces)

    def _trace(self, pose: Matrix, boxes: Boxes | None, picture: Rgba) -> Hand:
        """Draw boxes with six faces, or a sprite if there are no boxes."""
        left, right, top, bottom = _bounds(pose, *self._size, *self._tan)
        n = self._per_pixel
        columns, rows = self._columns[left * n : right * n], self._rows[top * n : bottom * n]
        drawn = np.empty((bottom - top, right - left, 4), np.uint8)
        inverse = to_space_of(pose)
        if boxes is None:
            _trace_sprite(inverse, columns, rows, n, picture, drawn)
        else:
            trace_boxes(inverse, True, columns, rows, n, boxes, picture, _SHADES, drawn)
        return Hand(top, left, drawn)


def _bounds(
    pose: Matrix, width: int, height: int, half_width: float, half_height: float
) -> tuple[int, int, int, int]:
    """Part of the frame (left, right, top, bottom; ends excluded) that a unit cube may cover."""
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], [1]), -1).reshape(-1, 4) @ pose.T
    depth = -corners[:, 2]
    if depth.min() < NEAREST:
        return 0, width, 0, height
    columns = (corners[:, 0] / depth / half_width + 1) / 2 * width
    rows = (1 - corners[:, 1] / depth / half_height) / 2 * height
    left, right = np.clip((math.floor(columns.min()), math.ceil(columns.max())), 0, width)
    top, bottom = np.clip((math.floor(rows.min()), math.ceil(rows.max())), 0, height)
    return int(left), int(right), int(top), int(bottom)


def _arm_faces(skin: Rgba) -> Rgba:
    """Faces of the arm's unit cube, uint8 (6, 16, 16, 4), of a player's skin."""
    faces = []
    for x, y, width, height in _ARM_FACES:
        columns, rows = x + np.arange(16) * width // 16, y + np.arange(16) * height // 16
        picture = skin[rows[:, None], columns]
        # The cube's y runs downwards along the arm.
        faces.append(picture if height == width else picture[::-1])
    return np.ascontiguousarray(np.stack(faces))
