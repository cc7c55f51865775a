"""Solutions that go somewhere: far away, to a biome, back again, or down into the rock."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.family import Family
from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.paths import find_path
from rllib_minestudio.env.agents.toolmaker.sight import Cell, middle
from rllib_minestudio.env.agents.toolmaker.walking import walk
from rllib_minestudio.env.voxel.world.worldgen import BIOMES
from rllib_minestudio.option_fields import option

_NEAR_ENOUGH = 2.0
_FACING_DEGREES = 30.0
_STILL, _PATIENCE = 0.05, 25
"""Blocks per tick below which one is stuck, and ticks after which one looks for a way round."""
_DETOUR = 10
"""Blocks ahead to which a way round leads."""
_HEADINGS = 8
_FARTHEST_BIOME = 480
_AT_END = 0.5
"""Blocks from a path's end at which one is there."""
_DEEPEST_DROP = 6
"""Blocks that one lets oneself fall, which costs three of the twenty points of health."""
_HALF_WIDTH = 0.35
"""Blocks to both sides that one needs free: half the body's width, and some more."""


def run_to(player: OmniscientBody, goal: tuple[float, float]) -> Skill:
    """Run straight to (x, z), up steps as well; round, or through, what is in the way."""
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
        yield _run_towards(player, goal, stuck > 0)
    return True


def run_by_path(player: OmniscientBody, near: Cell, reached: Callable[[Cell], bool]) -> Skill:
    """Run round what is in the way, digging nothing, to a cell that `reached` accepts.

    Args:
        player: The player.
        near: A cell beside the goal.
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
        stuck = stuck + 1 if math.dist(before, player.position) < _STILL else 0
        before = player.position
        yield _run_towards(player, middle(path[at])[::2], stuck > 0)
    return reached(player.cell)


def _runs_straight(player: OmniscientBody, cell: Cell) -> bool:
    """Whether nothing is in the way of a body on the straight line to a cell, on its level."""
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
    """Turn to (x, z), and run as soon as one looks there."""
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
    """Walk a share of the way to (x, z) by a path."""
    x, y, z = player.cell
    near = round(x + (goal[0] - x) * share), y, round(z + (goal[1] - z) * share)

    def reached(cell: Cell) -> bool:
        return math.dist(cell[::2], near[::2]) <= _NEAR_ENOUGH

    return (yield from walk(player, near, reached))


@dataclass(frozen=True)
class Walk(Family):
    """Runs away from where the episode began; in another direction where the way is barred."""

    distance: int = option(None, "Blocks on the map.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Run to a place that far away."""
        x, _, z = player.position
        for heading in range(_HEADINGS):
            angle = 2.0 * math.pi * heading / _HEADINGS
            far = self.distance + _NEAR_ENOUGH + 1.0
            goal = x + far * math.cos(angle), z + far * math.sin(angle)
            if (yield from run_to(player, goal)):
                return True
        return False


@dataclass(frozen=True)
class Back(Family):
    """Runs back to where the episode began."""

    def play(self, player: OmniscientBody) -> Skill:
        """Run there."""
        x, _, z = player.relative((0, 0, 0))
        return (yield from run_to(player, (x + 0.5, z + 0.5)))


@dataclass(frozen=True)
class FindBiome(Family):
    """Runs to the nearest land of a biome."""

    biome: str = option(None, "Which biome.", choices=BIOMES)

    def play(self, player: OmniscientBody) -> Skill:
        """Run straight to it."""
        goal = player.survey.nearest_biome(self.biome, _FARTHEST_BIOME)
        if goal is None:
            return False
        return (yield from run_to(player, (goal[0] + 0.5, goal[1] + 0.5)))


@dataclass(frozen=True)
class Tunnel(Family):
    """Digs stairs down into the rock."""

    down: int = option(None, "Blocks to go down.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Walk to a place below and ahead, through whatever is in the way."""
        x, y, z = player.cell
        near = x + self.down, y - self.down, z
        return (yield from walk(player, near, lambda cell: cell[1] <= near[1]))
