"""Working a screen: opening and closing it, moving the cursor to a slot, clicking."""

from __future__ import annotations

import math

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.hands import HOTBAR
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, SLOT_SIZE

_NEAR_ENOUGH = 4.0
"""Pixels between the cursor and where it is to go, at which one clicks; a slot is 18 wide."""
_SLIP_PIXELS = 16.0
"""How near the cursor is when one clicks too soon."""
_LONGEST = 60
_DOUBLE_CLICK_TICKS = 6
"""Ticks after which two left clicks into one slot are no double click."""


def toggle_inventory(body: AgentBody) -> Skill:
    """Press the inventory key, which opens the inventory or closes whatever screen is open."""
    was_open = body.screen_open
    yield {"inventory": 1}
    yield from body.react()
    return body.screen_open is not was_open


def close_screen(body: AgentBody) -> Skill:
    """Close the screen that is open, if there is one."""
    while body.screen_open:
        yield from toggle_inventory(body)
    return True


class OpenScreen:
    """The screen that is open, as the player knows its layout.

    Clicks return whether they went where they were meant to.

    Attributes:
        kind: "inventory", "crafting_table", "furnace" or "chest".
    """

    def __init__(self, body: AgentBody, kind: str) -> None:
        """Begin with a screen that has just opened."""
        self.kind = kind
        self._body = body
        self._layout = LAYOUTS[kind]
        self._last_left = (-1, -math.inf)  # slot, tick

    def own(self, group: str, index: int = 0) -> int:
        """The screen's slot number `index` of a group, such as "craft" or "result"."""
        return self._layout.group(group)[index]

    def of_inventory(self, slot: int) -> int:
        """The screen's slot that shows the player's slot 0 to 35."""
        if slot < HOTBAR:
            return self._layout.group("hotbar")[slot]
        return self._layout.group("main")[slot - HOTBAR]

    def left_click(self, slot: int) -> Skill:
        """Pick up or put down a stack."""
        hit = yield from self._move_to(slot)
        last, tick = self._last_left
        if slot == last and self._body.tick - tick < _DOUBLE_CLICK_TICKS:
            yield from self._body.wait(_DOUBLE_CLICK_TICKS)
        self._last_left = (slot, self._body.tick)
        yield from self._press({"attack": 1})
        return hit

    def right_click(self, slot: int) -> Skill:
        """Put down one of a stack."""
        hit = yield from self._move_to(slot)
        yield from self._press({"use": 1})
        return hit

    def put(self, slot: int, count: int, carried: int) -> Skill:
        """Put `count` of the `carried` items on the cursor into a slot."""
        if count == carried:
            return (yield from self.left_click(slot))
        for _ in range(count):
            if not (yield from self.right_click(slot)):
                return False
        return True

    def shift_click(self, slot: int) -> Skill:
        """Send a stack across; from a grid's result, make as many as there is enough for."""
        hit = yield from self._move_to(slot)
        yield {"sneak": 1}
        yield {"sneak": 1, "attack": 1}
        yield {"sneak": 1}
        yield {}
        return hit

    def swap(self, slot: int, hotbar_slot: int) -> Skill:
        """Exchange what is in a slot with a slot of the hotbar."""
        hit = yield from self._move_to(slot)
        yield from self._press({f"hotbar.{hotbar_slot + 1}": 1})
        return hit

    def _press(self, keys: dict[str, int]) -> Skill:
        yield dict(keys)
        yield {}
        least, most = self._body.limits.click_gap
        return (yield from self._body.wait(int(self._body.random.integers(least, most + 1))))

    def _move_to(self, slot: int) -> Skill:
        """Bring the cursor into a slot; now and then one believes too soon that it is there.

        Returns whether it is, which one sees when it is too late.
        """
        body, cursor = self._body, self._body.cursor
        place = self._layout.slots[slot]
        spread = body.limits.aim_pixels
        shift = body.random.normal(0.0, spread, 2).clip(-2 * spread, 2 * spread)
        x, y = (float(v) for v in shift + SLOT_SIZE / 2 + (place.x, place.y))
        slips = body.random.random() < body.limits.slip_rate
        near = _SLIP_PIXELS if slips else _NEAR_ENOUGH
        for _ in range(_LONGEST):
            if not body.screen_open:
                return False
            if math.hypot(x - cursor.x, y - cursor.y) <= near:
                yield {}  # the hand comes to rest
                return self._layout.slot_at(cursor.x, cursor.y) == slot
            yield {"camera": cursor.error_to(x, y)}
        return False
