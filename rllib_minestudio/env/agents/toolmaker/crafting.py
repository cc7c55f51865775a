"""Crafting: ingredients clicked into the grid one by one, the result taken out."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, SeenStack, Skill
from rllib_minestudio.env.agents.toolmaker.plan import CraftingRecipe, Knowledge
from rllib_minestudio.env.agents.toolmaker.screens import OpenScreen


def most_sets(
    known: Knowledge, made: CraftingRecipe, slots: Sequence[SeenStack], wanted: int
) -> int:
    """How many sets, up to `wanted`, the stacks suffice for; a cell takes one stack's items."""
    for sets in range(wanted, 0, -1):
        if all(_shares(known, made, slots, name, sets) is not None for name in made.needs):
            return sets
    return 0


def _shares(
    known: Knowledge, made: CraftingRecipe, slots: Sequence[SeenStack], name: str, sets: int
) -> list[tuple[int, list[int]]] | None:
    """Which slots fill which cells of the grid with `sets` of an ingredient; None if too few."""
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

    Whether it worked is seen by what the inventory holds afterwards. If not, the caller closes the
    screen, which gives back what lies in the grid and throws down what hangs on the cursor.
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
    """Put `sets` of one ingredient into each cell of the grid where it belongs."""
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
