"""An open screen over the frame: the dark veil, the panel with its stacks, and the cursor.

What goes with the cursor (the lit slot, the stack carried, the cursor itself) is drawn over
everything that lies still, and what it covers is kept. From one step to the next, and when the same
screen is opened again, only the slots that changed and what the cursor covers are drawn again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import compress
from operator import ne
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.render.sampling import WINDOW_HEIGHT
from rllib_minestudio.env.voxel.render.screen_panels import bare_window, empty_slot
from rllib_minestudio.env.voxel.render.stack_pictures import StackPictures
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import (
    WINDOW_WIDTH,
    Layer,
    Rect,
    Reduction,
    Rgba,
    part,
    paste,
)
from rllib_minestudio.env.voxel.screens.containers import NOTHING
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, SLOT_SIZE
from rllib_minestudio.env.voxel.screens.view import ScreenView

CURSOR_SIZE = 16
FURNACE = "furnace"
LIT = np.full((SLOT_SIZE, SLOT_SIZE, 4), (255, 255, 255, 0x80), np.uint8)
"""What lies over the slot under the cursor."""
# Of the furnace's sheet (x, y, width, height), and where it belongs on the panel.
FLAME, FLAME_AT = (176, 0, 14, 14), (56, 36)
ARROW, ARROW_AT = (176, 14, 24, 16), (79, 34)
FLAME_STEPS, ARROW_STEPS = 13, 24
INVENTORY = "inventory"
NOWHERE = -1, -1
"""Where no cursor can be."""
MANY = 4
"""Changed slots of a group beyond which it is drawn as a whole."""
# What may reach beyond a slot's picture: the shadow of its count.
_STACK = SLOT_SIZE + 2


class _Group(NamedTuple):
    """Slots that lie side by side.

    Attributes:
        slots: Their numbers.
        area: What they and their stacks cover; no two groups meet.
        bare: Their stacks when the panel alone is seen; None if a slot shows a picture when empty.
    """

    slots: range
    area: Rect
    bare: tuple[ItemStack, ...] | None


class ScreenComposer:
    """Composes screens for one frame size.

    Attributes:
        layer: The screen as it is now, in the window's size.
    """

    def __init__(
        self,
        window: int,
        rows: Reduction,
        columns: Reduction,
        textures: Textures,
        stacks: StackPictures,
    ) -> None:
        """Prepare all panels, and an empty inventory, so that no first opening takes long.

        Args:
            window: Width of the window; screens lie in its middle.
            rows: Of the window's height to the frame's.
            columns: Of its width to the frame's.
            textures: Pictures of the screens.
            stacks: Pictures of stacks.
        """
        self._stacks = stacks
        self._offset = (window - WINDOW_WIDTH) // 2
        self.layer = Layer(Rect(0, 0, window, WINDOW_HEIGHT), rows, columns)
        self._bare = {kind: bare_window(textures, kind, window) for kind in LAYOUTS}
        self._slots = {kind: self._slots_of(kind) for kind in LAYOUTS}
        self._empty = {
            (kind, slot): empty_slot(textures, kind, slot)
            for kind, layout in LAYOUTS.items()
            for slot in range(len(layout.slots))
        }
        self._groups = {kind: self._groups_of(kind) for kind in LAYOUTS}
        self._cursor = textures.picture("gui/cursor")[:CURSOR_SIZE, :CURSOR_SIZE].copy()
        furnace = textures.picture("gui/container/furnace")
        self._flame, self._arrow = _cut(furnace, *FLAME), _cut(furnace, *ARROW)
        nothing = (NOTHING,) * len(self._slots[INVENTORY])
        self._shown = ScreenView(INVENTORY, nothing, NOWHERE, NOTHING)
        self._covered: list[tuple[Rect, Rgba]] = []
        self.layer.canvas[...] = self._bare[INVENTORY]
        self._draw_slots(self._shown, range(len(nothing)))
        self.layer.refresh(Rect(0, 0, window, WINDOW_HEIGHT))

    def show(self, view: ScreenView) -> None:
        """Bring the layer up to date."""
        shown = self._shown
        if view == shown:
            return
        self._shown = view
        touched = self._uncover()
        if shown.kind != view.kind:
            touched += self._draw_panel(view, shown)
        else:
            touched += self._draw_changes(view, shown)
        touched += self._draw_moving(view)
        for rect in _merged(touched):
            self.layer.refresh(rect)

    def _area(self, kind: str) -> Rect:
        """Where a panel is in the window."""
        layout = LAYOUTS[kind]
        return Rect(layout.left + self._offset, layout.top, layout.width, layout.height)

    def _draw_panel(self, view: ScreenView, shown: ScreenView) -> list[Rect]:
        """Draw a panel with all its stacks in place of the one before; returns where."""
        whole = self._area(view.kind).union(self._area(shown.kind))
        self._bare_again(view.kind, whole)
        self._draw_slots(view, range(len(view.stacks)))
        if view.kind == FURNACE:
            self._draw_fire(view)
        return [whole]

    def _draw_changes(self, view: ScreenView, shown: ScreenView) -> list[Rect]:
        """Draw again what lies still but has changed; returns where."""
        touched: list[Rect] = []
        if view.stacks != shown.stacks:  # far faster than to look at each, and seldom so
            touched = self._draw_changed_slots(view, shown)
        fire = view.burn, view.progress
        if view.kind == FURNACE and fire != (shown.burn, shown.progress):
            touched += self._draw_fire(view)
        return touched

    def _draw_changed_slots(self, view: ScreenView, shown: ScreenView) -> list[Rect]:
        """Draw the slots that have changed, and whole groups where many have; returns where."""
        touched: list[Rect] = []
        slots: list[int] = []
        for group in self._groups[view.kind]:
            begin, end = group.slots.start, group.slots.stop
            stacks, former = view.stacks[begin:end], shown.stacks[begin:end]
            if stacks == former:
                continue
            differ = list(map(ne, stacks, former))
            if sum(differ) > MANY:
                changed, rects = list(group.slots), [group.area]
            else:
                changed = list(compress(group.slots, differ))
                rects = [self._slots[view.kind][slot] for slot in changed]
            if former != group.bare:
                for rect in rects:
                    self._bare_again(view.kind, rect)
            touched += rects
            slots += changed
        self._draw_slots(view, slots)
        return touched

    def _slots_of(self, kind: str) -> list[Rect]:
        """What slots and their stacks cover."""
        places = LAYOUTS[kind].slots
        return [Rect(place.x + self._offset, place.y, _STACK, _STACK) for place in places]

    def _groups_of(self, kind: str) -> list[_Group]:
        """The groups of a screen's slots."""
        layout, groups = LAYOUTS[kind], []
        for name in dict.fromkeys(place.group for place in layout.slots):
            slots = layout.group(name)
            area = reduce(Rect.union, self._slots[kind][slots.start : slots.stop])
            has_pictures = any(self._empty[kind, slot] is not None for slot in slots)
            groups.append(_Group(slots, area, None if has_pictures else (NOTHING,) * len(slots)))
        return groups

    def _bare_again(self, kind: str, rect: Rect) -> None:
        """Show a part of the bare panel."""
        part(self.layer.canvas, rect)[...] = part(self._bare[kind], rect)

    def _draw_slots(self, view: ScreenView, slots: Iterable[int]) -> None:
        """Draw what is in some slots, over bare ones."""
        canvas = self.layer.canvas
        places, offset = LAYOUTS[view.kind].slots, self._offset
        stacks = []
        for slot in slots:
            stack, place = view.stacks[slot], places[slot]
            if stack.item:
                stacks.append((place.x + offset, place.y, stack))
            elif (empty := self._empty[view.kind, slot]) is not None:
                paste(canvas, place.x + offset, place.y, empty)
        self._stacks.draw(canvas, stacks)

    def _draw_fire(self, view: ScreenView) -> list[Rect]:
        """Draw a furnace's flame, which sinks, and arrow, which grows; returns where."""
        canvas, layout = self.layer.canvas, LAYOUTS[view.kind]
        left, top = layout.left + self._offset, layout.top
        flame = Rect(left + FLAME_AT[0], top + FLAME_AT[1], FLAME[2], FLAME[3])
        arrow = Rect(left + ARROW_AT[0], top + ARROW_AT[1], ARROW[2], ARROW[3])
        for rect in (flame, arrow):
            self._bare_again(view.kind, rect)
        if view.burn > 0:
            burnt = FLAME_STEPS - 1 - int(view.burn * FLAME_STEPS)
            burnt = max(burnt, 0)
            paste(canvas, flame.x, flame.y + burnt, self._flame[burnt:])
        done = min(int(view.progress * ARROW_STEPS), ARROW_STEPS)
        paste(canvas, arrow.x, arrow.y, self._arrow[:, :done].copy())
        return [flame, arrow]

    def _draw_moving(self, view: ScreenView) -> list[Rect]:
        """Draw what goes with the cursor, and keep what it covers; returns where."""
        canvas, offset = self.layer.canvas, self._offset
        layout, (x, y) = LAYOUTS[view.kind], view.cursor
        lit = layout.slot_at(x, y)
        if lit is not None:
            place = layout.slots[lit]
            self._cover(Rect(place.x + offset, place.y, SLOT_SIZE, SLOT_SIZE))
            paste(canvas, place.x + offset, place.y, LIT)
        x += offset
        if view.carried.item:
            left, top = x - SLOT_SIZE // 2, y - SLOT_SIZE // 2
            self._cover(Rect(left, top, _STACK, _STACK))
            self._stacks.draw(canvas, [(left, top, view.carried)])
        self._cover(Rect(x, y, CURSOR_SIZE, CURSOR_SIZE))
        paste(canvas, x, y, self._cursor)
        return [rect for rect, _ in self._covered]

    def _cover(self, rect: Rect) -> None:
        """Keep what is in a rectangle, which is about to be drawn over."""
        self._covered.append((rect, part(self.layer.canvas, rect).copy()))

    def _uncover(self) -> list[Rect]:
        """Take away what went with the cursor; returns where it was."""
        rects = [rect for rect, _ in self._covered]
        while self._covered:
            rect, below = self._covered.pop()
            part(self.layer.canvas, rect)[...] = below
        return rects


def _cut(sheet: Rgba, x: int, y: int, width: int, height: int) -> Rgba:
    return np.ascontiguousarray(sheet[y : y + height, x : x + width])


def _merged(rects: list[Rect]) -> list[Rect]:
    """Few rectangles that cover the given ones: those that touch become one."""
    merged: list[Rect] = []
    for rect in rects:
        for index, other in enumerate(merged):
            apart_x = rect.x > other.x + other.width or other.x > rect.x + rect.width
            apart_y = rect.y > other.y + other.height or other.y > rect.y + rect.height
            if not apart_x and not apart_y:
                merged[index] = other.union(rect)
                break
        else:
            merged.append(rect)
    return merged
