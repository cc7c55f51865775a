"""Solutions that raise the player on blocks put below its feet."""

from __future__ import annotations

from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.family import Family, check_item
from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.hands import hold_one_of
from rllib_minestudio.env.agents.toolmaker.mining import mine
from rllib_minestudio.env.agents.toolmaker.sight import middle
from rllib_minestudio.env.agents.toolmaker.stations import Stations
from rllib_minestudio.option_fields import option

_CENTRED = 0.15
"""Blocks from a column's middle within which a body, 0.6 wide, is over that column alone."""
_CENTRE_TICKS, _JUMP_TICKS, _TRIES = 60, 16, 5


def stand_in_middle(player: OmniscientBody) -> Skill:
    """Creep to the middle of the column that one stands in."""
    x, _, z = middle(player.cell)
    for _ in range(_CENTRE_TICKS):
        if player.far_from(player.cell) < _CENTRED:
            return True
        yaw = player.error_to((x, player.position[1], z))[1]
        yield {"camera": (45.0 - player.pitch, yaw), "sneak": 1, "forward": int(abs(yaw) < 20.0)}
    return False


def rise(player: OmniscientBody, item: str, blocks: int) -> Skill:
    """Jump and put a block below the feet, so many times; what is overhead is broken."""
    for _ in range(blocks):
        if not (yield from Stations(player).have_in_hotbar((item,))):
            return False
        x, y, z = player.cell
        for cell in ((x, y + 1, z), (x, y, z), (x, y + 2, z)):
            if player.memory.is_solid(cell) and not (yield from mine(player, cell)):
                return False
        yield from hold_one_of(player, (item,))
        if not (yield from _jump_and_place(player)):
            return False
    return True


def _jump_and_place(player: OmniscientBody) -> Skill:
    base = player.cell[1]
    for _ in range(_TRIES):
        while player.pitch < 85.0:
            yield {"camera": (90.0 - player.pitch, 0.0)}
        yield {"jump": 1}
        for _ in range(_JUMP_TICKS):
            yield {"use": int(player.position[1] > base + 1.0)}
            if player.position[1] <= base + 0.01 or _rests(player):
                break
        if player.cell[1] > base:
            return True
    return False


def _rests(player: OmniscientBody) -> bool:
    """Whether the feet are on top of a block."""
    x, y, z = player.cell
    return player.memory.is_solid((x, y - 1, z)) and player.position[1] - y < 0.01


@dataclass(frozen=True)
class Pillar(Family):
    """Raises a pillar below one's own feet."""

    item: str = option(None, "What it is made of.", check=check_item)
    height: int = option(4, "Blocks.", least=1)

    def play(self, player: OmniscientBody) -> Skill:
        """Go to the middle of a block, and rise."""
        x, y, z = player.cell
        for cell in ((x, y + 1, z), (x, y, z)):  # one may begin inside of blocks
            if player.memory.is_solid(cell) and not (yield from mine(player, cell)):
                return False
        yield from stand_in_middle(player)
        return (yield from rise(player, self.item, self.height))
