"""The toolmaker's work: one step of the plan after the other, until the goal is made."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Mapping

from rllib_minestudio.env.actions import EnvAction
from rllib_minestudio.env.agents.toolmaker.body import Body, Skill
from rllib_minestudio.env.agents.toolmaker.crafting import craft, most_sets
from rllib_minestudio.env.agents.toolmaker.gathering import can_mine_from, collect, gather, stroll
from rllib_minestudio.env.agents.toolmaker.hands import HOTBAR
from rllib_minestudio.env.agents.toolmaker.placing import open_station, place
from rllib_minestudio.env.agents.toolmaker.plan import (
    CRAFTING_TABLE,
    FURNACE,
    INVENTORY,
    Step,
    knowledge,
    make_plan,
)
from rllib_minestudio.env.agents.toolmaker.screens import Screen, close_screen, toggle_inventory
from rllib_minestudio.env.agents.toolmaker.sight import Cell, middle
from rllib_minestudio.env.agents.toolmaker.smelting import smelt
from rllib_minestudio.env.agents.toolmaker.walking import walk

_THROWN_TICKS = 40
"""Ticks for which the game lets nobody pick up what was thrown."""
_STATION_RANGE = 20.0
"""Blocks beyond which one rather makes another crafting table or furnace."""


class Career:
    """What the toolmaker does in an episode.

    Attributes:
        goal: What it wants to make.
    """

    def __init__(self, body: Body, goal: str) -> None:
        """Begin with nothing done."""
        self.goal = goal
        self._body = body
        self._order = int(body.random.integers(2**31))
        self._screen: Screen | None = None
        self._failures = 0

    def pursue(self) -> Skill:
        """Make the goal, and then another, for ever; the plan is made anew after every step."""
        body = self._body
        while True:
            had = body.counts()
            steps = make_plan(self.goal, had, self._stations(), self._order)
            done = yield from self._do(steps[0])
            self._failures = 0 if done else self._failures + 1
            if not done:
                yield from self._leave_screen()
                yield from body.wait(1)  # time passes, whatever failed
                yield from self._pick_up_thrown(had)
            if self._failures >= 2:  # the place may be at fault
                yield from stroll(body)

    def _do(self, step: Step) -> Skill:
        body, known = self._body, knowledge()
        if step.verb == "gather":
            mined = known.mined[step.item]
            yield from self._leave_screen()
            if mined.tools and not (yield from self._have_in_hotbar(mined.tools)):
                return False
            return (yield from gather(body, mined, known.members(step.item), step.quantity))
        if step.verb == "smelt":
            screen = yield from self._open(FURNACE)
            if screen is None:
                return False
            return (yield from smelt(body, screen, step.item, step.quantity))
        made = known.crafts[step.item]
        screen = yield from self._open(made.screen)
        sets = most_sets(made, body.slots, step.quantity)
        if screen is None or not sets:
            return False
        return (yield from craft(body, screen, step.item, sets))

    def _pick_up_thrown(self, had: Mapping[str, int]) -> Skill:
        """Pick up what hung on the cursor when a screen closed: the game throws it away."""
        body = self._body
        yield from body.react()
        names = {drop.name for drop in body.drops}
        lost = [name for name in names if body.counts()[name] < had.get(name, 0)]
        if not lost:
            return False
        yield from body.wait(_THROWN_TICKS)
        return (yield from collect(body, lost, body.cell))

    def _stations(self) -> list[str]:
        return [name for name in (CRAFTING_TABLE, FURNACE) if self._near(name) is not None]

    def _near(self, station: str) -> Cell | None:
        """The nearest station of a kind that has been seen, if it is not too far away."""
        body = self._body
        found = body.memory.find((station,))
        nearest = min(found, key=lambda cell: math.dist(middle(cell), body.position), default=None)
        if nearest is None or math.dist(middle(nearest), body.position) > _STATION_RANGE:
            return None
        return nearest

    def _open(self, kind: str) -> Generator[EnvAction, None, Screen | None]:
        """Have the screen of a kind open; None if that fails."""
        body = self._body
        if self._screen is not None and self._screen.kind == kind and body.screen_open:
            return self._screen
        yield from self._leave_screen()
        if kind == INVENTORY:
            opened = yield from toggle_inventory(body)
        else:
            opened = yield from self._go_and_use(kind)
        self._screen = Screen(body, kind) if opened else None
        return self._screen

    def _leave_screen(self) -> Skill:
        self._screen = None
        return (yield from close_screen(self._body))

    def _go_and_use(self, station: str) -> Skill:
        """Walk to a station that is known, or put one down, and open it."""
        body = self._body
        cell = self._near(station)
        if cell is None:
            if not (yield from self._have_in_hotbar((station,))):
                return False
            if not (yield from place(body, station)):
                return False
            cell = self._near(station)
            if cell is None:
                return False
        if not can_mine_from(body, cell)(body.cell):
            yield from walk(body, cell, can_mine_from(body, cell))
        return (yield from open_station(body, cell))

    def _have_in_hotbar(self, names: Collection[str]) -> Skill:
        """Bring one of these items to the hotbar, if none is there."""
        body = self._body
        if any(stack.name in names for stack in body.slots[:HOTBAR]):
            return True
        slot = next((i for i, stack in enumerate(body.slots) if stack.name in names), None)
        screen = yield from self._open(INVENTORY)
        if slot is None or screen is None:
            return False
        empty = (i for i in range(HOTBAR) if not body.slots[i].quantity)
        yield from screen.swap(screen.of_inventory(slot), next(empty, HOTBAR - 1))
        yield from self._leave_screen()
        return any(stack.name in names for stack in body.slots[:HOTBAR])
