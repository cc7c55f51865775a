"""The arm or the item in hand, drawn once per item and pose; and the rays of drawn pixels."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import float32, int32, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.player.player import SWING_TICKS
from rllib_minestudio.env.voxel.render.block_rays import (
    Matrix,
    X,
    Y,
    Z,
    away_from_zero,
    boxes_of,
    crossing,
    put_mean,
    scale,
    shift,
    to_space_of,
    trace_boxes,
    turn,
)
from rllib_minestudio.env.voxel.render.camera import (
    STEP_X,
    STEP_Y,
    Bytes,
    Camera,
    Floats,
    Ints,
    render_kernel,
    scratch_kernel,
)
from rllib_minestudio.env.voxel.render.ray_tiles import TILE
from rllib_minestudio.env.voxel.render.texels import FACE_SHADE
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.viewpoint import Viewpoint, bobbing, hurt_roll
from rllib_minestudio.env.voxel.render.window import Rgba, Sampling

# Windows with fewer rows than this get this many rays per pixel and axis.
SMALL_FRAME, SMALL_FRAME_RAYS = 300, 2
# A hand that comes closer than this to the eye, in blocks, may cover any part of the frame.
NEAREST = 0.02
HAND_BYTES = 4 * 1024**2
"""Most memory for the hands that a renderer keeps: at 128x128, some two hundred."""
POSE_STEPS = 48
"""Steps per block to which the places of a hand are rounded, so that those of a walking player are
soon all drawn: there are some twenty. In the game's window, half a step is three pixels."""
ARM, FLAT, BLOCK = range(3)
"""Kinds of hand: the bare arm, a flat picture or a block."""
_SHADES = np.array(FACE_SHADE, np.float32)
# Places (x, y, width, height) of the arm's faces in the player's skin, in the order of `texels`.
# The arm's own y runs from the shoulder to the hand.
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

    A pixel p of the frame becomes `colour * light + p * keep / 255`.

    Attributes:
        top: First row that the hand covers.
        left: First column that it covers.
        colour: uint8 (rows, columns * 3), RGB multiplied by coverage.
        keep: uint8 (rows, columns * 3), 255 - coverage, once per channel.
    """

    top: int
    left: int
    colour: Bytes
    keep: Bytes


class HandPose(NamedTuple):
    """How a hand is held; equal poses give equal pictures.

    Attributes:
        swing: Progress of the arm's swing, 0 to 1.
        drop: How far the hand is lowered, in steps.
        right: How far it bobs to the right, in steps.
        up: How far it bobs upwards.
        hurt: Ticks left of the reaction to a hit.
    """

    swing: float = 0.0
    drop: int = 0
    right: int = 0
    up: int = 0
    hurt: int = 0


def pose_of(viewpoint: Viewpoint) -> HandPose:
    """Return the pose of the hand of a player who sees the world like this.

    Bobbing shifts it. That it also turns, by half a degree at most, is left out.
    """
    drop = round(viewpoint.drop * LOWERED * POSE_STEPS)
    if not viewpoint.bob:
        return HandPose(viewpoint.swing, drop, 0, 0, viewpoint.hurt)
    right, up = bobbing(viewpoint.bob, viewpoint.stride)
    steps = round(right * POSE_STEPS), round(up * POSE_STEPS)
    return HandPose(viewpoint.swing, drop, *steps, viewpoint.hurt)


class _View(NamedTuple):
    """How a pose is seen.

    Attributes:
        inverse: See `to_space_of`.
        left: First drawn column that the hand may cover.
        right: The column after the last.
        top: First row.
        bottom: The row after the last.
    """

    inverse: Floats
    left: int
    right: int
    top: int
    bottom: int


@scratch_kernel
def blend_hand(
    frame: Bytes, top: int, left: int, colour: Bytes, keep: Bytes, light: Floats
) -> None:
    """Blend a `Hand` into a frame, uint8 (H, W * 3).

    `light`, float32 (3,), is the light on the hand's red, green and blue, 0..1.
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
            sampling: Which pixels are drawn.
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
        self._drawn: dict[tuple[str, HandPose], Hand] = {}
        self._bytes = 0
        for kind, item in ((ARM, ""), (FLAT, "stick"), (BLOCK, "stone")):
            for ticks in range(SWING_TICKS):
                _view(kind, HandPose(ticks / SWING_TICKS), sampling, tan_x, tan_y)
            self.of(item, HandPose())  # loads the kernels

    def of(self, item: str, pose: HandPose) -> Hand:
        """Return the hand to blend over a frame.

        Args:
            item: Name of the item in hand; empty for the bare arm.
            pose: How it is held.
        """
        key = item, pose
        hand = self._drawn.get(key)
        if hand is None:
            hand = self._draw(item, pose)
            self._bytes += hand.colour.nbytes + hand.keep.nbytes
            while self._drawn and self._bytes > HAND_BYTES:
                oldest = self._drawn.pop(next(iter(self._drawn)))
                self._bytes -= oldest.colour.nbytes + oldest.keep.nbytes
            self._drawn[key] = hand
        return hand

    def _draw(self, item: str, pose: HandPose) -> Hand:
        is_flat = bool(item) and self._textures.is_flat(item)
        kind = FLAT if is_flat else BLOCK if item else ARM
        inverse, left, right, top, bottom = _view(kind, pose, self._sampling, *self._tan)
        n = self._per_pixel
        rays = self._columns[left * n : right * n], self._rows[top * n : bottom * n], n
        picture = np.empty((bottom - top, right - left, 4), np.uint8)
        if is_flat:
            trace_sprite(inverse, *rays, self._textures.icon(item), picture)
        else:
            boxes = self._textures.shape(item) if item else boxes_of("cube")
            faces = np.stack(self._textures.item_faces(item)) if item else self._arm
            trace_boxes(inverse, True, *rays, boxes, faces, _SHADES, picture)
        # The picture is empty if the view is too narrow for the hand, so no -1 in the shape.
        colour = picture[..., :3].reshape(bottom - top, 3 * (right - left))
        return Hand(top, left, colour, np.repeat(255 - picture[..., 3], 3, axis=1))


@lru_cache(maxsize=512)
def _view(kind: int, pose: HandPose, sampling: Sampling, tan_x: float, tan_y: float) -> _View:
    """How the hand is seen; arguments as in `Hands` and `Hands.of`."""
    aside, up = pose.right / POSE_STEPS, pose.up / POSE_STEPS
    placed = shift(aside, up, 0.0) @ _still(kind, pose.swing, pose.drop)
    if pose.hurt:
        placed = turn(Z, hurt_roll(pose.hurt)) @ placed
    return _View(to_space_of(placed), *_bounds(placed, sampling, tan_x, tan_y))


@lru_cache(maxsize=64)
def _still(kind: int, swing: float, drop: int) -> Matrix:
    """The pose of a hand of a player who stands still; arguments as in `HandPose`."""
    below = drop / POSE_STEPS
    return arm_pose(swing, below) if kind == ARM else item_pose(swing, below, kind == FLAT)


def _bounds(
    pose: Matrix, sampling: Sampling, tan_x: float, tan_y: float
) -> tuple[int, int, int, int]:
    """The drawn pixels (left, right, top, bottom; ends excluded) that a unit cube may cover."""
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
    """Cut the faces of the arm's unit cube, uint8 (6, 16, 16, 4), out of a player's skin."""
    faces = []
    for x, y, width, height in _ARM_FACES:
        columns, rows = x + np.arange(16) * width // 16, y + np.arange(16) * height // 16
        picture = skin[rows[:, None], columns]
        # The cube's y runs downwards along the arm.
        faces.append(picture if height == width else picture[::-1])
    return np.ascontiguousarray(np.stack(faces))


# --------------------- how the arm, or the item in hand, stands before the eye while the arm swings
# The poses are those of Minecraft 1.16's first-person view: its chain of translations and rotations
# (view space: x right, y up, z towards the viewer, in blocks) with the display settings of handheld
# items (turn -90 about y, 25 about z, scale 0.68) and of blocks (turn 45, scale 0.4).

# Minecraft holds items at (0.56, -0.52, -0.72), which puts the tip of a sword outside the picture.
# A little further away, the whole blade is visible.
ITEM_PLACE = (0.58, -0.52, -0.92)
LOWERED = 0.6
"""How far below its place a hand is that is fully lowered, in blocks."""


def item_pose(swing: float, below: float, is_flat: bool) -> Matrix:
    """Return the matrix from the unit cube of an item in hand to view space.

    Args:
        swing: Progress of the arm's swing, 0..1.
        below: How far below its place the hand is, in blocks.
        is_flat: Whether the item is a flat picture, not a block.
    """
    strong = math.sin(math.sqrt(swing) * math.pi)
    late = math.sin(swing * swing * math.pi)
    arm = (
        shift(-0.4 * strong, 0.2 * math.sin(math.sqrt(swing) * 2 * math.pi), 0.0)
        @ shift(0.0, 0.0, -0.2 * math.sin(swing * math.pi))
        @ shift(ITEM_PLACE[0], ITEM_PLACE[1] - below, ITEM_PLACE[2])
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


def arm_pose(swing: float, below: float) -> Matrix:
    """Return the matrix from the bare arm's unit cube (y from shoulder to hand) to view space.

    Args:
        swing: Progress of the arm's swing, 0..1.
        below: How far below its place the hand is, in blocks.
    """
    root = math.sqrt(swing)
    strong = math.sin(root * math.pi)
    return (
        shift(
            0.64 - 0.3 * strong,
            -0.6 + 0.4 * math.sin(root * 2 * math.pi) - below,
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


# ----------------------------------------------------- a flat picture one texel thick, seen by rays
# A tool or an apple in the hand: in the middle of the unit cube, across z, with its rows running
# down y. A ray enters it through the front, the back or a rim, and passes from texel to texel until
# one is opaque.

RIM_SHADE, FRONT_SHADE = 0.72, 0.95
HALF_TEXEL = 0.5 / 16
"""Half the thickness."""
NEAREST_SPRITE = 1e-3
"""Nothing closer to the eye than this, in blocks ahead of it, is drawn."""


@render_kernel
def _span(
    x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> tuple[float, float, bool]:
    """Where a ray enters and leaves the picture, and whether it enters by the front or back."""
    near, far = float32(0.5 - HALF_TEXEL), float32(0.5 + HALF_TEXEL)
    in_z, out_z = crossing(near, far, z, float32(1) / dz)
    in_x, out_x = crossing(float32(0), float32(1), x, float32(1) / dx)
    in_y, out_y = crossing(float32(0), float32(1), y, float32(1) / dy)
    in_side = max(in_x, in_y)
    enter = max(max(in_z, in_side), float32(NEAREST_SPRITE))
    return enter, min(out_z, min(out_x, out_y)), in_z >= in_side


@render_kernel
def _first_texel(
    sprite: Rgba, x: float, y: float, dx: float, dy: float, enter: float, leave: float
) -> tuple[int, int, bool]:
    """Row and column of the first opaque texel that a ray meets, and whether it enters there.

    The ray is followed from texel to texel, after Amanatides and Woo (1987). The row is -1 if there
    is no such texel.
    """
    # Rows run downwards.
    u = (x + dx * enter) * float32(16)
    v = (float32(1) - y - dy * enter) * float32(16)
    column = min(max(int32(u), int32(0)), int32(15))
    row = min(max(int32(v), int32(0)), int32(15))
    step_u = int32(1) if dx > 0 else int32(-1)
    step_v = int32(1) if dy < 0 else int32(-1)
    per_u, per_v = abs(float32(1 / 16) / dx), abs(float32(1 / 16) / dy)
    border_u = (float32(column + (step_u + 1) // 2) - u) * float32(step_u)
    border_v = (float32(row + (step_v + 1) // 2) - v) * float32(step_v)
    t_u, t_v = enter + border_u * per_u, enter + border_v * per_v
    is_first = True
    while not sprite[row, column, 3] > 127:
        is_first = False
        if min(t_u, t_v) >= leave:
            return int32(-1), int32(0), False
        if t_u < t_v:
            t_u += per_u
            column += step_u
        else:
            t_v += per_v
            row += step_v
        if column < 0 or column > 15 or row < 0 or row > 15:
            return int32(-1), int32(0), False
    return row, column, is_first


@render_kernel
def trace_sprite(
    inverse: Floats, columns: Floats, rows: Floats, per_pixel: int, sprite: Rgba, picture: Rgba
) -> None:
    """Draw a flat picture, `sprite`, in perspective.

    It is uint8 (16, 16, 4), not multiplied by alpha; the other arguments are those of
    `block_rays.trace_boxes`.
    """
    share = float32(1) / float32(per_pixel * per_pixel)
    x, y, z = inverse[0, 3], inverse[1, 3], inverse[2, 3]
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            red = green = blue = cover = float32(0)
            for sub in range(per_pixel * per_pixel):
                sub_row = sub // per_pixel
                right = columns[column * per_pixel + sub - sub_row * per_pixel]
                up = rows[row * per_pixel + sub_row]
                dx = away_from_zero(inverse[0, 0] * right + inverse[0, 1] * up - inverse[0, 2])
                dy = away_from_zero(inverse[1, 0] * right + inverse[1, 1] * up - inverse[1, 2])
                dz = away_from_zero(inverse[2, 0] * right + inverse[2, 1] * up - inverse[2, 2])
                enter, leave, by_front = _span(x, y, z, dx, dy, dz)
                if enter >= leave:
                    continue
                line, texel, is_first = _first_texel(sprite, x, y, dx, dy, enter, leave)
                if line >= 0:
                    shade = float32(FRONT_SHADE if is_first and by_front else RIM_SHADE)
                    red += shade * float32(sprite[line, texel, 0])
                    green += shade * float32(sprite[line, texel, 1])
                    blue += shade * float32(sprite[line, texel, 2])
                    cover += float32(255)
            put_mean(picture, row, column, share, red, green, blue, cover)


# ---------------------- where the rays of the pixels that are drawn pass, as arrays for the kernels
# Kernels number the columns and rows that are drawn; places on the screen are counted in pixels of
# the whole window (see `window.Sampling`).


class PixelRays(NamedTuple):
    """The rays of the drawn pixels.

    Python passes the arrays to kernels one by one: numba takes 5 µs to unpack a tuple of arrays.

    Attributes:
        across: float32 (width + TILE - 1,), how far to the right each column's rays pass on the
            plane one block ahead; the last are beyond the frame, where a tile may reach.
        upward: float32 (height + TILE - 1,), how far up each row's rays pass.
        columns_before: int32 (window's width + 1,), number of drawn columns to the left of each
            column of the window.
        rows_before: int32 (window's height + 1,), number of drawn rows above each row of it.
    """

    across: Floats
    upward: Floats
    columns_before: Ints
    rows_before: Ints


def pixel_rays(sampling: Sampling, camera: Camera) -> PixelRays:
    """Compute the rays of the drawn pixels, for a camera of the window's size."""
    width, height = sampling.window
    step_x, step_y = camera.vector[STEP_X], camera.vector[STEP_Y]
    return PixelRays(
        across=_middles(sampling.columns, width) * step_x,
        upward=-_middles(sampling.rows, height) * step_y,
        columns_before=np.searchsorted(sampling.columns, np.arange(width + 1)).astype(np.int32),
        rows_before=np.searchsorted(sampling.rows, np.arange(height + 1)).astype(np.int32),
    )


def _middles(pixels: NDArray[np.int64], size: int) -> Floats:
    """Middles of a line's pixels, and of some beyond its end, relative to the line's middle."""
    beyond = pixels[-1] + 1 + np.arange(TILE - 1)
    return (np.concatenate([pixels, beyond]) + 0.5 - size / 2).astype(np.float32)
