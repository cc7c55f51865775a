"""The tech tree: what to do next, given what the player has.

What the toolmaker knows of Minecraft's recipes is in `knowledge.json`: the shapes it crafts, what
it smelts, and which blocks drop what for which tool. Names of kinds of wood are grouped: any planks
are `planks`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, OpenScreen, SeenStack, Skill

INVENTORY, CRAFTING_TABLE, FURNACE = "inventory", "crafting_table", "furnace"
"""Screens; the latter two are blocks as well."""


class CraftingRecipe(NamedTuple):
    """A recipe for a crafting grid.

    Attributes:
        screen: `INVENTORY` or `CRAFTING_TABLE`.
        makes: How many items a set of ingredients makes.
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
    """A recipe for a furnace.

    Attributes:
        source: The item to smelt.
        fuel: The item to burn.
        per_fuel: How many items a piece of fuel makes.
        ticks: How long each takes.
    """

    source: str
    fuel: str
    per_fuel: float
    ticks: int


class Mined(NamedTuple):
    """An item that blocks drop.

    Attributes:
        blocks: The names of these blocks.
        tools: Tools with which they drop it, the easiest to make first; empty if the hand will do.
        underground: Whether they are below the soil everywhere.
        layer: The layer in which to tunnel for them, if they are ores deep below; else None.
    """

    blocks: tuple[str, ...]
    tools: tuple[str, ...]
    underground: bool = False
    layer: int | None = None


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
    """Return the toolmaker's knowledge, read once."""
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
                mined.get("layer"),
            )
            for name, mined in told["mined"].items()
        },
    )


class PlanStep(NamedTuple):
    """A step of a plan.

    Attributes:
        verb: "gather", "craft" or "smelt".
        item: The item to have afterwards; a group's name for wood.
        quantity: How many more of it to gather or smelt, or how many sets to craft.
    """

    verb: str
    item: str
    quantity: int


_SPARE_PICKAXES, _RESERVE = 1, 6
"""Spare pickaxes, and planks, that a player takes along when it sets out to go deep below: tools
wear out there, and no trees grow."""


class _Planner:
    """Works out the steps to an item, depth first."""

    def __init__(
        self,
        held: Mapping[str, int],
        stations: Collection[str],
        in_sight: Collection[str],
        sets_out: bool,
        random: np.random.Generator,
    ) -> None:
        self._known = knowledge()
        self._in_sight, self._sets_out = in_sight, sets_out
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
            self._use_station(craft.screen)  # another one, if ingredients come from far away
            self._add("craft", item, sets)
            self._spare[item] += sets * craft.makes - count
        elif item in known.smelts:
            smelt = known.smelts[item]
            furnace_first = self._random.random() < 0.5
            if furnace_first and not self._is_far(smelt.source):
                self._use_station(FURNACE)
            self.need(smelt.source, count)
            self._use_station(FURNACE)
            self.need(smelt.fuel, math.ceil(count / smelt.per_fuel))
            self._add("smelt", item, count)
        else:
            self._use_tool(known.mined[item].tools)
            if self._is_far(item):
                self._stations.clear()  # nobody comes back for a table
                if self._sets_out:
                    self._sets_out = False
                    self.need(known.mined[item].tools[0], _SPARE_PICKAXES)
                    self.need("planks", _RESERVE)
            self._add("gather", item, count)

    def make(self, goal: str) -> None:
        """Provide for one more of the goal than there is."""
        self.need(goal, self._spare[goal] + 1)

    def _is_far(self, item: str) -> bool:
        """Whether what an item is gathered from is deep below, and none of it in sight."""
        mined = self._known.mined.get(item)
        return mined is not None and mined.layer is not None and item not in self._in_sight

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
        """Add a step, or add to the earlier step for the same item."""
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
    in_sight: Collection[str] = (),
    sets_out: bool = True,
) -> list[PlanStep]:
    """Return the steps, in order, that make one more of something.

    Args:
        goal: What is wanted, one of the crafts.
        held: What the inventory holds.
        stations: Which of `CRAFTING_TABLE` and `FURNACE` are at hand.
        order: Seed of the order in which ingredients are obtained.
        in_sight: Items that can be gathered near by, even if they are usually found deep below.
        sets_out: Whether the player has not gone deep below yet, and takes along what it may lack
            there.
    """
    planner = _Planner(held, stations, in_sight, sets_out, np.random.default_rng(order))
    planner.make(goal)
    return planner.steps


# ----------------------------------------------------------------------------------------- crafting
# Ingredients are clicked into the grid one by one, and the result is taken out.


def most_sets(
    known: Knowledge, made: CraftingRecipe, slots: Sequence[SeenStack], wanted: int
) -> int:
    """For how many sets, up to `wanted`, the stacks suffice; a cell is filled from one stack."""
    for sets in range(wanted, 0, -1):
        if all(_shares(known, made, slots, name, sets) is not None for name in made.needs):
            return sets
    return 0


def _shares(
    known: Knowledge, made: CraftingRecipe, slots: Sequence[SeenStack], name: str, sets: int
) -> list[tuple[int, list[int]]] | None:
    """Return which slots fill which cells with `sets` of an ingredient; None if too few."""
    cells = [cell for cell, wanted in enumerate(made.grid) if wanted == name]
    members = known.members(name)
    shares = []
    for slot, stack in enumerate(slots):
        filled = min(stack.quantity // sets, len(cells)) if stack.name in members else 0
        if filled:
            shares.append((slot, cells[:filled]))
            cells = cells[filled:]
    return None if cells else shares


def craft(body: AgentBody, screen: OpenScreen, known: Knowledge, item: str, sets: int) -> Skill:
    """Make `sets` sets of something on the screen that is open.

    The inventory afterwards shows whether it worked. If not, the caller closes the screen, which
    returns what is in the grid and throws away what is on the cursor.
    """
    made = known.crafts[item]
    members = known.members(item)
    before = sum(body.counts()[name] for name in members)
    for name in made.needs:
        if not (yield from _lay_out(body, screen, known, made, name, sets)):
            return False
    if not (yield from screen.shift_click(screen.own("result"))):
        return False
    yield from body.react()
    after = sum(body.counts()[name] for name in members)
    return after - before >= made.makes * sets


def _lay_out(
    body: AgentBody,
    screen: OpenScreen,
    known: Knowledge,
    made: CraftingRecipe,
    name: str,
    sets: int,
) -> Skill:
    """Put `sets` of one ingredient into each of its cells of the grid."""
    shares = _shares(known, made, body.slots, name, sets)
    if shares is None:
        return False
    quantities = [stack.quantity for stack in body.slots]
    for slot, cells in shares:
        held = screen.of_inventory(slot)
        if not (yield from screen.left_click(held)):
            return False
        for cell in cells:
            if not (yield from screen.put(screen.own("craft", cell), sets, quantities[slot])):
                return False
        if quantities[slot] > len(cells) * sets and not (yield from screen.left_click(held)):
            return False
    return True


# ----------------------------------------------------------------------------------------- smelting
# Ore and fuel are put into the furnace, and the product is taken out.

_SPARE_TICKS = 20
"""Ticks to wait after the last item should be done."""
_LOOKS = 3
"""How often to take out what is done, and wait on if something is missing."""


def smelt(body: AgentBody, screen: OpenScreen, known: Knowledge, item: str, count: int) -> Skill:
    """Make `count` of something in the furnace that is open, and wait for it."""
    process = known.smelts[item]
    pieces = math.ceil(count / process.per_fuel)
    before = body.counts()[item]
    if not (yield from _fill(body, screen, "fuel", known.members(process.fuel), pieces)):
        return False
    if not (yield from _fill(body, screen, "input", (process.source,), count)):
        return False
    yield from body.wait(count * process.ticks + _SPARE_TICKS)
    for _ in range(_LOOKS):
        yield from screen.shift_click(screen.own("output"))
        yield from body.react()
        if body.counts()[item] - before >= count:
            return True
        yield from body.wait(process.ticks // 2)
    return body.counts()[item] > before


def _fill(
    body: AgentBody, screen: OpenScreen, group: str, names: tuple[str, ...], count: int
) -> Skill:
    """Put `count` items into a slot of the furnace, from the first stack that has enough."""
    for slot, stack in enumerate(body.slots):
        if stack.name in names and stack.quantity >= count:
            held = screen.of_inventory(slot)
            if not (yield from screen.left_click(held)):
                return False
            if not (yield from screen.put(screen.own(group), count, stack.quantity)):
                return False
            return stack.quantity == count or (yield from screen.left_click(held))
    return False
