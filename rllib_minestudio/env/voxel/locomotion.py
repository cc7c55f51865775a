"""How the player moves: walking, sprinting, sneaking, jumping, falling (Minecraft Java 1.16)."""

from __future__ import annotations

import numpy as np
from numba import float64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel import controls, hunger, physics
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.player import SNEAKING_HEIGHT, STANDING_HEIGHT, WIDTH

WALK_ACCELERATION = 0.1
SPRINT_FACTOR = 1.3
SNEAK_FACTOR = 0.3
EATING_FACTOR = 0.2
SPRINT_JUMP_BOOST = 0.2
DOUBLE_TAP_TICKS = 7
"""Pressing forward twice within this time starts sprinting."""

_HALF = WIDTH / 2
_EDGE_STEP = 0.05
_JUMP_PER_LEVEL = 0.1


@kernel(inline="always")
def _pressed(keys: int, key: int) -> float:
    return float64(1.0) if keys & key else float64(0.0)


@kernel()
def _update_sneaking(blocks: NDArray[np.uint8], player: np.void, keys: int) -> None:
    """Sneaks while the key is held, and on while there is no room to stand up."""
    position = player.position
    cramped = player.sneaking and not physics.is_free(
        blocks, position[0], position[1], position[2], _HALF, STANDING_HEIGHT
    )
    player.sneaking = 1 if keys & controls.SNEAK or cramped else 0


@kernel()
def _update_sprinting(player: np.void, keys: int) -> None:
    forward = keys & controls.FORWARD and not keys & controls.BACK
    was_forward = player.keys & controls.FORWARD and not player.keys & controls.BACK
    if player.sprint_window > 0:
        player.sprint_window -= 1
    able = forward and not player.sneaking and player.food > hunger.SPRINT_FOOD
    if not able or (player.sprinting and player.hit_wall):
        player.sprinting = 0
        return
    if player.eating_ticks > 0:  # begins no sprint, but does not end one
        player.sprint_window = 0
    elif keys & controls.SPRINT:
        player.sprinting = 1
    elif not was_forward and player.on_ground:
        if player.sprint_window > 0:
            player.sprinting = 1
        else:
            player.sprint_window = DOUBLE_TAP_TICKS


@kernel()
def _jump(player: np.void, keys: int) -> None:
    if player.jump_delay > 0:
        player.jump_delay -= 1
    if not keys & controls.JUMP:
        player.jump_delay = 0
    elif player.on_ground and player.jump_delay == 0:
        player.jump_delay = physics.JUMP_DELAY
        player.jumps += 1
        player.velocity[1] = physics.JUMP_SPEED + _JUMP_PER_LEVEL * player.jump_boost
        if player.sprinting:
            yaw = np.radians(player.yaw)
            player.velocity[0] -= np.sin(yaw) * SPRINT_JUMP_BOOST
            player.velocity[2] += np.cos(yaw) * SPRINT_JUMP_BOOST
            player.exhaustion += hunger.PER_SPRINT_JUMP
        else:
            player.exhaustion += hunger.PER_JUMP


@kernel()
def _accelerate(player: np.void, keys: int) -> None:
    """Adds what the movement keys ask for to the velocity."""
    ahead = _pressed(keys, controls.FORWARD) - _pressed(keys, controls.BACK)
    left = _pressed(keys, controls.LEFT) - _pressed(keys, controls.RIGHT)
    scale = physics.INPUT_SCALE * (SNEAK_FACTOR if player.sneaking else 1.0)
    if player.eating_ticks > 0:
        scale *= EATING_FACTOR
    ahead *= scale
    left *= scale
    length = np.sqrt(ahead * ahead + left * left)
    if length > 1.0:
        ahead /= length
        left /= length
    if player.on_ground:
        acceleration = WALK_ACCELERATION * player.speed_factor
    else:
        acceleration = physics.AIR_ACCELERATION
    if player.sprinting:
        acceleration *= SPRINT_FACTOR
    yaw = np.radians(player.yaw)
    sin = np.sin(yaw)
    cos = np.cos(yaw)
    player.velocity[0] += (left * cos - ahead * sin) * acceleration
    player.velocity[2] += (ahead * cos + left * sin) * acceleration


@kernel(inline="always")
def _shorten(distance: float) -> float:
    if abs(distance) < _EDGE_STEP:
        return 0.0
    return distance - _EDGE_STEP if distance > 0.0 else distance + _EDGE_STEP


@kernel()
def _stay_on_edge(
    blocks: NDArray[np.uint8], player: np.void, dx: float, dz: float
) -> tuple[float, float]:
    """Shortens a sneaking step in steps of 0.05 until there is ground under it."""
    x = player.position[0]
    y = player.position[1] - physics.STEP_HEIGHT
    z = player.position[2]
    height = SNEAKING_HEIGHT
    while dx != 0.0 and physics.is_free(blocks, x + dx, y, z, _HALF, height):
        dx = _shorten(dx)
    while dz != 0.0 and physics.is_free(blocks, x, y, z + dz, _HALF, height):
        dz = _shorten(dz)
    while dx != 0.0 and dz != 0.0 and physics.is_free(blocks, x + dx, y, z + dz, _HALF, height):
        dx = _shorten(dx)
        dz = _shorten(dz)
    return dx, dz


@kernel()
def _record_step(player: np.void, dx: float, dz: float) -> None:
    length = np.sqrt(dx * dx + dz * dz)
    player.step_length = length
    if not player.on_ground:
        return
    if player.sprinting:
        player.sprinted += length
        player.exhaustion += length * hunger.PER_SPRINTED_BLOCK
    elif player.sneaking:
        player.crept += length
    else:
        player.walked += length


@kernel()
def move_player(blocks: NDArray[np.uint8], player: np.void, keys: int) -> float:
    """Moves the player for one tick.

    Args:
        blocks: The window's block ids.
        player: A `PLAYER_DTYPE` record.
        keys: Bits of the held keys (controls.py).

    Returns:
        The damage of a landing, usually 0.
    """
    _update_sneaking(blocks, player, keys)
    _update_sprinting(player, keys)
    physics.settle(player)
    _jump(player, keys)
    _accelerate(player, keys)
    was_on_ground = player.on_ground != 0
    dx = player.velocity[0]
    dz = player.velocity[2]
    if player.sneaking and was_on_ground and player.velocity[1] <= 0.0:
        dx, dz = _stay_on_edge(blocks, player, dx, dz)
    height = SNEAKING_HEIGHT if player.sneaking else STANDING_HEIGHT
    before = player.position[1]
    moved_x, moved_z = physics.move(blocks, player, _HALF, height, dx, dz)
    player.hit_wall = 1 if moved_x != dx or moved_z != dz else 0
    damage = physics.fall(player, player.position[1] - before)
    _record_step(player, moved_x, moved_z)
    physics.apply_gravity_and_drag(player, was_on_ground)
    return max(damage - player.jump_boost, 0.0)
