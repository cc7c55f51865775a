"""Solutions at screens: crafting, smelting, and chests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rllib_minestudio.benchmark.solutions.family import (
    ANY_ITEMS,
    Family,
    check_amounts,
    check_item,
)
from rllib_minestudio.benchmark.solutions.player import OmniscientBody
from rllib_minestudio.benchmark.solutions.recipes import crafts_of, smelting
from rllib_minestudio.env.agents.toolmaker.body import Skill
from rllib_minestudio.env.agents.toolmaker.crafting import craft, most_sets
from rllib_minestudio.env.agents.toolmaker.plan import FURNACE
from rllib_minestudio.env.agents.toolmaker.smelting import smelt
from rllib_minestudio.env.agents.toolmaker.stations import Stations
from rllib_minestudio.option_fields import option

CHEST = "chest"


@dataclass(frozen=True)
class CraftItems(Family):
    """Makes items by the engine's recipes, in the inventory's grid where they fit into it.

    A crafting table is used where there is one; if not, one that the player has is put down.
    """

    items: Mapping[str, int] = option(
        None, "How many of each item to make, in this order.", check=check_amounts
    )

    def play(self, player: OmniscientBody) -> Skill:
        """Make one item after the other."""
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
class SmeltItems(Family):
    """Smelts items in a furnace that there is, or that the player has."""

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
class Chest(Family):
    """Opens a chest that there is, or that the player has, and puts things into it."""

    put: tuple[str, ...] = option((), "Items, all stacks of which go into it.", check=ANY_ITEMS)

    def play(self, player: OmniscientBody) -> Skill:
        """Open it, and send the stacks across one after the other."""
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
