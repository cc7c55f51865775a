"""Smelting: ore and fuel put into the furnace, what came of it taken out."""

from __future__ import annotations

import math

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.plan import Knowledge
from rllib_minestudio.env.agents.toolmaker.screens import OpenScreen

_SPARE_TICKS = 20
"""Waited for after the last item should be done."""
_LOOKS = 3
"""How often one waits on if something is missing."""


def smelt(body: AgentBody, screen: OpenScreen, known: Knowledge, item: str, count: int) -> Skill:
    """Make `count` of something in the furnace that is open, and wait for it."""
    process = known.smelts[item]
    pieces = math.ceil(count / process.per_fuel)
    before = body.counts()[item]
    if not (yield from _fill(body, screen, "fuel", known.members(process.fuel), pieces)):
        return False
    if not (yield from _fill(body, screen, "input", (process.source,), count)):
        return False
    yield from body.wait(count * process.ticks + _SPARE_TICKS)
    for _ in range(_LOOKS):
        yield from screen.shift_click(screen.own("output"))
        yield from body.react()
        if body.counts()[item] - before >= count:
            return True
        yield from body.wait(process.ticks // 2)
    return body.counts()[item] > before


def _fill(
    body: AgentBody, screen: OpenScreen, group: str, names: tuple[str, ...], count: int
) -> Skill:
    """Put `count` items into a slot of the furnace, from the first stack that has as many."""
    for slot, stack in enumerate(body.slots):
        if stack.name in names and stack.quantity >= count:
            held = screen.of_inventory(slot)
            if not (yield from screen.left_click(held)):
                return False
            if not (yield from screen.put(screen.own(group), count, stack.quantity)):
                return False
            return stack.quantity == count or (yield from screen.left_click(held))
    return False
