"""The arm or the item in hand, traced once per item, swing pose and sampling, then reused.

The poses are those of Minecraft 1.16's first-person view: its chain of translations and rotations
(view space: x right, y up, z towards the viewer, in blocks) with the display settings of handheld
items (turn -90 about y, 25 about z, scale 0.68) and of blocks (turn 45, scale 0.4).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.block_textures import block_pictures
from rllib_minestudio.env.voxel.render.item_sprites import item_sprite
from rllib_minestudio.env.voxel.render.overlay import Overlay, make_overlay
from rllib_minestudio.env.voxel.render.sampling import Sampling
from rllib_minestudio.env.voxel.render.texels import FACE_SHADE

Matrix = NDArray[np.floating[Any]]
Part = tuple[int, int, int, int]
"""Part of what is drawn: left, right, top, bottom; ends excluded."""

X, Y, Z = 0, 1, 2
# Minecraft holds items at (0.56, -0.52, -0.72), where the tip of a sword is out of the picture; a
# little further away the whole blade is seen.
ITEM_PLACE = (0.58, -0.52, -0.92)
SKIN = (206.0, 156.0, 128.0)
SLEEVE = (28.0, 150.0, 150.0)
# The sleeve covers this part of the arm, counted from the shoulder.
SLEEVE_LENGTH = 0.4
# Rays per pixel and axis while pixels are large.
SMALL_FRAME, SMALL_FRAME_RAYS = 300, 2
# A hand that reaches closer than this to the eye may cover any part of the frame.
NEAREST = 0.02
RIM_SHADE, FRONT_SHADE = 0.72, 0.95


def _shift(x: float, y: float, z: float) -> Matrix:
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def _turn(axis: int, degrees: float) -> Matrix:
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    one, two = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(4)
    matrix[one, one] = matrix[two, two] = cos
    matrix[one, two], matrix[two, one] = -sin, sin
    return matrix


def _scale(factor: float) -> Matrix:
    return np.diag([factor, factor, factor, 1.0])


def _item_pose(swing: float, is_block: bool) -> Matrix:
    """From the item's unit cube to view space."""
    strong = math.sin(math.sqrt(swing) * math.pi)
    late = math.sin(swing * swing * math.pi)
    arm = (
        _shift(-0.4 * strong, 0.2 * math.sin(math.sqrt(swing) * 2 * math.pi), 0.0)
        @ _shift(0.0, 0.0, -0.2 * math.sin(swing * math.pi))
        @ _shift(*ITEM_PLACE)
        @ _turn(Y, 45 - 20 * late)
        @ _turn(Z, -20 * strong)
        @ _turn(X, -80 * strong)
        @ _turn(Y, -45)
    )
    if is_block:
        display = _turn(Y, 45) @ _scale(0.4)
    else:
        display = (
            _shift(1.13 / 16, 3.2 / 16, 1.13 / 16) @ _turn(Y, -90) @ _turn(Z, 25) @ _scale(0.68)
        )
    return arm @ display @ _shift(-0.5, -0.5, -0.5)


def _arm_pose(swing: float) -> Matrix:
    """From the arm's unit cube (y from the shoulder to the hand) to view space."""
    root = math.sqrt(swing)
    strong = math.sin(root * math.pi)
    return (
        _shift(
            0.64 - 0.3 * strong,
            -0.6 + 0.4 * math.sin(root * 2 * math.pi),
            -0.72 - 0.4 * math.sin(swing * math.pi),
        )
        @ _turn(Y, 45 + 70 * strong)
        @ _turn(Z, -20 * math.sin(swing * swing * math.pi))
        @ _shift(-1.0, 3.6, 3.5)
        @ _turn(Z, 120)
        @ _turn(X, 200)
        @ _turn(Y, -135)
        @ _shift(5.6, 0.0, 0.0)
        # The right arm of the player's model: 4 x 12 x 4 pixels from (-8, 0, -2).
        @ _shift(-8 / 16, 0.0, -2 / 16)
        @ np.diag([4 / 16, 12 / 16, 4 / 16, 1.0])
    )


def _rays(sampling: Sampling, part: Part, per_pixel: int, tan_x: float, tan_y: float) -> Matrix:
    """Directions (H, W, 3) in view space through part of what is drawn.

    Each pixel has `per_pixel` rays along each axis, evenly spread.
    """
    left, right, top, bottom = part
    inside = (np.arange(per_pixel) + 0.5) / per_pixel
    columns = (sampling.columns[left:right, None] + inside).reshape(-1)
    rows = (sampling.rows[top:bottom, None] + inside).reshape(-1)
    rays = np.empty((len(rows), len(columns), 3))
    rays[..., 0] = (columns / sampling.window[0] * 2 - 1) * tan_x
    rays[..., 1] = (1 - rows / sampling.window[1] * 2)[:, None] * tan_y
    rays[..., 2] = -1.0
    return rays


def _bounds(pose: Matrix, sampling: Sampling, tan_x: float, tan_y: float) -> Part:
    """The pixels drawn that a unit cube may cover."""
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


def _enter_box(
    pose: Matrix, rays: Matrix, low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.intp], Matrix, Matrix, Matrix, NDArray[np.intp]]:
    """Cut rays (n, 3) with a box given in the pose's own space.

    Returns:
        (pixels, origin, directions, spans, axes) of the rays that hit: their numbers (m,), the eye
        (3,) and directions (m, 3) in the box's space, entry and exit (m, 2), and the axis of the
        face entered (m,).
    """
    inverse = np.linalg.inv(pose)
    origin = inverse[:3, 3]
    directions = rays @ inverse[:3, :3].T
    directions = np.where(abs(directions) < 1e-9, 1e-9, directions)
    to_low, to_high = (low - origin) / directions, (high - origin) / directions
    enters = np.minimum(to_low, to_high)
    enter, leave = enters.max(-1), np.maximum(to_low, to_high).min(-1)
    hit = np.flatnonzero((enter < leave) & (leave > 0))
    spans = np.stack([np.maximum(enter[hit], 1e-3), leave[hit]], -1)
    return hit, origin, directions[hit], spans, enters[hit].argmax(-1)


def _trace_sprite(pose: Matrix, rays: Matrix, name: str) -> NDArray[np.float64]:
    """RGBA (n, 4) of a sprite one texel thick."""
    sprite = item_sprite(name)
    low, high = np.array([0.0, 0.0, 7.5 / 16]), np.array([1.0, 1.0, 8.5 / 16])
    pixels, origin, directions, spans, axes = _enter_box(pose, rays, low, high)
    colours = np.zeros((len(rays), 4))
    # Between two neighbouring borders of texels a ray stays in one texel, so the middles of those
    # stretches see them all, however thin they are cut.
    borders = np.arange(17) / 16
    crossings = (borders[None, None] - origin[:2, None]) / directions[:, :2, None]
    crossings = crossings.reshape(len(pixels), 2 * len(borders))
    crossings = np.clip(crossings, spans[:, :1], spans[:, 1:])
    stops = np.sort(np.concatenate([spans, crossings], axis=1))
    t = (stops[:, :-1] + stops[:, 1:]) / 2
    columns = np.clip((origin[0] + directions[:, :1] * t) * 16, 0, 15).astype(np.int64)
    rows = np.clip((1 - origin[1] - directions[:, 1:2] * t) * 16, 0, 15).astype(np.int64)
    opaque = (sprite[rows, columns, 3] > 0) & (stops[:, 1:] > stops[:, :-1])
    first = opaque.argmax(-1)
    each = np.arange(len(pixels))
    seen = opaque[each, first]
    front = (stops[each, first] == spans[:, 0]) & (axes == Z)
    shade = np.where(front, FRONT_SHADE, RIM_SHADE)[:, None]
    texels = sprite[rows[each, first], columns[each, first], :3] * shade
    colours[pixels[seen], :3] = texels[seen]
    colours[pixels[seen], 3] = 1.0
    return colours


def _trace_box(pose: Matrix, rays: Matrix, name: str) -> NDArray[np.float64]:
    """RGBA (n, 4) of a unit cube: a block, or the arm when `name` is empty."""
    pixels, origin, directions, spans, axes = _enter_box(pose, rays, np.zeros(3), np.ones(3))
    points = np.clip(origin + directions * spans[:, :1], 0, 0.9999)
    away = directions[np.arange(len(pixels)), axes] > 0
    faces = np.array([[0, 1], [2, 3], [4, 5]])[axes, away.astype(np.int64)]
    shade = np.array(FACE_SHADE)[faces][:, None]
    if name:
        u = np.where(axes == X, points[:, 2], points[:, 0])
        v = np.where(axes == Y, points[:, 2], 1 - points[:, 1])
        pictures = np.stack(block_pictures(name))
        texels = pictures[faces, (v * 16).astype(np.int64), (u * 16).astype(np.int64)]
    else:
        sleeve = points[:, 1:2] < SLEEVE_LENGTH
        # Faint squares, so that the arm does not look like plastic.
        grain = ((points * (4, 12, 4)).astype(np.int64).sum(-1) % 2 * 8.0)[:, None]
        texels = np.where(sleeve, SLEEVE, SKIN) - grain
    colours = np.zeros((len(rays), 4))
    colours[pixels, :3] = np.clip(texels * shade, 0, 255)
    colours[pixels, 3] = 1.0
    return colours


@lru_cache(maxsize=256)
def hand_overlay(
    item: str, is_block: bool, swing: float, sampling: Sampling, tan_x: float, tan_y: float
) -> Overlay:
    """The hand as it lies over what is drawn, in full light.

    Args:
        item: Name of the item in hand; empty for the bare arm.
        is_block: Whether that is a block.
        swing: Progress of the arm's swing, 0..1.
        sampling: What is drawn.
        tan_x: Half the width of the view one block ahead.
        tan_y: Half its height.
    """
    pose = _item_pose(swing, is_block) if item else _arm_pose(swing)
    part = left, right, top, bottom = _bounds(pose, sampling, tan_x, tan_y)
    per_pixel = SMALL_FRAME_RAYS if sampling.window[1] < SMALL_FRAME else 1
    rays = _rays(sampling, part, per_pixel, tan_x, tan_y).reshape(-1, 3)
    if item and not is_block:
        colours = _trace_sprite(pose, rays, item)
    else:
        colours = _trace_box(pose, rays, item)
    split = (bottom - top, per_pixel, right - left, per_pixel, 4)
    return make_overlay(colours.reshape(split).mean((1, 3)), sampling.drawn[0], top, left)
