"""What players do with animals, as in Minecraft Java 1.16: shear, dye, milk, feed, breed.

How animals follow, find a partner and graze is in `entities/goals.py`; what results from it, here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rllib_minestudio.env.voxel.entities.goals import LOVE_TICKS
from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.entities.records import (
    DYES,
    MOB_CAPACITY,
    MOB_KIND_ID,
    MOB_KINDS,
    SHORN,
    YOUNG_AGE,
)
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID
from rllib_minestudio.env.voxel.screens.crafting import craft
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, DIRT, GRASS_BLOCK

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
