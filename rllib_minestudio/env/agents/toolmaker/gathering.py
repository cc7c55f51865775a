"""Looking for blocks, mining them and picking up what drops; placing and opening stations."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.hunter import EYE_HEIGHT
from rllib_minestudio.env.agents.toolmaker.body import (
    HOTBAR,
    AgentBody,
    Cell,
    OpenScreen,
    Point,
    Skill,
    close_screen,
    hold_one_of,
    middle,
    toggle_inventory,
)
from rllib_minestudio.env.agents.toolmaker.plan import INVENTORY, Mined
from rllib_minestudio.env.agents.toolmaker.walking import SIDES, mine, walk, walk_near

_MINING_REACH = 3.9
"""Blocks from the eyes to a block's middle, at most, to mine it."""
_SOFT = "leaves"
_LOWER_COST, _HIGHER_COST = 2.0, 0.7
"""Cost of a block below the feet, or above the eyes, in blocks of walking per block of height."""
_DROP_RANGE = 10.0
_MOST_DROPS, _MOST_IN_VAIN = 8, 12
_FALLING_TICKS = 10
"""Ticks in which something falls from a tree's crown to the ground."""
_SEARCH_PITCH, _SEARCH_TICKS = 10.0, 65
_STROLL = (6.0, 14.0)
"""Shortest and longest stroll in blocks."""
_STAIRS = 5
"""Steps of the stairs that lead through the soil."""
_AIR_OF_CAVE = 7
"""Of eighteen cells around the player that are known as air."""
_TUNNEL, _MOST_TUNNELS = 12, 60
"""Blocks of a tunnel in one direction, and tunnels after which to give up."""


def can_mine_from(body: AgentBody, target: Cell) -> Callable[[Cell], bool]:
    """Return a test of whether a block can be mined from a cell.

    It can if it is in reach and visible from there, and is not what the player stands on.
    """
    memory = body.memory

    def reached(cell: Cell) -> bool:
        x, y, z = cell
        if target in (cell, (x, y + 1, z), (x, y - 1, z)):
            return False
        eye = x + 0.5, y + EYE_HEIGHT, z + 0.5
        if math.dist(eye, middle(target)) > _MINING_REACH:
            return False
        between = [block for block in memory.obstacles(eye, middle(target)) if block != target]
        return all(str(memory.name_of(block)).endswith(_SOFT) for block in between)

    return reached


def _cost(body: AgentBody, cell: Cell) -> float:
    x, _, z = middle(cell)
    feet_x, feet_y, feet_z = body.position
    rise = cell[1] - feet_y
    height = _LOWER_COST * max(-rise, 0.0) + _HIGHER_COST * max(rise - 1.0, 0.0)
    return math.hypot(x - feet_x, z - feet_z) + height


def gather(body: AgentBody, mined: Mined, drops: Collection[str], count: int) -> Skill:
    """Mine blocks until the inventory holds `count` more of what they drop.

    Args:
        body: The body.
        mined: Which blocks.
        drops: Names of the items that they drop.
        count: How many more.
    """

    def held() -> int:
        counts = body.counts()
        return sum(counts[name] for name in drops)

    start, enough = held(), held() + count
    mined_so_far, last = 0, body.cell
    in_vain: set[Cell] = set()
    while held() < enough:
        if mined.tools and not body.has_one_of(mined.tools):
            return False  # it is worn out
        found = [cell for cell in body.memory.find(mined.blocks) if cell not in in_vain]
        cell = min(found, key=lambda cell: (_cost(body, cell), cell), default=None)
        lying = mined_so_far - (held() - start)
        stays = cell is not None and can_mine_from(body, cell)(body.cell)
        if lying and (held() + lying >= enough or not stays):
            yield from collect(body, drops, last)
            mined_so_far = held() - start  # what has not been found is lost
            continue
        if cell is None:
            if in_vain:
                in_vain.clear()
            if mined.layer is not None:
                if not (yield from tunnel(body, mined, mined.layer)):
                    return False
                continue
            if (yield from look_around(body, mined.blocks)):
                continue
            if mined.underground:
                yield from dig_down(body, mined.blocks)
            elif not (yield from search(body, mined, lambda: held() >= enough)):
                return False
            continue
        if (yield from mine_at(body, cell)):
            last = cell
            mined_so_far += 1
            yield from _look_above(body, cell)
        else:
            in_vain.add(cell)
            if len(in_vain) > _MOST_IN_VAIN:
                return False
    return True


def mine_at(body: AgentBody, cell: Cell) -> Skill:
    """Walk to a block and mine it."""
    if not can_mine_from(body, cell)(body.cell):
        yield from walk(body, cell, can_mine_from(body, cell))
    if not body.memory.is_solid(cell):
        return False
    return (yield from mine(body, cell))


def _look_above(body: AgentBody, cell: Cell) -> Skill:
    """Look at the block above a mined one, if it has not been seen: trees go on upwards."""
    above = cell[0], cell[1] + 1, cell[2]
    if body.memory.name_of(above) is None:
        yield from body.look_at(middle(above), tolerance=8.0, patience=20)
    return True


def collect(body: AgentBody, names: Collection[str], last: Cell) -> Skill:
    """Pick up the dropped items of these names in view.

    Args:
        body: The body.
        names: Which items.
        last: Where a block was mined: if nothing is in view, the items must be there.
    """
    yield from body.react()
    x, y, z = middle(last)
    fallen_to = x, min(y, body.position[1] + 0.3), z
    ways_to_find = iter(
        (
            body.look_at(fallen_to, tolerance=10.0),
            walk_near(body, fallen_to, radius=1.2),
        )
    )
    for _ in range(_MOST_DROPS):
        if any(place[1] > body.position[1] + 1.0 for place in _wanted(body, names)):
            yield from body.wait(_FALLING_TICKS)
        places = _wanted(body, names)
        if not places:
            way = next(ways_to_find, None)
            if way is None:
                return True
            yield from way
        else:
            place = min(places, key=lambda place: math.dist(place, body.position))
            if not (yield from walk_near(body, place)):
                return False
        yield from body.react()
    return False


def _wanted(body: AgentBody, names: Collection[str]) -> list[Point]:
    """Where items of these names lie in view."""
    return [
        drop.place
        for drop in body.drops
        if drop.name in names and math.dist(drop.place, body.position) < _DROP_RANGE
    ]


def look_around(body: AgentBody, blocks: Collection[str]) -> Skill:
    """Turn all around, until one of these blocks is seen."""
    side = float(body.random.choice((-1.0, 1.0)))
    speed = side * body.limits.search_speed / body.limits.turn_gain
    for _ in range(_SEARCH_TICKS):
        if body.memory.find(blocks):
            return True
        yield {"camera": (_SEARCH_PITCH - body.pitch, speed)}
    return bool(body.memory.find(blocks))


def search(body: AgentBody, mined: Mined, enough: Callable[[], bool], rounds: int = 12) -> Skill:
    """Stroll and look around, until one of the blocks is seen.

    Args:
        body: The body.
        mined: Which blocks.
        enough: Whether no more are needed: strolling picks up items on the ground.
        rounds: How often to try before giving up.
    """
    for _ in range(rounds):
        yield from stroll(body)
        if enough() or (yield from look_around(body, mined.blocks)):
            return True
    return False


def dig_down(body: AgentBody, blocks: Collection[str]) -> Skill:
    """Dig stairs downwards until one of these blocks is seen."""
    return (yield from _dig(body, blocks, int(body.random.integers(len(SIDES))), _STAIRS))


def tunnel(body: AgentBody, mined: Mined, layer: int) -> Skill:
    """Dig stairs down to a layer, and on in it, until one of the blocks is seen.

    The tunnel leads away from where it begins, until something is in the way. What is open, such as
    a cave, is walked through.
    """
    side = int(body.random.integers(len(SIDES)))
    for _ in range(_MOST_TUNNELS):
        steps = min(_STAIRS, max(body.cell[1] - layer, 0))
        dug = yield from _dig(body, mined.blocks, side, steps)
        if _is_in_cave(body) and (yield from look_around(body, mined.blocks)):
            return True
        if body.memory.find(mined.blocks):
            return True
        if not body.has_one_of(mined.tools):
            return False
        if not dug:
            side = (side + int(body.random.choice((1, 3)))) % len(SIDES)
    return False


def _is_in_cave(body: AgentBody) -> bool:
    """Whether there is more air around than in what one digs oneself."""
    x, y, z = body.cell
    around = [(x + i, y + j, z + k) for i in (-2, 0, 2) for j in (1, 3) for k in (-2, 0, 2)]
    return sum(body.memory.is_air(cell) for cell in around) >= _AIR_OF_CAVE


def _dig(body: AgentBody, blocks: Collection[str], side: int, steps: int) -> Skill:
    """Dig stairs down to one side, or a tunnel if they have no steps, until blocks are seen."""
    side_x, side_z = SIDES[side]
    x, y, z = body.cell
    length = steps or _TUNNEL
    near = x + length * side_x, y - steps, z + length * side_z

    def reached(cell: Cell) -> bool:
        ahead = (near[0] - cell[0]) * side_x + (near[2] - cell[2]) * side_z
        arrived = cell[1] <= near[1] if steps else ahead <= 0
        return arrived or bool(body.memory.find(blocks))

    return (yield from walk(body, near, reached))


def stroll(body: AgentBody) -> Skill:
    """Walk to a random place some blocks away."""
    angle = float(body.random.uniform(0.0, 2.0 * math.pi))
    length = float(body.random.uniform(*_STROLL))
    x, y, z = body.position
    goal = x + length * math.cos(angle), y, z + length * math.sin(angle)
    near = (math.floor(goal[0]), math.floor(y), math.floor(goal[2]))

    def reached(cell: Cell) -> bool:
        return math.hypot(cell[0] - near[0], cell[2] - near[2]) < 2.0

    return (yield from walk(body, near, reached, most_steps=16))


# ------------------------------------------ putting a block down, and opening a station by using it

_NEAREST, _FARTHEST = 1.2, 3.8
"""Least horizontal, and largest, distance in blocks from the player at which to put a block."""
_NEIGHBOURS = ((0, 1, 0), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1))
_TRIES = 8
_LOOK_DOWN = 35.0


def place(body: AgentBody, item: str) -> Skill:
    """Put down a block from the hotbar where there is room, and check that it is there."""
    for _ in range(_TRIES):
        options = list(places_for(body))
        if not options:
            yield from _look_around(body)
            continue
        pick = int(min(body.random.exponential(1.5), len(options) - 1))
        cell, aim = sorted(options, key=lambda option: _placing_cost(body, option[0]))[pick]
        before = body.counts()[item]
        if not (yield from hold_one_of(body, (item,))):
            return False
        if not (yield from body.look_at(aim)):
            continue
        yield from body.brush_aside()
        yield {"use": 1}
        yield from body.react()
        if body.counts()[item] < before:
            yield from body.look_at(middle(cell), tolerance=10.0)
            yield from body.react()
            return body.memory.name_of(cell) == item
    return False


def _placing_cost(body: AgentBody, cell: Cell) -> float:
    pitch, yaw = body.error_to(middle(cell))
    return math.hypot(pitch, yaw) / 30.0 + 2.0 * abs(cell[1] - body.cell[1])


def places_for(body: AgentBody) -> Iterator[tuple[Cell, Point]]:
    """Yield empty cells within reach for a block, and where to aim to put it there."""
    feet_x, feet_y, feet_z = body.cell
    reach = range(-3, 4)
    for cell in (
        (feet_x + i, feet_y + j, feet_z + k) for i in reach for j in (-1, 0, 1) for k in reach
    ):
        if not body.memory.is_air(cell) or not _has_room(body, cell):
            continue
        for normal in _NEIGHBOURS:
            support = cell[0] - normal[0], cell[1] - normal[1], cell[2] - normal[2]
            if not body.memory.is_solid(support):
                continue
            x, y, z = middle(support)
            aim = (x + 0.5 * normal[0], y + 0.5 * normal[1], z + 0.5 * normal[2])
            if _is_open(body, cell, support, aim):
                yield cell, aim
                break


def _has_room(body: AgentBody, cell: Cell) -> bool:
    x, _, z = middle(cell)
    away = math.hypot(x - body.position[0], z - body.position[2])
    return away >= _NEAREST and body.distance_to(cell) <= _FARTHEST


def _is_open(body: AgentBody, cell: Cell, support: Cell, aim: Point) -> bool:
    """Whether a line from the eyes to `aim` goes through `cell` and meets `support` first."""
    first = body.memory.obstacles(body.eye, _between(aim, middle(support)))[:1]
    before = body.memory.obstacles(body.eye, _between(aim, middle(cell)))
    return first == [support] and not before


def _between(start: Point, end: Point) -> Point:
    """The point a tenth of the way from one to the other."""
    x, y, z = (a + 0.1 * (b - a) for a, b in zip(start, end, strict=True))
    return x, y, z


def _look_around(body: AgentBody) -> Skill:
    """Look at the ground a quarter turn to the side."""
    for _ in range(15):
        yield {
            "camera": (_LOOK_DOWN - body.pitch, body.limits.search_speed / body.limits.turn_gain)
        }
    return True


def open_station(body: AgentBody, cell: Cell) -> Skill:
    """Look at a station in reach and use it, until its screen is open."""
    for _ in range(3):
        aim = body.visible_point(cell)
        if not (yield from body.look_at(aim, tolerance=2.0)):
            return False
        yield from body.react()
        if body.crosshair != cell:
            continue
        yield from body.brush_aside()
        yield {"use": 1}
        yield from body.react()
        if body.screen_open:
            return True
    return False


# ------------------------------------------------------------ screens and the blocks that open them
# They are found or put down, walked up to, used, and left again.

_RANGE, _CLIMB = 20.0, 3
"""Blocks, in all and up or down, beyond which to put down another station instead."""


class Stations:
    """The screens that a player works at."""

    def __init__(self, body: AgentBody) -> None:
        self._body = body
        self._screen: OpenScreen | None = None

    def nearest(self, station: str) -> Cell | None:
        """The nearest known station of a kind, if it is not too far away."""
        body = self._body
        found = body.memory.find((station,))
        nearest = min(found, key=lambda cell: math.dist(middle(cell), body.position), default=None)
        if nearest is None or math.dist(middle(nearest), body.position) > _RANGE:
            return None
        return nearest if abs(nearest[1] - body.cell[1]) <= _CLIMB else None

    def open(self, kind: str) -> Generator[EnvAction, None, OpenScreen | None]:
        """Open the screen of a kind and return it; None if that fails."""
        body = self._body
        if self._screen is not None and self._screen.kind == kind and body.screen_open:
            return self._screen
        yield from self.leave()
        if kind == INVENTORY:
            opened = yield from toggle_inventory(body)
        else:
            opened = yield from self._go_and_use(kind)
        self._screen = OpenScreen(body, kind) if opened else None
        return self._screen

    def leave(self) -> Skill:
        """Close the screen that is open, if there is one."""
        self._screen = None
        return (yield from close_screen(self._body))

    def have_in_hotbar(self, names: Collection[str]) -> Skill:
        """Move one of these items to the hotbar, if none is there."""
        body = self._body
        if any(stack.name in names for stack in body.slots[:HOTBAR]):
            return True
        slot = next((i for i, stack in enumerate(body.slots) if stack.name in names), None)
        screen = yield from self.open(INVENTORY)
        if slot is None or screen is None:
            return False
        empty = (i for i in range(HOTBAR) if not body.slots[i].quantity)
        yield from screen.swap(screen.of_inventory(slot), next(empty, HOTBAR - 1))
        yield from self.leave()
        return any(stack.name in names for stack in body.slots[:HOTBAR])

    def _go_and_use(self, station: str) -> Skill:
        """Walk to a known station, or put one down, and open it."""
        body = self._body
        cell = self.nearest(station)
        if cell is None:
            if not (yield from self.have_in_hotbar((station,))):
                return False
            if not (yield from place(body, station)):
                return False
            cell = self.nearest(station)
            if cell is None:
                return False
        if not can_mine_from(body, cell)(body.cell):
            yield from walk(body, cell, can_mine_from(body, cell))
        return (yield from open_station(body, cell))
