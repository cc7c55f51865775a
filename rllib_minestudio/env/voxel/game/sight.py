"""What is seen of the world: the first block or mob along each of a grid of rays.

The rays are those of a frame's pixels, so whoever knows no more than they hit knows no more than
the frame shows (the textures apart, by which a player tells the blocks).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.raycast import (
    BLOCK,
    MOB,
    NEVER,
    NOTHING,
    TARGET_DTYPE,
    cast_block,
    cast_mob,
)
from rllib_minestudio.env.voxel.render.camera import FORWARD, RIGHT, STEP_X, STEP_Y, UP, Camera
from rllib_minestudio.env.voxel.world.addressing import block_index
from rllib_minestudio.env.voxel.world.blocks import BLOCKS

_MIDDLE_OF_ITEM = 0.25
"""Blocks from the place of a dropped item up to the middle of its picture."""


class VisibleBlocks(NamedTuple):
    """What a grid of rays hits; R rows from the frame's top, C columns from its left.

    Attributes:
        eye: Where the rays begin, float64 [3].
        direction: Unit vectors, float64 [R, C, 3].
        distance: Blocks along the ray to what it hits, or to the end of sight, float64 [R, C].
        names: Names of the kinds of blocks in view; the first one, "air", stands for no block.
        kind: Index in `names` of the block that is hit, int64 [R, C]; 0 where the ray ends on a mob
            or on nothing.
        cell: Its x, y and z, int64 [R, C, 3].
        face: Outward normal of the side that is hit, int64 [R, C, 3].
    """

    eye: NDArray[np.float64]
    direction: NDArray[np.float64]
    distance: NDArray[np.float64]
    names: tuple[str, ...]
    kind: NDArray[np.int64]
    cell: NDArray[np.int64]
    face: NDArray[np.int64]


@kernel()
def _cast_grid(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    eye: NDArray[np.float64],
    directions: NDArray[np.float64],
    reach: float,
    targets: NDArray[np.void],
    distances: NDArray[np.float64],
) -> None:
    """Casts one ray per row of `directions` [n, 3]; writes `targets` [n] and `distances` [n]."""
    origin = (eye[0], eye[1], eye[2])
    for ray in range(len(directions)):
        direction = (directions[ray, 0], directions[ray, 1], directions[ray, 2])
        target = targets[ray]
        block_distance = cast_block(blocks, origin, direction, reach, target)
        target.kind = BLOCK if block_distance < NEVER else NOTHING
        distances[ray] = min(block_distance, reach)
        row, mob_distance = cast_mob(mobs, count, origin, direction, distances[ray])
        if row >= 0:
            target.kind = MOB
            distances[ray] = mob_distance


def _cast(
    state: GameState, eye: NDArray[np.float64], directions: NDArray[np.float64], reach: float
) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """Casts rays along unit vectors [n, 3]; returns their `TARGET_DTYPE` [n] and distances [n]."""
    targets = np.zeros(len(directions), TARGET_DTYPE)
    distances = np.empty(len(directions))
    mobs = state.mobs
    _cast_grid(
        state.world.blocks, mobs.records, mobs.count, eye, directions, reach, targets, distances
    )
    return targets, distances


def _eye(state: GameState) -> NDArray[np.float64]:
    eye = state.player.position.astype(np.float64)
    eye[1] += state.player.eye_height
    return eye


def _axes(state: GameState, camera: Camera) -> NDArray[np.float64]:
    """Forward, right and up of the player's view, float64 [3, 3]."""
    x, y, z = _eye(state).tolist()
    camera.place(x, y, z, state.player.yaw, state.player.pitch)
    return np.stack(
        [camera.vector[first : first + 3].astype(np.float64) for first in (FORWARD, RIGHT, UP)]
    )


def visible_blocks(state: GameState, camera: Camera) -> VisibleBlocks:
    """Looks along the ray of each pixel of a camera, as far as its view distance."""
    forward, right, up = _axes(state, camera)
    columns, rows = camera.width, camera.height
    across = (np.arange(columns) + 0.5 - columns / 2) * float(camera.vector[STEP_X])
    upward = (rows / 2 - 0.5 - np.arange(rows)) * float(camera.vector[STEP_Y])
    direction = forward + across[None, :, None] * right + upward[:, None, None] * up  # [R, C, 3]
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    eye = _eye(state)
    targets, distance = _cast(state, eye, direction.reshape(-1, 3), camera.view_distance)
    cell = np.stack([targets["x"], targets["y"], targets["z"]], axis=1)
    hit = targets["kind"] == BLOCK
    cell[~hit] = 0
    names, kind = _name_blocks(state, cell, hit)
    return VisibleBlocks(
        eye,
        direction,
        distance.reshape(rows, columns),
        names,
        kind.reshape(rows, columns),
        cell.reshape(rows, columns, 3),
        np.where(hit[:, None], targets["face"], 0).reshape(rows, columns, 3),
    )


def _name_blocks(
    state: GameState, cell: NDArray[np.int64], hit: NDArray[np.bool_]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the blocks at `cell` [n, 3] where `hit` [n], and each one's index in them [n]."""
    ids, which = np.unique(state.world.blocks[block_index(*cell[hit].T)], return_inverse=True)
    kind = np.zeros(len(cell), np.int64)
    kind[hit] = which.ravel() + 1
    return ("air", *(BLOCKS[block].name for block in ids.tolist())), kind


def visible_items(state: GameState, camera: Camera) -> list[dict[str, Any]]:
    """The dropped items whose middle is within the frame and in front of all blocks and mobs.

    Returns:
        Dictionaries with name and x, y, z (bottom centre), the nearest first.
    """
    items = state.items
    places = items.records["position"][: items.count].astype(np.float64)
    eye = _eye(state)
    offset = places - eye
    offset[:, 1] += _MIDDLE_OF_ITEM
    ahead, across, upward = _axes(state, camera) @ offset.T  # [n] each
    distance = np.linalg.norm(offset, axis=1)
    half_width = camera.width / 2 * float(camera.vector[STEP_X])
    half_height = camera.height / 2 * float(camera.vector[STEP_Y])
    framed = (
        (ahead > 0.0)
        & (np.abs(across) <= ahead * half_width)
        & (np.abs(upward) <= ahead * half_height)
        & (distance <= camera.view_distance)
        & (items.records["quantity"][: items.count] > 0)
    )
    rows = np.flatnonzero(framed)
    directions = offset[rows] / distance[rows, None]
    _, open_to = _cast(state, eye, directions, camera.view_distance)
    seen = rows[open_to >= distance[rows]]
    seen = seen[np.argsort(distance[seen], kind="stable")]
    kinds = items.records["item"][seen].tolist()
    return [
        {"name": ITEMS[kind].name, "x": x, "y": y, "z": z}
        for kind, (x, y, z) in zip(kinds, places[seen].tolist(), strict=True)
    ]
