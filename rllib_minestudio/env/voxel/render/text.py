"""Text in the game's font, and what items and effects are called and said to do.

The names are shown as Minecraft 1.16 shows them (`Screen.renderTooltip`,
`Gui.renderSelectedItemName`), at GUI scale 1 and in the colour of the item's rarity.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.items.items import (
    ENCHANTMENTS,
    ITEMS,
    POTION_ITEMS,
    POTIONS,
    Item,
    enchantments_of,
    potion_of,
)
from rllib_minestudio.env.voxel.render.textures import Textures
from rllib_minestudio.env.voxel.render.window import (
    WINDOW_HEIGHT,
    Layer,
    Rect,
    Reduction,
    Rgba,
    paste,
)

Colour = tuple[int, int, int]
Pixels = NDArray[np.float64]

GLYPH = 8
"""Pixels per side of a letter's cell; the font has 16 cells per row, ordered by code."""
SPACE = 4
"""Width of a blank in pixels."""
WHITE, GREY, DARK_GREY, GREEN = (255, 255, 255), (170, 170, 170), (64, 64, 64), (0, 170, 0)
BLUE, RED = (85, 85, 255), (255, 85, 85)
SHADOW = 0.25
RARITIES: dict[str, Colour] = {
    "common": WHITE,
    "uncommon": (255, 255, 85),
    "rare": (85, 255, 255),
    "epic": (255, 85, 255),
}
"""Colour of an item's name by its rarity."""
ENCHANTED = {"common": "rare", "uncommon": "rare", "rare": "epic", "epic": "epic"}
"""Rarity of an enchanted item by that of the plain one."""


@lru_cache(maxsize=256)
def text_picture(textures: Textures, text: str, colour: tuple[int, int, int], shadow: bool) -> Rgba:
    """Draw a line of text.

    Args:
        textures: Source of the font.
        text: Letters below code 128.
        colour: RGB.
        shadow: Whether to draw a shadow, one pixel down and to the right.

    Returns:
        uint8 (9, w, 4), with the text at its upper left corner; shared, so do not modify it.
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
    """The pixels (8, 8) of a letter, and the distance to the next letter."""
    row, column = divmod(ord(letter), 16)
    font = textures.picture("font/ascii")
    cell = font[row * GLYPH :, column * GLYPH :][:GLYPH, :GLYPH, 3] > 127
    inked = np.flatnonzero(cell.any(0))
    return cell, int(inked[-1]) + 2 if len(inked) else SPACE


# ------------------------------------------------------------------------ effects: `effects.csv`

_NO_END = 32767
"""Ticks from which the game shows no time."""
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


class EffectLook(NamedTuple):
    """A row of `effects.csv`.

    Attributes:
        title: The effect's name.
        is_below: Whether its icon is in the second row, where effects that do no good are.
        colour: Colour of the particles of who has it, RGB; it decides the order.
    """

    title: str
    is_below: bool
    colour: int


def _read() -> dict[str, EffectLook]:
    with (Path(__file__).parent / "effects.csv").open(newline="") as file:
        return {
            row["effect"]: EffectLook(row["title"], bool(row["harmful"]), int(row["colour"], 16))
            for row in csv.DictReader(file)
        }


EFFECT_LOOKS = _read()
"""By the effect's name."""


def roman(level: int) -> str:
    """Return a level as the game writes it: in Roman numerals up to ten."""
    return _ROMAN[level - 1] if level <= len(_ROMAN) else str(level)


def time_left(ticks: int) -> str:
    """Return a duration as the list shows it: minutes and seconds."""
    seconds = ticks // TICKS_PER_SECOND
    return "**:**" if ticks >= _NO_END else f"{seconds // 60}:{seconds % 60:02d}"


# ------------------------------------------------------------------------------ names of items


def name_picture(textures: Textures, item: int, data: int = 0) -> Rgba:
    """Write the name of an item with its data, with a shadow; see `text_picture`."""
    rarity = ITEMS[item].rarity
    if enchantments_of(item, data):
        rarity = ENCHANTED[rarity]
    return text_picture(textures, title_of(item, data), RARITIES[rarity], shadow=True)


def title_of(item: int, data: int) -> str:
    """Return the name of an item, such as "Splash Potion of Harming"."""
    title = ITEMS[item].title
    if item not in POTION_ITEMS:
        return title
    kind, is_arrow = potion_of(data), ITEMS[item].name == "tipped_arrow"
    for duration in ("long_", "strong_"):
        kind = kind.removeprefix(duration)
    if kind == "water":
        return "Arrow of Splashing" if is_arrow else title.replace("Potion", "Water Bottle")
    if kind in ("mundane", "thick", "awkward"):
        return title if is_arrow else f"{kind.title()} {title}"
    if is_arrow:
        title = "Arrow"
    of = "the Turtle Master" if kind == "turtle_master" else kind.replace("_", " ").title()
    return f"{title} of {of}"


# --------------------------------------------------------------------------- the box at the cursor

MARGIN = 4
"""Pixels of the box around the text on each side."""
LINE, AFTER_NAME = 10, 2
"""Distance from one line to the next, and what is added to it below the name."""
BEHIND, RIM_TOP, RIM_BOTTOM = (0x10, 0, 0x10, 0xF0), (0x50, 0, 0xFF, 0x50), (0x28, 0, 0x7F, 0x50)
"""Colours of the box, and of its rim at the top and at the bottom: red, green, blue, alpha."""


def tooltip_place(cursor: tuple[int, int], size: tuple[int, int], window: int) -> tuple[int, int]:
    """Where the upper left corner of a box goes.

    It is to the right of the cursor and a little above it; to the left where the window ends, and
    higher up at its lower edge.

    Args:
        cursor: Pixel of the window at the cursor's tip.
        size: Width and height of the box.
        window: Width of the window.
    """
    width, height = size[0] - 2 * MARGIN, size[1] - 2 * MARGIN
    x, y = cursor[0] + 12, cursor[1] - 12
    if x + width > window:
        x -= 28 + width
    y = min(y, WINDOW_HEIGHT - height - 6)
    return x - MARGIN, y - MARGIN


@lru_cache(maxsize=256)
def tooltip_picture(textures: Textures, item: int, data: int = 0) -> Rgba:
    """Draw the box that describes an item: its name, and what it does.

    Args:
        textures: Source of the font.
        item: Item id.
        data: What else there is of it: enchantments, a kind of potion; see `items`.

    Returns:
        uint8 (height, width, 4), not multiplied by alpha; shared, so do not modify it.
    """
    lines = [name_picture(textures, item, data)]
    described = *_effects(item, data), *_enchantments(item, data), *_attributes(ITEMS[item])
    for text, colour in described:
        lines.append(text_picture(textures, text, colour, shadow=True))
    width = max(line.shape[1] for line in lines)
    height = GLYPH + (AFTER_NAME + LINE * (len(lines) - 1) if len(lines) > 1 else 0)
    box = _box(width + 2 * MARGIN, height + 2 * MARGIN)
    y = MARGIN
    for number, line in enumerate(lines):
        below = box[y : y + line.shape[0], MARGIN : MARGIN + line.shape[1]]
        inked = line[..., 3] > 0
        below[inked] = line[inked]
        y += LINE + (AFTER_NAME if number == 0 else 0)
    return box


_SHARE_OF_TIME = {"lingering_potion": 0.25, "tipped_arrow": 0.125}


def _effects(item: int, data: int) -> list[tuple[str, Colour]]:
    """The effects of a potion, with their levels and durations."""
    if item not in POTION_ITEMS:
        return []
    lines, share = [], _SHARE_OF_TIME.get(ITEMS[item].name, 1.0)
    for effect in POTIONS[potion_of(data)]:
        look, level = EFFECT_LOOKS[effect.name], roman(effect.amplifier + 1)
        ticks = int(effect.ticks * share)
        lasting = f" ({time_left(ticks)})" if effect.ticks > TICKS_PER_SECOND else ""
        text = look.title + (f" {level}" if effect.amplifier else "") + lasting
        lines.append((text, RED if look.is_below else BLUE))
    return lines or [("No Effects", GREY)]


_ENCHANTMENT_TITLES = {
    "bane_of_arthropods": "Bane of Arthropods",
    "binding_curse": "Curse of Binding",
    "luck_of_the_sea": "Luck of the Sea",
    "sweeping": "Sweeping Edge",
    "vanishing_curse": "Curse of Vanishing",
}
"""Names that are not those of the identifier."""


def _enchantments(item: int, data: int) -> list[tuple[str, Colour]]:
    """The enchantments of an item, with their levels."""
    lines = []
    for name, level in enchantments_of(item, data).items():
        title = _ENCHANTMENT_TITLES.get(name, name.replace("_", " ").title())
        has_levels = level > 1 or ENCHANTMENTS[name].levels > 1
        colour = RED if name.endswith("_curse") else GREY
        lines.append((f"{title} {roman(level)}" if has_levels else title, colour))
    return lines


def _attributes(item: Item) -> list[tuple[str, Colour]]:
    """The lines below the name of a tool or weapon, with their colours."""
    if item.attack_wear == 0:
        return []
    return [
        ("", GREY),
        ("When in Main Hand:", GREY),
        (f" {item.attack_damage:.4g} Attack Damage", GREEN),
        (f" {item.attack_speed:.4g} Attack Speed", GREEN),
    ]


def _box(width: int, height: int) -> Rgba:
    """An empty box: dark, its corners cut off, with a rim whose colour fades downwards."""
    behind = np.zeros((height, width, 4))
    behind[:, 1:-1] = behind[1:-1] = BEHIND
    rim = np.zeros((height, width, 4))
    share = (np.arange(height - 4) + 0.5)[:, None] / (height - 4)
    rim[2:-2, 1] = rim[2:-2, -2] = RIM_TOP + np.subtract(RIM_BOTTOM, RIM_TOP) * share
    rim[1, 1:-1], rim[-2, 1:-1] = RIM_TOP, RIM_BOTTOM
    return _over(rim, behind)


def _over(upper: Pixels, lower: Pixels) -> Rgba:
    """Blend two pictures (h, w, 4) that are not multiplied by their alpha, 0 to 255."""
    above, below = upper[..., 3:] / 255, lower[..., 3:] / 255
    cover = above + below * (1 - above)
    colour = upper[..., :3] * above + lower[..., :3] * below * (1 - above)
    colour = colour / np.maximum(cover, 1e-9)
    return np.rint(np.concatenate([colour, cover * 255], -1)).astype(np.uint8)


# ------------------------------------------------------------ the name of what has come to the hand

NAME_UP = 59
"""Distance of the line's upper edge from the bottom of the window."""
FADING_TICKS = 10
"""Over this many ticks it fades away."""
WIDEST = 240


class HeldItemName:
    """The name of the item in hand, above the hotbar.

    Attributes:
        layer: The name as last shown.
    """

    def __init__(
        self, window: int, rows: Reduction, columns: Reduction, textures: Textures
    ) -> None:
        """Prepare an empty line.

        Args:
            window: Width of the window, in whose middle the name is.
            rows: Reduction of the window's height to the drawn rows.
            columns: Reduction of its width to the drawn columns.
            textures: Source of the font.
        """
        self._textures, self._shown = textures, (0, 0, 0)
        self._window, self._left = window, (window - WIDEST) // 2
        area = Rect(self._left, WINDOW_HEIGHT - NAME_UP, WIDEST, GLYPH + 1)
        self.layer = Layer(area, rows, columns)

    def show(self, item: int, data: int, ticks: int) -> None:
        """Bring the layer up to date.

        Args:
            item: Item id.
            data: What else there is of it, see `items`.
            ticks: Ticks for which the name is still shown, at least 1.
        """
        alpha = min(ticks * 256 // FADING_TICKS, 255)
        if self._shown == (item, data, alpha):
            return
        self._shown = item, data, alpha
        self.layer.canvas[...] = 0
        picture = name_picture(self._textures, item, data).copy()
        picture[..., 3] = np.where(picture[..., 3] > 0, alpha, 0)
        paste(self.layer.canvas, (self._window - picture.shape[1]) // 2 - self._left, 0, picture)
        self.layer.refresh(Rect(0, 0, WIDEST, GLYPH + 1))
