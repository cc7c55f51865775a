"""A stack as slots show it: the item's icon, its count, and how worn it is."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import Rgba, Sprites

GLYPH = 8
"""Pixels of a side of a letter's cell; the font has 16 cells in a row, by code."""
SPACE = 4
"""Pixels from one letter to the next where there is none."""
WHITE, DARK_GREY = (255, 255, 255), (64, 64, 64)
SHADOW = 0.25
LARGEST_STACK = 64
BAR_LENGTH = 13
"""Pixels of the bar that shows the wear."""

_Key = TypeVar("_Key")
_Sprite = TypeVar("_Sprite")


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


class _Made(dict[_Key, _Sprite]):
    """Sprites by what they show, each made when it is first asked for."""

    def __init__(self, make: Callable[[_Key], _Sprite]) -> None:
        self._make = make

    def __missing__(self, shown: _Key) -> _Sprite:
        made = self[shown] = self._make(shown)
        return made


class StackPictures:
    """Pictures of stacks, each made once."""

    def __init__(self, textures: Textures) -> None:
        """Make the counts; icons are made when they are first shown."""
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
            placed: Of each the left column and the upper row of the 16 x 16 pixels of its slot, and
                what is in it.
        """
        icons, counts = self._icons, self._counts
        sprites: list[int] = []  # x, y and number of one after the other
        for x, y, (item, quantity, damage) in placed:
            if not item or quantity <= 0:
                continue
            sprites += x, y, icons[item]
            if quantity > 1:
                count, width = counts[quantity]
                sprites += x + 18 - width, y + 9, count
            if damage > 0 and (whole := ITEMS[item].durability):
                left = max(whole - damage, 0) / whole
                sprites += x + 2, y + 13, self._bars[left]
        self._sprites.paste(canvas, sprites)

    def _make_icon(self, item: int) -> int:
        return self._sprites.add(self._textures.icon(ITEMS[item].name))

    def _make_count(self, count: int) -> tuple[int, int]:
        """The count's sprite and its width; it may be more than a stack that is picked up."""
        picture = text_picture(self._textures, str(count), WHITE, shadow=True)
        return self._sprites.add(picture), picture.shape[1]

    def _make_bar(self, left: float) -> int:
        """The bar of a tool of which the share `left` is left: green, yellow, red.

        Java rounds the length's halves up, and the colour down.
        """
        bar = np.zeros((2, BAR_LENGTH, 4), np.uint8)
        bar[..., 3] = 255
        colour = colorsys.hsv_to_rgb(left / 3, 1.0, 1.0)
        bar[0, : int(BAR_LENGTH * left + 0.5), :3] = [int(255 * part) for part in colour]
        return self._sprites.add(bar)
