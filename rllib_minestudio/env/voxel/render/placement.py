"""From mobs, items and falling blocks to *instances*: which model the camera sees where.

Positions are taken relative to the eye in double precision, then rounded to float32, so nothing
trembles far from the origin. What is out of sight is left out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import (
    FORWARD,
    RIGHT,
    UP,
    VIEW,
    Bytes,
    Floats,
    Ints,
    render_kernel,
)
from rllib_minestudio.env.voxel.world.sky_light import level_at

# Columns of an instance, float32.
OFFSET = 0  # x, y, z of the feet relative to the eye, blocks
AHEAD_X, AHEAD_Z = 3, 4  # where it looks, unit vector
SWING_SIN, SWING_COS = 5, 6  # legs
ROLL_SIN, ROLL_COS = 7, 8  # 0, 1 upright; 1, 0 fallen over
LIGHT_LEVEL = 9  # of the sky's light, 0..15
RED = 10  # how much of the picture the hurt flash takes
INSTANCE_SIZE = 11

# No model reaches further from its feet than this, in blocks.
REACH = 2.0
# Legs of a running mob swing this far (1.4 rad in Minecraft's models).
LEG_SWING = 1.4
HURT_RED = 0.5
DEATH_FALL_TICKS = 20.0
# A dropped item turns once in about 6 s and bobs by a tenth of a block.
ITEM_TURN = 1 / 20
ITEM_BOB = 0.1
ITEM_HOVER = 0.1
# Where the light on something counts, in blocks.
ABOVE_FEET = 0.2


@render_kernel
def _in_view(
    camera: Floats, half_width: float, half_height: float, x: float, y: float, z: float
) -> bool:
    """Whether a ball of radius REACH around a point (relative to the eye) may be seen."""
    view = camera[VIEW]
    if x * x + y * y + z * z > view * view:
        return False
    ahead = x * camera[FORWARD] + y * camera[FORWARD + 1] + z * camera[FORWARD + 2]
    if ahead < -REACH:
        return False
    side = abs(x * camera[RIGHT] + y * camera[RIGHT + 1] + z * camera[RIGHT + 2])
    rise = abs(x * camera[UP] + y * camera[UP + 1] + z * camera[UP + 2])
    if side > ahead * half_width + REACH * (1 + half_width):
        return False
    return rise <= ahead * half_height + REACH * (1 + half_height)


@render_kernel
def _light_level(light: Bytes, x: float, y: float, z: float) -> int:
    """Light a little above the feet, where no ground is even if something sinks in."""
    layer = int64(math.floor(y + ABOVE_FEET))
    return level_at(light, int64(math.floor(x)), layer, int64(math.floor(z)))


@render_kernel
def place_mobs(
    mobs: NDArray[np.void],
    count: int,
    model_of: Ints,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible mobs.

    Args:
        mobs: Records of `entities.MOB_DTYPE`.
        count: How many of them are in use.
        model_of: int32 by kind of mob.
        light: uint8 (2**23,), see `sky_light`.
        camera: float32 (CAMERA_SIZE,).
        eye: float64 (3,), world position of the eye.
        half_width: Half the view's width one block ahead.
        half_height: Half its height.
        instances: float32 (n, INSTANCE_SIZE), written from row `found`.
        models: int32 (n,), written likewise.
        found: Instances already there.

    Returns:
        Instances there now.
    """
    for i in range(count):
        mob = mobs[i]
        position = mob.position
        x, y, z = position[0] - eye[0], position[1] - eye[1], position[2] - eye[2]
        if found == len(models) or not _in_view(camera, half_width, half_height, x, y, z):
            continue
        row = instances[found]
        row[OFFSET], row[OFFSET + 1], row[OFFSET + 2] = x, y, z
        row[AHEAD_X], row[AHEAD_Z] = -math.sin(mob.yaw), math.cos(mob.yaw)
        angle = LEG_SWING * mob.limb_amplitude * math.cos(mob.limb_swing)
        row[SWING_SIN], row[SWING_COS] = math.sin(angle), math.cos(angle)
        # Minecraft's fall: quick at first, flat on the side when 5/8 of the time is over.
        fallen = min(math.sqrt(mob.death_ticks / DEATH_FALL_TICKS * 1.6), 1.0) * math.pi / 2
        row[ROLL_SIN], row[ROLL_COS] = math.sin(fallen), math.cos(fallen)
        row[LIGHT_LEVEL] = _light_level(light, position[0], position[1], position[2])
        row[RED] = HURT_RED if mob.hurt_ticks > 0 or mob.death_ticks > 0 else 0.0
        models[found] = model_of[mob.kind]
        found += 1
    return found


@render_kernel
def place_items(
    items: NDArray[np.void],
    count: int,
    model_of: Ints,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible dropped items; arguments and result as of `place_mobs`."""
    for i in range(count):
        item = items[i]
        position = item.position
        x, y, z = position[0] - eye[0], position[1] - eye[1], position[2] - eye[2]
        if found == len(models) or not _in_view(camera, half_width, half_height, x, y, z):
            continue
        # The row number keeps heaps of items from turning in step.
        turn = item.age * ITEM_TURN + i
        y += ITEM_HOVER + ITEM_BOB * math.sin(item.age / 10 + i)
        row = instances[found]
        row[SWING_SIN] = row[ROLL_SIN] = row[RED] = 0.0
        row[OFFSET], row[OFFSET + 1], row[OFFSET + 2] = x, y, z
        row[AHEAD_X], row[AHEAD_Z] = math.sin(turn), math.cos(turn)
        row[SWING_COS] = 1.0
        row[ROLL_COS] = 1.0
        row[LIGHT_LEVEL] = _light_level(light, position[0], position[1], position[2])
        models[found] = model_of[item.item]
        found += 1
    return found


@render_kernel
def place_falling(
    falling: NDArray[np.void],
    count: int,
    model_of: Ints,
    light: Bytes,
    camera: Floats,
    eye: NDArray[np.float64],
    half_width: float,
    half_height: float,
    instances: Floats,
    models: Ints,
    found: int,
) -> int:
    """Append the visible falling blocks; arguments and result as of `place_mobs`."""
    for i in range(count):
        block = falling[i]
        position = block.position
        x, y, z = position[0] - eye[0], position[1] - eye[1], position[2] - eye[2]
        if found == len(models) or not _in_view(camera, half_width, half_height, x, y, z):
            continue
        row = instances[found]
        row[AHEAD_X] = row[SWING_SIN] = row[ROLL_SIN] = row[RED] = 0.0
        row[OFFSET], row[OFFSET + 1], row[OFFSET + 2] = x, y, z
        row[AHEAD_Z] = row[SWING_COS] = row[ROLL_COS] = 1.0
        row[LIGHT_LEVEL] = _light_level(light, position[0], position[1], position[2])
        models[found] = model_of[block.block]
        found += 1
    return found
