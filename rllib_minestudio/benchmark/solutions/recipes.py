"""The engine's recipes in the form that the toolmaker's hands work by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from rllib_minestudio.env.agents.toolmaker.plan import (
    CRAFTING_TABLE,
    INVENTORY,
    CraftingRecipe,
    Knowledge,
    SmeltingRecipe,
)
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import SHAPED, SHAPELESS, Recipe
from rllib_minestudio.env.voxel.screens.smelting import BURN_TICKS, SMELTING

_HAND_WIDTH, _TABLE_WIDTH = 2, 3
"""Cells along a side of the inventory's grid and of a crafting table's."""


def _group(items: frozenset[int]) -> str:
    """The name that a set of items goes by: its members, or the one member's own name."""
    return "|".join(sorted(ITEMS[item].name for item in items))


def _craft(recipe: Recipe) -> CraftingRecipe:
    """A recipe laid into the upper left corner of the smallest grid that has room for it."""
    columns = recipe.width or (_HAND_WIDTH if len(recipe.cells) <= 4 else _TABLE_WIDTH)
    lines = -(-len(recipe.cells) // columns)
    side = _HAND_WIDTH if max(columns, lines) <= _HAND_WIDTH else _TABLE_WIDTH
    grid: list[str | None] = [None] * side**2
    for index, items in enumerate(recipe.cells):
        grid[index // columns * side + index % columns] = _group(items) if items else None
    screen = INVENTORY if side == _HAND_WIDTH else CRAFTING_TABLE
    return CraftingRecipe(screen, recipe.result.quantity, tuple(grid))


def crafts_of(item: str) -> Iterator[Knowledge]:
    """What there is to know to craft an item: one for each of its recipes."""
    for recipe in (*SHAPED, *SHAPELESS):
        if ITEMS[recipe.result.item].name == item:
            groups = {_group(cell): _names(cell) for cell in recipe.cells if len(cell) > 1}
            yield Knowledge(groups, {item: _craft(recipe)}, {}, {})


def _names(items: frozenset[int]) -> tuple[str, ...]:
    return tuple(sorted(ITEMS[item].name for item in items))


@cache
def smelting(source: str, fuel: str) -> Knowledge | None:
    """What there is to know to smelt an item with a fuel; None if that is impossible."""
    process, burns = SMELTING.get(ITEM_ID[source]), BURN_TICKS.get(ITEM_ID[fuel])
    if process is None or burns is None:
        return None
    smelt = SmeltingRecipe(source, fuel, burns / process.ticks, process.ticks)
    return Knowledge({}, {}, {ITEMS[process.result].name: smelt}, {})
