"""Kernels for the ticks of mobs and dropped items, for hits, and for their events.

Mobs pursue the goals of `goals.py`, walk and are pushed. They walk in straight lines instead of
searching for paths; a mob that cannot get on gives up its goal.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.goals import (
    BITE_TICK,
    BREED,
    BREED_REACH,
    GRAZE,
    NO_GOAL,
    apart,
    begin_goal,
    body_height,
    find_partner,
    half_width,
    pursue_goal,
)
from rllib_minestudio.env.voxel.entities.records import (
    DEATH_TICKS,
    FIRE_RESISTANCE,
    HURT_TICKS,
    ITEM_CAPACITY,
    JUMP_BOOST,
    MOB_CAPACITY,
    MOB_EFFECTS,
    MOB_GLIDES,
    MOB_KIND_ID,
    MOB_KINDS,
    POISON,
    REGENERATION,
    SLOWNESS,
    SPEED,
    UNTIED,
)
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics, surfaces
from rllib_minestudio.env.voxel.world.block_shapes import stops_nothing
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, LAVA, kind_of
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.surfaces import is_in_fire

ACTIVE_RANGE = 72.0
"""Mobs farther from the player than this along x or z do not move: their land may be unloaded."""

EGG_TICKS = 6000
"""Least ticks between two eggs of a chicken; below twice as many, at random."""
CHICKEN = MOB_KIND_ID["chicken"]

_GLIDE = 0.6
"""Factor on the speed of a fall of a mob that glides, in each tick (`Chicken`, from memory)."""
_STEP_AHEAD = 0.5
"""How far ahead of its body a mob sees where it would step, in blocks."""
_DEEPEST_STEP = 3
"""Blocks that a mob steps down (`getMaxFallDistance`)."""

_PUSH = 0.05
_PUSH_ALL = 2.0
"""In Minecraft, each of two bodies pushes the other once per tick, so a pair is pushed twice."""
_PLAYER_HALF = 0.3
_PLAYER_HEIGHT = 1.8


@kernel()
def _can_jump_over(blocks: NDArray[np.uint16], mob: np.void) -> bool:
    """Whether the obstacle ahead is one block high, with room above it."""
    half = half_width(mob)
    height = body_height(mob)
    x = mob.position[0] - np.sin(mob.yaw) * 0.5
    z = mob.position[2] + np.cos(mob.yaw) * 0.5
    return physics.is_free(blocks, x, mob.position[1] + 1.0, z, half, height)


@kernel()
def _is_danger_ahead(blocks: NDArray[np.uint16], mob: np.void) -> bool:
    """Whether the next step leads into lava, or down by more than mobs go of their own accord."""
    ahead = half_width(mob) + _STEP_AHEAD
    x = int64(np.floor(mob.position[0] - np.sin(mob.yaw) * ahead))
    z = int64(np.floor(mob.position[2] + np.cos(mob.yaw) * ahead))
    feet = int64(np.floor(mob.position[1]))
    for y in range(min(feet, HEIGHT - 1), max(feet - _DEEPEST_STEP - 1, 0) - 1, -1):
        block = blocks[block_index(x, y, z)]
        if kind_of(block) == LAVA:
            return True
        if not stops_nothing(block):
            return False
    return feet < HEIGHT


@kernel()
def _walk(blocks: NDArray[np.uint16], mob: np.void, speed: float) -> float:
    """Move a mob for one tick; return the damage of a landing, or of lava.

    The speed is squared because a walking mob's input and its acceleration both equal its speed.
    """
    half = half_width(mob)
    height = body_height(mob)
    was_on_ground = mob.on_ground != 0
    physics.settle(mob)
    ground = surfaces.walked_on(blocks, mob.position) if was_on_ground else AIR
    grip, slipperiness = surfaces.GRIP[ground], surfaces.SLIPPERINESS[ground]
    acceleration = speed * grip if was_on_ground else physics.AIR_ACCELERATION
    push = speed * physics.INPUT_SCALE * acceleration
    velocity = mob.velocity
    velocity[0] -= np.sin(mob.yaw) * push
    velocity[2] += np.cos(mob.yaw) * push
    before = mob.position[1]
    dx = velocity[0]
    dz = velocity[2]
    moved_x, moved_z = physics.move(blocks, mob, half, height, physics.STEP_HEIGHT, dx, dz)
    moved_y = mob.position[1] - before
    mob.moved[0], mob.moved[1], mob.moved[2] = moved_x, moved_y, moved_z
    landing = surfaces.landed_on(blocks, mob.position)
    damage = physics.fall(mob, moved_y, surfaces.softness(landing, False))
    if MOB_GLIDES[mob.kind]:
        damage = 0.0
    if surfaces.is_in_lava(blocks, mob.position):
        if mob.effect_ticks[FIRE_RESISTANCE] == 0:
            damage = max(damage, surfaces.DAMAGE)
        surfaces.slow_down(velocity, 1.0)
    else:
        physics.apply_gravity_and_drag(mob, slipperiness if was_on_ground else 1.0)
        if MOB_GLIDES[mob.kind] and not mob.on_ground and velocity[1] < 0.0:
            velocity[1] *= _GLIDE
    if speed > 0.0 and mob.on_ground and (moved_x != dx or moved_z != dz):
        if _can_jump_over(blocks, mob):
            velocity[1] = physics.JUMP_SPEED
            if mob.effect_ticks[JUMP_BOOST] > 0:
                velocity[1] += _JUMP_BOOST * mob.effect_levels[JUMP_BOOST]
        else:
            mob.goal = NO_GOAL
    step = np.sqrt(moved_x * moved_x + moved_z * moved_z)
    mob.limb_amplitude += (min(step * 4.0, 1.0) - mob.limb_amplitude) * 0.4
    mob.limb_swing += mob.limb_amplitude * 0.6662
    return damage


@kernel()
def _push_pair(dx: float, dz: float) -> tuple[float, float]:
    """Return the push, in blocks per tick, on a body at (dx, dz) from one that it overlaps."""
    larger = max(abs(dx), abs(dz))
    if larger < 0.01:
        return 0.0, 0.0
    root = np.sqrt(larger)
    scale = _PUSH * _PUSH_ALL / root * min(1.0, 1.0 / root)
    return dx * scale, dz * scale


@kernel()
def _push_apart(mobs: NDArray[np.void], count: int, player: np.void) -> None:
    for i in range(count):
        one = mobs[i]
        if one.death_ticks > 0:
            continue
        half = half_width(one)
        dx = one.position[0] - player.position[0]
        dz = one.position[2] - player.position[2]
        dy = one.position[1] - player.position[1]
        touch = half + _PLAYER_HALF
        if abs(dx) < touch and abs(dz) < touch and -body_height(one) < dy < _PLAYER_HEIGHT:
            px, pz = _push_pair(dx, dz)
            one.velocity[0] += px
            one.velocity[2] += pz
            player.velocity[0] -= px
            player.velocity[2] -= pz
        for j in range(i + 1, count):
            other = mobs[j]
            touch = half + half_width(other)
            dx = one.position[0] - other.position[0]
            dz = one.position[2] - other.position[2]
            if abs(dx) >= touch or abs(dz) >= touch or other.death_ticks > 0:
                continue
            dy = one.position[1] - other.position[1]
            if -body_height(one) < dy < body_height(other):
                px, pz = _push_pair(dx, dz)
                one.velocity[0] += px
                one.velocity[2] += pz
                other.velocity[0] -= px
                other.velocity[2] -= pz


@kernel()
def _grow(
    mob: np.void,
    rng: NDArray[np.uint64],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Advance an animal's age, its love and its eggs by one tick."""
    if mob.age < 0:
        mob.age += 1
    elif mob.age > 0:
        mob.age -= 1
    mob.love_ticks = 0 if mob.age != 0 else max(mob.love_ticks - 1, 0)
    if mob.kind == CHICKEN and mob.age >= 0:
        mob.egg_ticks -= 1
        if mob.egg_ticks <= 0:
            mob.egg_ticks = EGG_TICKS + int64(physics.random(rng) * EGG_TICKS)
            emit(events, event_count, EGG_LAID, mob.kind, 1.0, mob.position)


@kernel()
def _act(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    row: int,
    player: np.void,
    rng: NDArray[np.uint64],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> float:
    """Let a living mob pursue its goals; return the speed it wants to walk at."""
    mob = mobs[row]
    begin_goal(blocks, mobs, count, mob, player, rng)
    if mob.panic_ticks > 0:
        mob.panic_ticks -= 1
    goal = mob.goal
    speed = pursue_goal(mobs, count, mob, player)
    if goal == BREED and mob.goal == NO_GOAL:
        partner = find_partner(mobs, count, mob) if mob.love_ticks > 0 else -1
        if partner >= 0 and apart(mob, mobs[partner]) < BREED_REACH:
            emit(events, event_count, YOUNG_BORN, row, float(partner), mob.position)
    elif mob.goal == GRAZE and mob.goal_ticks == BITE_TICK:
        emit(events, event_count, GRASS_EATEN, row, 1.0, mob.position)
    if speed > 0.0 and mob.on_ground and _is_danger_ahead(blocks, mob):
        mob.goal = NO_GOAL
        speed = 0.0
    return speed


_SPEED_BY_LEVEL, _SLOWNESS_BY_LEVEL, _JUMP_BOOST = 0.2, 0.15, 0.1
_POISON_PERIOD, _HEALING_PERIOD = 25, 50
"""Ticks per health point of these effects at their lowest level."""
_MAX_HEALTH = np.array([kind.max_health for kind in MOB_KINDS])


@kernel()
def _pace(mob: np.void) -> float:
    """Return the factor of a mob's effects on its speed."""
    pace = 1.0
    if mob.effect_ticks[SPEED] > 0:
        pace += _SPEED_BY_LEVEL * mob.effect_levels[SPEED]
    if mob.effect_ticks[SLOWNESS] > 0:
        pace *= max(1.0 - _SLOWNESS_BY_LEVEL * mob.effect_levels[SLOWNESS], 0.0)
    return pace


@kernel()
def _tick_effects(mob: np.void) -> float:
    """Advance a mob's effects by one tick, heal it, and return the damage of poison."""
    damage = 0.0
    for effect in range(len(MOB_EFFECTS)):
        ticks = mob.effect_ticks[effect]
        if ticks <= 0:
            continue
        halved = min(mob.effect_levels[effect] - 1, 6)
        if effect == REGENERATION and ticks % max(_HEALING_PERIOD >> halved, 1) == 0:
            mob.health = min(mob.health + 1.0, _MAX_HEALTH[mob.kind])
        elif effect == POISON and ticks % max(_POISON_PERIOD >> halved, 1) == 0:
            damage = 1.0 if mob.health > 1.0 else 0.0
        mob.effect_ticks[effect] = ticks - 1
    return damage


@kernel()
def _tick_mob(
    blocks: NDArray[np.uint16],
    mobs: NDArray[np.void],
    count: int,
    row: int,
    player: np.void,
    rng: NDArray[np.uint64],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    mob = mobs[row]
    if mob.hurt_ticks > 0:
        mob.hurt_ticks -= 1
    speed = poison = 0.0
    if mob.death_ticks > 0:
        mob.death_ticks += 1
    else:
        _grow(mob, rng, events, event_count)
        speed = _act(blocks, mobs, count, row, player, rng, events, event_count) * _pace(mob)
        poison = _tick_effects(mob)
    damage = max(_walk(blocks, mob, speed), poison)
    if mob.position[1] < physics.VOID:
        damage = max(damage, physics.VOID_DAMAGE)
    if damage > 0.0:
        harm_mob(mobs, row, damage, False, events, event_count)


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
    """Advance every mob by one tick, and remove those that have been dead for `DEATH_TICKS`.

    Args:
        blocks: The window's block ids.
        mobs: `MOB_DTYPE` records.
        count: How many records are in use.
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
            _tick_mob(blocks, mobs, kept, row, player, rng, events, event_count)
    _push_apart(mobs, kept, player)
    return kept


# ------------------------------------------------------------------------------------ dropped items
# They fall, slide, age, merge, and come within the player's reach.

DROP_DELAY = 10
"""Ticks before an item from a block or a mob can be picked up."""
THROW_DELAY = 40
"""Ticks before an item that the player threw can be picked up."""

_GRAVITY = 0.04
_DRAG = 0.98
_GROUND_DRAG = 0.6 * 0.98
_DROP_HALF = 0.125
_DROP_HEIGHT = 0.25
_LIFETIME = 6000
_MERGE_PERIOD_MOVING, _MERGE_PERIOD_RESTING = 2, 40
"""Ticks between attempts to merge with others; moving means into another block."""
_MERGE_REACH = 0.5 + 2.0 * _DROP_HALF
_LARGEST_STACK = np.array(
    [ITEMS[item].max_stack if item in ITEMS else 0 for item in range(max(ITEMS) + 1)]
)
_IS_FIREPROOF = np.array(
    [
        item in ITEMS and ITEMS[item].name.startswith(("netherite_", "ancient_debris"))
        for item in range(max(ITEMS) + 1)
    ]
)
"""Whether lava leaves a dropped item as it is, by item, bool."""
_REACH = 0.3 + 1.0 + _DROP_HALF
"""Half the player's width, one block, and half the item's width."""
_REACH_BELOW = 0.5 + _DROP_HEIGHT
_REACH_ABOVE = 1.8 + 0.5


@kernel()
def _slide(blocks: NDArray[np.uint16], item: np.void) -> None:
    velocity = item.velocity
    velocity[1] -= _GRAVITY
    was_on_ground = item.on_ground != 0
    physics.move(blocks, item, _DROP_HALF, _DROP_HEIGHT, physics.NO_STEP, velocity[0], velocity[2])
    friction = _GROUND_DRAG if was_on_ground else _DRAG
    velocity[0] *= friction
    velocity[1] *= _DRAG
    velocity[2] *= friction


@kernel()
def _can_merge(item: np.void) -> bool:
    return 0 < item.quantity < _LARGEST_STACK[item["item"]] and item.age < _LIFETIME


@kernel()
def _merge(items: NDArray[np.void], count: int, row: int) -> None:
    """Merge an item with equal ones nearby; the smaller stack joins the larger."""
    item = items[row]
    for other_row in range(count):
        other = items[other_row]
        if (
            other_row == row
            or other["item"] != item["item"]
            or not _can_merge(item)
            or not _can_merge(other)
            or other.quantity + item.quantity > _LARGEST_STACK[item["item"]]
            or abs(other.position[0] - item.position[0]) >= _MERGE_REACH
            or abs(other.position[1] - item.position[1]) >= _DROP_HEIGHT
            or abs(other.position[2] - item.position[2]) >= _MERGE_REACH
        ):
            continue
        kept, gone = item, other
        if other.quantity >= item.quantity:
            kept, gone = other, item
        kept.quantity += gone.quantity
        kept.pickup_delay = max(kept.pickup_delay, gone.pickup_delay)
        kept.age = min(kept.age, gone.age)
        gone.quantity = 0  # it vanishes in the next tick


@kernel()
def _is_merge_due(item: np.void, x: float, y: float, z: float) -> bool:
    """Whether an item that was at (x, y, z) one tick ago tries to merge now."""
    position = item.position
    moved = (
        np.floor(position[0]) != np.floor(x)
        or np.floor(position[1]) != np.floor(y)
        or np.floor(position[2]) != np.floor(z)
    )
    return item.ticks % (_MERGE_PERIOD_MOVING if moved else _MERGE_PERIOD_RESTING) == 0


@kernel()
def tick_items(
    blocks: NDArray[np.uint16],
    items: NDArray[np.void],
    count: int,
    players: NDArray[np.void],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> int:
    """Advance every dropped item by one tick, and remove those too old or lost below the world.

    Args:
        blocks: The window's block ids.
        items: `ITEM_DTYPE` records.
        count: How many records are in use.
        players: `PLAYER_DTYPE` [1].
        events: `EVENT_DTYPE` records; receives an `ITEM_TOUCHED` for each item in reach.
        event_count: int64 [1].

    Returns:
        How many items are left; events contain rows as numbered after the removal.
    """
    player = players[0]
    kept = 0
    for row in range(count):
        lost = items[row].age >= _LIFETIME or items[row].position[1] < physics.VOID
        if not lost and items[row].quantity > 0:
            if kept != row:
                items[kept] = items[row]
            kept += 1
    for row in range(kept):
        item = items[row]
        dx = item.position[0] - player.position[0]
        dy = item.position[1] - player.position[1]
        dz = item.position[2] - player.position[2]
        if max(abs(dx), abs(dz)) > ACTIVE_RANGE or item.quantity == 0:
            continue
        item.age += 1
        item.ticks += 1
        if item.pickup_delay > 0:
            item.pickup_delay -= 1
        x = item.position[0]
        y = item.position[1]
        z = item.position[2]
        _slide(blocks, item)
        item.moved[0] = item.position[0] - x
        item.moved[1] = item.position[1] - y
        item.moved[2] = item.position[2] - z
        if surfaces.is_in_lava(blocks, item.position) and not _IS_FIREPROOF[item["item"]]:
            item.quantity = 0  # it vanishes in the next tick
            continue
        if _is_merge_due(item, x, y, z):
            _merge(items, kept, row)
            if item.quantity == 0:
                continue
        in_reach = max(abs(dx), abs(dz)) < _REACH and -_REACH_BELOW < dy < _REACH_ABOVE
        if in_reach and item.pickup_delay == 0 and player.health > 0.0:
            emit(events, event_count, ITEM_TOUCHED, row, 1.0, item.position)
    return kept


# -------------------------------------------------------- hits on a body, as in Minecraft Java 1.16
# Damage, invulnerability, knockback.

PANIC_TICKS = 100
"""Ticks for which a mob flees after a hit."""


@kernel()
def knock_back(body: np.void, strength: float, dx: float, dz: float) -> None:
    """Push a body opposite to (dx, dz), the horizontal direction towards the attacker."""
    length = np.sqrt(dx * dx + dz * dz)
    if length < 1e-4:
        return
    velocity = body.velocity
    velocity[0] = velocity[0] / 2.0 - dx / length * strength
    velocity[2] = velocity[2] / 2.0 - dz / length * strength
    if body.on_ground:
        velocity[1] = min(0.4, velocity[1] / 2.0 + strength)


@kernel()
def shielded(body: np.void, amount: float) -> float:
    """Return the damage after invulnerability: for 10 ticks, only the excess over the last hit."""
    if body.hurt_ticks > 0:
        return max(amount - body.last_damage, 0.0)
    return amount


@kernel()
def hurt_mob(mobs: NDArray[np.void], row: int, amount: float) -> tuple[float, bool]:
    """Take health from a mob.

    Returns:
        The health points lost, and whether the hit was a fresh one, which knocks back and starts
        the invulnerability, rather than the remainder of a stronger hit during it.
    """
    mob = mobs[row]
    if mob.death_ticks > 0:
        return 0.0, False
    fresh = mob.hurt_ticks == 0
    dealt = shielded(mob, amount)
    if dealt <= 0.0:
        return 0.0, False
    mob.last_damage = amount
    if fresh:
        mob.hurt_ticks = HURT_TICKS
    dealt = min(dealt, mob.health)
    mob.health -= dealt
    mob.panic_ticks = PANIC_TICKS
    mob.love_ticks = 0
    return dealt, fresh


# ------------------------------------------------------------------------------------------- events
# Reports from kernels to Python about a tick.

EVENT_CAPACITY = 4 * MOB_CAPACITY + ITEM_CAPACITY + 8
"""Most events in one tick: every mob hurt and dead, with an egg and with young or grass, every item
touched, and the player's own."""

MOB_HURT, MOB_DIED, BLOCK_BROKEN, ITEM_TOUCHED, PLAYER_HURT, MOB_SWEPT, FOOD_EATEN = range(7)
GRASS_EATEN, YOUNG_BORN, EGG_LAID = range(7, 10)
"""Kinds of event. `subject` and `amount` mean:

- `MOB_HURT`: index in `MOB_KINDS`, health points dealt by the player's own hit.
- `MOB_DIED`: index in `MOB_KINDS`; `amount` is 1 if the player killed it, else 0.
- `BLOCK_BROKEN`: id of the block at `position`.
- `ITEM_TOUCHED`: row of a dropped item in the player's reach.
- `PLAYER_HURT`: unused, health points lost.
- `MOB_SWEPT`: as `MOB_HURT`, for a mob near the one that was hit.
- `FOOD_EATEN`: unused; the meal of the food in hand is over.
- `GRASS_EATEN`: row of the mob that bites.
- `YOUNG_BORN`: row of a parent; `amount` is that of the other.
- `EGG_LAID`: index in `MOB_KINDS`.

Rows are those after the mobs' tick.
"""

EVENT_DTYPE = np.dtype(
    [
        ("kind", np.int64),
        ("subject", np.int64),
        ("amount", np.float64),
        ("coat", np.int64),  # of a mob that died
        ("is_young", np.int64),  # whether it was
        ("is_burning", np.int64),  # and whether it burnt
        ("position", np.float64, 3),  # where it happened; whole numbers for a block
    ],
    align=True,
)


@kernel()
def emit(
    events: NDArray[np.void],
    count: NDArray[np.int64],
    kind: int,
    subject: int,
    amount: float,
    position: NDArray[np.float64],
) -> None:
    """Append an event; `count` is int64 [1] and `position` float64 [3]."""
    if count[0] < len(events):
        event = events[count[0]]
        event.kind = kind
        event.subject = subject
        event.amount = amount
        event.coat = event.is_young = event.is_burning = 0
        for axis in range(3):
            event.position[axis] = position[axis]
        count[0] += 1


IN_LAVA, IN_PORTAL, MOB_BURNS, MOB_ON_LEAD, SNOW_GOLEM = (1 << bit for bit in range(5))
"""Bits of what `rare_conditions` returns."""
_SNOW_GOLEM = MOB_KIND_ID["snow_golem"]
_PORTAL = BLOCK_ID["nether_portal"]


@kernel(allocates=False)
def rare_conditions(
    blocks: NDArray[np.uint16], position: NDArray[np.float64], mobs: NDArray[np.void], count: int
) -> int:
    """Return a bit mask of rare conditions, for Python to handle them only when they hold.

    Args:
        blocks: The window's blocks.
        position: The player's feet, which may be in lava or in a portal.
        mobs: `MOB_DTYPE` records.
        count: How many records are in use.
    """
    found = int64(0)
    if surfaces.is_in_lava(blocks, position):
        found |= IN_LAVA
    x, y, z = np.floor(position[0]), np.floor(position[1]), np.floor(position[2])
    if 0 <= y < HEIGHT and kind_of(blocks[block_index(int64(x), int64(y), int64(z))]) == _PORTAL:
        found |= IN_PORTAL
    for row in range(count):
        mob = mobs[row]
        if mob.fire_ticks > 0:
            found |= MOB_BURNS
        if mob.leash != UNTIED:
            found |= MOB_ON_LEAD
        if mob.kind == _SNOW_GOLEM:
            found |= SNOW_GOLEM
    return found


@kernel(allocates=False)
def find_burning(
    blocks: NDArray[np.uint16], mobs: NDArray[np.void], touching: NDArray[np.bool_]
) -> None:
    """Write which of the first mobs touch fire.

    Args:
        blocks: The window's blocks.
        mobs: `MOB_DTYPE` records.
        touching: bool [count], overwritten.
    """
    for row in range(len(touching)):
        mob = mobs[row]
        touching[row] = is_in_fire(blocks, mob.position, half_width(mob), body_height(mob))


@kernel()
def emit_death(
    events: NDArray[np.void], count: NDArray[np.int64], mob: np.void, by_player: bool
) -> None:
    """Append the event of a mob's death; `count` is int64 [1]."""
    before = count[0]
    emit(events, count, MOB_DIED, mob.kind, 1.0 if by_player else 0.0, mob.position)
    if count[0] > before:
        events[before].coat = mob.coat
        events[before].is_young = 1 if mob.age < 0 else 0
        events[before].is_burning = 1 if mob.fire_ticks > 0 else 0


@kernel()
def harm_mob(
    mobs: NDArray[np.void],
    row: int,
    amount: float,
    by_player: bool,
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> None:
    """Take health from a mob that nobody hits; its death, maybe the player's deed, is an event."""
    mob = mobs[row]
    hurt_mob(mobs, row, amount)
    if mob.health <= 0.0 and mob.death_ticks == 0:
        mob.death_ticks = 1
        emit_death(events, event_count, mob, by_player)
