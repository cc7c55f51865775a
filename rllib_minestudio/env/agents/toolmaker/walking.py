"""Finding and walking a path, jumping up steps and digging through obstacles; mining a block."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.toolmaker.body import (
    REACH,
    TOOLS,
    AgentBody,
    Cell,
    Memory,
    Point,
    Skill,
    hold_one_of,
    hold_slot,
    middle,
)

_FACING_DEGREES = 50.0
_ARRIVED = 0.35  # blocks from the middle of a cell
_STEP_TICKS = 50  # after which a step counts as impossible
_GAZE_DEPTH = 1.0  # blocks below the eyes, at the next cells: where the player looks while walking
_GAZE_AHEAD = 4.0
_STILL = 0.02  # blocks per tick


def walk(
    body: AgentBody, near: Cell, reached: Callable[[Cell], bool], most_steps: int = 80
) -> Skill:
    """Walk to a cell that `reached` accepts, planning the path again as more is seen.

    Args:
        body: The body.
        near: A cell beside the goal.
        reached: Whether the walk may end in a cell.
        most_steps: Steps after which to give up.
    """
    barred: set[Cell] = set()
    for _ in range(most_steps):
        if reached(body.cell):
            return True
        has_pickaxe = any(stack.name in TOOLS["pickaxe"] for stack in body.slots[:9])
        costs = digging_costs(has_pickaxe)
        path = find_path(body.memory, body.cell, near, reached, costs, barred)
        if not path:
            return False
        for to in path[:3]:
            at = body.cell
            if not (yield from _step(body, to)):
                if body.cell == at:
                    barred.add(to)
                break
    return reached(body.cell)


def walk_near(body: AgentBody, point: Point, radius: float = 0.8) -> Skill:
    """Walk until the feet are within `radius` blocks of a point, horizontally."""
    near = (math.floor(point[0]), math.floor(point[1]), math.floor(point[2]))

    def reached(cell: Cell) -> bool:
        x, _, z = middle(cell)
        gap = math.hypot(x - point[0], z - point[2])
        return gap <= radius + 0.3 and -0.7 <= point[1] - cell[1] <= 2.0

    return (yield from walk(body, near, reached))


def _step(body: AgentBody, to: Cell) -> Skill:
    """Go to a neighbouring cell, after clearing the way."""
    for cell in cleared_for(body.cell, to):
        if body.memory.is_solid(cell) and not (yield from mine(body, cell)):
            return False
    x, _, z = middle(to)
    before = body.position
    was_walking = False
    for _ in range(_STEP_TICKS):
        feet_x, feet_y, feet_z = body.position
        gap = math.hypot(x - feet_x, z - feet_z)
        if gap < _ARRIVED and body.cell[1] == to[1]:
            return True
        yaw_error = body.error_to((x, feet_y, z))[1] if gap > 0.1 else 0.0
        level = _gaze_pitch(to[1] - feet_y) - body.pitch
        action: EnvAction = {"camera": (level, yaw_error)}
        moved = math.dist((feet_x, feet_z), (before[0], before[2]))
        stuck = was_walking and moved < _STILL
        before = body.position
        was_walking = gap >= _ARRIVED / 2 and abs(yaw_error) < _FACING_DEGREES
        if was_walking:
            action["forward"] = 1
            rising = to[1] > feet_y + 0.5 and gap < 1.4
            action["jump"] = int(rising or (stuck and to[1] >= feet_y))
        yield action
        blocking = [cell for cell in cleared_for(body.cell, to) if body.memory.is_solid(cell)]
        if blocking and body.cell != to and stuck:
            return False
    return False


def _gaze_pitch(rise: float) -> float:
    return math.degrees(math.atan2(_GAZE_DEPTH - rise, _GAZE_AHEAD))


# --------------------------------------------------------- finding a way through what has been seen
# A* over the cells that the player can stand in.
#
# A step leads to one of the eight neighbouring columns, up by one block or down by a few. What is
# in the way may be dug through, at a price; what nobody has seen counts as open, at a price.

DEEPEST_DROP = 3
"""Blocks that the player falls without being hurt."""

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
_CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMP_COST, _UNSEEN_COST = 1.5, 0.7
_MOST_NODES = 1200
_DIGGING_COSTS = {"leaves": 1.5, "dirt": 4.0, "grass_block": 4.0, "sand": 4.0, "gravel": 4.0}
_WITH_PICKAXE, _SLOWLY = 7.0, 60.0
_NEEDS_PICKAXE = ("stone", "cobblestone", "andesite", "diorite", "granite")

Costs = Callable[[str], float]
"""Cost of digging through a block of a name, in blocks of walking; infinite for never."""


def digging_costs(has_pickaxe: bool) -> Costs:
    """Return the costs with or without a pickaxe; stations and ores are never dug away."""

    def cost(name: str) -> float:
        if is_precious(name) or name == "bedrock":
            return math.inf
        if name in _NEEDS_PICKAXE:
            return _WITH_PICKAXE if has_pickaxe else math.inf
        last_word = name.rpartition("_")[2]
        return _DIGGING_COSTS.get(name, _DIGGING_COSTS.get(last_word, _SLOWLY))

    return cost


def cleared_for(at: Cell, to: Cell) -> tuple[Cell, ...]:
    """The cells that a body occupies on its way from `at` to `to`, from the top downwards."""
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
    """Yield the cells that one step leads to, with costs."""
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
    """Return the cheapest way from `start` to a cell that `reached` accepts.

    Args:
        memory: What has been seen.
        start: The cell of the feet.
        near: A cell beside the goal; the search is directed towards it.
        reached: Whether a cell is a goal.
        costs: Costs of digging.
        barred: Cells that turned out to be impassable.
        deepest_drop: Blocks to fall in a step at most.

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


# ----------------------------------------------------------------------------------- mining a block

STATIONS = ("crafting_table", "furnace")
_ORE = "_ore"

_AIM_DEGREES = 3.0
_HOLD_DEGREES = 5.0  # while mining the hand keeps still unless the aim is off by more
_JITTER = 0.1  # blocks around the intended aim
_LONGEST = 320  # ticks: a block without its tool, and what is in front of it
_HAND = ("log", "leaves", "dirt", "planks", "grass_block", "sand", "gravel", "table")
"""Kinds of blocks for which a pickaxe is no help."""
_HAND_ENDS = tuple(f"_{name}" for name in _HAND)


def is_precious(name: str) -> bool:
    """Whether a block is left alone if it is only in the way."""
    return name in STATIONS or name.endswith(_ORE)


def tools_for(block: str) -> tuple[str, ...]:
    """The tools to mine a block with, the best first; none if the hand will do."""
    return () if f"_{block}".endswith(_HAND_ENDS) else TOOLS["pickaxe"]


def _equip(body: AgentBody, blocks: Collection[str]) -> Skill:
    """Take the tool for the hardest of these blocks into the hand."""
    tools = max(map(tools_for, blocks), key=len)
    if tools:
        return (yield from hold_one_of(body, tools))
    every_tool = {name for kind in TOOLS.values() for name in kind}
    if body.slots[body.selected].name in every_tool:  # spare it
        free = (slot for slot in range(9) if body.slots[slot].name not in every_tool)
        yield from hold_slot(body, next(free, body.selected))
    return True


def mine(body: AgentBody, cell: Cell) -> Skill:
    """Look at a block in reach, and hold attack until it and what hides it are seen to be gone."""
    x, y, z = body.visible_point(cell)
    shift = body.random.uniform(-_JITTER, _JITTER, 3)
    aim = (x + float(shift[0]), y + float(shift[1]), z + float(shift[2]))
    attacking = False
    for _ in range(_LONGEST):
        name = body.memory.name_of(cell)
        if name == "air":
            return True
        if body.distance_to(cell) > REACH + 0.5:
            return False
        error = body.error_to(aim)
        off = math.hypot(*error)
        attacking = off < (_HOLD_DEGREES if attacking else _AIM_DEGREES)
        if not attacking:
            yield {"camera": error}
            continue
        ahead = [cell, *body.memory.obstacles(body.eye, aim)]
        if any(is_precious(str(body.memory.name_of(block))) for block in ahead if block != cell):
            return False
        yield from _equip(body, [str(body.memory.name_of(block)) for block in ahead])
        yield {"attack": 1}
    return False
