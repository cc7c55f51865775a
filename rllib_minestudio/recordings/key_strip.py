"""A strip below a frame that shows the pressed keys, the camera's turn, and numbers.

This is the only overlay of this package's videos; it never covers the game's frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rllib_minestudio.recordings.video import Frame

LEAST_WIDTH = 384
"""Narrower frames are enlarged by a whole factor, so that the strip is legible."""

_HEIGHT = 44
"""Height of the strip. This and all positions below are in pixels of a strip that is `LEAST_WIDTH`
wide; wider ones are scaled."""

_KEYS: dict[str, tuple[str, int, int, int]] = {
    "forward": ("W", 22, 4, 16),
    "left": ("A", 4, 23, 16),
    "back": ("S", 22, 23, 16),
    "right": ("D", 40, 23, 16),
    "jump": ("jump", 61, 4, 32),
    "sneak": ("sneak", 61, 23, 32),
    "sprint": ("sprint", 95, 4, 32),
    "inventory": ("inv", 95, 23, 32),
    "attack": ("attack", 132, 4, 32),
    "use": ("use", 132, 23, 32),
    "hotbar": ("1-9", 169, 4, 26),
    "drop": ("drop", 169, 23, 26),
}
"""Key -> (label, left, top, width). The nine hotbar keys share one place."""

_KEY_HEIGHT = 17
_ROUNDING = 3
_DIAL = (200, 4, 236, 40)
"""The camera's square: left, top, right, bottom."""
_DIAL_DEGREES = 10.0
"""Degrees of a turn that reaches the dial's edge."""
_KNOB, _NEEDLE = 2.5, 2
"""Radius of the knob, and width of the needle, that point in the direction of the turn."""

_COLUMNS = ((244, 313), (321, 380))
"""Left and right edge of each column of three numbers: names are left-aligned, values
right-aligned."""
_FIRST_LINE, _LINE = 9, 13
"""Vertical centre of a column's first number, and the distance to the next."""

_GROUND, _IDLE, _PRESSED = (24, 26, 30), (52, 56, 62), (255, 196, 61)
_LABEL, _PRESSED_LABEL, _VALUE = (150, 155, 162), (24, 26, 30), (255, 255, 255)
_FONT_SIZE = 10


def with_key_strip(frame: Frame, keys: Mapping[str, Any], numbers: Mapping[str, float]) -> Frame:
    """Return a frame with a strip below it.

    Args:
        frame: (height, width, 3) uint8 RGB.
        keys: Keys, 0 or 1, and `camera`, (pitch, yaw) in degrees; missing ones count as 0.
        numbers: Name -> value, at most six, such as the return and the value.

    Returns:
        A new frame with even sides, as H.264 requires: the frame, perhaps enlarged by a whole
        factor, with the strip below.
    """
    factor = -(-LEAST_WIDTH // frame.shape[1])
    if factor % 2 and (frame.shape[0] % 2 or frame.shape[1] % 2):
        factor += 1
    enlarged = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    return np.concatenate([enlarged, _strip(enlarged.shape[1], keys, numbers)])


def _strip(width: int, keys: Mapping[str, Any], numbers: Mapping[str, float]) -> Frame:
    strip = _idle(width).copy()
    pen = _Pen(strip)
    slots = [slot for slot in range(1, 10) if keys.get(f"hotbar.{slot}")]
    for key, (label, *_) in _KEYS.items():
        if keys.get(key):
            pen.key(key, label, pressed=True)
    if slots:
        pen.key("hotbar", str(slots[-1]), pressed=True)
    _draw_dial(pen, *map(float, keys.get("camera", (0.0, 0.0))))
    for place, (name, value) in enumerate(numbers.items()):
        (left, right), middle_y = _COLUMNS[place // 3], _FIRST_LINE + _LINE * (place % 3)
        pen.text((left, middle_y), name, _LABEL, "lm")
        pen.text((right, middle_y), _short(value), _VALUE, "rm")
    return np.asarray(strip)


@cache
def _idle(width: int) -> Image.Image:
    """Draw the background of all strips, with no key pressed."""
    strip = Image.new("RGB", (width, 2 * round(_HEIGHT * width / LEAST_WIDTH / 2)), _GROUND)
    pen = _Pen(strip)
    for key, (label, *_) in _KEYS.items():
        pen.key(key, label, pressed=False)
    pen.box(_DIAL, _IDLE)
    return strip


def _draw_dial(pen: _Pen, pitch: float, yaw: float) -> None:
    """Draw the camera's turn: yaw to the right points right, pitch down points down."""
    left, top, right, bottom = _DIAL
    middle = ((left + right) / 2, (top + bottom) / 2)
    reach = (right - left) / 2 - _KNOB - 1
    x, y = (
        centre + reach * max(-1.0, min(1.0, turn / _DIAL_DEGREES))
        for centre, turn in zip(middle, (yaw, pitch), strict=True)
    )
    pen.needle(middle, (x, y), _PRESSED if pitch or yaw else _LABEL)


class _Pen:
    """Draws shapes and text, scaled to the strip's width."""

    def __init__(self, strip: Image.Image) -> None:
        self._draw = ImageDraw.Draw(strip)
        self._scale = strip.width / LEAST_WIDTH
        self._font = _font(_FONT_SIZE * self._scale)

    def key(self, key: str, label: str, pressed: bool) -> None:
        _, left, top, width = _KEYS[key]
        self.box((left, top, left + width, top + _KEY_HEIGHT), _PRESSED if pressed else _IDLE)
        middle = (left + width / 2, top + _KEY_HEIGHT / 2)
        self.text(middle, label, _PRESSED_LABEL if pressed else _LABEL, "mm")

    def box(self, corners: tuple[float, ...], colour: tuple[int, int, int]) -> None:
        self._draw.rounded_rectangle(self._scaled(corners), _ROUNDING * self._scale, fill=colour)

    def text(
        self, place: tuple[float, float], text: str, colour: tuple[int, int, int], anchor: str
    ) -> None:
        x, y = self._scaled(place)
        self._draw.text((x, y), text, fill=colour, font=self._font, anchor=anchor)

    def needle(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        colour: tuple[int, int, int],
    ) -> None:
        x, y = end
        self._draw.line(self._scaled((*start, x, y)), colour, round(_NEEDLE * self._scale))
        knob = (x - _KNOB, y - _KNOB, x + _KNOB, y + _KNOB)
        self._draw.ellipse(self._scaled(knob), fill=colour)

    def _scaled(self, places: tuple[float, ...]) -> list[float]:
        return [place * self._scale for place in places]


@cache
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _short(number: float) -> str:
    """Format a number in about five characters."""
    if abs(number) >= 100:
        return f"{number:.0f}"
    return f"{round(number, 2 if abs(number) >= 1 else 3):g}"
