"""Putting a block down, and opening a station by using it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.hands import hold_one_of
from rllib_minestudio.env.agents.toolmaker.sight import Cell, Point, middle

_NEAREST, _FARTHEST = 1.2, 3.8
"""Blocks from the eyes, on the map and in all, to where a block is put."""
_CLEARANCE = 0.8
"""Blocks between the player's middle and that of a cell which its body may touch."""
_SIDES = ((0, 1, 0), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1))
_TRIES = 8
_LOOK_DOWN = 35.0


def place(body: AgentBody, item: str) -> Skill:
    """Put down a block from the hotbar where there is room, and see that it stands there."""
    for _ in range(_TRIES):
        options = list(_options(body))
        if not options:
            yield from _look_around(body)
            continue
        pick = int(min(body.random.exponential(1.5), len(options) - 1))
        cell, aim = sorted(options, key=lambda option: _cost(body, option[0]))[pick]
        before = body.counts()[item]
        if not (yield from hold_one_of(body, (item,))):
            return False
        if not (yield from body.look_at(aim)):
            continue
        yield {"use": 1}
        yield from body.react()
        if body.counts()[item] < before:
            yield from body.look_at(middle(cell), tolerance=10.0)
            yield from body.react()
            return body.memory.name_of(cell) == item
    return False


def _cost(body: AgentBody, cell: Cell) -> float:
    pitch, yaw = body.error_to(middle(cell))
    return math.hypot(pitch, yaw) / 30.0 + 2.0 * abs(cell[1] - body.cell[1])


def _options(body: AgentBody) -> Iterator[tuple[Cell, Point]]:
    """Empty cells within reach that a block can be put into, and where to aim for it."""
    feet_x, feet_y, feet_z = body.cell
    reach = range(-3, 4)
    for cell in (
        (feet_x + i, feet_y + j, feet_z + k) for i in reach for j in (-1, 0, 1) for k in reach
    ):
        if not body.memory.is_air(cell) or not _has_room(body, cell):
            continue
        for normal in _SIDES:
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
    return max(_NEAREST, _CLEARANCE) <= away and body.distance_to(cell) <= _FARTHEST


def _is_open(body: AgentBody, cell: Cell, support: Cell, aim: Point) -> bool:
    """Whether a line from the eyes to `aim` comes through `cell` and meets `support` first."""
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
        yield {"use": 1}
        yield from body.react()
        if body.screen_open:
            return True
    return False
