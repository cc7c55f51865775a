"""Paints the sheets of the display and the screens, in Minecraft's layout."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rllib_minestudio.env.voxel.render import overlays
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS, ScreenLayout
from tools.painting.art import (
    RGB,
    SEE_THROUGH,
    Rgba,
    draw,
    fill,
    put,
    read_art,
)

SHEET = 256
PANEL, LIGHT, DARK, SLOT, SLOT_DARK = 198, 255, 85, 139, 55
LARGE_SLOTS = {("crafting_table", "result"), ("furnace", "output")}
"""Slots with a wide frame, by screen and group."""
GREY: dict[str, RGB] = {"m": (SLOT,) * 3, "s": (106, 106, 106), "o": (0, 0, 0)}
WHITE: dict[str, RGB] = {"m": (255, 255, 255), "w": (255, 255, 255), "o": (0, 0, 0)}
FLAME: dict[str, RGB] = {"f": (214, 96, 24), "y": (246, 190, 52), "w": (255, 246, 196)}
HEART: dict[str, RGB] = {
    "o": (0, 0, 0),
    "r": (240, 28, 28),
    "d": (176, 14, 14),
    "w": (255, 200, 200),
}
HUNGER: dict[str, RGB] = {
    "o": (24, 14, 6),
    "b": (180, 112, 56),
    "B": (134, 76, 34),
    "w": (226, 214, 200),
}
BUTTON: dict[str, RGB] = {
    "o": (0, 0, 0),
    "L": (222, 222, 222),
    "m": (150, 150, 150),
    "s": (96, 96, 96),
    "k": (28, 60, 20),
    "g": (64, 124, 44),
    "G": (94, 160, 66),
    "y": (226, 206, 110),
    "p": (236, 232, 214),
}
_EMPTY_STATUS: RGB = (44, 38, 38)


def paint_gui() -> Iterator[tuple[str, Rgba]]:
    """Yield names and pictures of everything below `gui/`, and of the outlines in empty slots."""
    art = read_art("gui.txt")
    yield "gui/widgets", _widgets()
    yield "gui/icons", _icons(art)
    yield "gui/cursor", draw(art["cursor"], WHITE)
    button = _sheet()
    put(button, 0, 0, draw(art["recipe_button"], BUTTON))
    yield "gui/recipe_button", button
    for kind in ("inventory", "crafting_table", "furnace"):
        yield f"gui/container/{kind}", _screen(kind, LAYOUTS[kind], art)
    yield "gui/container/enchanting_table", _enchanting(LAYOUTS["enchanting_table"])
    yield "gui/container/generic_54", _chest(LAYOUTS["chest"])
    for part in ("helmet", "chestplate", "leggings", "boots", "shield"):
        yield f"item/empty_armor_slot_{part}", draw(art[part], GREY)


_SIDE = 18


def paint_effects() -> Iterator[tuple[str, Rgba]]:
    """Yield names and pictures of the icons of effects: drops of their colours, with an arrow.

    It points up for an effect that does good, and down for others.
    """
    table = Path(overlays.__file__).with_name("effects.csv")
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            colour = bytes.fromhex(row["colour"])
            yield f"mob_effect/{row['effect']}", _drop(tuple(colour), bool(row["harmful"]))


def _drop(colour: tuple[int, ...], points_down: bool) -> Rgba:
    down, across = np.mgrid[:_SIDE, :_SIDE] - (_SIDE - 1) / 2
    far = np.hypot(down, across)
    picture = np.zeros((_SIDE, _SIDE, 4), np.uint8)
    picture[far < 8.6] = (16, 16, 20, 255)
    picture[far < 7.6] = (*colour, 255)
    lit = np.hypot(down + 2.5, across + 2.5) < 2.2
    picture[lit] = (*(min(part + 90, 255) for part in colour), 255)
    along = down if points_down else -down
    arrow = (np.abs(across) <= 1.0) & (np.abs(down) < 4.6)
    arrow |= (along > 0.4) & (np.abs(across) < 5.1 - along)
    picture[arrow & (np.abs(down) < 5.1)] = (250, 250, 244, 255)
    return picture


def _sheet() -> Rgba:
    return np.zeros((SHEET, SHEET, 4), np.uint8)


def _widgets() -> Rgba:
    """The hotbar, and the frame of the selected slot below it."""
    sheet = _sheet()
    fill(sheet, 0, 0, 182, 22, 20)
    for slot in range(9):
        x = 1 + 20 * slot
        fill(sheet, x, 1, 20, 20, 150)
        fill(sheet, x + 1, 2, 18, 18, 70)
        sheet[2:20, x + 1 : x + 19, 3] = 178
    for inset, tone in ((0, 30), (1, 240), (2, 196)):
        side = 24 - 2 * inset
        for at in (inset, 23 - inset):
            fill(sheet, inset, 22 + at, side, 1, tone)
            fill(sheet, at, 22 + inset, 1, side, tone)
    return sheet


def _icons(art: dict[str, list[str]]) -> Rgba:
    """Crosshair, hearts, hunger, the experience bar, and the bar of the attack's charge."""
    sheet = _sheet()
    put(sheet, 0, 0, draw(art["crosshair"], WHITE))
    for name, palette, y, is_mirrored in (
        ("heart", HEART, 0, False),
        ("drumstick", HUNGER, 27, True),
    ):
        outline = draw(art[name], palette)
        outline[_inside(art[name])] = (*_EMPTY_STATUS, 255)
        whole = draw(art[f"{name}_full"], palette)
        half = whole.copy()
        half[:, 5:] = 0
        for x, picture in ((16, outline), (52, whole), (61, half)):
            put(sheet, x, y, picture[:, ::-1] if is_mirrored else picture)
    fill(sheet, 0, 64, 182, 5, 16)
    fill(sheet, 1, 65, 180, 3, (44, 50, 40))
    fill(sheet, 0, 69, 182, 5, (22, 40, 8))
    fill(sheet, 1, 70, 180, 3, (128, 224, 32))
    # White inverts what is behind the bar, grey hides it.
    fill(sheet, 36, 95, 16, 2, 70)
    fill(sheet, 52, 95, 16, 2, 236)
    return sheet


def _inside(lines: list[str]) -> np.ndarray:
    """Pixels enclosed by an outline: those between the first and the last of its row."""
    mask = np.zeros((len(lines), len(lines[0])), bool)
    for row, line in enumerate(lines):
        inked = [at for at, character in enumerate(line) if character != SEE_THROUGH]
        for at in range(inked[0], inked[-1]):
            mask[row, at] = line[at] == SEE_THROUGH
    mask[1, 4] &= lines[0][4] != SEE_THROUGH  # the notch of the heart is open
    return mask


def _screen(kind: str, layout: ScreenLayout, art: dict[str, list[str]]) -> Rgba:
    sheet = _sheet()
    _panel(sheet, layout.width, layout.height)
    for slot in layout.slots:
        is_large = (kind, slot.group) in LARGE_SLOTS
        _slot(sheet, slot.x - layout.left, slot.y - layout.top, 5 if is_large else 1)
    if kind == "inventory":
        _hole(sheet, 25, 7, 51, 72)
        fill(sheet, 26, 8, 49, 70, 0)
        put(sheet, 135, 29, draw(art["small_arrow"], GREY))
        for x, width, height in ((0, 120, 32), (141, 24, 24)):  # behind effects
            fill(sheet, x, 166, width, height, 20)
            fill(sheet, x + 1, 167, width - 2, height - 2, 92)
            fill(sheet, x + 2, 168, width - 4, height - 4, 52)
    elif kind == "crafting_table":
        put(sheet, 90, 36, draw(art["crafting_arrow"], GREY))
    elif kind == "furnace":
        put(sheet, 79, 34, draw(art["smelting_arrow"], GREY))
        put(sheet, 176, 14, draw(art["smelting_arrow"], WHITE))
        put(sheet, 56, 36, draw(art["flame"], dict.fromkeys("fyw", GREY["m"])))
        put(sheet, 176, 0, draw(art["flame"], FLAME))
    return sheet


def _enchanting(layout: ScreenLayout) -> Rgba:
    """The panel, and below it the fields of offers and the signs of their costs."""
    sheet = _sheet()
    _panel(sheet, layout.width, layout.height)
    for slot in layout.slots:
        _slot(sheet, slot.x - layout.left, slot.y - layout.top, 1)
    _hole(sheet, 59, 13, 110, 59)
    fields = ((166, (150, 132, 100)), (185, (92, 84, 70)), (204, (136, 136, 196)))
    for y, (red, green, blue) in fields:
        fill(sheet, 0, y, 108, 19, (red // 2, green // 2, blue // 2))
        fill(sheet, 1, y + 1, 106, 17, (red, green, blue))
    for number in range(3):
        for y, tone in ((223, (128, 224, 32)), (239, (84, 96, 60))):
            left = 16 * number
            fill(sheet, left + 2, y + 6, 6, 6, tone)
            fill(sheet, left + 3, y + 7, 2, 2, 255)
            for stroke in range(number + 1):
                fill(sheet, left + 10 + 2 * stroke, y + 3, 1, 9, tone)
    return sheet


def _chest(layout: ScreenLayout) -> Rgba:
    """The sheet for six rows; `layout` has three."""
    sheet = _sheet()
    _panel(sheet, layout.width, layout.height + 54)
    for slot in layout.slots:
        x, y = slot.x - layout.left, slot.y - layout.top
        if slot.group in ("main", "hotbar"):
            _slot(sheet, x, y + 54, 1)
        else:
            _slot(sheet, x, y, 1)
            _slot(sheet, x, y + 54, 1)
    return sheet


def _panel(sheet: Rgba, width: int, height: int) -> None:
    """A grey board with a black rim, lit from the upper left."""
    fill(sheet, 2, 0, width - 4, height, 0)
    fill(sheet, 1, 1, width - 2, height - 2, 0)
    fill(sheet, 0, 2, width, height - 4, 0)
    fill(sheet, 1, 2, width - 3, height - 4, LIGHT)
    fill(sheet, 2, 1, width - 4, height - 3, LIGHT)
    fill(sheet, 3, 3, width - 4, height - 4, DARK)
    fill(sheet, width - 1, 3, 1, height - 4, 0)
    fill(sheet, 3, height - 1, width - 4, 1, 0)
    sheet[height - 1, width - 2 : width] = 0
    sheet[height - 2 : height, width - 1] = 0
    fill(sheet, width - 2, height - 2, 1, 1, 0)
    fill(sheet, 3, 3, width - 6, height - 6, PANEL)


def _slot(sheet: Rgba, x: int, y: int, margin: int) -> None:
    _hole(sheet, x - margin, y - margin, 16 + 2 * margin, 16 + 2 * margin)


def _hole(sheet: Rgba, x: int, y: int, width: int, height: int) -> None:
    """A hollow: dark at its upper left edge, light at the lower right."""
    fill(sheet, x, y, width, height, SLOT)
    fill(sheet, x, y, width - 1, 1, SLOT_DARK)
    fill(sheet, x, y, 1, height - 1, SLOT_DARK)
    fill(sheet, x + 1, y + height - 1, width - 1, 1, LIGHT)
    fill(sheet, x + width - 1, y + 1, 1, height - 1, LIGHT)
