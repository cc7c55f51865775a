"""Things that the player throws or shoots, as in Minecraft Java 1.16: how they fly, what they do.

A row of `THROWN` says how an item flies (`ThrowableProjectile`, `AbstractArrow`), and what happens
where it hits a block, an animal, or the player, whom it passes until it has once been clear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.entities.goals import body_height, half_width
from rllib_minestudio.env.voxel.entities.mobs import (
    CHICKEN,
    DROP_DELAY,
    MOB_SWEPT,
    PANIC_TICKS,
    knock_back,
)
from rllib_minestudio.env.voxel.entities.records import (
    HURT_TICKS,
    MOB_CAPACITY,
    MOB_EFFECTS,
    MOB_KINDS,
    YOUNG_AGE,
)
from rllib_minestudio.env.voxel.game import fire
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import beside, direction_of
from rllib_minestudio.env.voxel.items.items import ITEM_ID, POTIONS, FoodEffect, potion_of
from rllib_minestudio.env.voxel.player.combat import KNOCKBACK, strike
from rllib_minestudio.env.voxel.player.player import (
    BOW_TICKS,
    STANDING_HEIGHT,
    WIDTH,
    give_effect,
)
from rllib_minestudio.env.voxel.player.raycast import (
    NEVER,
    TARGET_DTYPE,
    cast_block,
    look_direction,
)
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.block_shapes import stops_nothing

Point = tuple[float, float, float]
Vector = NDArray[np.float64]
_PLAYER, _BLOCK = -1, -2
"""What is hit, if it is not the row of an animal."""

_BELOW_EYES = 0.1
_SPREAD = 0.0075
"""Standard deviation of a throw's direction, in each coordinate of the unit vector."""
_DRAG = 0.99
_LONGEST = 1200
"""Ticks in flight after which a thing is lost."""
_SIZE, _GRAZE = 0.25, 0.3
"""Side of a thrown thing, and how far from a body it still hits that, in blocks."""
_CLEAR = 1.0
BOW, _ARROW = ITEM_ID["bow"], ITEM_ID["arrow"]
_WEAKEST = 0.1
"""Least share of a bow's full pull at which an arrow flies."""
_ARROWS_DAMAGE = 2.0
_PUNCH = 0.6
_FLAMING_TICKS = 100
_BACK = 0.2
"""How far before a block an arrow comes to lie, in blocks."""
_STEP = 0.1
"""How far a thing flies into a block that stops nothing before it is looked for the next one."""


class Hit(NamedTuple):
    """Where a thing ends.

    Attributes:
        at: The point.
        what: Row of the animal that it hits, `_PLAYER` or `_BLOCK`.
        place: The block that it hits; (0, 0, 0) if it is none.
        face: The outward normal of that block's side.
    """

    at: Point
    what: int
    place: Place = (0, 0, 0)
    face: Place = (0, 0, 0)


class _Thrown(NamedTuple):
    """How an item is thrown.

    Attributes:
        speed: Blocks per tick.
        lift: Degrees by which it is thrown higher than the player looks.
        gravity: Blocks per tick, each tick.
        hits: What happens at the end.
    """

    speed: float
    lift: float
    gravity: float
    hits: Callable[[GameState, np.void, Hit], None]


def throw(state: GameState) -> None:
    """Throw one of the items in hand forward."""
    _launch(state, state.player.held_item, state.player.held_data, 1.0)


def _launch(state: GameState, item: int, data: int, share: float) -> np.void:
    """Send an item off at a share of its full speed, and return its record."""
    player, how = state.player, THROWN[item]
    dx, dy, dz = look_direction(player.yaw, player.pitch)
    dy = -math.sin(math.radians(player.pitch - how.lift))
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    x, y, z = player.position.tolist()
    moved = player.records["moved"][0].tolist()
    if player.records["on_ground"][0]:
        moved[1] = 0.0
    record = state.thrown.append()
    record["item"] = item
    record["data"] = data
    record["position"] = x, y + player.eye_height - _BELOW_EYES, z
    record["velocity"] = [
        (part / length + state.random_normal() * _SPREAD) * how.speed * share + own
        for part, own in zip((dx, dy, dz), moved, strict=True)
    ]
    return record


def ready_bow(state: GameState) -> int:
    """Let the bow in hand be drawn if there is an arrow; return for how many ticks it has been."""
    player, record = state.player, state.player.records[0]
    record["meal_ticks"] = BOW_TICKS if (player.inventory.item == _ARROW).any() else 0
    return BOW_TICKS - int(record["eating_ticks"]) if record["eating_ticks"] else 0


def shoot(state: GameState, drawn: int) -> None:
    """Let a bow go that was drawn for some ticks (`BowItem.releaseUsing`).

    The first of the player's arrows is used up, unless the bow has the enchantment of infinity.
    """
    player = state.player
    pull = min(drawn / TICKS_PER_SECOND, 1.0)
    pull = pull * (pull + 2.0) / 3.0
    slots = np.flatnonzero(player.inventory.item == _ARROW)
    if pull < _WEAKEST or not len(slots) or player.health <= 0.0:
        return
    record = _launch(state, _ARROW, 0, pull)
    record["is_critical"] = pull == 1.0
    power = player.held_level("power")
    record["damage"] = _ARROWS_DAMAGE + (0.5 * power + 0.5 if power else 0.0)
    record["punch"], record["flame"] = player.held_level("punch"), player.held_level("flame")
    record["is_lost"] = player.held_level("infinity") > 0
    state.count_use()
    if not record["is_lost"]:
        player.inventory.take(int(slots[0]))
    state.wear_tool(1)


def tick(state: GameState) -> None:
    """Let everything in flight fly on by a tick."""
    thrown = state.thrown
    kept = np.ones(thrown.count, bool)
    for row in range(thrown.count):
        kept[row] = _fly(state, thrown.records[row])
    thrown.keep(kept)


def _fly(state: GameState, record: np.void) -> bool:
    """Let one thing fly for a tick, and do what it does if it hits; return whether it flies on."""
    record["ticks"] += 1
    x, y, z = record["position"].tolist()
    is_lost = record["ticks"] > _LONGEST or y < physics.VOID
    if is_lost or not state.world.is_loaded(x, z):
        return False
    how = THROWN[int(record["item"])]
    if not record["is_clear"]:
        record["is_clear"] = _is_clear(state, record)
    hit = _first_hit(state, record)
    if hit is not None:
        how.hits(state, record, hit)
        return False
    record["moved"] = record["velocity"]
    record["position"] += record["velocity"]
    record["velocity"] *= _DRAG
    record["velocity"][1] -= how.gravity
    return True


def _is_clear(state: GameState, record: np.void) -> bool:
    """Whether a thing is a block away from the player who threw it, wherever it flies next."""
    low, high = _players_box(state)
    (first, last), step = _box(record["position"], _SIZE / 2, _SIZE), record["velocity"]
    first, last = np.minimum(first, first + step), np.maximum(last, last + step)
    return bool((first - _CLEAR >= high).any() or (last + _CLEAR <= low).any())


def _box(feet: Vector, half: float, height: float) -> tuple[Vector, Vector]:
    """Return the lowest and the highest corner of a body, twice `half` wide."""
    return feet - np.array([half, 0.0, half]), feet + np.array([half, height, half])


def _players_box(state: GameState) -> tuple[Vector, Vector]:
    return _box(state.player.position, WIDTH / 2, STANDING_HEIGHT)


def _mobs_box(mob: np.void) -> tuple[Vector, Vector]:
    return _box(mob["position"], half_width(mob), body_height(mob))


def _first_hit(state: GameState, record: np.void) -> Hit | None:
    """Return what a thing hits first on its way in this tick."""
    start, step = record["position"], record["velocity"]
    reach = float(np.linalg.norm(step))
    if reach == 0.0:
        return None
    direction = step / reach
    hit, distance = _block_hit(state, start, direction, reach)
    nearest = min(distance, reach)
    bodies = [
        (row, *_mobs_box(mob))
        for row, mob in enumerate(state.mobs.records[: state.mobs.count])
        if not mob["death_ticks"]
    ]
    if record["is_clear"] and state.player.health > 0.0:
        bodies.append((_PLAYER, *_players_box(state)))
    for what, low, high in bodies:
        distance = _enters(start, direction, low - _GRAZE, high + _GRAZE)
        if distance <= nearest:
            nearest = distance
            x, y, z = (start + direction * distance).tolist()
            hit = Hit((x, y, z), what)
    return hit


def _enters(start: Vector, direction: Vector, low: Vector, high: Vector) -> float:
    """Return how far along a ray it enters a box, `NEVER` if it does not, or begins inside."""
    safe = np.where(np.abs(direction) < 1e-12, 1e-12, direction)
    one, two = (low - start) / safe, (high - start) / safe
    near, far = float(np.minimum(one, two).max()), float(np.maximum(one, two).min())
    return near if 0.0 <= near <= far else NEVER


def _block_hit(
    state: GameState, start: Vector, direction: Vector, reach: float
) -> tuple[Hit | None, float]:
    """Return the first block on the way that has a body, and its distance; `NEVER` for none."""
    target: np.void = np.zeros(1, TARGET_DTYPE)[0]
    passed = 0.0
    while passed < reach:
        x, y, z = (start + direction * passed).tolist()
        dx, dy, dz = direction.tolist()
        ray = (x, y, z), (dx, dy, dz), reach - passed
        distance = cast_block(state.world.blocks, *ray, False, target)
        if distance > reach - passed:
            break
        passed += distance
        place = int(target["x"]), int(target["y"]), int(target["z"])
        if not stops_nothing(state.world.block_at(*place)):
            x, y, z = (start + direction * passed).tolist()
            i, j, k = target["face"].tolist()
            return Hit((x, y, z), _BLOCK, place, (i, j, k)), passed
        passed += _STEP
    return None, NEVER


# ------------------------------------------------------------------------------- what they do


def _pelt(state: GameState, record: np.void, hit: Hit) -> None:
    """Push an animal away from the thrower, and frighten it; it takes no damage."""
    if hit.what < 0:
        return
    mob = state.mobs.records[hit.what]
    if mob["hurt_ticks"]:
        return
    mob["hurt_ticks"], mob["last_damage"] = HURT_TICKS, 0.0
    mob["panic_ticks"], mob["love_ticks"] = PANIC_TICKS, 0
    away = state.player.position - mob["position"]
    knock_back(mob, KNOCKBACK, float(away[0]), float(away[2]))


def _pierce(state: GameState, record: np.void, hit: Hit) -> None:
    """Let an arrow harm whom it hits, by its speed; where it hits a block, it lies as an item."""
    speed = float(np.linalg.norm(record["velocity"]))
    amount = math.ceil(speed * float(record["damage"]))
    if record["is_critical"]:
        amount += state.random_between(0, amount // 2 + 1)
    if hit.what == _PLAYER:
        state.hurt_player(float(amount))
    elif hit.what == _BLOCK:
        if not record["is_lost"]:
            x, y, z = (np.array(hit.at) - record["velocity"] / speed * _BACK).tolist()
            state.drop_item(_ARROW, 1, (x, y, z), (0.0, 0.0, 0.0), DROP_DELAY)
    else:
        _wound(state, record, hit.what, float(amount))


def _wound(state: GameState, record: np.void, row: int, amount: float) -> None:
    mob = state.mobs.records[row]
    away = state.player.position - mob["position"]
    hurts = strike(
        state.mobs.records,
        row,
        amount,
        float(away[0]),
        float(away[2]),
        MOB_SWEPT,
        state.events,
        state.event_count,
    )
    if not hurts:
        return
    if record["flame"]:
        mob["fire_ticks"] = max(int(mob["fire_ticks"]), _FLAMING_TICKS)
    flat = record["velocity"] * (1.0, 0.0, 1.0)
    length = float(np.linalg.norm(flat))
    if record["punch"] and length:
        mob["velocity"] += flat / length * (_PUNCH * int(record["punch"])) + (0.0, 0.1, 0.0)


_CHICK_CHANCE, _FOUR_CHANCE = 1 / 8, 1 / 32


def _hatch(state: GameState, record: np.void, hit: Hit) -> None:
    """Break an egg: one in eight has a chick in it, one in 32 of these four."""
    _pelt(state, record, hit)
    if state.random() >= _CHICK_CHANCE:
        return
    chicks = 4 if state.random() < _FOUR_CHANCE else 1
    for _ in range(min(chicks, MOB_CAPACITY - state.mobs.count)):
        state.mobs.add(CHICKEN, hit.at, 0.0, 0, YOUNG_AGE, state.egg_ticks(CHICKEN))


_LEAST_EXPERIENCE, _MORE_EXPERIENCE = 3, 4


def _spill_experience(state: GameState, record: np.void, hit: Hit) -> None:
    """Give the player three to eleven points of experience."""
    more = state.random_between(0, _MORE_EXPERIENCE) + state.random_between(0, _MORE_EXPERIENCE)
    state.player.experience += _LEAST_EXPERIENCE + more


_SPLASH, _SPLASH_UP = 4.0, 2.0
"""How far a splash reaches, in blocks: in all, and up and down."""
_SHORTEST = 20
"""An effect that would last no longer than these ticks is not given."""


def _splash(state: GameState, record: np.void, hit: Hit) -> None:
    """Let a potion act on everybody near: fully on who is hit, on others less with distance."""
    kind = potion_of(int(record["data"]))
    if kind == "water" and hit.what == _BLOCK:
        _douse(state, hit)
    low, high = _players_box(state)
    share = _share(hit, _PLAYER, low, high)
    if share > 0.0 and state.player.health > 0.0:
        for effect in POTIONS[kind]:
            ticks = int(share * effect.ticks + 0.5)
            if effect.ticks <= 1 or ticks > _SHORTEST:
                give_effect(
                    state.player, effect.name, effect.amplifier, ticks, state.hurt_player, share
                )
    for row in range(state.mobs.count):
        mob = state.mobs.records[row]
        share = _share(hit, row, *_mobs_box(mob))
        if share > 0.0 and not mob["death_ticks"]:
            _act_on_mob(state, row, kind, share)


def _share(hit: Hit, what: int, low: Vector, high: Vector) -> float:
    """Return the share of a potion that reaches a body, 0 to 1."""
    at = np.array(hit.at)
    first, last = _box(at, _SIZE / 2, _SIZE)
    reach = np.array([_SPLASH, _SPLASH_UP, _SPLASH])
    if (low > last + reach).any() or (high < first - reach).any():
        return 0.0
    if what == hit.what:
        return 1.0
    feet = np.array([(low[0] + high[0]) / 2, low[1], (low[2] + high[2]) / 2])
    return max(1.0 - float(np.linalg.norm(feet - at)) / _SPLASH, 0.0)


def _act_on_mob(state: GameState, row: int, kind: str, share: float) -> None:
    """Heal or harm an animal, or give it effects that last."""
    mob = state.mobs.records[row]
    for effect in POTIONS[kind]:
        if effect.name in MOB_EFFECTS:
            _give_effect(mob, effect, int(share * effect.ticks + 0.5))
        if effect.name == "instant_health":
            most = MOB_KINDS[mob["kind"]].max_health
            gain = int(share * (4 << effect.amplifier) + 0.5)
            mob["health"] = min(float(mob["health"]) + gain, most)
        elif effect.name == "instant_damage":
            before = float(mob["health"])
            state.hurt_mob(row, int(share * (6 << effect.amplifier) + 0.5), by_player=True)
            state.count_damage(int(mob["kind"]), before - float(mob["health"]))


def _give_effect(mob: np.void, effect: FoodEffect, ticks: int) -> None:
    """Give a mob an effect that lasts, unless it has a stronger one, or the same for longer."""
    index, level = MOB_EFFECTS.index(effect.name), effect.amplifier + 1
    has = (int(mob["effect_levels"][index]), int(mob["effect_ticks"][index]))
    if ticks > _SHORTEST and (not has[1] or (level, ticks) > has):
        mob["effect_levels"][index], mob["effect_ticks"][index] = level, ticks


def _douse(state: GameState, hit: Hit) -> None:
    """Put out fire where water splashes, and beside it."""
    if not any(hit.face):
        return
    place = beside(hit.place, direction_of(hit.face))
    near = [beside(place, side) for side in ("north", "east", "south", "west")]
    for cell in (place, hit.place, *near):
        fire.put_out(state, cell)


THROWN: dict[int, _Thrown] = {
    ITEM_ID["snowball"]: _Thrown(1.5, 0.0, 0.03, _pelt),
    ITEM_ID["egg"]: _Thrown(1.5, 0.0, 0.03, _hatch),
    ITEM_ID["splash_potion"]: _Thrown(0.5, 20.0, 0.05, _splash),
    ITEM_ID["experience_bottle"]: _Thrown(0.7, 20.0, 0.07, _spill_experience),
    _ARROW: _Thrown(3.0, 0.0, 0.05, _pierce),
}
"""What can be thrown or shot, by item."""
BY_HAND = tuple(item for item in THROWN if item != _ARROW)
"""What the use key throws."""
