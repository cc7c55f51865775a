"""The tech tree: what to do next, from what one has.

What the toolmaker knows of Minecraft's recipes is in `knowledge.json`: the shapes it makes, what
it smelts, and which blocks yield what to which tool. Names of kinds of wood are grouped: any planks
are `planks`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

INVENTORY, CRAFTING_TABLE, FURNACE = "inventory", "crafting_table", "furnace"
"""Screens; the latter two are blocks as well."""


class CraftingRecipe(NamedTuple):
    """Something that is made in a grid.

    Attributes:
        screen: `INVENTORY` or `CRAFTING_TABLE`.
        makes: How many a set of ingredients makes.
        grid: Ingredient of each cell of the grid, row by row; None where it stays empty.
    """

    screen: str
    makes: int
    grid: tuple[str | None, ...]

    @property
    def needs(self) -> Counter[str]:
        """How many of each ingredient a set has."""
        return Counter(name for name in self.grid if name is not None)


class SmeltingRecipe(NamedTuple):
    """Something that a furnace makes.

    Attributes:
        source: What it is made of.
        fuel: What is burnt for it.
        per_fuel: How many a piece of fuel makes.
        ticks: How long each takes.
    """

    source: str
    fuel: str
    per_fuel: float
    ticks: int


class Mined(NamedTuple):
    """Something that blocks drop.

    Attributes:
        blocks: Which blocks.
        tools: Tools that they drop it to, the easiest to make first; empty if the hand will do.
        underground: Whether they are below the soil everywhere.
        beside: Blocks near which they are looked for.
    """

    blocks: tuple[str, ...]
    tools: tuple[str, ...]
    underground: bool = False
    beside: tuple[str, ...] = ()


class Knowledge(NamedTuple):
    """What the toolmaker knows of the game, by the name of what it wants."""

    groups: Mapping[str, tuple[str, ...]]
    crafts: Mapping[str, CraftingRecipe]
    smelts: Mapping[str, SmeltingRecipe]
    mined: Mapping[str, Mined]

    def group_of(self, item: str) -> str:
        """The group that an item belongs to, or else its own name."""
        return next((group for group, names in self.groups.items() if item in names), item)

    def members(self, name: str) -> tuple[str, ...]:
        """The items that a group's or an item's name stands for."""
        return self.groups.get(name, (name,))


@cache
def knowledge() -> Knowledge:
    """Read what the toolmaker knows."""
    told = json.loads((Path(__file__).parent / "knowledge.json").read_text())
    return Knowledge(
        {group: tuple(names) for group, names in told["groups"].items()},
        {
            name: CraftingRecipe(craft["screen"], craft["makes"], tuple(chain(*craft["grid"])))
            for name, craft in told["crafts"].items()
        },
        {
            name: SmeltingRecipe(smelt["from"], smelt["fuel"], smelt["per_fuel"], smelt["ticks"])
            for name, smelt in told["smelts"].items()
        },
        {
            name: Mined(
                tuple(mined["blocks"]),
                tuple(mined["tools"]),
                mined.get("underground", False),
                tuple(mined.get("beside", ())),
            )
            for name, mined in told["mined"].items()
        },
    )


class PlanStep(NamedTuple):
    """One thing to do.

    Attributes:
        verb: "gather", "craft" or "smelt".
        item: What is to be had afterwards; a group's name for wood.
        quantity: How many more of it to gather or smelt, or how many sets to craft.
    """

    verb: str
    item: str
    quantity: int


class _Planner:
    """Works out the steps to an item, depth first."""

    def __init__(
        self, held: Mapping[str, int], stations: Collection[str], random: np.random.Generator
    ) -> None:
        self._known = knowledge()
        self._spare: Counter[str] = Counter()
        for item, quantity in held.items():
            self._spare[self._known.group_of(item)] += quantity
        self._tools = {item for item, quantity in held.items() if quantity}
        self._stations = set(stations)
        self._random = random
        self.steps: list[PlanStep] = []

    def need(self, item: str, count: int) -> None:
        """Provide for `count` items, which are used up."""
        taken = min(self._spare[item], count)
        self._spare[item] -= taken
        count -= taken
        if not count:
            return
        known = self._known
        if item in known.crafts:
            craft = known.crafts[item]
            sets = math.ceil(count / craft.makes)
            self._use_station(craft.screen)
            for name, quantity in self._shuffled(craft.needs.items()):
                self.need(name, quantity * sets)
            self._add("craft", item, sets)
            self._spare[item] += sets * craft.makes - count
        elif item in known.smelts:
            smelt = known.smelts[item]
            furnace_first = self._random.random() < 0.5
            if furnace_first:
                self._use_station(FURNACE)
            self.need(smelt.source, count)
            if not furnace_first:
                self._use_station(FURNACE)
            self.need(smelt.fuel, math.ceil(count / smelt.per_fuel))
            self._add("smelt", item, count)
        else:
            self._use_tool(known.mined[item].tools)
            self._add("gather", item, count)

    def make(self, goal: str) -> None:
        """Provide for one more of the goal than there is."""
        self.need(goal, self._spare[goal] + 1)

    def _shuffled(self, needs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        needs = sorted(needs)
        return [needs[i] for i in self._random.permutation(len(needs))]

    def _use_station(self, screen: str) -> None:
        if screen != INVENTORY and screen not in self._stations:
            self.need(screen, 1)
            self._stations.add(screen)

    def _use_tool(self, tools: tuple[str, ...]) -> None:
        if tools and not self._tools.intersection(tools):
            self.need(tools[0], 1)
            self._tools.add(tools[0])

    def _add(self, verb: str, item: str, quantity: int) -> None:
        """Do a thing when the first of it is needed, for everything that it is needed for."""
        for index, step in enumerate(self.steps):
            if (step.verb, step.item) == (verb, item):
                self.steps[index] = step._replace(quantity=step.quantity + quantity)
                return
        self.steps.append(PlanStep(verb, item, quantity))


def make_plan(
    goal: str,
    held: Mapping[str, int],
    stations: Collection[str],
    order: int = 0,
) -> list[PlanStep]:
    """What to do, in this order, to make one more of something.

    Args:
        goal: What is wanted, one of the crafts.
        held: What the inventory holds.
        stations: Of `CRAFTING_TABLE` and `FURNACE`, which are at hand.
        order: Seed of the order in which ingredients are got.
    """
    planner = _Planner(held, stations, np.random.default_rng(order))
    planner.make(goal)
    return planner.steps
