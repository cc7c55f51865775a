"""Solutions that go somewhere: far away, to a biome, or down into the rock."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.family import Family
from rllib_minestudio.benchmark.solutions.player import Player
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.sight import Cell
from rllib_minestudio.env.agents.toolmaker.walking import walk
from rllib_minestudio.env.voxel.world.worldgen import BIOMES
from rllib_minestudio.option_fields import option

_LEG = 16
"""Blocks of a way that are planned at a time."""
_NEAR_ENOUGH = 3.0
_HEADINGS = 8
_FARTHEST_BIOME = 480


def _sprinting(skill: Skill) -> Skill:
    """The same way, run instead of walked."""
    while True:
        try:
            keys = next(skill)
        except StopIteration as done:
            return bool(done.value)
        yield {**keys, "sprint": keys.get("forward", 0)}


def _legs(
    player: Player, goal: tuple[float, float]
) -> Iterator[tuple[Cell, Callable[[Cell], bool]]]:
    """Cells on the straight way to (x, z) and what counts as having got there, until it is near."""
    while True:
        x, y, z = player.cell
        left = math.dist((x, z), goal)
        if left <= _NEAR_ENOUGH:
            return
        share = min(_LEG / left, 1.0)
        near = round(x + (goal[0] - x) * share), y, round(z + (goal[1] - z) * share)

        def reached(cell: Cell, near: Cell = near) -> bool:
            return math.dist((cell[0], cell[2]), (near[0], near[2])) <= _NEAR_ENOUGH

        yield near, reached


def run_to(player: Player, goal: tuple[float, float]) -> Skill:
    """Run to a column, leg by leg, round what is in the way."""
    for near, reached in _legs(player, goal):
        if not (yield from _sprinting(walk(player, near, reached))):
            return False
    return True


@dataclass(frozen=True)
class Walk(Family):
    """Runs away from where the episode began; in another direction where the way is barred."""

    distance: int = option(100, "Blocks on the map.", least=1)

    def play(self, player: Player) -> Skill:
        """Run to a place that far away."""
        x, _, z = player.cell
        for heading in range(_HEADINGS):
            angle = 2.0 * math.pi * heading / _HEADINGS
            far = self.distance + _NEAR_ENOUGH + 1.0
            goal = x + far * math.cos(angle), z + far * math.sin(angle)
            if (yield from run_to(player, goal)):
                return True
        return False


@dataclass(frozen=True)
class FindBiome(Family):
    """Runs to the nearest land of a biome."""

    biome: str = option("forest", "Which biome.", choices=BIOMES)

    def play(self, player: Player) -> Skill:
        """Run straight to it."""
        goal = player.survey.nearest_biome(self.biome, _FARTHEST_BIOME)
        if goal is None:
            return False
        return (yield from run_to(player, (float(goal[0]), float(goal[1]))))


@dataclass(frozen=True)
class Tunnel(Family):
    """Digs stairs down into the rock."""

    down: int = option(8, "Blocks to go down.", least=1)

    def play(self, player: Player) -> Skill:
        """Walk to a place below and ahead, through whatever is in the way."""
        x, y, z = player.cell
        near = x + self.down, y - self.down, z
        return (yield from walk(player, near, lambda cell: cell[1] <= near[1]))
