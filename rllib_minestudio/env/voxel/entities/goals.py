"""Goals of mobs, after Minecraft Java 1.16: what a mob does, by its kind and by priority.

A row of `mobs.csv` lists the goals of a kind, the most urgent first. In each tick, a mob begins the
first of them that has a reason to begin, unless it already pursues that goal or one before it: a
goal is interrupted by more urgent ones only. It ends when its time is over, when the mob arrives,
or when the mob cannot get on.

To add a goal, add its code and name, a kernel that begins it, and a branch in `_begin`.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import MOB_KINDS, MobKind
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.errors import EngineError

NO_GOAL, PANIC, STROLL, LOOK = range(4)
"""Values of a mob's `goal`: what it is doing.

- `PANIC`: it runs about, because it was hurt a short time ago.
- `STROLL`: it walks to a place nearby.
- `LOOK`: it stands and looks, at the player or to any side.
"""
GOAL_CODE = {"panic": PANIC, "stroll": STROLL, "look": LOOK}
"""Goals by their names in `mobs.csv`."""

_PANIC_RANGE, _PANIC_TICKS = 5.0, 40
_STROLL_CHANCE = 1.0 / 120.0
_STROLL_RANGE, _STROLL_TICKS = 10.0, 200
_LOOK_CHANCE = 0.02
_WATCH_RANGE = 6.0
_WATCH_TICKS, _LOOK_ASIDE_TICKS = 40, 20
"""Least duration of a look at the player, and to a side."""
_ARRIVED = 0.5
_LARGEST_TURN = np.pi / 2
_GAZE_TURN = np.radians(10.0)
"""Most that a walking and a standing mob turn in a tick, in radians."""


def _codes(kind: MobKind) -> list[int]:
    unknown = sorted({name for name, _ in kind.goals} - set(GOAL_CODE))
    if unknown:
        raise EngineError(
            f"mobs.csv: {kind.name} has the goal {unknown[0]!r}, "
            f"which is not one of {', '.join(GOAL_CODE)}."
        )
    return [GOAL_CODE[name] for name, _ in kind.goals]


def _by_priority() -> NDArray[np.int64]:
    """The codes of each kind's goals, int64 [kinds, most goals + 1]; `NO_GOAL` ends a row."""
    rows = [_codes(kind) for kind in MOB_KINDS]
    table = np.full((len(rows), max(map(len, rows)) + 1), NO_GOAL, np.int64)
    for row, codes in zip(table, rows, strict=True):
        row[: len(codes)] = codes
    return table


def _speed_factors() -> NDArray[np.float64]:
    """The factor on the speed by kind and goal, float64 [kinds, goals]."""
    table = np.zeros((len(MOB_KINDS), len(GOAL_CODE) + 1))
    for row, kind in zip(table, MOB_KINDS, strict=True):
        row[_codes(kind)] = [factor for _, factor in kind.goals]
    return table


_GOALS = _by_priority()
_SPEED_FACTOR = _speed_factors()
_SPEED = np.array([kind.speed for kind in MOB_KINDS])


@kernel()
def begin_goal(mob: np.void, player: np.void, rng: NDArray[np.uint64]) -> None:
    """Begin the most urgent goal that has a reason to begin, if it is before the present one."""
    goals = _GOALS[mob.kind]
    for place in range(len(goals)):
        goal = goals[place]
        if goal == NO_GOAL or goal == mob.goal or _begin(goal, mob, player, rng):
            return


@kernel()
def _begin(goal: int, mob: np.void, player: np.void, rng: NDArray[np.uint64]) -> bool:
    """Begin a goal if it has a reason to; return whether it began."""
    if goal == PANIC:
        return _begin_panic(mob, rng)
    if goal == STROLL:
        return _begin_stroll(mob, rng)
    return _begin_look(mob, player, rng)


@kernel()
def _begin_panic(mob: np.void, rng: NDArray[np.uint64]) -> bool:
    if mob.panic_ticks == 0:
        return False
    _head_for_any_place(mob, PANIC, _PANIC_RANGE, _PANIC_TICKS, rng)
    return True


@kernel()
def _begin_stroll(mob: np.void, rng: NDArray[np.uint64]) -> bool:
    if physics.random(rng) >= _STROLL_CHANCE:
        return False
    _head_for_any_place(mob, STROLL, _STROLL_RANGE, _STROLL_TICKS, rng)
    return True


@kernel()
def _begin_look(mob: np.void, player: np.void, rng: NDArray[np.uint64]) -> bool:
    dice = physics.random(rng)
    dx = player.position[0] - mob.position[0]
    dz = player.position[2] - mob.position[2]
    if dice < _LOOK_CHANCE and dx * dx + dz * dz < _WATCH_RANGE * _WATCH_RANGE:
        mob.goal = LOOK
        mob.follows_player = 1
        mob.goal_ticks = _WATCH_TICKS + int64(physics.random(rng) * _WATCH_TICKS)
        return True
    if dice > 1.0 - _LOOK_CHANCE:
        _head_for_any_place(mob, LOOK, _STROLL_RANGE, _LOOK_ASIDE_TICKS, rng)
        mob.goal_ticks += int64(physics.random(rng) * _LOOK_ASIDE_TICKS)
        return True
    return False


@kernel()
def _head_for_any_place(
    mob: np.void, goal: int, reach: float, ticks: int, rng: NDArray[np.uint64]
) -> None:
    """Begin a goal at a random place, at most `reach` blocks away along each axis."""
    mob.goal = goal
    mob.goal_ticks = ticks
    mob.follows_player = 0
    mob.goal_x = mob.position[0] + (physics.random(rng) * 2.0 - 1.0) * reach
    mob.goal_z = mob.position[2] + (physics.random(rng) * 2.0 - 1.0) * reach


@kernel()
def pursue_goal(mob: np.void, player: np.void) -> float:
    """Turn the mob towards its goal; return the speed it wants to walk at, 0 to stand still."""
    if mob.goal == NO_GOAL:
        return 0.0
    mob.goal_ticks -= 1
    if mob.follows_player:
        mob.goal_x = player.position[0]
        mob.goal_z = player.position[2]
    dx = mob.goal_x - mob.position[0]
    dz = mob.goal_z - mob.position[2]
    factor = float(_SPEED_FACTOR[mob.kind, mob.goal])
    walking = factor > 0.0
    arrived = walking and dx * dx + dz * dz < _ARRIVED * _ARRIVED
    if mob.goal_ticks <= 0 or arrived:
        mob.goal = NO_GOAL
        return 0.0
    _turn_towards(mob, np.arctan2(-dx, dz), _LARGEST_TURN if walking else _GAZE_TURN)
    return float(_SPEED[mob.kind]) * factor


@kernel()
def _turn_towards(mob: np.void, yaw: float, limit: float) -> None:
    turn = yaw - mob.yaw
    turn -= 2.0 * np.pi * np.floor((turn + np.pi) / (2.0 * np.pi))
    mob.yaw += min(max(turn, -limit), limit)
