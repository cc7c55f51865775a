"""Layout of the screens and slots in pixels of Minecraft's window at GUI scale 1; containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.items import EMPTY, ITEMS, ItemStack

DATA = Path(__file__).parent / "data"
"""Folder of the screens' tables."""

SLOT_SIZE = 16
"""Side of a slot's picture, in pixels."""
_MARGIN = 1
"""Pixels around the picture that belong to the slot, so that neighbours touch."""

_TABLE = json.loads((DATA / "geometry.json").read_text(encoding="utf-8"))

WINDOW: tuple[int, int] = (_TABLE["window"][0], _TABLE["window"][1])
"""(width, height) of the window."""


class Place(NamedTuple):
    """A slot: its group, and the upper left pixel of its picture."""

    group: str
    x: int
    y: int


class ScreenLayout(NamedTuple):
    """A screen's panel and slots.

    Attributes:
        left: Column of the panel's left edge.
        top: Row of its upper edge.
        width: Width of the panel.
        height: Height of the panel.
        slots: Slots in the order of Minecraft's container of that kind.
        cells: Index of the slot at each pixel plus one, 0 for none, uint8 [height + 1, width + 1]
            of the window, since a cursor at the right or lower edge is one beyond the last pixel.
    """

    left: int
    top: int
    width: int
    height: int
    slots: tuple[Place, ...]
    cells: NDArray[np.uint8]

    def slot_at(self, x: float, y: float) -> int | None:
        """Return the index of the slot at a point of the window; None if there is none."""
        number = int(self.cells[int(y), int(x)])
        return number - 1 if number else None

    def is_outside(self, x: float, y: float) -> bool:
        """Whether a point of the window is outside the panel."""
        inside_x = self.left <= x < self.left + self.width
        return not (inside_x and self.top <= y < self.top + self.height)

    def group(self, name: str) -> range:
        """Return the indices of a group's slots, which are consecutive."""
        members = [index for index, slot in enumerate(self.slots) if slot.group == name]
        return range(members[0], members[-1] + 1)


def _layout(table: dict[str, Any]) -> ScreenLayout:
    pitch = _TABLE["pitch"]
    slots = tuple(
        Place(group["name"], group["x"] + pitch * column, group["y"] + pitch * row)
        for group in table["slots"]
        for row in range(group["rows"])
        for column in range(group["columns"])
    )
    cells = np.zeros((WINDOW[1] + 1, WINDOW[0] + 1), np.uint8)
    for number, (_, x, y) in enumerate(slots, 1):
        cells[y - _MARGIN : y + SLOT_SIZE + _MARGIN, x - _MARGIN : x + SLOT_SIZE + _MARGIN] = number
    return ScreenLayout(table["left"], table["top"], table["width"], table["height"], slots, cells)


LAYOUTS: dict[str, ScreenLayout] = {
    kind: _layout(table) for kind, table in _TABLE["screens"].items()
}
"""Layout by kind of screen: "inventory", "crafting_table", "furnace", "chest"."""


# --------------------------------------------------------------------------------------- containers

NOTHING = ItemStack(EMPTY, 0, 0)
"""What an empty slot holds."""


class Container:
    """Slots with the same interface as those of an `Inventory`."""

    def __init__(self, size: int) -> None:
        self.stacks: list[ItemStack] = [NOTHING] * size

    def __len__(self) -> int:
        return len(self.stacks)

    def __getitem__(self, slot: int) -> ItemStack:
        return self.stacks[slot]

    def set(self, slot: int, item: int, quantity: int, data: int = 0) -> None:
        """Put a stack in `slot`, replacing what was there; a quantity of 0 empties the slot."""
        self.stacks[slot] = ItemStack(item, quantity, data) if quantity > 0 else NOTHING


def is_same(one: ItemStack, other: ItemStack) -> bool:
    """Whether two stacks are of the same item with the same data, and so can share a slot."""
    return one.item == other.item and one.data == other.data


def room_beside(stack: ItemStack) -> int:
    """Return how many more items a stack has room for."""
    return max(ITEMS[stack.item].max_stack - stack.quantity, 0)
