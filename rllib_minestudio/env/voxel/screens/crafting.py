"""Crafting recipes, furnaces, and the containers of a world's blocks."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rllib_minestudio.env.voxel.data import read_json
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID, ITEMS, ItemStack, wear_of
from rllib_minestudio.env.voxel.screens.geometry import (
    DATA,
    NOTHING,
    Container,
    is_same,
    room_beside,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, SCREENS, turned_to
from rllib_minestudio.env.voxel.world.world import World

# -------------------------------------------------------------------------- the words of the tables
# Items, tags and alternatives, as sets of item ids.

_TAG = "#"
_OR = "|"


def rows(table: str) -> list[dict[str, str]]:
    """Return the rows of `screens/data/<table>` as dictionaries by column."""
    with (DATA / table).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_TAGS: dict[str, str] = read_json("item_tags.json")


def names(word: str) -> Iterator[str]:
    """Yield the names of the items that a word of a table stands for.

    Args:
        word: An item's name, "#" and a tag's name, or several of these separated by "|".

    Yields:
        Names; those of a tag in its order.
    """
    for part in word.split(_OR):
        if part.startswith(_TAG):
            for member in _TAGS[part.removeprefix(_TAG)].split():
                yield from names(member)
        else:
            yield part


def items(word: str) -> frozenset[int]:
    """Return the ids of the items that a word of a table stands for."""
    return frozenset(ITEM_ID[name] for name in names(word))


_REPAIR_BONUS = 5
"""Percent of the durability that combining two worn tools adds to what they have left."""

_Shape = tuple[int, tuple[bool, ...]]
"""Width of the smallest rectangle around a grid's items, and which of its cells are filled."""


class Recipe(NamedTuple):
    """One recipe.

    Attributes:
        name: Minecraft's identifier without the namespace.
        result: The stack that it yields.
        width: Columns of the pattern; 0 for a shapeless recipe.
        cells: Ids of the items that fit each cell of the pattern, by row, an empty set for an empty
            cell; in a shapeless recipe, ids of the items that fit each ingredient.
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
"""Recipes with a pattern, which may be anywhere in the grid, and mirrored."""
SHAPELESS: tuple[Recipe, ...] = tuple(_read_shapeless())
"""Recipes that require only the ingredients, in any arrangement."""
REMAINDERS: dict[int, int] = {
    ITEM_ID[row["item"]]: ITEM_ID[row["leaves"]] for row in rows("remainders.csv")
}
"""Item that a used-up ingredient leaves in the grid, by item id: a bucket for a milk bucket."""


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
    """Return the result of a grid.

    Args:
        grid: Stacks by row.
        width: Columns of the grid.

    Returns:
        The result of the recipe that the grid fits, or of a repair; an empty stack for neither.
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
    """Return the smallest rectangle around all items, by row, and its width."""
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
    """Whether the ingredients can be matched one to one with the recipe's cells."""
    if not ingredients:
        return True
    first, rest = ingredients[0], ingredients[1:]
    return any(
        first in fits and _assign(rest, [*cells[:index], *cells[index + 1 :]])
        for index, fits in enumerate(cells)
    )


def _repair(grid: Sequence[ItemStack]) -> ItemStack:
    """Combine two tools of one kind, alone in the grid, into one with less wear."""
    tools = [stack for stack in grid if stack.item != EMPTY]
    if len(tools) != 2 or tools[0].item != tools[1].item:
        return NOTHING
    durability = ITEMS[tools[0].item].durability
    if not durability or any(tool.quantity != 1 for tool in tools):
        return NOTHING
    left = (
        sum(durability - wear_of(tool.data) for tool in tools) + durability * _REPAIR_BONUS // 100
    )
    return ItemStack(tools[0].item, 1, max(durability - left, 0))


# -------------------------------------------------------------------------------------- the furnace
# Burning times, smelting recipes, and the ticks of a furnace.

INPUT, FUEL, OUTPUT = range(3)
"""Slots of a furnace."""
_COOLING = 2
"""Ticks of progress lost per tick without fire."""


class Smelting(NamedTuple):
    """The result of smelting an item.

    Attributes:
        result: Item id.
        experience: Points per item.
        ticks: Duration in ticks.
    """

    result: int
    experience: float
    ticks: int


def _read_smelting() -> dict[int, Smelting]:
    return {
        item: Smelting(ITEM_ID[row["result"]], float(row["experience"]), int(row["ticks"]))
        for row in rows("smelting.csv")
        for item in items(row["ingredient"])
    }


def _read_fuel() -> dict[int, int]:
    ticks = {item: int(row["ticks"]) for row in rows("fuel.csv") for item in items(row["fuel"])}
    return {item: duration for item, duration in ticks.items() if duration}


SMELTING: dict[int, Smelting] = _read_smelting()
"""Result of smelting, by id of the smelted item."""
BURN_TICKS: dict[int, int] = _read_fuel()
"""Ticks that an item burns, by item id; later rows of the table override earlier ones."""

_WET_SPONGE, _BUCKET, _WATER_BUCKET = (
    ITEM_ID[name] for name in ("wet_sponge", "bucket", "water_bucket")
)


class Furnace(Container):
    """A furnace's slots and fire.

    Attributes:
        burning: Ticks for which the fire still burns.
        burn_ticks: Ticks for which it burns in total.
        progress: Ticks for which the item in `INPUT` has been smelted.
        smelted: What was smelted since its experience was last taken.
    """

    def __init__(self) -> None:
        super().__init__(3)
        self.burning = self.burn_ticks = self.progress = 0
        self.smelted: Counter[Smelting] = Counter()

    def set(self, slot: int, item: int, quantity: int, data: int = 0) -> None:
        """Set a slot like `Container.set`; another item in `INPUT` resets the progress."""
        before = self.stacks[slot]
        super().set(slot, item, quantity, data)
        if slot == INPUT and (quantity <= 0 or not is_same(before, self.stacks[slot])):
            self.progress = 0

    @property
    def is_idle(self) -> bool:
        """Whether a tick would change nothing."""
        without_work = self.stacks[INPUT].item == EMPTY or self.stacks[FUEL].item == EMPTY
        return not self.burning and not self.progress and without_work

    @property
    def burn(self) -> float:
        """Share of the fuel's burning time that is left."""
        return self.burning / self.burn_ticks if self.burning else 0.0

    @property
    def done(self) -> float:
        """Share of the smelting that is done."""
        smelting = SMELTING.get(self.stacks[INPUT].item)
        return self.progress / smelting.ticks if smelting else 0.0

    def tick(self) -> None:
        """Advance the fire and the smelting by one tick."""
        if self.burning:
            self.burning -= 1
        if not self.burning and EMPTY in (self.stacks[INPUT].item, self.stacks[FUEL].item):
            self.progress = max(self.progress - _COOLING, 0)
            return
        smelting = self._possible()
        if not self.burning and smelting:
            self._light()
        if self.burning and smelting:
            self.progress += 1
            if self.progress == smelting.ticks:
                self.progress = 0
                self._smelt(smelting)
        else:
            self.progress = 0

    def _possible(self) -> Smelting | None:
        """Return the smelting of the input, if there is room for its result, or None."""
        smelting = SMELTING.get(self.stacks[INPUT].item)
        output = self.stacks[OUTPUT]
        if smelting is None or output.item == EMPTY:
            return smelting
        fits = output.item == smelting.result and room_beside(output) > 0
        return smelting if fits else None

    def _light(self) -> None:
        fuel = self.stacks[FUEL]
        self.burning = self.burn_ticks = BURN_TICKS.get(fuel.item, 0)
        if not self.burning:
            return
        if fuel.quantity > 1:
            self.stacks[FUEL] = fuel._replace(quantity=fuel.quantity - 1)
        else:
            left = REMAINDERS.get(fuel.item)
            self.stacks[FUEL] = NOTHING if left is None else ItemStack(left, 1, 0)

    def _smelt(self, smelting: Smelting) -> None:
        source, output = self.stacks[INPUT], self.stacks[OUTPUT]
        self.stacks[OUTPUT] = ItemStack(smelting.result, output.quantity + 1, 0)
        if source.item == _WET_SPONGE and self.stacks[FUEL].item == _BUCKET:
            self.stacks[FUEL] = ItemStack(_WATER_BUCKET, 1, 0)
        left = source.quantity - 1
        self.stacks[INPUT] = source._replace(quantity=left) if left else NOTHING
        self.smelted[smelting] += 1

    def take_experience(self, random: Callable[[], float]) -> int:
        """Return the points for what was smelted since the last call.

        A fraction of a point is the probability of one more point.

        Args:
            random: Draws a number in [0, 1).
        """
        points = 0
        for smelting, count in self.smelted.items():
            whole, fraction = divmod(smelting.experience * count, 1.0)
            points += int(whole) + (fraction > 0.0 and random() < fraction)
        self.smelted.clear()
        return points


# ------------------------------------------------------------------------ the containers of a world
# Contents of furnaces and chests by the block's position.

Place = tuple[int, int, int]

CHEST_SIZE = 27

_MAKERS: dict[str, Callable[[], Container]] = {
    "furnace": Furnace,
    "chest": lambda: Container(CHEST_SIZE),
}
"""Constructor of a block's container, by the block's name."""

SCREEN_BLOCKS: dict[int, str] = {BLOCK_ID[kind]: kind for kind in SCREENS}
"""Kind of screen that using a block opens, by the block's kind."""


class BlockEntities:
    """The containers of all furnaces and chests that have been opened.

    They stay when their land is unloaded; a furnace continues when it is loaded again.
    """

    def __init__(self) -> None:
        self._containers: dict[Place, tuple[int, Container]] = {}
        self._furnaces: dict[Place, Furnace] = {}
        self._changes = 0

    def clear(self) -> None:
        """Remove all containers."""
        self._containers.clear()
        self._furnaces.clear()

    def __len__(self) -> int:
        return len(self._containers)

    def __iter__(self) -> Iterator[Container]:
        return (container for _, container in self._containers.values())

    def of_block(self, block: int) -> Iterator[tuple[Place, Container]]:
        """Yield position and container of all blocks of a kind."""
        for place, (kind, container) in self._containers.items():
            if kind == block:
                yield place, container

    def at(self, place: Place, block: int) -> Container | None:
        """Return the container of a block, creating it on first use.

        Args:
            place: Position of the block.
            block: Its kind.

        Returns:
            The container; None if such a block has none.
        """
        kind = SCREEN_BLOCKS.get(block)
        if kind not in _MAKERS:
            return None
        if place not in self._containers:
            container = _MAKERS[kind]()
            self._containers[place] = block, container
            if isinstance(container, Furnace):
                self._furnaces[place] = container
        return self._containers[place][1]

    def entries(self) -> Iterator[tuple[Place, int, Container]]:
        """Yield position, kind of block and container of all, in the order of their first use."""
        for place, (block, container) in self._containers.items():
            yield place, block, container

    def remove(self, place: Place) -> tuple[list[ItemStack], Furnace | None]:
        """Remove the container of a block that is about to disappear.

        Returns:
            The stacks in it, and the furnace if it was one.
        """
        _, container = self._containers.pop(place, (0, None))
        furnace = self._furnaces.pop(place, None)
        stacks = container.stacks if container else []
        return [stack for stack in stacks if stack.item != EMPTY], furnace

    def forget_replaced(self, world: World) -> None:
        """Remove containers, with their contents, whose block was replaced by a command."""
        if not self._containers or world.changes == self._changes:
            return
        self._changes = world.changes
        for place, (block, _) in list(self._containers.items()):
            if world.is_loaded(place[0], place[2]) and world.kind_at(*place) != block:
                self.remove(place)

    def tick(self, world: World) -> None:
        """Advance the furnaces in loaded land by one tick, and light up those that burn."""
        for place, furnace in self._furnaces.items():
            if furnace.is_idle or not world.is_loaded(place[0], place[2]):
                continue
            burnt = furnace.burning > 0
            furnace.tick()
            if burnt != (furnace.burning > 0):
                lit = "false" if burnt else "true"
                world.set_block(*place, turned_to(world.block_at(*place), lit=lit))
