"""Solutions that go somewhere, break blocks, hunt animals, craft or smelt."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from rllib_minestudio.benchmark.solutions.building import (
    ANY_ITEMS,
    SOME_BLOCKS,
    SOME_PREY,
    OmniscientBody,
    SolutionFamily,
    check_amounts,
    check_box,
    check_item,
    rise,
    stand_in_middle,
)
from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.hunter import BODIES, EYE_HEIGHT, ScriptedHunter
from rllib_minestudio.env.agents.toolmaker.body import Cell, Point, Skill, hold_one_of, middle
from rllib_minestudio.env.agents.toolmaker.gathering import Stations, can_mine_from, collect
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
from rllib_minestudio.env.agents.toolmaker.walking import find_path, is_precious, mine, walk
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import (
    BURN_TICKS,
    SHAPED,
    SHAPELESS,
    SMELTING,
    Recipe,
)
from rllib_minestudio.env.voxel.world.climate import BIOMES
from rllib_minestudio.foundation.options import option

_NEAR_ENOUGH = 2.0
_FACING_DEGREES = 30.0
_STILL, _PATIENCE = 0.05, 25
"""Speed in blocks per tick below which the player is stuck, and ticks before it takes a detour."""
_DETOUR = 10
"""Length of a detour, in blocks."""
_HEADINGS = 8
_FARTHEST_BIOME = 480
_AT_END = 0.5
"""Distance from a path's end at which it counts as reached, in blocks."""
_DEEPEST_DROP = 6
"""Deepest fall in blocks, which costs three of the twenty points of health."""
_HALF_WIDTH = 0.35
"""Free space needed on both sides, in blocks: half the body's width, and some more."""


def run_to(player: OmniscientBody, goal: tuple[float, float], leaps: bool = False) -> Skill:
    """Run straight to (x, z), also up steps; go round or dig through obstacles.

    Args:
        player: The player.
        goal: x and z.
        leaps: Whether to jump along, which is a quarter faster, and makes hungry.
    """
    stuck, before = 0, player.position
    while (left := _gap(player, goal)) > _NEAR_ENOUGH:
        if stuck >= _PATIENCE:
            share = min(_DETOUR / left, 1.0)
            if not (yield from _walk_round(player, goal, share)):
                return False
            stuck = 0
        moved = math.dist(before[::2], player.position[::2])
        stuck = stuck + 1 if moved < _STILL else 0
        before = player.position
        yield _run_towards(player, goal, leaps or stuck > 0)
    return True


def run_by_path(player: OmniscientBody, near: Cell, reached: Callable[[Cell], bool]) -> Skill:
    """Run round obstacles, without digging, to a cell that `reached` accepts.

    Args:
        player: The player.
        near: A cell next to the goal.
        reached: Whether a cell is a goal.
    """
    path = find_path(
        player.memory, player.cell, near, reached, lambda _: math.inf, set(), _DEEPEST_DROP
    )
    if not path:
        return False
    at, stuck, before = 0, 0, player.position
    while _gap(player, middle(path[-1])[::2]) > _AT_END:
        if stuck >= _PATIENCE:
            return False
        free = (i for i in range(at, len(path)) if _runs_straight(player, path[i]))
        at = max(free, default=at)
        moved = math.dist(before[::2], player.position[::2])  # who jumps in place is stuck
        stuck = stuck + 1 if moved < _STILL else 0
        before = player.position
        yield _run_towards(player, middle(path[at])[::2], stuck > 0)
    return reached(player.cell)


def _runs_straight(player: OmniscientBody, cell: Cell) -> bool:
    """Return whether the straight line to a cell on the same level is free for the body."""
    x, _, z = player.position
    to_x, _, to_z = middle(cell)
    length = math.hypot(to_x - x, to_z - z) or 1.0
    aside = (to_z - z) / length * _HALF_WIDTH, (x - to_x) / length * _HALF_WIDTH
    return not any(
        player.memory.obstacles(
            (x + side * aside[0], height, z + side * aside[1]),
            (to_x + side * aside[0], height, to_z + side * aside[1]),
        )
        for side in (-1, 1)
        for height in (cell[1] + 0.5, cell[1] + 1.5)
    )


def _run_towards(player: OmniscientBody, goal: tuple[float, float], jump: bool) -> EnvAction:
    """Return the action that turns to (x, z), and runs once the player faces it."""
    level, yaw = player.error_to((goal[0], player.eye[1], goal[1]))
    forward = abs(yaw) < _FACING_DEGREES
    return {
        "camera": (level, yaw),
        "forward": int(forward),
        "sprint": int(forward),
        "jump": int(forward and jump),
    }


def _gap(player: OmniscientBody, goal: tuple[float, float]) -> float:
    return math.dist(player.position[::2], goal)


def _walk_round(player: OmniscientBody, goal: tuple[float, float], share: float) -> Skill:
    """Walk a share of the way to (x, z) along a path."""
    x, y, z = player.cell
    near = round(x + (goal[0] - x) * share), y, round(z + (goal[1] - z) * share)

    def reached(cell: Cell) -> bool:
        return math.dist(cell[::2], near[::2]) <= _NEAR_ENOUGH

    return (yield from walk(player, near, reached))


@dataclass(frozen=True)
class Walk(SolutionFamily):
    """Runs away from the starting point; tries other directions if the way is blocked."""

    distance: int = option(None, "Blocks on the map.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Run to a place at this distance."""
        x, _, z = player.position
        for heading in range(_HEADINGS):
            angle = 2.0 * math.pi * heading / _HEADINGS
            far = self.distance + _NEAR_ENOUGH + 1.0
            goal = x + far * math.cos(angle), z + far * math.sin(angle)
            if (yield from run_to(player, goal)):
                return True
        return False


@dataclass(frozen=True)
class Back(SolutionFamily):
    """Runs back to the starting point."""

    def play(self, player: OmniscientBody) -> Skill:
        """Run there."""
        x, _, z = player.relative((0, 0, 0))
        return (yield from run_to(player, (x + 0.5, z + 0.5)))


@dataclass(frozen=True)
class FindBiome(SolutionFamily):
    """Runs to the nearest land of a biome."""

    biome: str = option(None, "Which biome.", choices=BIOMES)

    def play(self, player: OmniscientBody) -> Skill:
        """Run straight to it."""
        goal = player.survey.nearest_biome(self.biome, _FARTHEST_BIOME)
        if goal is None:
            return False
        return (yield from run_to(player, (goal[0] + 0.5, goal[1] + 0.5)))


@dataclass(frozen=True)
class Tunnel(SolutionFamily):
    """Digs a staircase down into the rock."""

    down: int = option(None, "Blocks to go down.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Walk to a place below and ahead, digging through obstacles."""
        x, y, z = player.cell
        near = x + self.down, y - self.down, z
        return (yield from walk(player, near, lambda cell: cell[1] <= near[1]))


# ---------------------------------------------------------------------- solutions that break blocks

_MOST_BLOCKS = 500
"""Most blocks to break; more means that the solution makes no progress."""
_FALL_TICKS = 20
"""Ticks that suffice to fall by one block."""


def mine_from_here(player: OmniscientBody, cell: Cell) -> Skill:
    """Mine a block, walking up to it first if it is out of reach.

    Ores in front of it, which `mine` would leave alone, are mined as well.
    """
    if not player.sees(cell):
        yield from walk(player, cell, can_mine_from(player, cell))
    for block in player.memory.obstacles(player.eye, player.visible_point(cell)):
        if block != cell and is_precious(str(player.memory.name_of(block))):
            yield from mine(player, block)
    return (yield from mine(player, cell))


@dataclass(frozen=True)
class Mine(SolutionFamily):
    """Breaks the nearest blocks of some kinds, and optionally collects their drops."""

    blocks: tuple[str, ...] = option(None, "Names of blocks.", check=SOME_BLOCKS)
    count: int = option(1, "How many blocks, or how many of the items that drop.", least=1)
    collect: tuple[str, ...] = option(
        (), "Items to pick up; none: it is enough to break blocks.", check=ANY_ITEMS
    )

    def play(self, player: OmniscientBody) -> Skill:
        """Break blocks until there are enough of them, or of their drops."""
        held, broken = player.count_of(self.collect), 0
        in_vain: set[Cell] = set()
        for _ in range(_MOST_BLOCKS):
            gained = player.count_of(self.collect) - held if self.collect else broken
            if gained >= self.count:
                return True
            if self.collect and gained + self._lying(player) >= self.count:
                yield from collect(player, self.collect, player.cell)
                continue
            found = [cell for cell in player.memory.find(self.blocks) if cell not in in_vain]
            if not found:
                return False
            cell = min(found, key=lambda cell: math.dist(player.eye, middle(cell)))
            if (yield from mine_from_here(player, cell)):
                broken += 1
                yield from player.wait(1)  # drops appear in the next tick
            else:
                in_vain.add(cell)
        return False

    def _lying(self, player: OmniscientBody) -> int:
        return sum(drop.name in self.collect for drop in player.drops)


@dataclass(frozen=True)
class Clear(SolutionFamily):
    """Breaks all blocks of a box, the nearest first."""

    box: tuple[int, ...] = option(
        None, "x0, x1, y0, y1, z0, z1 from where the player began.", check=check_box
    )

    def play(self, player: OmniscientBody) -> Skill:
        """Break the nearest block until the box is empty."""
        x0, x1, y0, y1, z0, z1 = self.box
        cells = [
            player.relative((x, y, z))
            for x in range(x0, x1 + 1)
            for y in range(y0, y1 + 1)
            for z in range(z0, z1 + 1)
        ]
        while left := [cell for cell in cells if player.memory.is_solid(cell)]:
            cell = min(left, key=lambda cell: math.dist(player.eye, middle(cell)))
            if not (yield from mine_from_here(player, cell)):
                return False
        return True


@dataclass(frozen=True)
class DigAndFill(SolutionFamily):
    """Digs straight down, and refills part of the hole from inside."""

    depth: int = option(3, "Blocks to dig down.", least=1)
    fill: str = option(None, "What to fill the hole with.", check=check_item)
    filled: int = option(1, "Blocks to fill.", least=0)

    def play(self, player: OmniscientBody) -> Skill:
        """Dig the blocks below the feet, then jump and place blocks there."""
        yield from stand_in_middle(player)
        x, y, z = player.cell
        for layer in range(y - 1, y - self.depth - 1, -1):
            if not (yield from mine(player, (x, layer, z))):
                return False
            for _ in range(_FALL_TICKS):
                if player.position[1] < layer + 0.01:
                    break
                yield {}
        return (yield from rise(player, self.fill, self.filled))


# ---------------------------------------------------------------------- solutions that hunt animals

_WEAPONS = tuple(
    f"{material}_{kind}"
    for material in ("diamond", "iron", "stone", "wooden")
    for kind in ("sword", "axe", "pickaxe", "shovel")
)
"""Weapons, the best first."""
_SIGHT = 48.0
_DYING_TICKS = 25
"""Ticks from the last hit until the animal's drops are on the ground."""
_COLLECTIONS = 4
_BESIDE = 2.5
"""Horizontal distance from which the player runs straight to an animal, in blocks."""


@dataclass(frozen=True)
class Hunt(SolutionFamily):
    """Kills animals as `ScriptedHunter` does, and collects their drops."""

    prey: tuple[str, ...] = option(None, "Names of animals.", check=SOME_PREY)
    kills: int = option(1, "How many to kill.", least=1)
    collect: tuple[str, ...] = option((), "Items to pick up then.", check=ANY_ITEMS)
    around_walls: bool = option(False, "Whether to run up by a path, not straight.")

    def play(self, player: OmniscientBody) -> Skill:
        """Hunt one animal after the other."""
        yield from hold_one_of(player, _WEAPONS)
        for _ in range(self.kills):
            yield from self._kill_one(player)
            yield from player.wait(_DYING_TICKS)
            for _ in range(_COLLECTIONS):
                if any(drop.name in self.collect for drop in player.drops):
                    yield from collect(player, self.collect, player.cell)
        return True

    def _kill_one(self, player: OmniscientBody) -> Skill:
        if self.around_walls:
            yield from self._run_up(player)
        hunter, before = ScriptedHunter(self.prey), self._killed(player)
        while self._killed(player) == before:
            yield hunter.keys(player.info["player_pos"], player.engine.mobs_near(_SIGHT))
        return True

    def _run_up(self, player: OmniscientBody) -> Skill:
        """Run to a place with a free line to the nearest animal."""
        goal = self._nearest(player)
        if goal is None:
            return False

        def reached(cell: Cell) -> bool:
            eye = cell[0] + 0.5, cell[1] + EYE_HEIGHT, cell[2] + 0.5
            near = math.dist(eye[::2], goal[::2]) <= _BESIDE
            return near and not player.memory.obstacles(eye, goal)

        near = math.floor(goal[0]), math.floor(goal[1]), math.floor(goal[2])
        return (yield from run_by_path(player, near, reached))

    def _nearest(self, player: OmniscientBody) -> Point | None:
        """Return the middle of the nearest animal, or None."""
        middles = [
            (mob["x"], mob["y"] + BODIES[mob["name"]].height / 2, mob["z"])
            for mob in player.engine.mobs_near(_SIGHT)
            if mob["name"] in self.prey
        ]
        return min(middles, key=lambda middle: math.dist(player.eye, middle), default=None)

    def _killed(self, player: OmniscientBody) -> int:
        killed = player.info["kill_entity"]
        return sum(killed.get(name, 0) for name in self.prey)


# --------------------------------------- solutions that use screens: crafting, smelting, and chests

CHEST = "chest"


@dataclass(frozen=True)
class CraftItems(SolutionFamily):
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
class SmeltItems(SolutionFamily):
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
class Chest(SolutionFamily):
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
