"""Solutions that hunt animals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.family import ANY_ITEMS, SOME_PREY, Family
from rllib_minestudio.benchmark.solutions.moving import run_by_path
from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.env.agents.hunter import BODIES, EYE_HEIGHT, ScriptedHunter
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.gathering import collect
from rllib_minestudio.env.agents.toolmaker.hands import hold_one_of
from rllib_minestudio.env.agents.toolmaker.sight import Cell, Point
from rllib_minestudio.option_fields import option

_WEAPONS = tuple(
    f"{material}_{kind}"
    for material in ("diamond", "iron", "stone", "wooden")
    for kind in ("sword", "axe", "pickaxe", "shovel")
)
"""The best first."""
_SIGHT = 48.0
_DYING_TICKS = 25
"""From the last hit until what the animal drops lies on the ground."""
_COLLECTIONS = 4
_BESIDE = 2.5
"""Blocks on the map from which the rest of the way to an animal is run straight."""


@dataclass(frozen=True)
class Hunt(Family):
    """Kills animals as `ScriptedHunter` does, and picks up what they drop."""

    prey: tuple[str, ...] = option(None, "Names of animals.", check=SOME_PREY)
    kills: int = option(1, "How many to kill.", least=1)
    collect: tuple[str, ...] = option((), "Items to pick up then.", check=ANY_ITEMS)
    around_walls: bool = option(False, "Whether to run up by a path, not straight.")

    def play(self, player: OmniscientBody) -> Skill:
        """Hunt one after the other."""
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
        """Run to where nothing stands between the player and the nearest animal."""
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
        """The middle of the nearest animal."""
        middles = [
            (mob["x"], mob["y"] + BODIES[mob["name"]].height / 2, mob["z"])
            for mob in player.engine.mobs_near(_SIGHT)
            if mob["name"] in self.prey
        ]
        return min(middles, key=lambda middle: math.dist(player.eye, middle), default=None)

    def _killed(self, player: OmniscientBody) -> int:
        killed = player.info["kill_entity"]
        return sum(killed.get(name, 0) for name in self.prey)
