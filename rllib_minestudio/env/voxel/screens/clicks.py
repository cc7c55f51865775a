"""Mouse buttons over a screen, as clicks, drags and double clicks.

With nothing carried, a press acts, and its release does nothing. With a stack carried, a press
begins a drag: the slots that the cursor then comes upon share the stack when the button is
released; if there were none, the release is a click.
"""

from __future__ import annotations

import math

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY
from rllib_minestudio.env.voxel.screens.containers import NOTHING, is_same
from rllib_minestudio.env.voxel.screens.geometry import ScreenLayout
from rllib_minestudio.env.voxel.screens.menu import Menu

LEFT, RIGHT = range(2)
"""Mouse buttons: attack, and use."""
DOUBLE_CLICK_TICKS = 5
"""A second click is part of a double click if it comes earlier than this (Minecraft: 250 ms)."""


class Clicks:
    """What the mouse buttons are doing to a menu."""

    def __init__(self, menu: Menu, layout: ScreenLayout) -> None:
        """Begins with no button pressed."""
        self._menu, self._layout = menu, layout
        self._last_slot: int | None = None
        self._last_button: int | None = None
        self._last_tick = -math.inf
        self._is_double = self._ignores_release = False
        self._active: int | None = None
        self._dragging: int | None = None
        self._dragged: list[int] = []
        self._moved_across: ItemStack = NOTHING

    def press(self, x: float, y: float, button: int, sneaking: bool, tick: int) -> None:
        """A button goes down.

        Args:
            x: The cursor's place in the window.
            y: The cursor's place in the window.
            button: `LEFT` or `RIGHT`.
            sneaking: Whether the sneak key is down.
            tick: Number of the tick.
        """
        self._active = button
        slot, menu = self._layout.slot_at(x, y), self._menu
        is_quick = tick - self._last_tick < DOUBLE_CLICK_TICKS
        self._is_double = is_quick and (slot, button) == (self._last_slot, self._last_button)
        self._ignores_release = False
        if self._dragging is None and (slot is not None or self._layout.is_outside(x, y)):
            if menu.carried.item != EMPTY:
                self._dragging = button
                self._dragged.clear()
            else:
                if slot is not None and sneaking:
                    self._moved_across = menu.slots[slot].stack
                    menu.quick_move(slot)
                elif slot is not None:
                    menu.pick_up(slot, button == RIGHT)
                self._ignores_release = True
        self._last_slot, self._last_button, self._last_tick = slot, button, tick

    def move(self, x: float, y: float) -> None:
        """The cursor has moved to a place of the window."""
        if self._active is None or self._dragging is None:
            return
        slot = self._layout.slot_at(x, y)
        if slot is None or slot in self._dragged:
            return
        if self._menu.can_spread(slot, len(self._dragged)):
            self._dragged.append(slot)

    def release(self, x: float, y: float, button: int, sneaking: bool) -> None:
        """A button goes up; arguments as of `press`."""
        self._active = None
        slot, menu = self._layout.slot_at(x, y), self._menu
        collects = slot is not None and menu.slots[slot].is_collected
        if self._is_double and button == LEFT and slot is not None and collects:
            self._double_click(slot, sneaking)
        elif self._dragging not in (None, button):
            self._dragging = None
            self._dragged.clear()
            self._ignores_release = True
            return
        elif self._ignores_release:
            self._ignores_release = False
            return
        elif self._dragging is not None and self._dragged:
            menu.spread(self._dragged, one_each=button == RIGHT)
        elif menu.carried.item != EMPTY:
            self._click(slot, x, y, button, sneaking)
        if menu.carried.item == EMPTY:
            self._last_tick = -math.inf
        self._dragging = None

    def _click(self, slot: int | None, x: float, y: float, button: int, sneaking: bool) -> None:
        """A click with a carried stack, which its release carries out."""
        menu = self._menu
        if slot is None:
            if self._layout.is_outside(x, y):
                menu.throw(one=button == RIGHT)
        elif sneaking:
            self._moved_across = menu.slots[slot].stack
            menu.quick_move(slot)
        else:
            menu.pick_up(slot, button == RIGHT)

    def _double_click(self, slot: int, sneaking: bool) -> None:
        """Collects; with the sneak key, moves all equal to what was moved before across."""
        menu, moved = self._menu, self._moved_across
        if not sneaking:
            menu.collect(slot)
        elif moved.item != EMPTY:
            container = menu.slots[slot].container
            for index, other in enumerate(menu.slots):
                if other.container is container and is_same(other.stack, moved):
                    menu.quick_move(index)
        self._is_double = False
        self._last_tick = -math.inf
