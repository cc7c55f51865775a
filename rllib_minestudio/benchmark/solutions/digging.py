"""Solutions that break blocks: mining, clearing a box, digging down and filling up again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.building import rise, stand_in_middle
from rllib_minestudio.benchmark.solutions.family import (
    ANY_ITEMS,
    SOME_BLOCKS,
    Family,
    check_box,
    check_item,
)
from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.gathering import can_mine_from, collect
from rllib_minestudio.env.agents.toolmaker.mining import mine
from rllib_minestudio.env.agents.toolmaker.sight import Cell, middle
from rllib_minestudio.env.agents.toolmaker.walking import walk
from rllib_minestudio.option_fields import option

_MOST_BLOCKS = 500
"""Broken before a solution is begun anew: something that it does has no effect."""
_FALL_TICKS = 20
"""Enough to fall by one block."""


def mine_from_here(player: OmniscientBody, cell: Cell) -> Skill:
    """Mine a block from where one stands if it is in reach, or else walk up to it first."""
    if not player.sees(cell):
        yield from walk(player, cell, can_mine_from(player, cell))
    return (yield from mine(player, cell))


@dataclass(frozen=True)
class Mine(Family):
    """Breaks the nearest blocks of some kinds, and picks up what drops if that is wanted."""

    blocks: tuple[str, ...] = option(None, "Names of blocks.", check=SOME_BLOCKS)
    count: int = option(1, "How many blocks, or how many of the items that drop.", least=1)
    collect: tuple[str, ...] = option(
        (), "Items to pick up; none: it is enough to break blocks.", check=ANY_ITEMS
    )

    def play(self, player: OmniscientBody) -> Skill:
        """Break blocks until there are enough of them, or of what they drop."""
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
                yield from player.wait(1)  # what drops shows in the next tick
            else:
                in_vain.add(cell)
        return False

    def _lying(self, player: OmniscientBody) -> int:
        return sum(drop.name in self.collect for drop in player.drops)


@dataclass(frozen=True)
class Clear(Family):
    """Breaks all blocks of a box, the nearest first."""

    box: tuple[int, ...] = option(
        None, "x0, x1, y0, y1, z0, z1 from where the player began.", check=check_box
    )

    def play(self, player: OmniscientBody) -> Skill:
        """Break one after the other, until the box is empty."""
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
class DigAndFill(Family):
    """Digs straight down, and fills part of the hole again from within."""

    depth: int = option(3, "Blocks to dig down.", least=1)
    fill: str = option(None, "What to fill the hole with.", check=check_item)
    filled: int = option(1, "Blocks to fill.", least=0)

    def play(self, player: OmniscientBody) -> Skill:
        """Dig the block below the feet time and again, and then jump and put blocks there."""
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
