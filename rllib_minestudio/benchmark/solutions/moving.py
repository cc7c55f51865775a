"""Solutions that go somewhere: far away, to a biome, back again, or down into the rock."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.family import Family
from rllib_minestudio.benchmark.solutions.player import Player
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.sight import Cell
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


def run_to(player: Player, goal: tuple[float, float]) -> Skill:
    """Run straight to (x, z), up steps as well; round, or through, what is in the way."""
    stuck, before = 0, player.position
    while (left := _gap(player, goal)) > _NEAR_ENOUGH:
        if stuck >= _PATIENCE:
            share = min(_DETOUR / left, 1.0)
            if not (yield from _walk_round(player, goal, share)):
                return False
            stuck = 0
        level, yaw = player.error_to((goal[0], player.eye[1], goal[1]))
        forward = abs(yaw) < _FACING_DEGREES
        moved = math.dist(before[::2], player.position[::2])
        stuck = stuck + 1 if moved < _STILL else 0
        before = player.position
        yield {
            "camera": (level, yaw),
            "forward": int(forward),
            "sprint": int(forward),
            "jump": int(forward and stuck > 0),
        }
    return True


def _gap(player: Player, goal: tuple[float, float]) -> float:
    return math.dist(player.position[::2], goal)


def _walk_round(player: Player, goal: tuple[float, float], share: float) -> Skill:
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

    def play(self, player: Player) -> Skill:
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

    def play(self, player: Player) -> Skill:
        """Run there."""
        x, _, z = player.relative((0, 0, 0))
        return (yield from run_to(player, (x + 0.5, z + 0.5)))


@dataclass(frozen=True)
class FindBiome(Family):
    """Runs to the nearest land of a biome."""

    biome: str = option(None, "Which biome.", choices=BIOMES)

    def play(self, player: Player) -> Skill:
        """Run straight to it."""
        goal = player.survey.nearest_biome(self.biome, _FARTHEST_BIOME)
        if goal is None:
            return False
        return (yield from run_to(player, (goal[0] + 0.5, goal[1] + 0.5)))


@dataclass(frozen=True)
class Tunnel(Family):
    """Digs stairs down into the rock."""

    down: int = option(None, "Blocks to go down.", least=1)

    def play(self, player: Player) -> Skill:
        """Walk to a place below and ahead, through whatever is in the way."""
        x, y, z = player.cell
        near = x + self.down, y - self.down, z
        return (yield from walk(player, near, lambda cell: cell[1] <= near[1]))
