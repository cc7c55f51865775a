"""What players do with animals, as in Minecraft Java 1.16: shear, dye, milk, feed, breed.

How animals follow, find a partner and graze is in `entities/goals.py`; what results from it, here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.entities.goals import LOVE_TICKS, NO_GOAL, STROLL
from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.entities.records import (
    DYES,
    LED,
    MOB_CAPACITY,
    MOB_KIND_ID,
    MOB_KINDS,
    SHORN,
    TIED,
    UNTIED,
    YOUNG_AGE,
)
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.placement import is_supported
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID, ItemStack
from rllib_minestudio.env.voxel.screens.crafting import craft
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    DIRT,
    FAMILY_OF,
    GRASS_BLOCK,
    block_of,
    kind_of,
)
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at

SHEEP, COW = MOB_KIND_ID["sheep"], MOB_KIND_ID["cow"]
SHEARS, BUCKET, MILK = ITEM_ID["shears"], ITEM_ID["bucket"], ITEM_ID["milk_bucket"]
DYE_ITEMS: tuple[int, ...] = tuple(ITEM_ID[f"{colour}_dye"] for colour in DYES)
"""Items that dye a sheep, in the order of `DYES`."""
_MOST_WOOL = 3
_PAUSE = 6000
"""Ticks before parents can breed again."""
_BREEDING_EXPERIENCE = 7
_GROWTH_BY_FOOD = 0.1
"""Share of the time until it is grown up that food saves a young animal; whole seconds."""
_GROWTH_BY_GRASS = 1200
_SECOND = 20
_GRASS = BLOCK_ID["grass"]


def fed_with() -> Iterator[tuple[int, int]]:
    """Yield pairs of an index in `MOB_KINDS` and the id of an item that such an animal eats."""
    for index, kind in enumerate(MOB_KINDS):
        for name in kind.food:
            yield index, ITEM_ID[name]


# ------------------------------------------------------------------------- uses of the item in hand


def shear(state: GameState, sheep: np.void) -> bool:
    """Take a grown-up sheep's wool, one to three of its colour; return whether it had any."""
    if sheep["coat"] >= SHORN or sheep["age"] < 0:
        return False
    wool = ITEM_ID[f"{DYES[sheep['coat']]}_wool"]
    sheep["coat"] += SHORN
    x, y, z = sheep["position"].tolist()
    for _ in range(state.random_between(1, _MOST_WOOL)):
        state.scatter_item(wool, 1, (x, y + 1.0, z), DROP_DELAY)
    state.count_use()
    state.wear_tool(1)
    return True


def dye(state: GameState, sheep: np.void) -> bool:
    """Dye a sheep's wool; return whether its colour has changed."""
    colour = DYE_ITEMS.index(state.player.held_item)
    if sheep["coat"] >= SHORN or sheep["coat"] == colour:
        return False
    sheep["coat"] = colour
    state.count_use()
    state.use_up()
    return True


def milk(state: GameState, cow: np.void) -> bool:
    """Fill a bucket with a grown-up cow's milk; return whether it is one."""
    if cow["age"] < 0:
        return False
    state.count_use()
    state.use_up(leaves=MILK)
    return True


def feed_animal(state: GameState, animal: np.void) -> bool:
    """Feed an animal: a young one grows, a grown-up looks for a partner; return whether it ate."""
    age = int(animal["age"])
    if age > 0 or animal["love_ticks"] > 0:
        return False
    if age < 0:
        animal["age"] = min(age + int(-age / _SECOND * _GROWTH_BY_FOOD) * _SECOND, 0)
    else:
        animal["love_ticks"] = LOVE_TICKS
    state.count_use()
    state.use_up()
    return True


# ------------------------------------------------------------------- what results from their goals


def bear_young(state: GameState, one: np.void, other: np.void) -> None:
    """Let two animals that found each other have young, unless either has had meanwhile."""
    if not (one["love_ticks"] and other["love_ticks"]) or state.mobs.count == MOB_CAPACITY:
        return
    kind = int(one["kind"])
    coat = _mixed(state, int(one["coat"]), int(other["coat"])) if kind == SHEEP else 0
    for parent in (one, other):
        parent["age"], parent["love_ticks"] = _PAUSE, 0
    x, y, z = one["position"].tolist()
    state.mobs.add(kind, (x, y, z), 0.0, coat, YOUNG_AGE, state.egg_ticks(kind))
    state.player.experience += state.random_between(1, _BREEDING_EXPERIENCE)
    state.statistics.add("custom", "animals_bred")


def _mixed(state: GameState, one: int, other: int) -> int:
    """Return the colour of a lamb: what its parents' dyes make together, else either parent's."""
    colours = [coat % SHORN for coat in (one, other)]
    dyes = [ItemStack(DYE_ITEMS[colour], 1, 0) for colour in colours]
    made = craft((*dyes, *[ItemStack(EMPTY, 0, 0)] * 2), 2).item
    if made in DYE_ITEMS:
        return DYE_ITEMS.index(made)
    return colours[state.random_between(0, 1)]


def eat_grass(state: GameState, animal: np.void) -> None:
    """Let an animal eat the grass where it stands: the plant, or else the ground's.

    Its wool grows again; a young one grows by a minute.
    """
    x, y, z = np.floor(animal["position"]).astype(int).tolist()
    world = state.world
    if kind_of(world.block_at(x, y, z)) == _GRASS:
        world.set_block(x, y, z, AIR)
    elif world.kind_at(x, y - 1, z) == GRASS_BLOCK:
        world.set_block(x, y - 1, z, DIRT)
    else:
        return
    animal["coat"] %= SHORN
    if animal["age"] < 0:
        animal["age"] = min(int(animal["age"]) + _GROWTH_BY_GRASS, 0)


def loot_table(kind: int, coat: int, is_young: bool) -> str:
    """Return the name of the table of what an animal drops when it dies; empty for nothing."""
    if is_young:
        return ""
    if kind == SHEEP and coat < SHORN:
        return f"sheep/{DYES[coat]}"
    return MOB_KINDS[kind].loot


# ---------------------------------------------------------------- golems, as in Minecraft Java 1.16
# Golems, as in Minecraft Java 1.16: a pumpkin's face on top of snow or iron brings them to life.
# A snow golem leaves snow where it is not too warm, and melts where it is hot. What the game's
# golems do to monsters they cannot do here, since there are none; an iron golem that a player
# built never attacks players, and one that a command summoned does not here either.

_FACES = frozenset((BLOCK_ID["carved_pumpkin"], BLOCK_ID["jack_o_lantern"]))
_SNOW_BLOCK, _IRON_BLOCK = BLOCK_ID["snow_block"], BLOCK_ID["iron_block"]
_SNOW, _SNOW_GOLEM = block_of(BLOCK_ID["snow"], {}), MOB_KIND_ID["snow_golem"]
_TEMPERATURE = {row["biome"]: float(row["temperature"]) for row in read_csv("biomes.csv")}
_MELTS, _SNOWS = 1.0, 0.8
"""Temperature of a biome above which snow golems melt, and below which they leave snow."""
_MELTING, _MELTING_TICKS = 1.0, 10
"""Health that a melting golem loses, and how often: it is shielded in between."""
_TRACK = tuple((dx, dz) for dx in (-0.25, 0.25) for dz in (-0.25, 0.25))
"""The corners of a snow golem's track from its middle, in blocks."""


class _Form(NamedTuple):
    """What a golem is made of.

    Attributes:
        mob: Its name.
        kind: The kind of its blocks.
        blocks: Where they are from the pumpkin: along an axis, and up.
        empty: Where there must be nothing.
        feet: Where it stands up, upwards from the pumpkin.
    """

    mob: str
    kind: int
    blocks: tuple[tuple[int, int], ...]
    empty: tuple[tuple[int, int], ...]
    feet: int


_FORMS = (
    _Form("snow_golem", _SNOW_BLOCK, ((0, -1), (0, -2)), (), -2),
    _Form(
        "iron_golem",
        _IRON_BLOCK,
        ((0, -1), (-1, -1), (1, -1), (0, -2)),
        ((-1, 0), (1, 0), (-1, -2), (1, -2)),
        -2,
    ),
)


def come_to_life(state: GameState, place: Place) -> bool:
    """Let a golem rise if the pumpkin that was put at a place completes one.

    Its blocks vanish without a drop.
    """
    world = state.world
    if world.kind_at(*place) not in _FACES or state.mobs.count == MOB_CAPACITY:
        return False
    x, y, z = place
    for form in _FORMS:
        for dx, dz in ((1, 0), (0, 1)):
            body = [(x + along * dx, y + up, z + along * dz) for along, up in form.blocks]
            empty = [(x + along * dx, y + up, z + along * dz) for along, up in form.empty]
            if all(world.kind_at(*cell) == form.kind for cell in body) and all(
                world.kind_at(*cell) == AIR for cell in empty
            ):
                for cell in (place, *body):
                    state.particles.burst(world.block_at(*cell), *cell)
                world.set_blocks(dict.fromkeys((place, *body), AIR))
                feet = (x + 0.5, y + form.feet + 0.05, z + 0.5)
                state.mobs.add(MOB_KIND_ID[form.mob], feet, 0.0)
                return True
    return False


def tick_snow_golems(state: GameState) -> None:
    """Let snow golems melt where it is hot, and leave snow where it is not warm."""
    world, mobs = state.world, state.mobs
    for row, golem in enumerate(mobs.records[: mobs.count]):
        if golem["kind"] != _SNOW_GOLEM or golem["death_ticks"]:
            continue
        x, y, z = golem["position"].tolist()
        biome = BIOMES[biome_at(math.floor(x), math.floor(z), world.seed)]
        if _TEMPERATURE[biome] > _MELTS and state.game_time % _MELTING_TICKS == 0:
            state.hurt_mob(row, _MELTING)
        if _TEMPERATURE[biome] < _SNOWS:
            for dx, dz in _TRACK:
                cell = math.floor(x + dx), math.floor(y), math.floor(z + dz)
                if world.kind_at(*cell) == AIR and is_supported(_SNOW, cell, world.block_at):
                    world.set_block(*cell, _SNOW)


# ------------ leads, as in Minecraft Java 1.16: an animal follows the player, or stays near a fence
# An animal farther than `_SLACK` blocks from the player or its fence walks there; beyond `_TAUT`
# it is pulled, and beyond `_LONGEST` the lead comes off and drops.

LEAD = ITEM_ID["lead"]
_SLACK, _TAUT, _LONGEST = 2.0, 6.0, 10.0
"""Blocks from the holder within which the animal stands, beyond which it is pulled, and beyond
which the lead comes off."""
_PULL = 0.4
_KNOT_REACH = 7.0
"""Distance from a fence within which the animals that the player leads are tied to it."""
_STEP_TICKS = 10


def animals(item: int) -> tuple[tuple[int, int], ...]:
    """Return pairs of an index in `MOB_KINDS` and an item, for all kinds."""
    return tuple((kind, item) for kind in range(len(MOB_KINDS)))


def take_or_let_go(state: GameState, animal: np.void) -> bool:
    """Put an animal on a lead, or take it off the one in the hand.

    Returns:
        Whether anything was done: one that is tied to a fence stays.
    """
    if animal["leash"] != UNTIED:
        return let_go(state, animal)
    animal["leash"] = LED
    state.count_use()
    state.use_up()
    return True


def let_go(state: GameState, animal: np.void) -> bool:
    """Take an animal off the lead in the hand, which drops; return whether it was on one."""
    if animal["leash"] != LED:
        return False
    _come_off(state, animal)
    return True


def tie(state: GameState, place: Place) -> bool:
    """Tie the animals that the player leads to a fence, or untie those of its knot.

    Returns:
        Whether there were any.
    """
    if FAMILY_OF[state.world.kind_at(*place)].name != "fence":
        return False
    mobs = state.mobs.records[: state.mobs.count]
    middle = np.array(place) + 0.5
    led = [
        mob
        for mob in mobs
        if mob["leash"] == LED and np.abs(mob["position"] - middle).max() <= _KNOT_REACH
    ]
    for mob in led:
        mob["leash"], mob["knot"] = TIED, place
    tied = [mob for mob in mobs if mob["leash"] == TIED and tuple(mob["knot"]) == place]
    if not led:
        for mob in tied:
            _come_off(state, mob)
    return bool(led or tied)


def tick_leads(state: GameState) -> None:
    """Let animals on leads follow, be pulled, or come off."""
    mobs = state.mobs.records[: state.mobs.count]
    for row in np.flatnonzero(mobs["leash"]).tolist():
        _follow(state, mobs[row])


def _follow(state: GameState, animal: np.void) -> None:
    """Pull an animal towards its holder, or let it walk there."""
    if animal["leash"] == TIED:
        place = tuple(animal["knot"].tolist())
        is_loaded = state.world.is_loaded(place[0], place[2])
        if is_loaded and FAMILY_OF[state.world.kind_at(*place)].name != "fence":
            _come_off(state, animal)
            return
        holder = np.array(place) + 0.5
    else:
        holder = state.player.position
    if animal["death_ticks"] or (animal["leash"] == LED and state.player_dead):
        _come_off(state, animal)
        return
    apart = holder - animal["position"]
    distance = math.sqrt(float(apart @ apart))
    if distance > _LONGEST:
        _come_off(state, animal)
    elif distance > _TAUT:
        along = apart / distance
        animal["velocity"] += np.copysign(along * along * _PULL, along)
    elif distance > _SLACK and animal["goal"] in (NO_GOAL, STROLL):
        step = apart / distance * (distance - _SLACK)
        animal["goal"], animal["goal_ticks"], animal["follows_player"] = STROLL, _STEP_TICKS, 0
        animal["goal_x"] = animal["position"][0] + step[0]
        animal["goal_z"] = animal["position"][2] + step[2]


def _come_off(state: GameState, animal: np.void) -> None:
    animal["leash"] = UNTIED
    x, y, z = animal["position"].tolist()
    state.scatter_item(LEAD, 1, (x, y + 0.5, z), DROP_DELAY)
