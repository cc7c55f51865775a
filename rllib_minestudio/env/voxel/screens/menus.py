"""The menus of the four screens: their slots, and where the sneak key moves stacks."""

from __future__ import annotations

from collections.abc import Sequence

from rllib_minestudio.env.voxel.items.inventory import (
    CHEST_SLOT,
    FEET_SLOT,
    HEAD_SLOT,
    HOTBAR_SLOTS,
    LEGS_SLOT,
    MAIN_SLOTS,
    OFFHAND_SLOT,
    ItemStack,
)
from rllib_minestudio.env.voxel.items.items import EMPTY
from rllib_minestudio.env.voxel.screens.containers import Container
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.menu import Menu, Route
from rllib_minestudio.env.voxel.screens.slots import (
    WORN_AT,
    FuelSlot,
    Grid,
    MenuOwner,
    ResultSlot,
    Slot,
    SmeltedSlot,
    WornSlot,
)
from rllib_minestudio.env.voxel.screens.smelting import BURN_TICKS, INPUT, SMELTING, Furnace

_ARMOUR = {"head": HEAD_SLOT, "chest": CHEST_SLOT, "legs": LEGS_SLOT, "feet": FEET_SLOT}
"""Slot of the inventory by where a piece is worn, in the order of the screen."""


def _players(owner: MenuOwner) -> list[Slot]:
    """The player's slots as every screen shows them: three rows, then the hotbar."""
    slots = (*range(HOTBAR_SLOTS, MAIN_SLOTS), *range(HOTBAR_SLOTS))
    return [Slot(owner.inventory, slot) for slot in slots]


def _span(kind: str, first: str, last: str | None = None, backwards: bool = False) -> Route:
    """The slots from group `first` to group `last` of a screen."""
    layout = LAYOUTS[kind]
    return Route(layout.group(first).start, layout.group(last or first).stop, backwards)


def _across(kind: str, index: int) -> Route:
    """From the three rows to the hotbar, and back."""
    in_rows = index in LAYOUTS[kind].group("main")
    return _span(kind, "hotbar" if in_rows else "main")


class _GridMenu(Menu):
    """A menu with a crafting grid, whose contents do not stay."""

    def __init__(self, owner: MenuOwner, grid: Grid) -> None:
        super().__init__(owner)
        self._grid_size = len(grid)
        self.slots = [ResultSlot(grid), *(Slot(grid, cell) for cell in range(len(grid)))]

    def loose(self) -> Sequence[Slot]:
        """The grid's slots."""
        return self.slots[1 : 1 + self._grid_size]


class InventoryMenu(_GridMenu):
    """The player's inventory: a grid of 2 x 2, armour, and the off hand."""

    KIND = "inventory"

    def __init__(self, owner: MenuOwner) -> None:
        """Makes the menu of `owner`'s inventory."""
        super().__init__(owner, Grid(2))
        inventory = owner.inventory
        self.slots += [WornSlot(inventory, slot, place) for place, slot in _ARMOUR.items()]
        self.slots += [*_players(owner), Slot(inventory, OFFHAND_SLOT)]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """Armour and shields to where they are worn, everything else across."""
        group = LAYOUTS[self.KIND].slots[index].group
        everywhere = _span(self.KIND, "main", "hotbar", backwards=group == "result")
        if group in ("result", "craft", "armour"):
            return (everywhere,)
        if (worn := self._place_to_wear(stack)) is not None:
            return (Route(worn, worn + 1),)
        return (everywhere if group == "offhand" else _across(self.KIND, index),)

    def _place_to_wear(self, stack: ItemStack) -> int | None:
        """The empty slot that a stack is worn in; None if there is none."""
        place, layout = WORN_AT.get(stack.item), LAYOUTS[self.KIND]
        if place is None:
            return None
        if place in _ARMOUR:
            index = layout.group("armour")[list(_ARMOUR).index(place)]
        else:
            index = layout.group(place).start
        return index if self.slots[index].stack.item == EMPTY else None


class CraftingMenu(_GridMenu):
    """A crafting table: a grid of 3 x 3."""

    KIND = "crafting_table"

    def __init__(self, owner: MenuOwner) -> None:
        """Makes a menu with an empty grid for `owner`."""
        super().__init__(owner, Grid(3))
        self.slots += _players(owner)

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """From the grid to the player; from the player to the grid, and across if it is full."""
        group = LAYOUTS[self.KIND].slots[index].group
        if group in ("result", "craft"):
            return (_span(self.KIND, "main", "hotbar", backwards=group == "result"),)
        return _span(self.KIND, "craft"), _across(self.KIND, index)


class FurnaceMenu(Menu):
    """A furnace: input, fuel and output."""

    KIND = "furnace"

    def __init__(self, owner: MenuOwner, furnace: Furnace) -> None:
        """Makes the menu of `furnace` for `owner`."""
        super().__init__(owner)
        furnace_slots = [Slot(furnace, INPUT), FuelSlot(furnace), SmeltedSlot(furnace)]
        self.slots = [*furnace_slots, *_players(owner)]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """What can be smelted to the input, fuel to the fuel, everything else across."""
        group = LAYOUTS[self.KIND].slots[index].group
        if group in ("input", "fuel", "output"):
            return (_span(self.KIND, "main", "hotbar", backwards=group == "output"),)
        if stack.item in SMELTING:
            return (_span(self.KIND, "input"),)
        if stack.item in BURN_TICKS:
            return (_span(self.KIND, "fuel"),)
        return (_across(self.KIND, index),)


class ChestMenu(Menu):
    """A chest: three rows."""

    KIND = "chest"

    def __init__(self, owner: MenuOwner, chest: Container) -> None:
        """Makes the menu of `chest` for `owner`."""
        super().__init__(owner)
        self.slots = [*(Slot(chest, slot) for slot in range(len(chest))), *_players(owner)]

    def routes(self, index: int, stack: ItemStack) -> Sequence[Route]:
        """From the chest to the player's last slots first, and from the player to the chest."""
        if index in LAYOUTS[self.KIND].group("chest"):
            return (_span(self.KIND, "main", "hotbar", backwards=True),)
        return (_span(self.KIND, "chest"),)
