"""The toolmaker's work: one step of the plan after the other, until the goal is made."""

from __future__ import annotations

from collections.abc import Mapping

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.crafting import craft, most_sets
from rllib_minestudio.env.agents.toolmaker.gathering import collect, gather, stroll
from rllib_minestudio.env.agents.toolmaker.plan import (
    CRAFTING_TABLE,
    FURNACE,
    PlanStep,
    knowledge,
    make_plan,
)
from rllib_minestudio.env.agents.toolmaker.smelting import smelt
from rllib_minestudio.env.agents.toolmaker.stations import Stations

_STACK_SIZE = 64
"""How many items of a kind a slot holds."""
_THROWN_TICKS = 40
"""Ticks for which the game lets nobody pick up what was thrown."""


class Career:
    """What the toolmaker does in an episode.

    Attributes:
        goal: What it wants to make.
    """

    def __init__(self, body: AgentBody, goal: str) -> None:
        """Begin with nothing done."""
        self.goal = goal
        self._body = body
        self._order = int(body.random.integers(2**31))
        self._stations = Stations(body)
        self._failures = 0

    def pursue(self) -> Skill:
        """Make the goal, and then another, for ever; the plan is made anew after every step."""
        body, stations = self._body, self._stations
        while True:
            at_hand = [
                name for name in (CRAFTING_TABLE, FURNACE) if stations.nearest(name) is not None
            ]
            had = body.counts()
            steps = make_plan(self.goal, had, at_hand, self._order)
            done = yield from self._do(steps[0])
            self._failures = 0 if done else self._failures + 1
            if not done:
                yield from stations.leave()
                yield from body.wait(1)  # time passes, whatever failed
                yield from self._pick_up_thrown(had)
            if self._failures >= 2:  # the place may be at fault
                yield from stroll(body)

    def take_over(self) -> Skill:
        """Pursue the goal where another left off: on any screen, and with things on the ground."""
        body = self._body
        yield from self._stations.leave()
        yield {"hotbar.1": 1}  # which slot is in the hand is not known
        yield from body.react()
        dropped = {drop.name for drop in body.drops}
        if dropped:
            yield from body.wait(_THROWN_TICKS)
            yield from collect(body, dropped, body.cell)
        return (yield from self.pursue())

    def _do(self, step: PlanStep) -> Skill:
        body, stations, known = self._body, self._stations, knowledge()
        if step.verb == "gather":
            mined = known.mined[step.item]
            yield from stations.leave()
            if mined.tools and not (yield from stations.have_in_hotbar(mined.tools)):
                return False
            return (yield from gather(body, mined, known.members(step.item), step.quantity))
        if step.verb == "smelt":
            screen = yield from stations.open(FURNACE)
            if screen is None:
                return False
            return (yield from smelt(body, screen, known, step.item, step.quantity))
        made = known.crafts[step.item]
        screen = yield from stations.open(made.screen)
        counts_out = body.limits.counts_out or made.needs.total() > 1
        sets = most_sets(known, made, body.slots, step.quantity if counts_out else _STACK_SIZE)
        if screen is None or not sets:
            return False
        return (yield from craft(body, screen, known, step.item, sets))

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
