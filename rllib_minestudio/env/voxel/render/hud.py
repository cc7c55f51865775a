"""The heads-up display: hotbar, hearts and hunger, composed once and reused until they change.

Everything is laid out as Minecraft does in a window 360 pixels high with GUI scale 1 (what
MineStudio plays in) and then brought to the pixels that are drawn: averaged, or picked (see
`sampling`). So a small square frame shows the same squeezed display as a resized screenshot of the
game. Only the crosshair is not averaged, but drawn in a frame's own pixels: it would vanish.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.item_sprites import Sprite, block_icon, item_sprite
from rllib_minestudio.env.voxel.render.overlay import Overlay, make_overlay
from rllib_minestudio.env.voxel.render.sampling import WINDOW_HEIGHT, Sampling

SLOTS = 9
SLOT_STEP = 20
BAR_WIDTH, BAR_HEIGHT = 182, 22
ICON = 16
# Upper edges, counted from the bottom of the window.
HEARTS_UP, EXPERIENCE_UP = 39, 29
STATUS_STEP, STATUS_COUNT = 8, 10
# Everything lies in a strip this high at the bottom, and a little wider than the bar.
STRIP_HEIGHT, STRIP_MARGIN = 40, 2
CROSSHAIR_REACH = 4

HEART = """
.oo...oo.
offo.offo
ofwfffffo
offfffffo
offfffffo
.offfffo.
..offfo..
...ofo...
....o....
"""
DRUMSTICK = """
....ooo..
...offfo.
..offffdo
..offffdo
..offfddo
.oodddoo.
owwooo...
owwo.....
.oo......
"""
# Colours for the status icons: full and empty.
HEART_COLOURS = {"o": (0, 0, 0), "f": (240, 28, 28), "w": (255, 200, 200)}
FOOD_COLOURS = {"o": (24, 14, 6), "f": (180, 112, 56), "d": (134, 76, 34), "w": (226, 214, 200)}
EMPTY_COLOUR = (44, 38, 38)
# Rows of three pixels, one octal digit each, for the quantities.
DIGITS = ("75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717")

Canvas = NDArray[np.float64]


class HudState(NamedTuple):
    """What the display shows; equal states give equal displays.

    Attributes:
        items: Item id by hotbar slot, 0 for none.
        quantities: Stack size by hotbar slot.
        selected: Hotbar slot in hand.
        health: 0..20, rounded up to whole points.
        food: 0..20.
    """

    items: tuple[int, ...]
    quantities: tuple[int, ...]
    selected: int
    health: int
    food: int


def _paste(canvas: Canvas, x: int, y: int, sprite: Sprite) -> None:
    opaque = sprite[..., 3] > 0
    area = canvas[y : y + sprite.shape[0], x : x + sprite.shape[1]]
    area[opaque] = np.concatenate(
        [sprite[opaque][:, :3], np.ones((int(opaque.sum()), 1))], axis=1, dtype=np.float64
    )


def _rectangle(
    canvas: Canvas, x: int, y: int, w: int, h: int, colour: tuple[int, int, int], alpha: float = 1.0
) -> None:
    area = canvas[y : y + h, x : x + w]
    area[..., :3] = np.asarray(colour, np.float64) * alpha
    area[..., 3] = alpha


@lru_cache(maxsize=6)
def _status_icon(food: bool, points: int) -> Sprite:
    """A heart or drumstick: full (2 points), left half (1) or empty (0)."""
    picture, colours = (DRUMSTICK, FOOD_COLOURS) if food else (HEART, HEART_COLOURS)
    sprite = np.zeros((9, 9, 4), np.uint8)
    for row, line in enumerate(picture.strip().splitlines()):
        for column, character in enumerate(line):
            if character == ".":
                continue
            filled = points == 2 or (points == 1 and column < 5) or character == "o"
            sprite[row, column] = (*(colours[character] if filled else EMPTY_COLOUR), 255)
    return sprite


def _status(canvas: Canvas, left: int, top: int, state: HudState) -> None:
    for index in range(STATUS_COUNT):
        heart = _status_icon(False, min(max(state.health - 2 * index, 0), 2))
        _paste(canvas, left + STATUS_STEP * index, top, heart)
        food = _status_icon(True, min(max(state.food - 2 * index, 0), 2))
        # Hunger runs from right to left, so its half icons show their right half.
        _paste(canvas, left + BAR_WIDTH - 9 - STATUS_STEP * index, top, food[:, ::-1])


def _quantity(canvas: Canvas, right: int, bottom: int, quantity: int) -> None:
    digits = str(quantity)
    for shade, offset in ((60, 1), (255, 0)):
        for place, digit in enumerate(digits):
            x = right - 4 * (len(digits) - place) + offset
            for row, bits in enumerate(DIGITS[int(digit)]):
                for column in range(3):
                    if int(bits, 8) >> (2 - column) & 1:
                        _rectangle(
                            canvas, x + column, bottom - 5 + row + offset, 1, 1, (shade,) * 3
                        )


def _hotbar(
    canvas: Canvas, left: int, top: int, state: HudState, icons: Mapping[int, Sprite]
) -> None:
    _rectangle(canvas, left, top, BAR_WIDTH, BAR_HEIGHT, (20, 20, 20))
    for slot in range(SLOTS):
        x = left + 1 + slot * SLOT_STEP
        _rectangle(canvas, x, top + 1, SLOT_STEP, SLOT_STEP, (150, 150, 150))
        _rectangle(canvas, x + 1, top + 2, SLOT_STEP - 2, SLOT_STEP - 2, (70, 70, 70), alpha=0.7)
    x, y = left - 1 + state.selected * SLOT_STEP, top - 1
    for inset, colour in ((0, (30, 30, 30)), (1, (240, 240, 240)), (2, (196, 196, 196))):
        near, far, length = inset, 23 - inset, 24 - 2 * inset
        for edge in (near, far):
            _rectangle(canvas, x + near, y + edge, length, 1, colour)
            _rectangle(canvas, x + edge, y + near, 1, length, colour)
    for slot, (item, quantity) in enumerate(zip(state.items, state.quantities, strict=True)):
        if item:
            x = left + 3 + slot * SLOT_STEP
            _paste(canvas, x, top + 3, icons[item])
            if quantity > 1:
                _quantity(canvas, x + ICON, top + 3 + ICON, quantity)


class Hud:
    """Composes the display for one frame size.

    Args:
        sampling: What is drawn.
        names: Name of each item by id.
        block_items: Items with ids below this are blocks.
    """

    def __init__(self, sampling: Sampling, names: Mapping[int, str], block_items: int) -> None:
        """Prepare icons lazily: most are never held."""
        self._names, self._block_items = names, block_items
        self._width = sampling.drawn[0]
        display_width = sampling.display_columns.shape[1]
        rows = sampling.display_rows[:, -STRIP_HEIGHT:]
        # A window narrower than the strip shows its middle.
        strip = BAR_WIDTH + 2 * STRIP_MARGIN
        left = (display_width - BAR_WIDTH) // 2 - STRIP_MARGIN
        shown = np.arange(max(left, 0), min(left + strip, display_width))
        columns = np.zeros((self._width, strip))
        columns[:, shown - left] = sampling.display_columns[:, shown]
        # Only the part of the frame that the strip reaches is worth the work.
        self._first_row, self._first_column = (int(m.any(1).argmax()) for m in (rows, columns))
        self._rows, self._columns = rows[rows.any(1)], columns[columns.any(1)]
        self._icons: dict[int, Sprite] = {}
        cross = _crosshair(*sampling.window, display_width)[np.ix_(sampling.rows, sampling.columns)]
        self.crosshair = np.flatnonzero(cross).astype(np.uint32)

    def compose(self, state: HudState) -> Overlay:
        """Draw a state of the display."""
        for item in state.items:
            if item and item not in self._icons:
                make = block_icon if item < self._block_items else item_sprite
                self._icons[item] = make(self._names[item])
        canvas = np.zeros((STRIP_HEIGHT, self._columns.shape[1], 4))
        left, experience = STRIP_MARGIN, STRIP_HEIGHT - EXPERIENCE_UP
        _rectangle(canvas, left, experience, BAR_WIDTH, 5, (16, 16, 16))
        _rectangle(canvas, left + 1, experience + 1, BAR_WIDTH - 2, 3, (44, 50, 40))
        _status(canvas, left, STRIP_HEIGHT - HEARTS_UP, state)
        _hotbar(canvas, left, STRIP_HEIGHT - BAR_HEIGHT, state, self._icons)
        rows = np.tensordot(self._rows, canvas, (1, 0))  # [rows, strip W, 4]
        picture = np.tensordot(rows, self._columns, (1, 1)).swapaxes(1, 2)  # [rows, columns, 4]
        return make_overlay(picture, self._width, self._first_row, self._first_column)


def _crosshair(width: int, height: int, display_width: int) -> NDArray[np.bool_]:
    """Where the crosshair is in a picture, bool (height, width): at least three pixels a side."""
    mask = np.zeros((height, width), bool)
    thick = max(1, height // WINDOW_HEIGHT)
    reach_x = max(1, round(CROSSHAIR_REACH * width / display_width))
    reach_y = max(1, round(CROSSHAIR_REACH * height / WINDOW_HEIGHT))
    middle_x, middle_y = width // 2, height // 2
    mask[middle_y : middle_y + thick, middle_x - reach_x : middle_x + reach_x + thick] = True
    mask[middle_y - reach_y : middle_y + reach_y + thick, middle_x : middle_x + thick] = True
    return mask
