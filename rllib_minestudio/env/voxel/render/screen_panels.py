"""The panels of the screens, with empty slots: what does not change while one is open."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rllib_minestudio.env.voxel.render.sampling import WINDOW_HEIGHT
from rllib_minestudio.env.voxel.render.stack_pictures import DARK_GREY, text_picture
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import WINDOW_WIDTH, Rgba, paste
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS

DIM_RGB, DIM_TOP, DIM_BOTTOM = 16, 0xC0, 0xD0
"""The dark veil over the game behind a screen: its grey, and its opacity above and below."""
TITLES: dict[str, tuple[tuple[str, int, int], ...]] = {
    "inventory": (("Crafting", 97, 8),),
    "crafting_table": (("Crafting", 29, 6), ("Inventory", 8, 72)),
    "furnace": (("Furnace", 68, 6), ("Inventory", 8, 72)),
    "chest": (("Chest", 8, 6), ("Inventory", 8, 74)),
}
"""Texts by kind of screen, with their places on the panel."""
_CHEST_ROWS_HEIGHT, _CHEST_REST = 71, (126, 97)
"""A chest's panel is the upper part of a sheet for six rows, then its part from a row on."""

RECIPE_BUTTON = {"inventory": (104, 61), "crafting_table": (5, 34), "furnace": (20, 34)}
"""Places of the recipe book's button, 20 x 18 pixels."""

# Minecraft shows the player 30 pixels to a block, with the feet here.
_FEET, _PLAYER_SCALE = (51, 75), 30 * 1.8 / 32
# Front faces in a player's skin (x, y, width, height), and the place of each on the figure.
_FIGURE = (
    ((8, 8, 8, 8), (4, 0)),
    ((20, 20, 8, 12), (4, 8)),
    ((44, 20, 4, 12), (0, 8)),
    ((36, 52, 4, 12), (12, 8)),
    ((4, 20, 4, 12), (4, 20)),
    ((20, 52, 4, 12), (8, 20)),
)
_EMPTY_SLOTS = ("helmet", "chestplate", "leggings", "boots")


@lru_cache(maxsize=16)
def bare_window(textures: Textures, kind: str, width: int) -> Rgba:
    """A window with nothing but the veil and a screen's panel over it.

    Args:
        textures: With the sheets of `gui/container`.
        kind: One of `LAYOUTS`.
        width: Of the window, which shows the panel, or part of it, in its middle.

    Returns:
        uint8 (360, width, 4), multiplied by coverage; nobody may change it.
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
    """A screen's panel, uint8 (height, width, 4), multiplied by coverage; nobody may change it.

    Args:
        textures: With the sheets of `gui/container`.
        kind: One of `LAYOUTS`.
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
    if kind == "inventory":
        _draw_player(canvas, textures.picture("entity/steve"))
    return canvas


def empty_slot(textures: Textures, kind: str, slot: int) -> Rgba | None:
    """The picture that an empty slot for armour or a shield shows, uint8 (16, 16, 4)."""
    place = LAYOUTS[kind].slots[slot]
    if place.group == "armour":
        part = _EMPTY_SLOTS[slot - LAYOUTS[kind].group("armour").start]
    elif place.group == "offhand":
        part = "shield"
    else:
        return None
    return textures.picture(f"item/empty_armor_slot_{part}")


def _draw_player(canvas: Rgba, skin: Rgba) -> None:
    """Draw the player from the front; Minecraft's looks at the cursor, this one straight ahead."""
    figure = np.zeros((32, 16, 4), np.uint8)
    for (x, y, width, height), (left, top) in _FIGURE:
        figure[top : top + height, left : left + width] = skin[y : y + height, x : x + width]
    rows = (np.arange(round(32 * _PLAYER_SCALE)) / _PLAYER_SCALE).astype(int)
    columns = (np.arange(round(16 * _PLAYER_SCALE)) / _PLAYER_SCALE).astype(int)
    shown = np.ascontiguousarray(figure[rows[:, None], columns])
    paste(canvas, _FEET[0] - len(columns) // 2, _FEET[1] - len(rows), shown)
