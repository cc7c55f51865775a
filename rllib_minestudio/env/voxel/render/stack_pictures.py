"""A stack as slots show it: the item's icon, its count, and how worn it is."""

from __future__ import annotations

import colorsys
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.inventory import Stack
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba, paste

GLYPH = 8
"""Pixels of a side of a letter's cell; the font has 16 cells in a row, by code."""
SPACE = 4
"""Pixels from one letter to the next where there is none."""
WHITE, DARK_GREY = (255, 255, 255), (64, 64, 64)
SHADOW = 0.25
LARGEST_STACK = 64
BAR_LENGTH = 13
"""Pixels of the bar that shows the wear."""


@lru_cache(maxsize=256)
def text_picture(textures: Textures, text: str, colour: tuple[int, int, int], shadow: bool) -> Rgba:
    """A line of text.

    Args:
        textures: With the font.
        text: Letters below code 128.
        colour: RGB.
        shadow: Whether it throws a shadow, one pixel down and to the right.

    Returns:
        uint8 (9, w, 4) with the text's upper left corner in its own; nobody may change it.
    """
    mask = np.zeros((GLYPH + 1, GLYPH * len(text) + 1), bool)
    at = 0
    for letter in text:
        cell, advance = _glyph(textures, letter)
        mask[:GLYPH, at : at + GLYPH] |= cell
        at += advance
    picture = np.zeros((*mask.shape, 4), np.uint8)
    if shadow:
        picture[1:, 1:][mask[:-1, :-1]] = (*(int(part * SHADOW) for part in colour), 255)
    picture[mask] = (*colour, 255)
    return np.ascontiguousarray(picture[:, : at if shadow else at - 1])


@lru_cache(maxsize=256)
def _glyph(textures: Textures, letter: str) -> tuple[NDArray[np.bool_], int]:
    """The pixels (8, 8) of a letter, and how far on the next one is."""
    row, column = divmod(ord(letter), 16)
    font = textures.picture("font/ascii")
    cell = font[row * GLYPH :, column * GLYPH :][:GLYPH, :GLYPH, 3] > 127
    inked = np.flatnonzero(cell.any(0))
    return cell, int(inked[-1]) + 2 if len(inked) else SPACE


def _count(textures: Textures, count: int) -> Rgba:
    return text_picture(textures, str(count), WHITE, shadow=True)


class StackPictures:
    """Pictures of stacks, each made once."""

    def __init__(self, textures: Textures) -> None:
        """Make the counts; icons are made when they are first shown."""
        self._textures = textures
        self._icons: dict[int, Rgba] = {}
        self._counts = {count: _count(textures, count) for count in range(2, LARGEST_STACK + 1)}
        self._bars: dict[float, Rgba] = {}

    def draw(self, canvas: Rgba, x: int, y: int, stack: Stack) -> None:
        """Draw a stack; nothing for an empty one.

        Args:
            canvas: See `window`.
            x: Left column of the 16 x 16 pixels of the slot.
            y: Upper row.
            stack: What is in it.
        """
        if not stack.item or stack.quantity <= 0:
            return
        icon = self._icons.get(stack.item)
        if icon is None:
            icon = self._icons[stack.item] = self._textures.icon(ITEMS[stack.item].name)
        paste(canvas, x, y, icon)
        if stack.quantity > 1:
            count = self._counts.get(stack.quantity)
            if count is None:  # more than a stack that is picked up
                count = self._counts[stack.quantity] = _count(self._textures, stack.quantity)
            paste(canvas, x + 18 - count.shape[1], y + 9, count)
        whole = ITEMS[stack.item].durability
        if whole and stack.damage > 0:
            paste(canvas, x + 2, y + 13, self._bar(max(whole - stack.damage, 0) / whole))

    def _bar(self, left: float) -> Rgba:
        """The bar of a tool of which the share `left` is left: green, yellow, red.

        Java rounds the length's halves up, and the colour down.
        """
        bar = self._bars.get(left)
        if bar is None:
            bar = self._bars[left] = np.zeros((2, BAR_LENGTH, 4), np.uint8)
            bar[..., 3] = 255
            colour = colorsys.hsv_to_rgb(left / 3, 1.0, 1.0)
            bar[0, : int(BAR_LENGTH * left + 0.5), :3] = [int(255 * part) for part in colour]
        return bar
