"""The target of the crosshair: the nearest block or mob along the line of sight."""

from __future__ import annotations

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.goals import body_height, half_width
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player.player import SNEAKING_EYES, STANDING_EYES
from rllib_minestudio.env.voxel.world.block_shapes import (
    OUTLINE_BOXES,
    OUTLINE_FIRST,
    fills_outline,
    has_outline,
    shape_at,
)
from rllib_minestudio.env.voxel.world.blocks import AIR, is_thin
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, narrow_block_index

BLOCK_REACH = 4.5
"""How far the player reaches to blocks, in blocks from the eyes."""
MOB_REACH = 3.0
"""How far the player reaches to mobs, in blocks from the eyes."""

NOTHING, BLOCK, MOB = range(3)
"""Kinds of target."""

TARGET_DTYPE = np.dtype(
    [
        ("kind", np.int64),  # NOTHING, BLOCK or MOB
        ("mob", np.int64),  # row of the mob
        ("x", np.int64),
        ("y", np.int64),
        ("z", np.int64),
        ("face", np.int64, 3),  # outward normal of the face that the ray enters through
        ("hit", np.float64, 3),  # where the ray meets the block, from its lowest corner, 0 to 1
    ],
    align=True,
)
"""What the player looks at within reach."""

NEVER = 1e30
"""Distance that stands for no hit."""
_FLATTEST = 1e-12
"""A ray that changes a coordinate by less than this per block never crosses its cell borders."""
_CELLS_PER_BLOCK = 3.0**0.5
"""Most borders between cells that a ray crosses per block of its length."""


@kernel()
def look_direction(yaw: float, pitch: float) -> tuple[float, float, float]:
    """Return the unit vector of the view from Minecraft's angles in degrees."""
    yaw = np.radians(yaw)
    pitch = np.radians(pitch)
    flat = np.cos(pitch)
    return -np.sin(yaw) * flat, -np.sin(pitch), np.cos(yaw) * flat


@kernel()
def _crossings(offset: float, slope: float) -> tuple[float, float]:
    """Return distances along a ray: to a coordinate's first cell border, and between borders.

    `offset` is the ray's start within its cell, `slope` the coordinate's change per block.
    """
    if abs(slope) < _FLATTEST:
        return NEVER, NEVER
    per = abs(1.0 / slope)
    return (1.0 - offset if slope > 0.0 else offset) * per, per


@kernel(inline="always")
def _within(face: int, at: float) -> float:
    """A coordinate of the hit, exact across the axis of the face: 0 on its low side, 1 on high."""
    if face != 0:
        return 0.0 if face < 0 else 1.0
    return min(max(at, 0.0), 1.0)


@kernel()
def _slab(low: float, high: float, slope: float, near: float, far: float) -> tuple[float, float]:
    """Narrow the part [near, far] of a ray to where one coordinate is within [low, high]."""
    inverse = 1.0 / slope if abs(slope) > 1e-12 else (1e12 if slope >= 0.0 else -1e12)
    a = low * inverse
    b = high * inverse
    return max(near, min(a, b)), min(far, max(a, b))


@kernel()
def _meet_outline(
    blocks: NDArray[np.uint16],
    cell: tuple[int, int, int],
    origin: tuple[float, float, float],
    direction: tuple[float, float, float],
    target: np.void,
) -> float:
    """Find where a ray meets the outline of the block in a cell.

    Write the face and the point of the nearest of its boxes into `target`, and return the distance,
    `NEVER` if the ray passes them all. From inside a box, that is 0, and there is no face.
    """
    best = NEVER
    shape = shape_at(blocks, cell[0], cell[1], cell[2])
    for row in range(OUTLINE_FIRST[shape], OUTLINE_FIRST[shape + 1]):
        box = OUTLINE_BOXES[row]
        near, far, axis = 0.0, NEVER, -1
        for i in range(3):
            before = near
            low, high = cell[i] + box[i] - origin[i], cell[i] + box[i + 3] - origin[i]
            near, far = _slab(low, high, direction[i], near, far)
            if near > before:
                axis = i
        if near > far or near >= best:
            continue
        best = near
        for i in range(3):
            target.face[i] = 0
            at = origin[i] + direction[i] * near - cell[i]
            target.hit[i] = min(max(at, box[i]), box[i + 3])
        if axis >= 0:
            from_below = direction[axis] > 0.0
            target.face[axis] = -1 if from_below else 1
            target.hit[axis] = box[axis] if from_below else box[axis + 3]
    return best


@kernel()
def cast_block(
    blocks: NDArray[np.uint16],
    origin: tuple[float, float, float],
    direction: tuple[float, float, float],
    reach: float,
    meets_plants: bool,
    target: np.void,
) -> float:
    """Walk a ray cell by cell (Amanatides and Woo 1987) to the first block whose outline it meets.

    Write its cell and face, and where the ray meets it, into `target`, and return its distance,
    `NEVER` if none is in `reach`. Unless it `meets_plants`, it goes through thin blocks.
    """
    ox, oy, oz = origin
    dx, dy, dz = direction
    x = int64(np.floor(ox))
    y = int64(np.floor(oy))
    z = int64(np.floor(oz))
    next_x, per_x = _crossings(ox - x, dx)
    next_y, per_y = _crossings(oy - y, dy)
    next_z, per_z = _crossings(oz - z, dz)
    step_x = 1 if dx > 0.0 else -1
    step_y = 1 if dy > 0.0 else -1
    step_z = 1 if dz > 0.0 else -1
    target.face[:] = 0
    distance = 0.0
    for _ in range(int64(reach * _CELLS_PER_BLOCK) + 4):
        if distance > reach:
            break
        block = blocks[uint32(narrow_block_index(x, y, z))] if uint32(y) < uint32(HEIGHT) else AIR
        if has_outline(block) and (meets_plants or not is_thin(block)):
            target.x = x
            target.y = y
            target.z = z
            if fills_outline(block):
                target.hit[0] = _within(target.face[0], ox + dx * distance - x)
                target.hit[1] = _within(target.face[1], oy + dy * distance - y)
                target.hit[2] = _within(target.face[2], oz + dz * distance - z)
                return distance
            met = _meet_outline(blocks, (x, y, z), origin, direction, target)
            if met < NEVER:
                return met
        target.face[:] = 0
        if next_x < next_y and next_x < next_z:
            distance = next_x
            next_x += per_x
            x += step_x
            target.face[0] = -step_x
        elif next_y < next_z:
            distance = next_y
            next_y += per_y
            y += step_y
            target.face[1] = -step_y
        else:
            distance = next_z
            next_z += per_z
            z += step_z
            target.face[2] = -step_z
    return NEVER


@kernel()
def cast_mob(
    mobs: NDArray[np.void],
    count: int,
    origin: tuple[float, float, float],
    direction: tuple[float, float, float],
    reach: float,
) -> tuple[int, float]:
    """Return row and distance of the nearest mob whose box a ray hits; (-1, reach) for none."""
    best = -1
    nearest = reach
    for row in range(count):
        mob = mobs[row]
        x = mob.position[0] - origin[0]
        y = mob.position[1] - origin[1]
        z = mob.position[2] - origin[2]
        half = half_width(mob)
        if max(abs(x), abs(z)) > reach + half:
            continue
        near, far = _slab(x - half, x + half, direction[0], 0.0, reach)
        near, far = _slab(y, y + body_height(mob), direction[1], near, far)
        near, far = _slab(z - half, z + half, direction[2], near, far)
        if near <= far and (near < nearest or best < 0):
            nearest = near
            best = row
    return best, nearest


@kernel()
def _find(
    blocks: NDArray[np.uint16],
    player: np.void,
    ago: float,
    mobs: NDArray[np.void],
    count: int,
    target: np.void,
) -> None:
    """Write what is in the middle of the view from where the player was `ago` ticks ago."""
    position, moved = player.position, player.moved
    eyes = SNEAKING_EYES if player.sneaking else STANDING_EYES
    origin = (
        position[0] - ago * moved[0],
        position[1] - ago * moved[1] + eyes,
        position[2] - ago * moved[2],
    )
    direction = look_direction(player.yaw, player.pitch)
    block_distance = cast_block(blocks, origin, direction, BLOCK_REACH, True, target)
    reach = min(block_distance, BLOCK_REACH)
    row, mob_distance = cast_mob(mobs, count, origin, direction, reach)
    target.mob = -1
    if row >= 0:
        target.kind = MOB if mob_distance <= MOB_REACH else NOTHING
        if target.kind == MOB:
            target.mob = row
    else:
        target.kind = BLOCK if block_distance <= BLOCK_REACH else NOTHING


@kernel()
def find_target(
    blocks: NDArray[np.uint16],
    player: np.void,
    mobs: NDArray[np.void],
    count: int,
    target: np.void,
) -> None:
    """Write the target of the player's crosshair into `target`.

    As in Minecraft 1.16, a mob in front of the block but beyond `MOB_REACH` counts as nothing: it
    hides the block but cannot be hit.
    """
    _find(blocks, player, 0.0, mobs, count, target)


@kernel()
def find_target_in_frame(
    blocks: NDArray[np.uint16],
    player: np.void,
    mobs: NDArray[np.void],
    count: int,
    target: np.void,
) -> None:
    """As `find_target`, from where the player was a tick ago, which is what a frame shows."""
    _find(blocks, player, 1.0, mobs, count, target)


@kernel()
def cast_grid(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    eye: NDArray[np.float64],
    directions: NDArray[np.float64],
    reach: float,
    targets: NDArray[np.void],
    distances: NDArray[np.float64],
) -> None:
    """Cast a ray per row of `directions` [n, 3], writing `targets` [n] and `distances` [n]."""
    origin = (eye[0], eye[1], eye[2])
    for ray in range(len(directions)):
        direction = (directions[ray, 0], directions[ray, 1], directions[ray, 2])
        target = targets[ray]
        block_distance = cast_block(blocks, origin, direction, reach, False, target)
        target.kind = BLOCK if block_distance < NEVER else NOTHING
        distances[ray] = min(block_distance, reach)
        row, mob_distance = cast_mob(mobs, count, origin, direction, distances[ray])
        if row >= 0:
            target.kind = MOB
            distances[ray] = mob_distance
