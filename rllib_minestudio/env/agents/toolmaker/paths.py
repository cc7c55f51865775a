"""Finding a way through what has been seen: A* over the cells that one can stand in.

A step leads to one of the eight neighbouring columns, up by one block or down by a few.
What is in the way may be dug through, at a price; what nobody has seen counts as open, at a price.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator

from rllib_minestudio.env.agents.toolmaker.mining import is_precious
from rllib_minestudio.env.agents.toolmaker.sight import Cell, Memory

DEEPEST_DROP = 3
"""Blocks that one falls without being hurt."""

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
_CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMP_COST, _UNSEEN_COST = 1.5, 0.7
_MOST_NODES = 1200
_DIGGING_COSTS = {"leaves": 1.5, "dirt": 4.0, "grass_block": 4.0, "sand": 4.0, "gravel": 4.0}
_WITH_PICKAXE, _SLOWLY = 7.0, 60.0
_NEEDS_PICKAXE = ("stone", "cobblestone", "andesite", "diorite", "granite")

Costs = Callable[[str], float]
"""Price of digging through a block of a name, in blocks of walking; infinite for never."""


def digging_costs(has_pickaxe: bool) -> Costs:
    """Prices for a player with or without a pickaxe; stations and ores are never dug away."""

    def cost(name: str) -> float:
        if is_precious(name) or name == "bedrock":
            return math.inf
        if name in _NEEDS_PICKAXE:
            return _WITH_PICKAXE if has_pickaxe else math.inf
        last_word = name.rpartition("_")[2]
        return _DIGGING_COSTS.get(name, _DIGGING_COSTS.get(last_word, _SLOWLY))

    return cost


def cleared_for(at: Cell, to: Cell) -> tuple[Cell, ...]:
    """The cells that a body takes up on its way from `at` to `to`, from the top downwards."""
    x, y, z = to
    top = max(at[1], y) + 1
    cells = tuple((x, layer, z) for layer in range(top, y - 1, -1))
    return ((at[0], at[1] + 2, at[2]), *cells) if y > at[1] else cells


def _price_of_clearing(memory: Memory, cells: tuple[Cell, ...], costs: Costs) -> float:
    total = 0.0
    for cell in cells:
        name = memory.name_of(cell)
        if name is None:
            total += _UNSEEN_COST
        elif name != "air":
            total += costs(name)
    return total


def _steps(
    memory: Memory, at: Cell, costs: Costs, barred: set[Cell], deepest_drop: int
) -> Iterator[tuple[Cell, float]]:
    """The cells that one step leads to, with prices."""
    x, y, z = at
    for dx, dz in SIDES:
        for rise in range(1, -deepest_drop - 1, -1):
            to = x + dx, y + rise, z + dz
            floor = memory.name_of((to[0], to[1] - 1, to[2]))
            if floor == "air" or to in barred:
                continue
            price = _price_of_clearing(memory, cleared_for(at, to), costs)
            if not math.isfinite(price):
                continue
            if floor is None:
                if rise not in (0, -1):
                    continue
                price += _UNSEEN_COST
            yield to, 1.0 + price + (_JUMP_COST if rise > 0 else 0.0)
    for dx, dz in _CORNERS:
        to = x + dx, y, z + dz
        sides = ((x + dx, y, z), (x, y, z + dz))
        if to in barred or not memory.is_solid((to[0], y - 1, to[2])):
            continue
        body = [(i, j, k) for i, _, k in (to, *sides) for j in (y, y + 1)]
        if all(memory.is_air(cell) for cell in body):
            yield to, math.sqrt(2.0)


def find_path(
    memory: Memory,
    start: Cell,
    near: Cell,
    reached: Callable[[Cell], bool],
    costs: Costs,
    barred: set[Cell],
    deepest_drop: int = DEEPEST_DROP,
) -> list[Cell] | None:
    """The cheapest way from `start` to a cell that `reached` accepts.

    Args:
        memory: What has been seen.
        start: Where the feet are.
        near: A cell beside the goal; the search goes towards it.
        reached: Whether a cell is a goal.
        costs: Prices of digging.
        barred: Cells that turned out to be no way.
        deepest_drop: Blocks that one may fall in a step.

    Returns:
        The cells after `start`; up to the one nearest to the goal if the search is too long; None
        if there is no way at all.
    """

    def rest(cell: Cell) -> float:
        return math.hypot(cell[0] - near[0], cell[2] - near[2]) + 0.5 * abs(cell[1] - near[1])

    paid = {start: 0.0}
    before: dict[Cell, Cell] = {}
    queue = [(rest(start), start)]
    done: set[Cell] = set()
    best, best_rest = start, rest(start)
    while queue and len(done) < _MOST_NODES:
        _, at = heapq.heappop(queue)
        if at in done:
            continue
        if reached(at):
            return _trace(before, at)
        done.add(at)
        if rest(at) < best_rest:
            best, best_rest = at, rest(at)
        for to, price in _steps(memory, at, costs, barred, deepest_drop):
            total = paid[at] + price
            if total < paid.get(to, math.inf):
                paid[to] = total
                before[to] = at
                heapq.heappush(queue, (total + rest(to), to))
    return _trace(before, best) if best != start else None


def _trace(before: dict[Cell, Cell], end: Cell) -> list[Cell]:
    path = [end]
    while path[-1] in before:
        path.append(before[path[-1]])
    return path[-2::-1]
