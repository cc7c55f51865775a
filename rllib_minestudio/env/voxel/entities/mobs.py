"""Animals: how they wander, look around, flee and are pushed, after Minecraft Java 1.16's goals.

Paths are straight lines instead of searched ones; an animal that cannot get on gives up.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.damage import hurt_mob
from rllib_minestudio.env.voxel.entities.events import MOB_DIED, emit
from rllib_minestudio.env.voxel.entities.records import DEATH_TICKS, MOB_HALF, MOB_HEIGHT, MOB_KINDS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics

GOAL_NONE, GOAL_STROLL, GOAL_PANIC, GOAL_WATCH_PLAYER, GOAL_LOOK_ASIDE = range(5)
"""What a mob is doing (the `goal` of its record)."""

ACTIVE_RANGE = 72.0
"""Mobs farther than this from the player, on either axis, stand still; their land may be gone."""

_STROLL_CHANCE = 1.0 / 120.0
_STROLL_RANGE = 10.0
_STROLL_TICKS = 200
_PANIC_RANGE = 5.0
_PANIC_GOAL_TICKS = 40
_LOOK_CHANCE = 0.02
_LOOK_RANGE = 6.0
_ARRIVED = 0.5
_LARGEST_TURN = np.pi / 2
_GAZE_TURN = np.radians(10.0)
_PUSH = 0.05
_PUSH_ALL = 2.0
"""Minecraft lets each of two bodies push the other once a tick, so every pair is pushed twice."""
_PLAYER_HALF = 0.3
_PLAYER_HEIGHT = 1.8

_SPEED = np.array([kind.speed for kind in MOB_KINDS])
_PANIC_FACTOR = np.array([kind.panic_factor for kind in MOB_KINDS])


@kernel()
def _turn_towards(mob: np.void, yaw: float, limit: float) -> None:
    turn = yaw - mob.yaw
    turn -= 2.0 * np.pi * np.floor((turn + np.pi) / (2.0 * np.pi))
    mob.yaw += min(max(turn, -limit), limit)


@kernel()
def _head_for(mob: np.void, goal: int, reach: float, ticks: int, rng: NDArray[np.uint64]) -> None:
    mob.goal = goal
    mob.goal_ticks = ticks
    mob.goal_x = mob.position[0] + (physics.random(rng) * 2.0 - 1.0) * reach
    mob.goal_z = mob.position[2] + (physics.random(rng) * 2.0 - 1.0) * reach


@kernel()
def _choose_goal(mob: np.void, player: np.void, rng: NDArray[np.uint64]) -> None:
    """Starts a goal when the mob has none; fleeing comes before everything else."""
    if mob.panic_ticks > 0:
        mob.panic_ticks -= 1
        if mob.goal != GOAL_PANIC:
            _head_for(mob, GOAL_PANIC, _PANIC_RANGE, _PANIC_GOAL_TICKS, rng)
        return
    if mob.goal == GOAL_STROLL or mob.goal == GOAL_PANIC:
        return
    if physics.random(rng) < _STROLL_CHANCE:
        _head_for(mob, GOAL_STROLL, _STROLL_RANGE, _STROLL_TICKS, rng)
    elif mob.goal == GOAL_NONE:
        dice = physics.random(rng)
        dx = player.position[0] - mob.position[0]
        dz = player.position[2] - mob.position[2]
        if dice < _LOOK_CHANCE and dx * dx + dz * dz < _LOOK_RANGE * _LOOK_RANGE:
            mob.goal = GOAL_WATCH_PLAYER
            mob.goal_ticks = 40 + int64(physics.random(rng) * 40.0)
        elif dice > 1.0 - _LOOK_CHANCE:
            _head_for(mob, GOAL_LOOK_ASIDE, _STROLL_RANGE, 20, rng)
            mob.goal_ticks += int64(physics.random(rng) * 20.0)


@kernel()
def _pursue_goal(mob: np.void, player: np.void) -> float:
    """Turns the mob as its goal asks; returns how fast it wants to walk, 0 to stand."""
    if mob.goal == GOAL_NONE:
        return 0.0
    mob.goal_ticks -= 1
    if mob.goal == GOAL_WATCH_PLAYER:
        mob.goal_x = player.position[0]
        mob.goal_z = player.position[2]
    dx = mob.goal_x - mob.position[0]
    dz = mob.goal_z - mob.position[2]
    walking = mob.goal == GOAL_STROLL or mob.goal == GOAL_PANIC
    arrived = walking and dx * dx + dz * dz < _ARRIVED * _ARRIVED
    if mob.goal_ticks <= 0 or arrived:
        mob.goal = GOAL_NONE
        return 0.0
    _turn_towards(mob, np.arctan2(-dx, dz), _LARGEST_TURN if walking else _GAZE_TURN)
    if not walking:
        return 0.0
    factor = float(_PANIC_FACTOR[mob.kind]) if mob.goal == GOAL_PANIC else 1.0
    return float(_SPEED[mob.kind]) * factor


@kernel()
def _can_jump_over(blocks: NDArray[np.uint16], mob: np.void) -> bool:
    """Whether the obstacle ahead is one block high with room above it."""
    half = float(MOB_HALF[mob.kind])
    height = float(MOB_HEIGHT[mob.kind])
    x = mob.position[0] - np.sin(mob.yaw) * 0.5
    z = mob.position[2] + np.cos(mob.yaw) * 0.5
    return physics.is_free(blocks, x, mob.position[1] + 1.0, z, half, height)


@kernel()
def _walk(blocks: NDArray[np.uint16], mob: np.void, speed: float) -> float:
    """Moves a mob for one tick; returns the damage of a landing.

    A walking mob's input is its speed and so is its acceleration, hence the square.
    """
    half = float(MOB_HALF[mob.kind])
    height = float(MOB_HEIGHT[mob.kind])
    was_on_ground = mob.on_ground != 0
    physics.settle(mob)
    acceleration = speed if was_on_ground else physics.AIR_ACCELERATION
    push = speed * physics.INPUT_SCALE * acceleration
    velocity = mob.velocity
    velocity[0] -= np.sin(mob.yaw) * push
    velocity[2] += np.cos(mob.yaw) * push
    before = mob.position[1]
    dx = velocity[0]
    dz = velocity[2]
    moved_x, moved_z = physics.move(blocks, mob, half, height, physics.STEP_HEIGHT, dx, dz)
    damage = physics.fall(mob, mob.position[1] - before)
    physics.apply_gravity_and_drag(mob, was_on_ground)
    if speed > 0.0 and mob.on_ground and (moved_x != dx or moved_z != dz):
        if _can_jump_over(blocks, mob):
            velocity[1] = physics.JUMP_SPEED
        else:
            mob.goal = GOAL_NONE
    step = np.sqrt(moved_x * moved_x + moved_z * moved_z)
    mob.limb_amplitude += (min(step * 4.0, 1.0) - mob.limb_amplitude) * 0.4
    mob.limb_swing += mob.limb_amplitude * 0.6662
    return damage


@kernel()
def _push_pair(dx: float, dz: float) -> tuple[float, float]:
    """Push on the body that lies (dx, dz) from another that it overlaps, blocks per tick."""
    larger = max(abs(dx), abs(dz))
    if larger < 0.01:
        return 0.0, 0.0
    root = np.sqrt(larger)
    scale = _PUSH * _PUSH_ALL / root * min(1.0, 1.0 / root)
    return dx * scale, dz * scale


@kernel()
def _push_apart(mobs: NDArray[np.void], count: int, player: np.void) -> None:
    """Bodies that overlap push each other away, horizontally."""
    for i in range(count):
        one = mobs[i]
        if one.death_ticks > 0:
            continue
        half = MOB_HALF[one.kind]
        dx = one.position[0] - player.position[0]
        dz = one.position[2] - player.position[2]
        dy = one.position[1] - player.position[1]
        touch = half + _PLAYER_HALF
        if abs(dx) < touch and abs(dz) < touch and -MOB_HEIGHT[one.kind] < dy < _PLAYER_HEIGHT:
            px, pz = _push_pair(dx, dz)
            one.velocity[0] += px
            one.velocity[2] += pz
            player.velocity[0] -= px
            player.velocity[2] -= pz
        for j in range(i + 1, count):
            other = mobs[j]
            touch = half + MOB_HALF[other.kind]
            dx = one.position[0] - other.position[0]
            dz = one.position[2] - other.position[2]
            if abs(dx) >= touch or abs(dz) >= touch or other.death_ticks > 0:
                continue
            dy = one.position[1] - other.position[1]
            if -MOB_HEIGHT[one.kind] < dy < MOB_HEIGHT[other.kind]:
                px, pz = _push_pair(dx, dz)
                one.velocity[0] += px
                one.velocity[2] += pz
                other.velocity[0] -= px
                other.velocity[2] -= pz


@kernel()
def _tick_mob(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    row: int,
    player: np.void,
    rng: NDArray[np.uint64],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    mob = mobs[row]
    if mob.hurt_ticks > 0:
        mob.hurt_ticks -= 1
    speed = 0.0
    if mob.death_ticks > 0:
        mob.death_ticks += 1
    else:
        _choose_goal(mob, player, rng)
        speed = _pursue_goal(mob, player)
    damage = _walk(blocks, mob, speed)
    if mob.position[1] < physics.VOID:
        damage = max(damage, physics.VOID_DAMAGE)
    if damage > 0.0:
        hurt_mob(mobs, row, damage)
        if mob.health <= 0.0 and mob.death_ticks == 0:
            mob.death_ticks = 1
            emit(events, event_count, MOB_DIED, mob.kind, 0.0, mob.position)


@kernel()
def tick_mobs(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    players: NDArray[np.void],
    rng: NDArray[np.uint64],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> int:
    """Advances every mob by one tick and removes those that have lain dead long enough.

    Args:
        blocks: The window's block ids.
        mobs: `MOB_DTYPE` records.
        count: How many of them are in use.
        players: `PLAYER_DTYPE` [1].
        rng: State of the random generator, uint64 [1].
        events: `EVENT_DTYPE` records; receives deaths.
        event_count: int64 [1].

    Returns:
        How many mobs are left.
    """
    player = players[0]
    kept = 0
    for row in range(count):
        if mobs[row].death_ticks < DEATH_TICKS:
            if kept != row:
                mobs[kept] = mobs[row]
            kept += 1
    for row in range(kept):
        position = mobs[row].position
        far_x = abs(position[0] - player.position[0])
        far_z = abs(position[2] - player.position[2])
        if max(far_x, far_z) <= ACTIVE_RANGE:
            _tick_mob(blocks, mobs, row, player, rng, events, event_count)
    _push_apart(mobs, kept, player)
    return kept
