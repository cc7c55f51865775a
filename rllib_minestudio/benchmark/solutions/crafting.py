"""Solutions that use screens: crafting, smelting, and chests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from rllib_minestudio.benchmark.solutions.family import (
    ANY_ITEMS,
    Family,
    OmniscientBody,
    check_amounts,
    check_item,
)
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.gathering import Stations
from rllib_minestudio.env.agents.toolmaker.plan import (
    CRAFTING_TABLE,
    FURNACE,
    INVENTORY,
    CraftingRecipe,
    Knowledge,
    SmeltingRecipe,
    craft,
    most_sets,
    smelt,
)
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import (
    BURN_TICKS,
    SHAPED,
    SHAPELESS,
    SMELTING,
    Recipe,
)
from rllib_minestudio.foundation.options import option

CHEST = "chest"


@dataclass(frozen=True)
class CraftItems(Family):
    """Crafts items by the engine's recipes, in the inventory's grid if they fit.

    Otherwise it uses a crafting table nearby, or places one that the player has.
    """

    items: Mapping[str, int] = option(
        None, "How many of each item to make, in this order.", check=check_amounts
    )

    def play(self, player: OmniscientBody) -> Skill:
        """Craft one item after the other."""
        stations = Stations(player)
        for item, count in self.items.items():
            if not (yield from self._make(player, stations, item, count)):
                yield from stations.leave()
                return False
        return (yield from stations.leave())

    @staticmethod
    def _make(player: OmniscientBody, stations: Stations, item: str, count: int) -> Skill:
        enough = player.counts()[item] + count
        while player.counts()[item] < enough:
            for known in crafts_of(item):
                made = known.crafts[item]
                wanted = math.ceil((enough - player.counts()[item]) / made.makes)
                sets = most_sets(known, made, player.slots, wanted)
                if sets:
                    break
            else:
                return False
            screen = yield from stations.open(made.screen)
            if screen is None or not (yield from craft(player, screen, known, item, sets)):
                return False
        return True


@dataclass(frozen=True)
class SmeltItems(Family):
    """Smelts items in a furnace nearby, or in one that the player has."""

    source: str = option(None, "What is smelted.", check=check_item)
    fuel: str = option(None, "What is burnt.", check=check_item)
    count: int = option(1, "How many items to smelt.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Fill the furnace, wait, and empty it."""
        known, stations = smelting(self.source, self.fuel), Stations(player)
        if known is None:
            return False
        screen = yield from stations.open(FURNACE)
        if screen is None:
            return False
        (item,) = known.smelts
        done = yield from smelt(player, screen, known, item, self.count)
        yield from stations.leave()
        return done


@dataclass(frozen=True)
class Chest(Family):
    """Opens a chest nearby, or one that the player has, and puts items into it."""

    put: tuple[str, ...] = option((), "Items, all stacks of which go into it.", check=ANY_ITEMS)

    def play(self, player: OmniscientBody) -> Skill:
        """Open the chest and move the stacks."""
        stations = Stations(player)
        screen = yield from stations.open(CHEST)
        if screen is None:
            return False
        for slot, stack in enumerate(player.slots):
            if stack.quantity and stack.name in self.put:
                yield from screen.shift_click(screen.of_inventory(slot))
        yield from player.react()
        left = player.count_of(self.put)
        yield from stations.leave()
        return not left


# ----------------------------------------------------- the engine's recipes in the toolmaker's form

_HAND_WIDTH, _TABLE_WIDTH = 2, 3
"""Side lengths of the inventory's and the crafting table's grids, in cells."""


def _group(items: frozenset[int]) -> str:
    """Return the name of a set of items: the joined names of its members."""
    return "|".join(sorted(ITEMS[item].name for item in items))


def _craft(recipe: Recipe) -> CraftingRecipe:
    """Return a recipe in the upper left corner of the smallest grid that it fits into."""
    columns = recipe.width or (_HAND_WIDTH if len(recipe.cells) <= 4 else _TABLE_WIDTH)
    lines = -(-len(recipe.cells) // columns)
    side = _HAND_WIDTH if max(columns, lines) <= _HAND_WIDTH else _TABLE_WIDTH
    grid: list[str | None] = [None] * side**2
    for index, items in enumerate(recipe.cells):
        grid[index // columns * side + index % columns] = _group(items) if items else None
    screen = INVENTORY if side == _HAND_WIDTH else CRAFTING_TABLE
    return CraftingRecipe(screen, recipe.result.quantity, tuple(grid))


def crafts_of(item: str) -> Iterator[Knowledge]:
    """Yield the knowledge needed to craft an item, for each of its recipes."""
    for recipe in (*SHAPED, *SHAPELESS):
        if ITEMS[recipe.result.item].name == item:
            groups = {_group(cell): _names(cell) for cell in recipe.cells if len(cell) > 1}
            yield Knowledge(groups, {item: _craft(recipe)}, {}, {})


def _names(items: frozenset[int]) -> tuple[str, ...]:
    return tuple(sorted(ITEMS[item].name for item in items))


@cache
def smelting(source: str, fuel: str) -> Knowledge | None:
    """Return the knowledge needed to smelt an item with a fuel; None if that is impossible."""
    process, burns = SMELTING.get(ITEM_ID[source]), BURN_TICKS.get(ITEM_ID[fuel])
    if process is None or burns is None:
        return None
    smelt = SmeltingRecipe(source, fuel, burns / process.ticks, process.ticks)
    return Knowledge({}, {}, {ITEMS[process.result].name: smelt}, {})
