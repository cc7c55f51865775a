"""A strip beneath a frame that shows which keys are pressed, how the camera turns, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rllib_minestudio.recordings.video import Frame

HEIGHT = 60
"""Of the strip, in pixels; even, as H.264 needs."""

LEAST_WIDTH = 480
"""Narrower frames are enlarged by a whole factor, so that everything has its place."""

_KEYS: dict[str, tuple[str, int, int, int]] = {
    "forward": ("W", 32, 6, 22),
    "left": ("A", 8, 32, 22),
    "back": ("S", 32, 32, 22),
    "right": ("D", 56, 32, 22),
    "jump": ("jump", 88, 6, 50),
    "sneak": ("sneak", 88, 32, 50),
    "sprint": ("sprint", 142, 6, 50),
    "inventory": ("inv", 142, 32, 50),
    "attack": ("attack", 202, 6, 50),
    "use": ("use", 202, 32, 50),
    "hotbar": ("", 256, 6, 22),
    "drop": ("drop", 256, 32, 38),
}
"""Key -> (label, left, top, width), in pixels. The nine keys of the hotbar share one place."""

_KEY_HEIGHT = 22
_DIAL = (302, 6, 348, 52)
"""The camera's square: left, top, right, bottom."""
_DIAL_DEGREES = 10.0
"""A turn of so many degrees reaches the dial's edge."""
_TEXT_LEFT = 360

_GROUND, _IDLE, _PRESSED = (24, 26, 30), (52, 56, 62), (255, 196, 61)
_LABEL, _PRESSED_LABEL = (150, 155, 162), (24, 26, 30)


def with_key_strip(frame: Frame, action: Mapping[str, Any], texts: Sequence[str]) -> Frame:
    """Return a frame with a strip beneath it.

    Args:
        frame: (height, width, 3) uint8 RGB.
        action: Keys, 0 or 1, and `camera`, (pitch, yaw) in degrees; what is missing is at rest.
        texts: Up to two lines, such as the return and the value.

    Returns:
        A new frame, `HEIGHT` higher, or higher than a whole multiple if it was too narrow.
    """
    factor = -(-LEAST_WIDTH // frame.shape[1])
    enlarged = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    strip = Image.new("RGB", (enlarged.shape[1], HEIGHT), _GROUND)
    draw = ImageDraw.Draw(strip)
    font = ImageFont.load_default(size=12)
    for key, (label, left, top, width) in _KEYS.items():
        pressed = bool(action.get(key))
        if key == "hotbar":
            slots = [slot for slot in range(1, 10) if action.get(f"hotbar.{slot}")]
            label, pressed = (str(slots[-1]), True) if slots else ("1-9", False)
        box = (left, top, left + width, top + _KEY_HEIGHT)
        draw.rounded_rectangle(box, radius=4, fill=_PRESSED if pressed else _IDLE)
        centre = (left + width / 2, top + _KEY_HEIGHT / 2)
        draw.text(centre, label, fill=_PRESSED_LABEL if pressed else _LABEL, font=font, anchor="mm")
    _draw_dial(draw, *map(float, action.get("camera", (0.0, 0.0))))
    numbers = ImageFont.load_default(size=16)
    for line, text in enumerate(texts):
        draw.text((_TEXT_LEFT, 18 + 24 * line), text, fill="white", font=numbers, anchor="lm")
    return np.concatenate([enlarged, np.asarray(strip)])


def _draw_dial(draw: ImageDraw.ImageDraw, pitch: float, yaw: float) -> None:
    """Draw how the camera turns: right is right, down is down."""
    left, top, right, bottom = _DIAL
    draw.rounded_rectangle(_DIAL, radius=4, fill=_IDLE)
    middle = ((left + right) / 2, (top + bottom) / 2)
    reach = (right - left) / 2 - 4
    x, y = (
        centre + reach * max(-1.0, min(1.0, turn / _DIAL_DEGREES))
        for centre, turn in zip(middle, (yaw, pitch), strict=True)
    )
    colour = _PRESSED if pitch or yaw else _LABEL
    draw.line((*middle, x, y), fill=colour, width=3)
    draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=colour)
