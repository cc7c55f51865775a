"""An open screen: its menu, its cursor, and what the keys and the mouse do to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from operator import itemgetter

from rllib_minestudio.env.voxel.items.inventory import SLOTS, Inventory
from rllib_minestudio.env.voxel.items.items import EMPTY
from rllib_minestudio.env.voxel.screens.clicks import LEFT, RIGHT, Clicks
from rllib_minestudio.env.voxel.screens.containers import Container
from rllib_minestudio.env.voxel.screens.cursor import ScreenCursor
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.menu import Menu
from rllib_minestudio.env.voxel.screens.menus import (
    ChestMenu,
    CraftingMenu,
    FurnaceMenu,
    InventoryMenu,
)
from rllib_minestudio.env.voxel.screens.slots import MenuOwner, Slot
from rllib_minestudio.env.voxel.screens.smelting import Furnace
from rllib_minestudio.env.voxel.screens.view import ScreenView

Place = tuple[int, int, int]


class Screen:
    """One of the four screens, from its opening to its closing.

    Attributes:
        kind: "inventory", "crafting_table", "furnace" or "chest".
        menu: Its slots.
        cursor: Where the cursor is.
        place: The block (x, y, z) that was used to open it; None for the inventory.
    """

    def __init__(
        self,
        kind: str,
        owner: MenuOwner,
        place: Place | None = None,
        container: Container | None = None,
    ) -> None:
        """Opens a screen.

        Args:
            kind: Which.
            owner: The player.
            place: The block that was used; None for the inventory.
            container: What the block holds, if it holds anything.
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
        self._clicks = Clicks(self.menu, self._layout)
        self._ticks = 0

    def press_hotbar(self, slot: int) -> None:
        """The key of hotbar slot 0 to 8: exchanges it with the slot under the cursor."""
        hovered = self._layout.slot_at(*self.cursor.pixel)
        if hovered is not None and self.menu.carried.item == EMPTY:
            self.menu.swap(hovered, slot)

    def move_cursor(self, pitch: float, yaw: float) -> None:
        """Moves the cursor by a turn of the camera, in degrees."""
        if pitch or yaw:
            self.cursor.turn(pitch, yaw)
            self._clicks.move(self.cursor.x, self.cursor.y)

    def use_buttons(
        self, pressed: tuple[bool, bool], released: tuple[bool, bool], sneaking: bool
    ) -> None:
        """Presses, then releases mouse buttons; called once per tick.

        Args:
            pressed: Whether the left and the right button went down.
            released: Whether they went up.
            sneaking: Whether the sneak key is down.
        """
        x, y = self.cursor.x, self.cursor.y
        self._ticks += 1
        for button in (LEFT, RIGHT):
            if pressed[button]:
                self._clicks.press(x, y, button, sneaking, self._ticks)
        for button in (LEFT, RIGHT):
            if released[button]:
                self._clicks.release(x, y, button, sneaking)

    def view(self) -> ScreenView:
        """What is seen of it."""
        furnace = self._furnace
        stacks = self._inventory.stacks() + [slot.stack for slot in self._others]
        return ScreenView(
            self.kind,
            self._in_order(stacks),
            self.cursor.pixel,
            self.menu.carried,
            furnace.burn if furnace else 0.0,
            furnace.done if furnace else 0.0,
        )


def _places(slots: Sequence[Slot], inventory: Inventory) -> Iterator[int]:
    """Where the stack of each slot is: in the inventory, or behind it in the slots' order."""
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
    if container is not None:
        return ChestMenu(owner, container)
    raise ValueError(f"A screen of kind {kind!r} needs the container of its block.")
