"""The arm or the item in hand, drawn once per item and swing pose, then reused."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import float32, int32, uint8, uint32

from rllib_minestudio.env.voxel.player.player import SWING_TICKS
from rllib_minestudio.env.voxel.render.block_rays import Matrix, boxes_of, to_space_of, trace_boxes
from rllib_minestudio.env.voxel.render.camera import Bytes, Floats, render_kernel
from rllib_minestudio.env.voxel.render.hand_poses import arm_pose, item_pose
from rllib_minestudio.env.voxel.render.sampling import Sampling
from rllib_minestudio.env.voxel.render.sprite_rays import trace_sprite
from rllib_minestudio.env.voxel.render.texels import FACE_SHADE
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba

# Rays per pixel and axis while pixels are large.
SMALL_FRAME, SMALL_FRAME_RAYS = 300, 2
# A hand that reaches closer than this to the eye may cover any part of the frame.
NEAREST = 0.02
HANDS_KEPT = 64
ARM, FLAT, BLOCK = range(3)
"""What is seen: the bare arm, a flat picture or a block."""
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

    A frame's pixel p becomes `colour * light + p * keep / 255`.

    Attributes:
        top: First row that it covers.
        left: First column.
        colour: uint8 (rows, columns * 3), RGB multiplied by coverage.
        keep: uint8 (rows, columns * 3), 255 - coverage, once per channel.
    """

    top: int
    left: int
    colour: Bytes
    keep: Bytes


class _View(NamedTuple):
    """How a pose is seen.

    Attributes:
        inverse: See `to_space_of`.
        left: First column drawn that it may cover.
        right: The column behind the last.
        top: First row.
        bottom: The row behind the last.
    """

    inverse: Floats
    left: int
    right: int
    top: int
    bottom: int


@render_kernel
def blend_hand(
    frame: Bytes, top: int, left: int, colour: Bytes, keep: Bytes, light: Floats
) -> None:
    """Blend a hand into a frame.

    Args:
        frame: uint8 (H, W * 3).
        top: See `Hand`, as for the next three.
        left: Likewise.
        colour: Likewise.
        keep: Likewise.
        light: float32 (3,), light on the hand's red, green and blue, 0..1.
    """
    lights = np.empty(colour.shape[1], np.float32)
    for at in range(len(lights)):
        lights[at] = light[at % 3]
    for row in range(colour.shape[0]):
        into = frame[top + row, 3 * left : 3 * left + colour.shape[1]]
        for at in range(colour.shape[1]):
            over = int32(float32(colour[row, at]) * lights[at])
            # Exactly into * keep / 255, rounded, without a division.
            share = uint32(into[at]) * uint32(keep[row, at]) + uint32(128)
            share = (share + (share >> uint32(8))) >> uint32(8)
            into[at] = uint8(uint32(over) + share)


class Hands:
    """Hands for one sampling, each drawn once."""

    def __init__(self, sampling: Sampling, tan_x: float, tan_y: float, textures: Textures) -> None:
        """Prepare the rays and the poses.

        Args:
            sampling: What is drawn.
            tan_x: Half the width of the view one block ahead.
            tan_y: Half its height.
            textures: Pictures of items.
        """
        self._sampling, self._tan = sampling, (tan_x, tan_y)
        self._per_pixel = SMALL_FRAME_RAYS if sampling.window[1] < SMALL_FRAME else 1
        inside = (np.arange(self._per_pixel) + 0.5) / self._per_pixel
        columns = (sampling.columns[:, None] + inside).reshape(-1) / sampling.window[0]
        rows = (sampling.rows[:, None] + inside).reshape(-1) / sampling.window[1]
        self._columns = ((2 * columns - 1) * tan_x).astype(np.float32)
        self._rows = ((1 - 2 * rows) * tan_y).astype(np.float32)
        self._textures = textures
        self._arm = _arm_faces(textures.picture("entity/steve"))
        self._drawn: dict[tuple[str, float], Hand] = {}
        for kind, item in ((ARM, ""), (FLAT, "stick"), (BLOCK, "stone")):
            for ticks in range(SWING_TICKS):
                _view(kind, ticks / SWING_TICKS, sampling, tan_x, tan_y)
            self.of(item, 0.0)  # loads the kernels

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
        is_flat = bool(item) and self._textures.is_flat(item)
        kind = FLAT if is_flat else BLOCK if item else ARM
        inverse, left, right, top, bottom = _view(kind, swing, self._sampling, *self._tan)
        n = self._per_pixel
        rays = self._columns[left * n : right * n], self._rows[top * n : bottom * n], n
        picture = np.empty((bottom - top, right - left, 4), np.uint8)
        if is_flat:
            trace_sprite(inverse, *rays, self._textures.icon(item), picture)
        else:
            boxes = self._textures.shape(item) if item else boxes_of("cube")
            faces = np.stack(self._textures.item_faces(item)) if item else self._arm
            trace_boxes(inverse, True, *rays, boxes, faces, _SHADES, picture)
        # It is empty where the view is too narrow for the hand, so the shape is spelt out.
        colour = picture[..., :3].reshape(bottom - top, 3 * (right - left))
        return Hand(top, left, colour, np.repeat(255 - picture[..., 3], 3, axis=1))


@lru_cache(maxsize=512)
def _view(kind: int, swing: float, sampling: Sampling, tan_x: float, tan_y: float) -> _View:
    """How the hand is seen; arguments as those of `Hands` and `Hands.of`."""
    pose = arm_pose(swing) if kind == ARM else item_pose(swing, kind == FLAT)
    return _View(to_space_of(pose), *_bounds(pose, sampling, tan_x, tan_y))


def _bounds(
    pose: Matrix, sampling: Sampling, tan_x: float, tan_y: float
) -> tuple[int, int, int, int]:
    """The pixels drawn (left, right, top, bottom; ends excluded) that a unit cube may cover."""
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], [1]), -1).reshape(-1, 4) @ pose.T
    depth = -corners[:, 2]
    if depth.min() < NEAREST:
        return 0, sampling.drawn[0], 0, sampling.drawn[1]
    columns = (corners[:, 0] / depth / tan_x + 1) / 2 * sampling.window[0]
    rows = (1 - corners[:, 1] / depth / tan_y) / 2 * sampling.window[1]
    left, right = np.searchsorted(
        sampling.columns, (math.floor(columns.min()), math.ceil(columns.max()))
    )
    top, bottom = np.searchsorted(sampling.rows, (math.floor(rows.min()), math.ceil(rows.max())))
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
