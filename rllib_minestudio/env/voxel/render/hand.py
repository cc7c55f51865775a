"""The player's own body: the arm or the item in hand, and the inventory's figure."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.player.player import SWING_TICKS
from rllib_minestudio.env.voxel.render.camera import (
    POSE_STEPS,
    STEP_X,
    STEP_Y,
    TILE,
    Bytes,
    Camera,
    Floats,
    HandPose,
    Ints,
    hurt_roll,
    render_kernel,
    scratch_kernel,
)
from rllib_minestudio.env.voxel.render.textures import (
    FACE_SHADE,
    Matrix,
    Textures,
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
from rllib_minestudio.env.voxel.render.window import Rect, Rgba, Sampling

# Windows with fewer rows than this get this many rays per pixel and axis.
SMALL_FRAME, SMALL_FRAME_RAYS = 300, 2
# A hand that comes closer than this to the eye, in blocks, may cover any part of the frame.
NEAREST = 0.02
HAND_BYTES = 4 * 1024**2
"""Most memory for the hands that a renderer keeps: at 128x128, some two hundred."""
ARM, FLAT, BLOCK = range(3)
"""Kinds of hand: the bare arm, a flat picture or a block."""
_SHADES = np.array(FACE_SHADE, np.float32)
# Places (x, y, width, height) of the arm's faces in the player's skin, in the order of `textures`.
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


NO_HAND = Hand(0, 0, np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.uint8))


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
    frame: Bytes, stride: int, top: int, left: int, colour: Bytes, keep: Bytes, camera: Floats,
    shine: int,
) -> None:  # fmt: skip
    """Blend a `Hand` into a frame.

    Args:
        frame: uint8 (h * w * 3,), drawn into.
        stride: Bytes in a row of it.
        top: See `Hand`, as the next three.
        left: First column.
        colour: In full light.
        keep: What is kept of the frame.
        camera: float32 (CAMERA_SIZE,).
        shine: Where in it the light on the hand is.
    """
    lights = np.empty(colour.shape[1], np.float32)
    for at in range(len(lights)):
        lights[at] = camera[shine + at % 3]
    for row in range(colour.shape[0]):
        start = (top + row) * stride + 3 * left
        into = frame[start : start + colour.shape[1]]
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
    placed = shift(pose.aside / POSE_STEPS, pose.rise / POSE_STEPS, 0.0) @ _still(
        kind, pose.swing, pose.drop
    )
    if pose.hurt:
        placed = turn(Z, hurt_roll(pose.hurt)) @ placed
    return _View(to_space_of(placed), *_bounds(placed, sampling, tan_x, tan_y))


@lru_cache(maxsize=64)
def _still(kind: int, swing: float, drop: float) -> Matrix:
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
    `textures.trace_boxes`.
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


# ----------------------------- the player's figure in the inventory, which turns towards the cursor
# Minecraft 1.16 shows the player's model at 30 pixels a block. It leans by 20 times the angle, in
# radians, under which the cursor is seen 40 pixels in front of the figure; its body turns by as
# much and its head by twice that (`InventoryScreen.renderEntityInInventory`). Here its arms hang
# still, nothing is worn or held, and its faces are as bright as their side.
#
# Coordinates are (x, y, towards the viewer) in pixels of the window, x to the right and y down.
# Each side of each of the model's boxes is a parallelogram on which its part of the skin lies.

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
