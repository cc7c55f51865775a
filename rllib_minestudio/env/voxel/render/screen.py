"""An open screen over the frame: the dark veil, the panel with its stacks, and the cursor.

Two canvases of the window's size hold it: `_panel` has everything that lies still, and the layer's
has in addition what goes with the cursor (the lit slot, the stack carried, the cursor itself).
From one step to the next, and when the same screen is opened again, only the slots that changed and
what the cursor covers are drawn again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rllib_minestudio.env.voxel.items.inventory import Stack
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
    copy,
    paste,
)
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
"""Changed slots beyond which their groups are drawn as a whole."""
# What may reach beyond a slot's picture: the shadow of its count.
_STACK = SLOT_SIZE + 2


class Screen:
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
        self._groups = {kind: self._groups_of(kind) for kind in LAYOUTS}
        self._empty = {
            (kind, slot): empty_slot(textures, kind, slot)
            for kind, layout in LAYOUTS.items()
            for slot in range(len(layout.slots))
        }
        self._cursor = textures.picture("gui/cursor")[:CURSOR_SIZE, :CURSOR_SIZE].copy()
        furnace = textures.picture("gui/container/furnace")
        self._flame, self._arrow = _cut(furnace, *FLAME), _cut(furnace, *ARROW)
        nothing = (Stack(0, 0, 0),) * len(self._slots[INVENTORY])
        self._shown = ScreenView(INVENTORY, nothing, NOWHERE, nothing[0])
        self._moving: list[Rect] = []
        self._panel = self._bare[INVENTORY].copy()
        self._draw_slots(self._shown, range(len(nothing)))
        self.layer.canvas[...] = self._panel
        self.layer.refresh(Rect(0, 0, window, WINDOW_HEIGHT))

    def show(self, view: ScreenView) -> None:
        """Bring the layer up to date."""
        shown = self._shown
        if view == shown:
            return
        self._shown = view
        touched = list(self._moving)
        for rect in self._moving:
            copy(self.layer.canvas, self._panel, *rect)
        if shown.kind != view.kind:
            changed = self._draw_panel(view, shown)
        else:
            changed = self._draw_changes(view, shown)
        for rect in changed:
            copy(self.layer.canvas, self._panel, *rect)
        self._moving = self._draw_moving(view)
        for rect in _merged([*touched, *changed, *self._moving]):
            self.layer.refresh(rect)

    def _area(self, kind: str) -> Rect:
        """Where a panel is in the window."""
        layout = LAYOUTS[kind]
        return Rect(layout.left + self._offset, layout.top, layout.width, layout.height)

    def _draw_panel(self, view: ScreenView, shown: ScreenView) -> list[Rect]:
        """Draw a panel with all its stacks in place of the one before; returns where."""
        whole = self._area(view.kind).union(self._area(shown.kind))
        copy(self._panel, self._bare[view.kind], *whole)
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
        """Draw the slots that have changed, or all of their groups if they are many."""
        pairs = enumerate(zip(view.stacks, shown.stacks, strict=True))
        slots = [slot for slot, (stack, former) in pairs if stack != former]
        rects = [self._slots[view.kind][slot] for slot in slots]
        if len(slots) > MANY:
            places = LAYOUTS[view.kind].slots
            groups = {places[slot].group for slot in slots}
            slots = [slot for slot, place in enumerate(places) if place.group in groups]
            rects = [self._groups[view.kind][group] for group in groups]
        for rect in rects:
            copy(self._panel, self._bare[view.kind], *rect)
        self._draw_slots(view, slots)
        return rects

    def _slots_of(self, kind: str) -> list[Rect]:
        """What slots and their stacks cover."""
        places = LAYOUTS[kind].slots
        return [Rect(place.x + self._offset, place.y, _STACK, _STACK) for place in places]

    def _groups_of(self, kind: str) -> dict[str, Rect]:
        """What each group of slots covers; no two of them meet."""
        groups: dict[str, Rect] = {}
        for place, rect in zip(LAYOUTS[kind].slots, self._slots[kind], strict=True):
            groups[place.group] = groups.get(place.group, rect).union(rect)
        return groups

    def _draw_slots(self, view: ScreenView, slots: Iterable[int]) -> None:
        """Draw what is in some slots, over bare ones."""
        places, offset = LAYOUTS[view.kind].slots, self._offset
        stacks = []
        for slot in slots:
            stack, place = view.stacks[slot], places[slot]
            if stack.item:
                stacks.append((place.x + offset, place.y, stack))
            elif (empty := self._empty[view.kind, slot]) is not None:
                paste(self._panel, place.x + offset, place.y, empty)
        self._stacks.draw(self._panel, stacks)

    def _draw_fire(self, view: ScreenView) -> list[Rect]:
        """Draw a furnace's flame, which sinks, and arrow, which grows; returns where."""
        layout = LAYOUTS[view.kind]
        left, top = layout.left + self._offset, layout.top
        flame = Rect(left + FLAME_AT[0], top + FLAME_AT[1], FLAME[2], FLAME[3])
        arrow = Rect(left + ARROW_AT[0], top + ARROW_AT[1], ARROW[2], ARROW[3])
        for rect in (flame, arrow):
            copy(self._panel, self._bare[view.kind], *rect)
        if view.burn > 0:
            burnt = FLAME_STEPS - 1 - int(view.burn * FLAME_STEPS)
            burnt = max(burnt, 0)
            paste(self._panel, flame.x, flame.y + burnt, self._flame[burnt:])
        done = min(int(view.progress * ARROW_STEPS), ARROW_STEPS)
        paste(self._panel, arrow.x, arrow.y, self._arrow[:, :done].copy())
        return [flame, arrow]

    def _draw_moving(self, view: ScreenView) -> list[Rect]:
        """Draw what goes with the cursor; returns where."""
        canvas, offset = self.layer.canvas, self._offset
        layout, (x, y) = LAYOUTS[view.kind], view.cursor
        drawn = []
        lit = layout.slot_at(x, y)
        if lit is not None:
            place = layout.slots[lit]
            paste(canvas, place.x + offset, place.y, LIT)
            drawn.append(Rect(place.x + offset, place.y, SLOT_SIZE, SLOT_SIZE))
        if view.carried.item:
            half = SLOT_SIZE // 2
            self._stacks.draw(canvas, [(x - half + offset, y - half, view.carried)])
            drawn.append(Rect(x - half + offset, y - half, _STACK, _STACK))
        paste(canvas, x + offset, y, self._cursor)
        drawn.append(Rect(x + offset, y, CURSOR_SIZE, CURSOR_SIZE))
        return drawn


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
