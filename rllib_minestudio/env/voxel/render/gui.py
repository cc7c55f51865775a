"""Open screens with their stacks and cursor, and the heads-up display.

Whatever moves with the cursor (the lit slot, the carried stack, the cursor itself) is drawn last,
and the pixels that it covers are kept. From one step to the next, and when the same screen is
opened again, only the changed slots and the pixels under the cursor are drawn again.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from itertools import compress
from operator import ne
from typing import NamedTuple, TypeVar

import numpy as np

from rllib_minestudio.env.voxel.items.items import HOTBAR_SLOTS, ITEMS, ItemStack, wear_of
from rllib_minestudio.env.voxel.render.hand import FIGURE_AREA, Figure
from rllib_minestudio.env.voxel.render.overlays import (
    LIST_LEFT,
    LIST_WIDTH,
    ShownEffect,
    draw_list,
    seconds_left,
)
from rllib_minestudio.env.voxel.render.text import (
    DARK_GREY,
    WHITE,
    text_picture,
    tooltip_picture,
    tooltip_place,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import (
    WINDOW_HEIGHT,
    WINDOW_WIDTH,
    Layer,
    Rect,
    Reduction,
    Rgba,
    Sampling,
    Sprites,
    part,
    paste,
)
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, NOTHING, SLOT_SIZE
from rllib_minestudio.env.voxel.screens.menu import (
    BUTTON_HEIGHT,
    BUTTON_LEFT,
    BUTTON_TOP,
    BUTTON_WIDTH,
    ScreenView,
    offer_at,
)

CURSOR_SIZE = 16
FURNACE = "furnace"
LIT = np.full((SLOT_SIZE, SLOT_SIZE, 4), (255, 255, 255, 0x80), np.uint8)
"""Highlight over the slot under the cursor."""
# Place on the furnace's sheet (x, y, width, height), and place on the panel.
FLAME, FLAME_AT = (176, 0, 14, 14), (56, 36)
ARROW, ARROW_AT = (176, 14, 24, 16), (79, 34)
FLAME_STEPS, ARROW_STEPS = 13, 24
ENCHANTING = "enchanting_table"
# Places on the enchanting table's sheet: an offer's field, and the sign of its costs.
_OFFER_V = {"free": 166, "barred": 185, "lit": 204}
_COST_V = {True: 223, False: 239}
_COST_SIZE = 16
_GREEN, _DARK_GREEN = (128, 255, 32), (64, 127, 16)
INVENTORY = "inventory"
NOWHERE = -1, -1
"""A place that no cursor can have."""
MANY = 4
"""If more slots of a group than this have changed, the whole group is drawn again."""
# The shadow of a stack's count reaches beyond the slot's picture.
_STACK = SLOT_SIZE + 2


class _Group(NamedTuple):
    """Adjacent slots.

    Attributes:
        slots: Their numbers.
        area: What they and their stacks cover; no two groups overlap.
        bare: Their stacks if they are all empty; None if an empty slot shows a picture.
    """

    slots: range
    area: Rect
    bare: tuple[ItemStack, ...] | None


class ScreenComposer:
    """Composes screens for one frame size.

    Attributes:
        layer: The current screen, at the window's size.
    """

    def __init__(
        self,
        window: int,
        rows: Reduction,
        columns: Reduction,
        textures: Textures,
        stacks: StackPictures,
    ) -> None:
        """Prepare all panels, and an empty inventory, so that first openings are fast.

        Args:
            window: Width of the window; screens are centred in it.
            rows: Reduction of the window's height to the frame's.
            columns: Reduction of its width to the frame's.
            textures: Pictures of the screens.
            stacks: Pictures of stacks.
        """
        self._stacks, self._textures = stacks, textures
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
        self._enchanting = textures.picture("gui/container/enchanting_table")
        self._figure = Figure(textures.picture("entity/steve"))
        nothing = (NOTHING,) * len(self._slots[INVENTORY])
        self._shown = ScreenView(INVENTORY, nothing, NOWHERE, NOTHING)
        self._listed: tuple[ShownEffect, ...] = ()
        self._covered: list[tuple[Rect, Rgba]] = []
        self.layer.canvas[...] = self._bare[INVENTORY]
        self._draw_slots(self._shown, range(len(nothing)))
        self._draw_figure(self._shown)
        self.layer.refresh(Rect(0, 0, window, WINDOW_HEIGHT))

    def show(self, view: ScreenView, effects: tuple[ShownEffect, ...] = ()) -> None:
        """Bring the layer up to date.

        Args:
            view: What is visible of the screen.
            effects: The player's effects, which the inventory lists.
        """
        shown = self._shown
        listed = seconds_left(effects) if view.kind == INVENTORY else ()
        if view == shown and listed == self._listed:
            return
        self._shown = view
        touched = self._uncover()
        if listed != self._listed:
            touched.append(self._draw_effects(view.kind, listed))
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
        """Replace the panel and all its stacks, and return the rectangles touched."""
        whole = self._area(view.kind).union(self._area(shown.kind))
        self._bare_again(view.kind, whole)
        self._draw_slots(view, range(len(view.stacks)))
        if view.kind == FURNACE:
            self._draw_fire(view)
        if view.kind == ENCHANTING:
            self._draw_offers(view)
        if view.kind == INVENTORY:
            self._draw_figure(view)
        return [whole]

    def _draw_changes(self, view: ScreenView, shown: ScreenView) -> list[Rect]:
        """Draw what has changed apart from the cursor, and return the rectangles touched."""
        touched: list[Rect] = []
        if view.stacks != shown.stacks:  # far faster than comparing each slot, and seldom true
            touched = self._draw_changed_slots(view, shown)
        fire = view.burn, view.progress
        if view.kind == FURNACE and fire != (shown.burn, shown.progress):
            touched += self._draw_fire(view)
        if view.kind == ENCHANTING and (
            view.offers != shown.offers or self._lit_offer(view) != self._lit_offer(shown)
        ):
            touched += self._draw_offers(view)
        if view.kind == INVENTORY and view.cursor != shown.cursor:
            touched.append(self._draw_figure(view))
        return touched

    def _draw_changed_slots(self, view: ScreenView, shown: ScreenView) -> list[Rect]:
        """Draw changed slots, or whole groups if many changed; return the rectangles touched."""
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
        """The rectangles that slots and their stacks cover."""
        places = LAYOUTS[kind].slots
        return [Rect(place.x + self._offset, place.y, _STACK, _STACK) for place in places]

    def _groups_of(self, kind: str) -> list[_Group]:
        layout, groups = LAYOUTS[kind], []
        for name in dict.fromkeys(place.group for place in layout.slots):
            slots = layout.group(name)
            area = reduce(Rect.union, self._slots[kind][slots.start : slots.stop])
            has_pictures = any(self._empty[kind, slot] is not None for slot in slots)
            groups.append(_Group(slots, area, None if has_pictures else (NOTHING,) * len(slots)))
        return groups

    def _bare_again(self, kind: str, rect: Rect) -> None:
        """Restore a part of the bare panel."""
        part(self.layer.canvas, rect)[...] = part(self._bare[kind], rect)

    def _draw_slots(self, view: ScreenView, slots: Iterable[int]) -> None:
        """Draw the contents of slots, which must be bare."""
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
        """Draw a furnace's sinking flame and growing arrow, and return the rectangles touched."""
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

    def _lit_offer(self, view: ScreenView) -> int | None:
        """Which of an enchanting table's offers is under the cursor."""
        layout = LAYOUTS[view.kind]
        return offer_at(view.cursor[0] - layout.left, view.cursor[1] - layout.top)

    def _draw_offers(self, view: ScreenView) -> list[Rect]:
        """Draw an enchanting table's offers and their levels; return the rectangles touched."""
        canvas, layout, lit = self.layer.canvas, LAYOUTS[view.kind], self._lit_offer(view)
        left, touched = layout.left + self._offset + BUTTON_LEFT, []
        for slot, offer in enumerate(view.offers):
            top = layout.top + BUTTON_TOP + BUTTON_HEIGHT * slot
            rect = Rect(left, top, BUTTON_WIDTH, BUTTON_HEIGHT)
            self._bare_again(view.kind, rect)
            can = offer.can_be_taken
            field = "barred" if not can else "lit" if slot == lit else "free"
            sheet = self._enchanting
            paste(canvas, left, top, _cut(sheet, 0, _OFFER_V[field], BUTTON_WIDTH, BUTTON_HEIGHT))
            if offer.level:
                costs = _cut(sheet, _COST_SIZE * slot, _COST_V[can], _COST_SIZE, _COST_SIZE)
                paste(canvas, left + 1, top + 1, costs)
                colour = _GREEN if can else _DARK_GREEN
                level = text_picture(self._textures, str(offer.level), colour, shadow=True)
                right = left + BUTTON_WIDTH - 2
                paste(canvas, right - level.shape[1], top + BUTTON_HEIGHT - 11, level)
            touched.append(rect)
        return touched

    def _draw_effects(self, kind: str, effects: tuple[ShownEffect, ...]) -> Rect:
        """Draw the list of effects, and return the rectangle touched."""
        self._listed, panel = effects, self._area(INVENTORY)
        area = Rect(panel.x - LIST_LEFT, panel.y, LIST_WIDTH, panel.height)
        self._bare_again(kind, area)
        draw_list(self.layer.canvas, self._textures, (area.x, area.y), effects)
        return area

    def _draw_figure(self, view: ScreenView) -> Rect:
        """Draw the player, who looks at the cursor, and return the rectangle touched."""
        area = self._area(INVENTORY)
        touched = Rect(area.x + FIGURE_AREA.x, area.y + FIGURE_AREA.y, *FIGURE_AREA[2:])
        self._bare_again(INVENTORY, touched)
        x, y = view.cursor[0] + self._offset - touched.x, view.cursor[1] - touched.y
        paste(self.layer.canvas, touched.x, touched.y, self._figure.draw(x, y))
        return touched

    def _draw_moving(self, view: ScreenView) -> list[Rect]:
        """Draw what moves with the cursor, keep what it covers, and return where."""
        canvas, offset = self.layer.canvas, self._offset
        layout, (x, y) = LAYOUTS[view.kind], view.cursor
        lit = layout.slot_at(x, y)
        described = NOTHING if lit is None or view.carried.item else view.stacks[lit]
        if lit is not None:
            place = layout.slots[lit]
            self._cover(Rect(place.x + offset, place.y, SLOT_SIZE, SLOT_SIZE))
            paste(canvas, place.x + offset, place.y, LIT)
        x += offset
        if view.carried.item:
            left, top = x - SLOT_SIZE // 2, y - SLOT_SIZE // 2
            self._cover(Rect(left, top, _STACK, _STACK))
            self._stacks.draw(canvas, [(left, top, view.carried)])
        if described.item:
            box = tooltip_picture(self._textures, described.item, described.data)
            height, width = box.shape[:2]
            left, top = tooltip_place((x, y), (width, height), canvas.shape[1])
            self._cover(Rect(left, top, width, height))
            paste(canvas, left, top, box)
        self._cover(Rect(x, y, CURSOR_SIZE, CURSOR_SIZE))
        paste(canvas, x, y, self._cursor)
        return [rect for rect, _ in self._covered]

    def _cover(self, rect: Rect) -> None:
        """Keep the pixels of a rectangle that is about to be drawn over."""
        self._covered.append((rect, part(self.layer.canvas, rect).copy()))

    def _uncover(self) -> list[Rect]:
        """Restore the kept pixels, and return the rectangles touched."""
        rects = [rect for rect, _ in self._covered]
        while self._covered:
            rect, below = self._covered.pop()
            part(self.layer.canvas, rect)[...] = below
        return rects


def _cut(sheet: Rgba, x: int, y: int, width: int, height: int) -> Rgba:
    return np.ascontiguousarray(sheet[y : y + height, x : x + width])


def _merged(rects: list[Rect]) -> list[Rect]:
    """Merge rectangles that touch into larger ones."""
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


# ------------------------------------------------------ the panels of the screens, with empty slots
# What does not change while a screen is open.

DIM_RGB, DIM_TOP, DIM_BOTTOM = 16, 0xC0, 0xD0
"""The dark veil behind a screen: its grey, and its opacity at the top and at the bottom."""
TITLES: dict[str, tuple[tuple[str, int, int], ...]] = {
    "inventory": (("Crafting", 97, 8),),
    "crafting_table": (("Crafting", 29, 6), ("Inventory", 8, 72)),
    "furnace": (("Furnace", 68, 6), ("Inventory", 8, 72)),
    "chest": (("Chest", 8, 6), ("Inventory", 8, 74)),
    "enchanting_table": (("Enchant", 12, 5), ("Inventory", 8, 72)),
}
"""Texts and their places on the panel, by kind of screen."""
_CHEST_ROWS_HEIGHT, _CHEST_REST = 71, (126, 97)
"""A chest's panel is the top of a sheet for six rows, then a part of it (first row, height)."""

RECIPE_BUTTON = {"inventory": (104, 61), "crafting_table": (5, 34), "furnace": (20, 34)}
"""Place of the recipe book's button, 20 x 18 pixels, by kind of screen."""

_EMPTY_SLOTS = ("helmet", "chestplate", "leggings", "boots")


@lru_cache(maxsize=16)
def bare_window(textures: Textures, kind: str, width: int) -> Rgba:
    """Compose a window with nothing but the veil and a screen's panel.

    Args:
        textures: Source of the sheets below `gui/container`.
        kind: One of `LAYOUTS`.
        width: Width of the window; the panel is centred in it, and cut off if it is wider.

    Returns:
        uint8 (360, width, 4), multiplied by coverage; shared, so do not modify it.
    """
    window, layout = veil(width, WINDOW_HEIGHT), LAYOUTS[kind]
    left = layout.left + (width - WINDOW_WIDTH) // 2
    first, stop = max(left, 0), min(left + layout.width, width)
    shown = panel(textures, kind)[:, first - left : stop - left]
    below = window[layout.top : layout.top + layout.height, first:stop]
    # A panel of a resource pack may be see-through.
    uncovered = np.uint16(255) - shown[..., 3:]
    below[...] = shown + (below * uncovered + np.uint16(127)) // np.uint16(255)
    return window


def veil(width: int, height: int) -> Rgba:
    """The veil over a whole window, uint8 (height, width, 4), multiplied by coverage."""
    alpha = DIM_TOP + (DIM_BOTTOM - DIM_TOP) * (np.arange(height) + 0.5) / height
    rows = np.rint(np.stack([DIM_RGB * alpha / 255] * 3 + [alpha], -1)).astype(np.uint8)
    return np.repeat(rows[:, None], width, axis=1)


@lru_cache(maxsize=16)
def panel(textures: Textures, kind: str) -> Rgba:
    """Compose a screen's panel.

    Args:
        textures: Source of the sheets below `gui/container`.
        kind: One of `LAYOUTS`.

    Returns:
        uint8 (height, width, 4), multiplied by coverage; shared, so do not modify it.
    """
    layout = LAYOUTS[kind]
    canvas = np.zeros((layout.height, layout.width, 4), np.uint8)
    if kind == "chest":
        sheet = textures.picture("gui/container/generic_54")
        start, length = _CHEST_REST
        paste(canvas, 0, 0, sheet[:_CHEST_ROWS_HEIGHT, : layout.width].copy())
        rest = sheet[start : start + length, : layout.width].copy()
        paste(canvas, 0, _CHEST_ROWS_HEIGHT, rest)
    else:
        sheet = textures.picture(f"gui/container/{kind}")
        paste(canvas, 0, 0, sheet[: layout.height, : layout.width].copy())
    for text, x, y in TITLES[kind]:
        paste(canvas, x, y, text_picture(textures, text, DARK_GREY, shadow=False))
    if kind in RECIPE_BUTTON:
        button = textures.picture("gui/recipe_button")[:18, :20].copy()
        paste(canvas, *RECIPE_BUTTON[kind], button)
    return canvas


def empty_slot(textures: Textures, kind: str, slot: int) -> Rgba | None:
    """The picture in an empty slot for armour or a shield, uint8 (16, 16, 4); else None."""
    place = LAYOUTS[kind].slots[slot]
    if place.group == "armour":
        part = _EMPTY_SLOTS[slot - LAYOUTS[kind].group("armour").start]
    elif place.group == "offhand":
        part = "shield"
    else:
        return None
    return textures.picture(f"item/empty_armor_slot_{part}")


# ------------------------------------------------------------------------- a stack as slots show it
# The item's icon, its count, and how worn it is.

LARGEST_STACK = 64
BAR_LENGTH = 13
"""Length in pixels of the bar that shows a tool's wear."""

_Key = TypeVar("_Key")
_Sprite = TypeVar("_Sprite")


class _Made(dict[_Key, _Sprite]):
    """Sprites by what they show, each made on first use."""

    def __init__(self, make: Callable[[_Key], _Sprite]) -> None:
        self._make = make

    def __missing__(self, shown: _Key) -> _Sprite:
        made = self[shown] = self._make(shown)
        return made


class StackPictures:
    """Pictures of stacks, each made once."""

    def __init__(self, textures: Textures) -> None:
        """Make all counts; icons are made when they are first shown."""
        self._textures = textures
        self._sprites = Sprites()
        self._icons, self._counts = _Made(self._make_icon), _Made(self._make_count)
        self._bars = _Made(self._make_bar)
        for count in range(2, LARGEST_STACK + 1):
            self._counts[count]

    def draw(self, canvas: Rgba, placed: Iterable[tuple[int, int, ItemStack]]) -> None:
        """Draw stacks; nothing for empty ones.

        Args:
            canvas: See `window`.
            placed: For each slot, the left column and the upper row of its 16 x 16 pixels, and the
                stack in it.
        """
        icons, counts = self._icons, self._counts
        sprites: list[int] = []  # x, y and number of each, one after the other
        for x, y, (item, quantity, data) in placed:
            if not item or quantity <= 0:
                continue
            sprites += x, y, icons[item]
            if quantity > 1:
                count, width = counts[quantity]
                sprites += x + 18 - width, y + 9, count
            if (wear := wear_of(data)) and (whole := ITEMS[item].durability):
                left = max(whole - wear, 0) / whole
                sprites += x + 2, y + 13, self._bars[left]
        self._sprites.paste(canvas, sprites)

    def _make_icon(self, item: int) -> int:
        return self._sprites.add(self._textures.icon(ITEMS[item].name))

    def _make_count(self, count: int) -> tuple[int, int]:
        """The count's sprite and its width; counts may exceed the size of a full stack."""
        picture = text_picture(self._textures, str(count), WHITE, shadow=True)
        return self._sprites.add(picture), picture.shape[1]

    def _make_bar(self, left: float) -> int:
        """Make the bar of a tool with the share `left` of its durability: green, yellow, red.

        As in Java, the length is rounded half up, and the colour down.
        """
        bar = np.zeros((2, BAR_LENGTH, 4), np.uint8)
        bar[..., 3] = 255
        colour = colorsys.hsv_to_rgb(left / 3, 1.0, 1.0)
        bar[0, : int(BAR_LENGTH * left + 0.5), :3] = [int(255 * part) for part in colour]
        return self._sprites.add(bar)


# ----------------------------------------------------------------------------- the heads-up display
# Hotbar, hearts and hunger. Only what changes is drawn again; a display that was shown recently, as
# when the player returns to another slot, is taken from memory.
#
# The layout is that of Minecraft's window at GUI scale 1.

SLOT_STEP = 20
BAR_WIDTH, BAR_HEIGHT = 182, 22
# Upper edges, counted from the bottom of the window.
STATUS_UP, EXPERIENCE_UP = 39, 29
STATUS_STEP, STATUS_COUNT, STATUS_SIZE = 8, 10, 9
# The display is a strip of this height at the bottom, a little wider than the bar.
STRIP_HEIGHT, STRIP_MARGIN = 40, 2

_KEPT_DISPLAYS = 2 * HOTBAR_SLOTS
"""How many displays are remembered."""

_LEFT, _TOP = STRIP_MARGIN, STRIP_HEIGHT - BAR_HEIGHT
_STATUS_TOP = STRIP_HEIGHT - STATUS_UP
_STATUS_WIDTH = STATUS_STEP * (STATUS_COUNT - 1) + STATUS_SIZE
HOTBAR = Rect(_LEFT - 1, _TOP - 1, BAR_WIDTH + 2, BAR_HEIGHT + 1)
HEARTS = Rect(_LEFT, _STATUS_TOP, _STATUS_WIDTH, STATUS_SIZE)
EXPERIENCE = Rect(_LEFT, STRIP_HEIGHT - 36, BAR_WIDTH, 12)
"""The bar of experience and the number above it, which is in the gap between hearts and food."""
_GAP = range(_LEFT + BAR_WIDTH // 2 - 9, _LEFT + BAR_WIDTH // 2 + 9)
FOOD = Rect(_LEFT + BAR_WIDTH - _STATUS_WIDTH, _STATUS_TOP, _STATUS_WIDTH, STATUS_SIZE)


class HudState(NamedTuple):
    """What the display shows; equal states give equal displays.

    Attributes:
        stacks: Contents of each slot of the hotbar.
        selected: Hotbar slot in hand.
        health: 0..20, rounded up to whole points.
        food: 0..20.
        level: Level of experience; a number above the bar, unless it is 0.
        progress: How far the bar of experience is filled, in pixels.
    """

    stacks: tuple[ItemStack, ...]
    selected: int
    health: int
    food: int
    level: int = 0
    progress: int = 0


class Hud:
    """Composes the display for one frame size.

    Attributes:
        layer: The current display.
    """

    def __init__(
        self,
        sampling: Sampling,
        rows: Reduction,
        columns: Reduction,
        textures: Textures,
        stacks: StackPictures,
    ) -> None:
        """Prepare an empty display.

        Args:
            sampling: Which pixels are drawn. A window narrower than the display shows its middle.
            rows: Reduction of the window's height to the drawn rows.
            columns: Reduction of its width to the drawn columns.
            textures: Pictures of the display.
            stacks: Pictures of stacks.
        """
        self._stacks = stacks
        widgets, icons = textures.picture("gui/widgets"), textures.picture("gui/icons")
        self._bar = _cut(widgets, 0, 0, BAR_WIDTH, BAR_HEIGHT)
        self._selection = _cut(widgets, 0, 22, 24, 23)
        # By points: the container, and over it a half or whole icon.
        self._hearts = [_cut(icons, x, 0, STATUS_SIZE, STATUS_SIZE) for x in (16, 61, 52)]
        self._food = [_cut(icons, x, 27, STATUS_SIZE, STATUS_SIZE) for x in (16, 61, 52)]
        window = sampling.display_columns.shape[1]
        left = (window - BAR_WIDTH) // 2 - STRIP_MARGIN
        width = BAR_WIDTH + 2 * STRIP_MARGIN
        area = Rect(left, WINDOW_HEIGHT - STRIP_HEIGHT, width, STRIP_HEIGHT)
        self.layer = Layer(area, rows, columns)
        self._textures = textures
        self._experience = [_cut(icons, 0, row, BAR_WIDTH, 5) for row in (64, 69)]
        self._draw_experience(0, 0)
        self.layer.refresh(Rect(0, 0, width, STRIP_HEIGHT))
        self._shown: HudState | None = None
        self._kept: dict[HudState, Layer] = {}

    def show(self, state: HudState) -> None:
        """Bring the display up to date."""
        shown = self._shown
        if state == shown:
            return
        self._shown = state
        kept = self._kept.get(state)
        if kept is not None:
            self.layer = kept
            return
        if len(self._kept) == _KEPT_DISPLAYS:
            del self._kept[next(iter(self._kept))]
        self.layer = self._kept[state] = self.layer.copy()
        if shown is None or shown.health != state.health:
            self._draw_status(HEARTS, self._hearts, state.health)
        if shown is None or shown.food != state.food:
            self._draw_status(FOOD, self._food, state.food)
        if shown is None or (shown.stacks, shown.selected) != (state.stacks, state.selected):
            self._draw_hotbar(state)
        earned = state.level, state.progress
        if shown is None or (shown.level, shown.progress) != earned:
            self._draw_experience(*earned)
            self.layer.refresh(EXPERIENCE)

    def _draw_experience(self, level: int, progress: int) -> None:
        """Draw the bar of experience, and the level in the middle above it."""
        canvas, top = self.layer.canvas, STRIP_HEIGHT - EXPERIENCE_UP
        canvas[EXPERIENCE.y : EXPERIENCE.y + EXPERIENCE.height, _GAP.start : _GAP.stop] = 0
        canvas[top : top + 5, _LEFT : _LEFT + BAR_WIDTH] = 0
        empty, full = self._experience
        paste(canvas, _LEFT, top, empty)
        if progress:
            paste(canvas, _LEFT, top, full[:, :progress].copy())
        if level:
            black = text_picture(self._textures, str(level), (0, 0, 0), shadow=False)
            green = text_picture(self._textures, str(level), _GREEN, shadow=False)
            x, y = (canvas.shape[1] - green.shape[1]) // 2, EXPERIENCE.y + 1
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                paste(canvas, x + dx, y + dy, black)
            paste(canvas, x, y, green)

    def _draw_status(self, area: Rect, icons: list[Rgba], points: int) -> None:
        """Draw ten hearts from left to right, or ten hunger icons from right to left."""
        canvas = self.layer.canvas
        canvas[area.y : area.y + area.height, area.x : area.x + area.width] = 0
        for index in range(STATUS_COUNT):
            place = STATUS_COUNT - 1 - index if icons is self._food else index
            x = area.x + STATUS_STEP * place
            paste(canvas, x, area.y, icons[0])
            if shown := min(max(points - 2 * index, 0), 2):
                paste(canvas, x, area.y, icons[shown])
        self.layer.refresh(area)

    def _draw_hotbar(self, state: HudState) -> None:
        canvas = self.layer.canvas
        canvas[HOTBAR.y :] = 0
        paste(canvas, _LEFT, _TOP, self._bar)
        paste(canvas, _LEFT - 1 + state.selected * SLOT_STEP, _TOP - 1, self._selection)
        lefts = range(_LEFT + 3, _LEFT + 3 + HOTBAR_SLOTS * SLOT_STEP, SLOT_STEP)
        places = zip(lefts, state.stacks, strict=True)
        self._stacks.draw(canvas, [(left, _TOP + 3, stack) for left, stack in places])
        self.layer.refresh(HOTBAR)
