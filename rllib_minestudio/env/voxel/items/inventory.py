"""The player's inventory: slots, stacking, and its entries in `info`."""

from __future__ import annotations

from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.items.item_data import wear_of
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEMS

HOTBAR_SLOTS = 9
"""Slots 0-8 are the hotbar, which the keys `hotbar.1` to `hotbar.9` select."""
MAIN_SLOTS = 36
"""Slots 0-35 receive what the player picks up."""
FEET_SLOT, LEGS_SLOT, CHEST_SLOT, HEAD_SLOT, OFFHAND_SLOT = range(36, 41)
SLOTS = 41

_EQUIPMENT = {
    "offhand": OFFHAND_SLOT,
    "head": HEAD_SLOT,
    "chest": CHEST_SLOT,
    "legs": LEGS_SLOT,
    "feet": FEET_SLOT,
}


class ItemStack(NamedTuple):
    """Contents of one slot: item id (0 if empty), quantity, and what `item_data` has for it."""

    item: int
    quantity: int
    data: int


class Inventory:
    """41 slots: 0-8 hotbar, 9-35 the rest, 36-39 armour (feet to head), 40 the off hand.

    Attributes:
        item: Item id by slot, int32 [41]; 0 is empty.
        quantity: Stack size by slot, int32 [41].
        data: What else there is by slot, int64 [41]; see `item_data`.
        version: Number that grows with every change, so that callers can cache derived values.
    """

    def __init__(self) -> None:
        self.item = np.zeros(SLOTS, np.int32)
        self.quantity = np.zeros(SLOTS, np.int32)
        self.data = np.zeros(SLOTS, np.int64)
        self.version = 0
        self._shown: list[tuple[int, str, int]] = []
        self._shown_version = -1
        self._equipped: list[tuple[str, str, int, int]] = []
        self._equipped_at = (-1, -1)

    def __getitem__(self, slot: int) -> ItemStack:
        return ItemStack(int(self.item[slot]), int(self.quantity[slot]), int(self.data[slot]))

    def stacks(self) -> list[ItemStack]:
        """Return the stacks of all slots, much faster than by indexing each."""
        columns = self.item.tolist(), self.quantity.tolist(), self.data.tolist()
        # Like `ItemStack._make`, but without a Python call per stack.
        return list(map(tuple.__new__, repeat(ItemStack), zip(*columns, strict=True)))

    def set(self, slot: int, item: int, quantity: int, data: int = 0) -> None:
        """Put a stack in `slot`, replacing what was there; a quantity of 0 empties the slot."""
        if quantity <= 0:
            item, quantity, data = EMPTY, 0, 0
        self.item[slot] = item
        self.quantity[slot] = quantity
        self.data[slot] = data
        self.version += 1

    def add(self, item: int, quantity: int, data: int = 0) -> int:
        """Add items as Minecraft does: first to stacks of the item, then to empty slots in order.

        Returns:
            The quantity that did not fit.
        """
        limit = ITEMS[item].max_stack
        if limit > 1:
            for slot in np.flatnonzero(self.item[:MAIN_SLOTS] == item).tolist():
                moved = min(quantity, limit - int(self.quantity[slot]))
                if moved > 0:
                    self.set(slot, item, int(self.quantity[slot]) + moved)
                    quantity -= moved
        for slot in np.flatnonzero(self.item[:MAIN_SLOTS] == EMPTY).tolist():
            if quantity <= 0:
                break
            moved = min(quantity, limit)
            self.set(slot, item, moved, data)
            quantity -= moved
        return max(quantity, 0)

    def take(self, slot: int, quantity: int = 1) -> ItemStack:
        """Remove up to `quantity` from `slot`, and return what was removed."""
        item, held, data = self[slot]
        taken = min(held, quantity)
        self.set(slot, item, held - taken, data)
        return ItemStack(item if taken else EMPTY, taken, data)

    def remove(self, item: int | None = None, at_most: int | None = None) -> int:
        """Remove items from every slot.

        Args:
            item: Id of the only item to remove; None for all.
            at_most: Most items to remove; None for no limit.

        Returns:
            How many items were removed.
        """
        removed = 0
        for slot in np.flatnonzero(self.item).tolist():
            if item is not None and self.item[slot] != item:
                continue
            wanted = int(self.quantity[slot])
            if at_most is not None:
                wanted = min(wanted, at_most - removed)
            removed += self.take(slot, wanted).quantity
        return removed

    def clear(self) -> None:
        """Empty every slot."""
        self.item[:] = EMPTY
        self.quantity[:] = 0
        self.data[:] = 0
        self.version += 1

    def describe(self) -> dict[int, dict[str, Any]]:
        """Return `{slot: {"type": name, "quantity": n}}` for the main slots, as new objects.

        Empty slots are included as `{"type": "none", "quantity": 0}`, as in MineStudio.
        """
        if self._shown_version != self.version:
            self._shown = [
                (slot, ITEMS[item].name if item else "none", quantity)
                for slot, (item, quantity) in enumerate(
                    zip(
                        self.item[:MAIN_SLOTS].tolist(),
                        self.quantity[:MAIN_SLOTS].tolist(),
                        strict=True,
                    )
                )
            ]
            self._shown_version = self.version
        return {slot: {"type": name, "quantity": n} for slot, name, n in self._shown}

    def equipment(self, selected: int) -> dict[str, dict[str, Any]]:
        """Return what is worn and held: `{"mainhand": {"type", "damage", "maxDamage"}, ...}`.

        Args:
            selected: The hotbar slot in the main hand.
        """
        if self._equipped_at != (self.version, selected):
            self._equipped = [
                (place, *self._tool_in(slot))
                for place, slot in (("mainhand", selected), *_EQUIPMENT.items())
            ]
            self._equipped_at = (self.version, selected)
        return {
            place: {"type": name, "damage": damage, "maxDamage": most}
            for place, name, damage, most in self._equipped
        }

    def _tool_in(self, slot: int) -> tuple[str, int, int]:
        item = int(self.item[slot])
        if item == EMPTY:
            return "air", 0, 0
        return ITEMS[item].name, wear_of(int(self.data[slot])), ITEMS[item].durability
