"""Walking along a path: turn, go, jump up steps, and dig away what is in the way."""

from __future__ import annotations

import math
from collections.abc import Callable

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.hands import TOOLS
from rllib_minestudio.env.agents.toolmaker.mining import mine
from rllib_minestudio.env.agents.toolmaker.paths import cleared_for, digging_costs, find_path
from rllib_minestudio.env.agents.toolmaker.sight import Cell, Point, middle

_FACING_DEGREES = 50.0
_ARRIVED = 0.35  # blocks from the middle of a cell
_STEP_TICKS = 50  # after which a step counts as impossible
_GAZE_DEPTH = 1.0  # blocks below the eyes, at the next cells, where one looks while walking
_GAZE_AHEAD = 4.0
_STILL = 0.02  # blocks per tick


def walk(
    body: AgentBody, near: Cell, reached: Callable[[Cell], bool], most_steps: int = 80
) -> Skill:
    """Walk to a cell that `reached` accepts, looking for the way again as more is seen.

    Args:
        body: The body.
        near: A cell beside the goal.
        reached: Whether one may stop in a cell.
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
    """Walk until the feet are within `radius` blocks of a point, on the map."""
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
