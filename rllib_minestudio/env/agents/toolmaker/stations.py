"""Screens and the blocks that open them: found, put down, walked up to, used, and left again."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.gathering import can_mine_from
from rllib_minestudio.env.agents.toolmaker.hands import HOTBAR
from rllib_minestudio.env.agents.toolmaker.placing import open_station, place
from rllib_minestudio.env.agents.toolmaker.plan import INVENTORY
from rllib_minestudio.env.agents.toolmaker.screens import OpenScreen, close_screen, toggle_inventory
from rllib_minestudio.env.agents.toolmaker.sight import Cell, middle
from rllib_minestudio.env.agents.toolmaker.walking import walk

_RANGE = 20.0
"""Blocks beyond which one rather puts down another station."""


class Stations:
    """The screens that a player works at."""

    def __init__(self, body: AgentBody) -> None:
        """Begin without a screen."""
        self._body = body
        self._screen: OpenScreen | None = None

    def nearest(self, station: str) -> Cell | None:
        """The nearest station of a kind that is known, if it is not too far away."""
        body = self._body
        found = body.memory.find((station,))
        nearest = min(found, key=lambda cell: math.dist(middle(cell), body.position), default=None)
        if nearest is None or math.dist(middle(nearest), body.position) > _RANGE:
            return None
        return nearest

    def open(self, kind: str) -> Generator[EnvAction, None, OpenScreen | None]:
        """Have the screen of a kind open; None if that fails."""
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
        """Bring one of these items to the hotbar, if none is there."""
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
        """Walk to a station that is known, or put one down, and open it."""
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
