"""Where the screens and their slots are, in pixels of Minecraft's window at GUI scale 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent / "data"
"""Folder of this layer's tables."""

SLOT_SIZE = 16
"""Side of a slot's picture, in pixels."""
_MARGIN = 1
"""Pixels around the picture that belong to the slot, so that neighbours touch."""

_TABLE = json.loads((DATA / "geometry.json").read_text(encoding="utf-8"))

WINDOW: tuple[int, int] = (_TABLE["window"][0], _TABLE["window"][1])
"""Width and height of the window."""


class Place(NamedTuple):
    """A slot: the group that it belongs to, and the upper left pixel of its picture."""

    group: str
    x: int
    y: int


class Layout(NamedTuple):
    """A screen's panel and slots.

    Attributes:
        left: Column of the panel's left edge.
        top: Row of its upper edge.
        width: Of the panel.
        height: Of the panel.
        slots: In the order of Minecraft's container of that kind.
    """

    left: int
    top: int
    width: int
    height: int
    slots: tuple[Place, ...]

    def slot_at(self, x: float, y: float) -> int | None:
        """Index of the slot at a place of the window; None if there is none."""
        for index, (_, left, top) in enumerate(self.slots):
            if _covers(left, x) and _covers(top, y):
                return index
        return None

    def is_outside(self, x: float, y: float) -> bool:
        """Whether a place of the window is beside the panel."""
        inside_x = self.left <= x < self.left + self.width
        return not (inside_x and self.top <= y < self.top + self.height)

    def group(self, name: str) -> range:
        """Indices of a group's slots, which lie side by side."""
        members = [index for index, slot in enumerate(self.slots) if slot.group == name]
        return range(members[0], members[-1] + 1)


def _covers(edge: int, at: float) -> bool:
    return edge - _MARGIN <= at < edge + SLOT_SIZE + _MARGIN


def _layout(table: dict[str, Any]) -> Layout:
    pitch = _TABLE["pitch"]
    slots = tuple(
        Place(group["name"], group["x"] + pitch * column, group["y"] + pitch * row)
        for group in table["slots"]
        for row in range(group["rows"])
        for column in range(group["columns"])
    )
    return Layout(table["left"], table["top"], table["width"], table["height"], slots)


LAYOUTS: dict[str, Layout] = {kind: _layout(table) for kind, table in _TABLE["screens"].items()}
"""Layout by kind of screen: "inventory", "crafting_table", "furnace", "chest"."""
