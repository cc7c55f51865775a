"""Crafting: which recipe a grid of items fits, and what it gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.screens.containers import NOTHING
from rllib_minestudio.env.voxel.screens.ingredients import items, rows

_REPAIR_BONUS = 5
"""Percent of the durability that two worn tools have as one beyond what both have left."""

_Shape = tuple[int, tuple[bool, ...]]
"""Width of the smallest rectangle around a grid's items, and which of its cells hold one."""


class Recipe(NamedTuple):
    """One recipe.

    Attributes:
        name: Minecraft's identifier without the namespace.
        result: What it gives.
        width: Columns of the pattern; 0 for a recipe without shape.
        cells: The items that fit in each cell of the pattern, by row, empty where none may lie;
            without shape, those that each ingredient may be.
    """

    name: str
    result: ItemStack
    width: int
    cells: tuple[frozenset[int], ...]

    @property
    def mirrored(self) -> Recipe:
        """The recipe with its columns in reverse order."""
        starts = range(0, len(self.cells), self.width)
        cells = [cell for start in starts for cell in self.cells[start : start + self.width][::-1]]
        return self._replace(cells=tuple(cells))


def _result(row: dict[str, str]) -> ItemStack:
    return ItemStack(ITEM_ID[row["result"]], int(row["quantity"]), 0)


def _read_shaped() -> list[Recipe]:
    recipes = []
    for row in rows("shaped_recipes.csv"):
        pattern = row["pattern"].split("/")
        words = dict(word.split("=") for word in row["ingredients"].split())
        fits = {letter: items(word) for letter, word in words.items()} | {".": frozenset()}
        cells = tuple(fits[letter] for line in pattern for letter in line)
        recipes.append(Recipe(row["recipe"], _result(row), len(pattern[0]), cells))
    return recipes


def _read_shapeless() -> list[Recipe]:
    recipes = []
    for row in rows("shapeless_recipes.csv"):
        cells = tuple(items(word) for word in row["ingredients"].split())
        recipes.append(Recipe(row["recipe"], _result(row), 0, cells))
    return recipes


SHAPED: tuple[Recipe, ...] = tuple(_read_shaped())
"""Recipes with a pattern, which may lie anywhere in the grid, also mirrored."""
SHAPELESS: tuple[Recipe, ...] = tuple(_read_shapeless())
"""Recipes that ask only for the ingredients."""
REMAINDERS: dict[int, int] = {
    ITEM_ID[row["item"]]: ITEM_ID[row["leaves"]] for row in rows("remainders.csv")
}
"""What stays in the grid of an item that is used up, by item id: the bucket of a milk bucket."""


def _by_shape() -> dict[_Shape, list[Recipe]]:
    found: dict[_Shape, list[Recipe]] = defaultdict(list)
    for recipe in SHAPED:
        for version in dict.fromkeys((recipe, recipe.mirrored)):
            shape = version.width, tuple(bool(cell) for cell in version.cells)
            found[shape].append(version)
    return dict(found)


def _by_count() -> dict[int, list[Recipe]]:
    found: dict[int, list[Recipe]] = defaultdict(list)
    for recipe in SHAPELESS:
        found[len(recipe.cells)].append(recipe)
    return dict(found)


_SHAPED_BY_SHAPE = _by_shape()
_SHAPELESS_BY_COUNT = _by_count()


def craft(grid: Sequence[ItemStack], width: int) -> ItemStack:
    """What a grid gives.

    Args:
        grid: Stacks by row.
        width: Columns of the grid.

    Returns:
        The result of the recipe that the grid fits; an empty stack if there is none.
    """
    recipe = _find(tuple(stack.item for stack in grid), width)
    return recipe.result if recipe else _repair(grid)


@lru_cache(maxsize=4096)
def _find(grid: tuple[int, ...], width: int) -> Recipe | None:
    cells, width = _trim(grid, width)
    shape = width, tuple(bool(item) for item in cells)
    for recipe in _SHAPED_BY_SHAPE.get(shape, ()):
        if all(item in fits for item, fits in zip(cells, recipe.cells, strict=True) if item):
            return recipe
    ingredients = [item for item in cells if item]
    for recipe in _SHAPELESS_BY_COUNT.get(len(ingredients), ()):
        if _assign(ingredients, recipe.cells):
            return recipe
    return None


def _trim(grid: tuple[int, ...], width: int) -> tuple[tuple[int, ...], int]:
    """The smallest rectangle around all items, by row, and its width."""
    used = [index for index, item in enumerate(grid) if item]
    if not used:
        return (), 0
    columns, lines = [index % width for index in used], [index // width for index in used]
    left, right = min(columns), max(columns) + 1
    cells = [
        grid[line * width + column]
        for line in range(min(lines), max(lines) + 1)
        for column in range(left, right)
    ]
    return tuple(cells), right - left


def _assign(ingredients: Sequence[int], cells: Sequence[frozenset[int]]) -> bool:
    """Whether each ingredient can be one of the recipe's, all of which are then used."""
    if not ingredients:
        return True
    first, rest = ingredients[0], ingredients[1:]
    return any(
        first in fits and _assign(rest, [*cells[:index], *cells[index + 1 :]])
        for index, fits in enumerate(cells)
    )


def _repair(grid: Sequence[ItemStack]) -> ItemStack:
    """Two worn tools of one kind, alone in the grid, become one."""
    tools = [stack for stack in grid if stack.item != EMPTY]
    if len(tools) != 2 or tools[0].item != tools[1].item:
        return NOTHING
    durability = ITEMS[tools[0].item].durability
    if not durability or any(tool.quantity != 1 for tool in tools):
        return NOTHING
    left = sum(durability - tool.damage for tool in tools) + durability * _REPAIR_BONUS // 100
    return ItemStack(tools[0].item, 1, max(durability - left, 0))
