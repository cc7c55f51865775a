"""Writes what the agent does and thinks onto frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rllib_minestudio.recordings.video import Frame

MIN_HEIGHT = 240
"""Smaller frames are enlarged by a whole factor, so that the text can be read."""

_BACKGROUND = (0, 0, 0, 140)
_TEXT = (255, 255, 255, 255)
_MARGIN = 4
_NO_KEYS = ("camera", "chat", "voxels", "mobs")


def overlaid(frame: Frame, lines: Sequence[str]) -> Frame:
    """Return a copy of a frame with lines of text in its upper left corner.

    Args:
        frame: (height, width, 3) uint8 RGB.
        lines: What to write, from the top.

    Returns:
        A frame of the same shape, or of a whole multiple if it was too small for text.
    """
    factor = -(-MIN_HEIGHT // frame.shape[0])
    enlarged = frame.repeat(factor, axis=0).repeat(factor, axis=1) if factor > 1 else frame
    picture = Image.fromarray(enlarged)
    draw = ImageDraw.Draw(picture, "RGBA")
    font = ImageFont.load_default(size=max(10, enlarged.shape[0] // 28))
    text = "\n".join(lines)
    corner = (_MARGIN, _MARGIN)
    left, top, right, bottom = draw.multiline_textbbox(corner, text, font=font)
    box = (left - _MARGIN, top - _MARGIN, right + _MARGIN, bottom + _MARGIN)
    draw.rectangle(box, fill=_BACKGROUND)
    draw.multiline_text(corner, text, font=font, fill=_TEXT)
    return np.asarray(picture)


def action_lines(action: Mapping[str, Any]) -> list[str]:
    """Return what an overlay says about an action.

    Args:
        action: Keys, 0 or 1, and `camera`, (pitch, yaw) in degrees; what else it holds is no key.

    Returns:
        The keys that are pressed, and how far the camera turns.
    """
    pitch, yaw = action.get("camera", (0.0, 0.0))
    pressed = [name for name, value in action.items() if name not in _NO_KEYS and value]
    return [" ".join(pressed) or "no key", f"camera {pitch:+.1f} {yaw:+.1f}"]
