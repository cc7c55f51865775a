"""An open screen: its menu and cursor, and the effects of keys and mouse on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from rllib_minestudio.env.voxel.items.items import EMPTY, SLOTS, Inventory, ItemStack
from rllib_minestudio.env.voxel.screens.crafting import Furnace
from rllib_minestudio.env.voxel.screens.enchanting import EnchantingTable
from rllib_minestudio.env.voxel.screens.geometry import (
    LAYOUTS,
    NOTHING,
    WINDOW,
    Container,
    ScreenLayout,
    is_same,
)
from rllib_minestudio.env.voxel.screens.menu import (
    ChestMenu,
    CraftingMenu,
    EnchantingMenu,
    FurnaceMenu,
    InventoryMenu,
    Menu,
    ScreenView,
)
from rllib_minestudio.env.voxel.screens.slots import MenuOwner, Slot

Place = tuple[int, int, int]


class Screen:
    """One of the five screens, from its opening to its closing.

    Attributes:
        kind: "inventory", "crafting_table", "furnace", "chest" or "enchanting_table".
        menu: The menu, with its slots.
        cursor: The cursor.
        clicks: What the mouse buttons do.
        ticks: For how long it has been open.
        place: The block (x, y, z) that was used to open it; None for the inventory.
    """

    def __init__(
        self,
        kind: str,
        owner: MenuOwner,
        place: Place | None = None,
        container: Container | None = None,
    ) -> None:
        """Open a screen.

        Args:
            kind: Kind of screen.
            owner: The player.
            place: The block that was used; None for the inventory.
            container: The block's container, if it has one.
        """
        self.kind = kind
        self.place = place
        self.menu = _menu(kind, owner, container)
        self.cursor = ScreenCursor()
        self._inventory = owner.inventory
        self._others = [slot for slot in self.menu.slots if slot.container is not owner.inventory]
        self._in_order = itemgetter(*_places(self.menu.slots, owner.inventory))
        self._furnace = container if isinstance(container, Furnace) else None
        self._layout = LAYOUTS[kind]
        self.clicks = Clicks(self.menu, self._layout)
        self.ticks = 0

    def press_hotbar(self, slot: int) -> None:
        """Press the key of hotbar slot 0 to 8: exchange its stack with that under the cursor."""
        hovered = self._layout.slot_at(*self.cursor.pixel)
        if hovered is not None and self.menu.carried.item == EMPTY:
            self.menu.swap(hovered, slot)

    def move_cursor(self, pitch: float, yaw: float) -> None:
        """Move the cursor by a turn of the camera, in degrees."""
        if pitch or yaw:
            self.cursor.turn(pitch, yaw)
            self.clicks.move(self.cursor.x, self.cursor.y)

    def use_buttons(
        self, pressed: tuple[bool, bool], released: tuple[bool, bool], sneaking: bool
    ) -> None:
        """Press, then release mouse buttons; to be called once per tick.

        Args:
            pressed: Whether the left and the right button went down.
            released: Whether the left and the right button went up.
            sneaking: Whether the sneak key is down.
        """
        x, y = self.cursor.x, self.cursor.y
        self.ticks += 1
        left, top = self._layout.left, self._layout.top
        for button in (LEFT, RIGHT):
            if pressed[button] and not self.menu.press_button(x - left, y - top):
                self.clicks.press(x, y, button, sneaking, self.ticks)
        for button in (LEFT, RIGHT):
            if released[button]:
                self.clicks.release(x, y, button, sneaking)

    def view(self) -> ScreenView:
        """Return the visible state of the screen."""
        furnace = self._furnace
        stacks = self._inventory.stacks() + [slot.stack for slot in self._others]
        return ScreenView(
            self.kind,
            self._in_order(stacks),
            self.cursor.pixel,
            self.menu.carried,
            furnace.burn if furnace else 0.0,
            furnace.done if furnace else 0.0,
            self.menu.shown_offers() if isinstance(self.menu, EnchantingMenu) else (),
        )


def _places(slots: Sequence[Slot], inventory: Inventory) -> Iterator[int]:
    """Yield the index of each slot's stack in `stacks` of `view`: inventory first, then others."""
    behind = count(SLOTS)
    for slot in slots:
        yield slot.index if slot.container is inventory else next(behind)


def _menu(kind: str, owner: MenuOwner, container: Container | None) -> Menu:
    if kind == InventoryMenu.KIND:
        return InventoryMenu(owner)
    if kind == CraftingMenu.KIND:
        return CraftingMenu(owner)
    if isinstance(container, Furnace):
        return FurnaceMenu(owner, container)
    if isinstance(container, EnchantingTable):
        return EnchantingMenu(owner, container)
    if container is not None:
        return ChestMenu(owner, container)
    raise ValueError(f"A screen of kind {kind!r} needs the container of its block.")


# ---------------------------------- mouse buttons over a screen, as clicks, drags and double clicks
# With nothing carried, a press acts and its release does nothing. With a stack carried, a press
# starts a drag: when the button is released, the slots touched by the cursor share the stack; if
# there are none, the release is a click.

LEFT, RIGHT = range(2)
"""Mouse buttons: those of the attack and use keys."""
DOUBLE_CLICK_TICKS = 5
"""A second click fewer ticks than this after the first makes a double click (Minecraft: 250 ms)."""


@dataclass
class ClickMemory:
    """What the next event of a button or the mouse depends on.

    Attributes:
        last_slot: Slot of the last press; None outside of all.
        last_button: Its button; None before the first.
        last_tick: Its tick; -inf if no double click can follow.
        is_double: Whether it was the second of a double click.
        ignores_release: Whether the release of the button does nothing.
        active: The button that is down.
        dragging: The button with which a stack is dragged.
        dragged: The slots that it was dragged across.
        moved_across: The last stack that was clicked with the sneak key.
    """

    last_slot: int | None = None
    last_button: int | None = None
    last_tick: float = -math.inf
    is_double: bool = False
    ignores_release: bool = False
    active: int | None = None
    dragging: int | None = None
    dragged: list[int] = field(default_factory=list)
    moved_across: ItemStack = NOTHING


class Clicks:
    """Conversion of mouse button events into a menu's clicks, drags and double clicks.

    Attributes:
        memory: What the next event depends on.
    """

    def __init__(self, menu: Menu, layout: ScreenLayout) -> None:
        self._menu, self._layout = menu, layout
        self.memory = ClickMemory()

    def press(self, x: float, y: float, button: int, sneaking: bool, tick: int) -> None:
        """Handle a button that goes down.

        Args:
            x: The cursor's position in the window.
            y: The cursor's position in the window.
            button: `LEFT` or `RIGHT`.
            sneaking: Whether the sneak key is down.
            tick: Number of the tick.
        """
        self.memory.active = button
        slot, menu = self._layout.slot_at(x, y), self._menu
        is_quick = tick - self.memory.last_tick < DOUBLE_CLICK_TICKS
        self.memory.is_double = is_quick and (slot, button) == (
            self.memory.last_slot,
            self.memory.last_button,
        )
        self.memory.ignores_release = False
        if self.memory.dragging is None and (slot is not None or self._layout.is_outside(x, y)):
            if menu.carried.item != EMPTY:
                self.memory.dragging = button
                self.memory.dragged.clear()
            else:
                if slot is not None and sneaking:
                    self.memory.moved_across = menu.slots[slot].stack
                    menu.quick_move(slot)
                elif slot is not None:
                    menu.pick_up(slot, button == RIGHT)
                self.memory.ignores_release = True
        self.memory.last_slot, self.memory.last_button, self.memory.last_tick = slot, button, tick

    def move(self, x: float, y: float) -> None:
        """Handle a movement of the cursor to a position in the window."""
        if self.memory.active is None or self.memory.dragging is None:
            return
        slot = self._layout.slot_at(x, y)
        if slot is None or slot in self.memory.dragged:
            return
        if self._menu.can_spread(slot, len(self.memory.dragged)):
            self.memory.dragged.append(slot)

    def release(self, x: float, y: float, button: int, sneaking: bool) -> None:
        """Handle a button that goes up, with arguments as in `press`."""
        self.memory.active = None
        slot, menu = self._layout.slot_at(x, y), self._menu
        collects = slot is not None and menu.slots[slot].is_collected
        if self.memory.is_double and button == LEFT and slot is not None and collects:
            self._double_click(slot, sneaking)
        elif self.memory.dragging not in (None, button):
            self.memory.dragging = None
            self.memory.dragged.clear()
            self.memory.ignores_release = True
            return
        elif self.memory.ignores_release:
            self.memory.ignores_release = False
            return
        elif self.memory.dragging is not None and self.memory.dragged:
            menu.spread(self.memory.dragged, one_each=button == RIGHT)
        elif menu.carried.item != EMPTY:
            self._click(slot, x, y, button, sneaking)
        if menu.carried.item == EMPTY:
            self.memory.last_tick = -math.inf
        self.memory.dragging = None

    def _click(self, slot: int | None, x: float, y: float, button: int, sneaking: bool) -> None:
        """Click with a carried stack, at the release of the button."""
        menu = self._menu
        if slot is None:
            if self._layout.is_outside(x, y):
                menu.throw(one=button == RIGHT)
        elif sneaking:
            self.memory.moved_across = menu.slots[slot].stack
            menu.quick_move(slot)
        else:
            menu.pick_up(slot, button == RIGHT)

    def _double_click(self, slot: int, sneaking: bool) -> None:
        """Collect; with the sneak key, move across all stacks equal to the last one moved."""
        menu, moved = self._menu, self.memory.moved_across
        if not sneaking:
            menu.collect(slot)
        elif moved.item != EMPTY:
            container = menu.slots[slot].container
            for index, other in enumerate(menu.slots):
                if other.container is container and is_same(other.stack, moved):
                    menu.quick_move(index)
        self.memory.is_double = False
        self.memory.last_tick = -math.inf


# --------------------------------------------- the cursor of an open screen, which the camera moves

PIXELS_PER_DEGREE = 2400.0 / 360.0
"""MineRL's scale: a turn of 360 degrees moves the mouse by 2400 pixels."""


class ScreenCursor:
    """Position of the cursor in the window, in pixels; it starts at the centre.

    Attributes:
        x: From the left edge, 0 to 640.
        y: From the upper edge, 0 to 360.
    """

    def __init__(self) -> None:
        self.centre()

    def centre(self) -> None:
        """Move it to the window's centre, where it is when a screen opens."""
        self.x, self.y = WINDOW[0] / 2, WINDOW[1] / 2

    def turn(self, pitch: float, yaw: float) -> None:
        """Move it by a turn of the camera in degrees, within the window."""
        self.x = min(max(self.x + yaw * PIXELS_PER_DEGREE, 0.0), float(WINDOW[0]))
        self.y = min(max(self.y + pitch * PIXELS_PER_DEGREE, 0.0), float(WINDOW[1]))

    @property
    def pixel(self) -> tuple[int, int]:
        """The pixel under its tip."""
        return int(self.x), int(self.y)
