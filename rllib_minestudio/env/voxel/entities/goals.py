"""Goals of mobs, after Minecraft Java 1.16: what a mob does, by its kind and by priority.

A row of `mobs.csv` lists the goals of a kind, the most urgent first. In each tick, a mob begins the
first of them that has a reason to begin, unless it already pursues that goal or one before it: a
goal is interrupted by more urgent ones only. It ends when its time is over, when the mob arrives,
or when the mob cannot get on.

To add a goal, add its code and name, a kernel that begins it, and a branch in `_begin`. How large
a mob is, which depends on its age, is here, too, since animals look for each other.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import MOB_KINDS, MobKind
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, GRASS_BLOCK, kind_of
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index
from rllib_minestudio.errors import EngineError

NO_GOAL, PANIC, STROLL, LOOK, BREED, TEMPT, FOLLOW, GRAZE = range(8)
"""Values of a mob's `goal`: what it is doing.

- `PANIC`: it runs about, because it was hurt a short time ago.
- `STROLL`: it walks to a place nearby.
- `LOOK`: it stands and looks, at the player or to any side.
- `BREED`: it walks to the nearest of its kind that looks for a partner, too.
- `TEMPT`: it follows the player, who holds its food.
- `FOLLOW`: young, it follows the nearest grown-up of its kind.
- `GRAZE`: it stands with its head on the ground, and eats grass.
"""
GOAL_CODE = {
    "panic": PANIC,
    "stroll": STROLL,
    "look": LOOK,
    "breed": BREED,
    "tempt": TEMPT,
    "follow": FOLLOW,
    "graze": GRAZE,
}
"""Goals by their names in `mobs.csv`."""

LOVE_TICKS = 600
"""Ticks for which an animal that was fed looks for a partner."""
BREED_TICKS = 60
"""Ticks that a pair spends on its way and together before it has young."""
BREED_REACH = 3.0
"""Blocks between the two at the end of these."""
GRAZE_TICKS, BITE_TICK = 40, 4
"""Ticks for which a sheep grazes, and how many of them are left when it bites."""

_PANIC_RANGE, _PANIC_TICKS = 5.0, 40
_STROLL_CHANCE = 1.0 / 120.0
_STROLL_RANGE, _STROLL_TICKS = 10.0, 200
_LOOK_CHANCE = 0.02
_WATCH_RANGE = 6.0
_WATCH_TICKS, _LOOK_ASIDE_TICKS = 40, 20
"""Least duration of a look at the player, and to a side."""
_ARRIVED = 0.5
_SIGHT, _SIGHT_UP = 8.0, 4.0
"""How far from its own box an animal sees others of its kind, in blocks: across, and up and down
for parents; partners are seen as far up and down as across."""
_NEAR_PARENT, _FAR_PARENT = 3.0, 16.0
"""Blocks from its parent beyond which a young animal begins to follow, and ceases to."""
_FOLLOW_TICKS = 10
"""Ticks between two looks for the parent's place."""
_TEMPT_RANGE, _TEMPT_STOP = 10.0, 2.5
"""Blocks from the player within which food tempts, and within which the animal stands."""
_INVISIBLE, _ALWAYS_NOTICED = 0.07, 2.0
"""Share of its sight in which an animal notices an invisible player; at least so many blocks."""
_ALOOF_TICKS = 100
_GRAZE_CHANCE, _YOUNG_GRAZE_CHANCE = 1.0 / 1000.0, 1.0 / 50.0
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


def _tempting() -> NDArray[np.bool_]:
    """Whether each kind follows an item in the player's hand, bool [kinds, items]."""
    table = np.zeros((len(MOB_KINDS), max(ITEMS) + 1), np.bool_)
    for row, kind in zip(table, MOB_KINDS, strict=True):
        row[[ITEM_ID[name] for name in kind.food]] = True
    return table


TEMPTS = _tempting()
"""Whether each kind eats an item, bool [kinds, items]."""
_GRASS = BLOCK_ID["grass"]
_GOALS = _by_priority()
_SPEED_FACTOR = _speed_factors()
_SPEED = np.array([kind.speed for kind in MOB_KINDS])

_HALF = np.array([kind.width / 2 for kind in MOB_KINDS])
_HEIGHT = np.array([kind.height for kind in MOB_KINDS])
_YOUNG_SCALE = 0.5
"""Size of a young animal's body, as a share of a grown one's."""


@kernel(inline="always")
def half_width(mob: np.void) -> float:
    """Half the width of a mob's box, in blocks."""
    return float(_HALF[mob.kind]) * (_YOUNG_SCALE if mob.age < 0 else 1.0)


@kernel(inline="always")
def body_height(mob: np.void) -> float:
    """Height of a mob's box, in blocks."""
    return float(_HEIGHT[mob.kind]) * (_YOUNG_SCALE if mob.age < 0 else 1.0)


@kernel()
def begin_goal(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    mob: np.void,
    player: np.void,
    rng: NDArray[np.uint64],
) -> None:
    """Begin the most urgent goal that has a reason to begin, if it is before the present one."""
    goals = _GOALS[mob.kind]
    for place in range(len(goals)):
        goal = goals[place]
        if (
            goal == NO_GOAL
            or goal == mob.goal
            or _begin(goal, blocks, mobs, count, mob, player, rng)
        ):
            return


@kernel()
def _begin(
    goal: int,
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    mob: np.void,
    player: np.void,
    rng: NDArray[np.uint64],
) -> bool:
    """Begin a goal if it has a reason to; return whether it began."""
    if goal == PANIC:
        return _begin_panic(mob, rng)
    if goal == STROLL:
        return _begin_stroll(mob, rng)
    if goal == LOOK:
        return _begin_look(mob, player, rng)
    if goal == BREED:
        return _begin_breed(mobs, count, mob)
    if goal == TEMPT:
        return _begin_tempt(mob, player)
    if goal == FOLLOW:
        return _begin_follow(mobs, count, mob)
    return _begin_graze(blocks, mob, rng)


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
def _noticed_within(player: np.void, reach: float) -> float:
    """Blocks within which an animal that sees as far as `reach` notices the player.

    As in the game, who is invisible, without armour, is noticed at 7 % of the distance.
    """
    return max(_INVISIBLE * reach, _ALWAYS_NOTICED) if player.invisible else reach


@kernel()
def _begin_look(mob: np.void, player: np.void, rng: NDArray[np.uint64]) -> bool:
    dice = physics.random(rng)
    dx = player.position[0] - mob.position[0]
    dz = player.position[2] - mob.position[2]
    within = _noticed_within(player, _WATCH_RANGE)
    if dice < _LOOK_CHANCE and dx * dx + dz * dz < within * within:
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
def find_partner(mobs: NDArray[np.void], count: int, mob: np.void) -> int:
    """Return the row of the nearest animal of the same kind that looks for a partner, too, or -1.

    Its box must touch the animal's own, widened by `_SIGHT` along each axis.
    """
    return _nearest(mobs, count, mob, _SIGHT, True)


@kernel()
def _find_parent(mobs: NDArray[np.void], count: int, mob: np.void) -> int:
    """Return the row of the nearest grown-up of the same kind, or -1."""
    return _nearest(mobs, count, mob, _SIGHT_UP, False)


@kernel()
def _nearest(
    mobs: NDArray[np.void], count: int, mob: np.void, sight_up: float, in_love: bool
) -> int:
    best, nearest = -1, np.inf
    for row in range(count):
        other = mobs[row]
        if other.kind != mob.kind or other.death_ticks > 0 or other.age < 0:
            continue
        if in_love and other.love_ticks == 0:
            continue
        dx = other.position[0] - mob.position[0]
        dy = other.position[1] - mob.position[1]
        dz = other.position[2] - mob.position[2]
        distance = dx * dx + dy * dy + dz * dz
        across = _SIGHT + half_width(mob) + half_width(other)
        if distance == 0.0 or distance >= nearest or max(abs(dx), abs(dz)) >= across:
            continue
        if -body_height(other) - sight_up < dy < body_height(mob) + sight_up:
            best, nearest = row, distance
    return best


@kernel()
def _begin_breed(mobs: NDArray[np.void], count: int, mob: np.void) -> bool:
    if mob.love_ticks == 0 or find_partner(mobs, count, mob) < 0:
        return False
    _stand(mob, BREED, BREED_TICKS)
    return True


@kernel()
def _is_tempted(mob: np.void, player: np.void) -> bool:
    """Whether the player is near and holds the animal's food."""
    near = apart(mob, player) < _noticed_within(player, _TEMPT_RANGE)
    return near and bool(TEMPTS[mob.kind, player.held_item]) and player.health > 0.0


@kernel()
def _begin_tempt(mob: np.void, player: np.void) -> bool:
    if mob.aloof_ticks > 0:
        mob.aloof_ticks -= 1
        return False
    if not _is_tempted(mob, player):
        return False
    _stand(mob, TEMPT, 1)
    mob.follows_player = 1
    return True


@kernel()
def _begin_follow(mobs: NDArray[np.void], count: int, mob: np.void) -> bool:
    if mob.age >= 0:
        return False
    row = _find_parent(mobs, count, mob)
    if row < 0 or apart(mob, mobs[row]) < _NEAR_PARENT:
        return False
    _stand(mob, FOLLOW, _FOLLOW_TICKS)
    return True


@kernel()
def _begin_graze(blocks: NDArray[np.uint16], mob: np.void, rng: NDArray[np.uint64]) -> bool:
    chance = _YOUNG_GRAZE_CHANCE if mob.age < 0 else _GRAZE_CHANCE
    if physics.random(rng) >= chance:
        return False
    x, z = int64(np.floor(mob.position[0])), int64(np.floor(mob.position[2]))
    y = int64(np.floor(mob.position[1]))
    if not 1 <= y < HEIGHT:
        return False
    start = block_index(x, 0, z)
    if kind_of(blocks[start + y]) != _GRASS and kind_of(blocks[start + y - 1]) != GRASS_BLOCK:
        return False
    _stand(mob, GRAZE, GRAZE_TICKS)
    return True


@kernel()
def apart(mob: np.void, other: np.void) -> float:
    """Blocks between the feet of two mobs, or of a mob and the player."""
    dx = mob.position[0] - other.position[0]
    dy = mob.position[1] - other.position[1]
    dz = mob.position[2] - other.position[2]
    return float(np.sqrt(dx * dx + dy * dy + dz * dz))


@kernel()
def _stand(mob: np.void, goal: int, ticks: int) -> None:
    """Begin a goal at the place where the animal stands."""
    mob.goal = goal
    mob.goal_ticks = ticks
    mob.follows_player = 0
    mob.goal_x = mob.position[0]
    mob.goal_z = mob.position[2]


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
def pursue_goal(mobs: NDArray[np.void], count: int, mob: np.void, player: np.void) -> float:
    """Turn the mob towards its goal; return the speed it wants to walk at, 0 to stand still."""
    if mob.goal == NO_GOAL:
        return 0.0
    stop = _ARRIVED
    if mob.goal == BREED or mob.goal == FOLLOW:
        row = _companion(mobs, count, mob)
        if row < 0:
            mob.goal = NO_GOAL
            return 0.0
        mob.goal_x, mob.goal_z = mobs[row].position[0], mobs[row].position[2]
    elif mob.goal == TEMPT:
        if not _is_tempted(mob, player):
            mob.goal, mob.aloof_ticks = NO_GOAL, _ALOOF_TICKS
            return 0.0
        mob.goal_ticks, stop = 2, _TEMPT_STOP
    mob.goal_ticks -= 1
    if mob.follows_player:
        mob.goal_x = player.position[0]
        mob.goal_z = player.position[2]
    dx = mob.goal_x - mob.position[0]
    dz = mob.goal_z - mob.position[2]
    factor = float(_SPEED_FACTOR[mob.kind, mob.goal])
    walking = factor > 0.0
    arrived = walking and dx * dx + dz * dz < stop * stop
    if arrived and (mob.goal == BREED or mob.goal == TEMPT):
        walking, factor = False, 0.0
    elif arrived:
        mob.goal_ticks = 0
    if mob.goal_ticks <= 0:
        mob.goal = NO_GOAL
        return 0.0
    if mob.goal != GRAZE:
        _turn_towards(mob, np.arctan2(-dx, dz), _LARGEST_TURN if walking else _GAZE_TURN)
    return float(_SPEED[mob.kind]) * factor


@kernel()
def _companion(mobs: NDArray[np.void], count: int, mob: np.void) -> int:
    """Return the row of the partner or the parent that a mob walks to; -1 to give the goal up."""
    if mob.goal == BREED:
        return find_partner(mobs, count, mob) if mob.love_ticks > 0 else -1
    row = _find_parent(mobs, count, mob) if mob.age < 0 else -1
    return row if row >= 0 and _NEAR_PARENT <= apart(mob, mobs[row]) <= _FAR_PARENT else -1


@kernel()
def _turn_towards(mob: np.void, yaw: float, limit: float) -> None:
    turn = yaw - mob.yaw
    turn -= 2.0 * np.pi * np.floor((turn + np.pi) / (2.0 * np.pi))
    mob.yaw += min(max(turn, -limit), limit)
