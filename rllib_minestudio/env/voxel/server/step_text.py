"""What a step asks for: lines of the form "KEY VALUE", as MineStudio writes an action."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rllib_minestudio.env.voxel.observed_boxes import Box, mobs_box, voxels_box
from rllib_minestudio.env.voxel.server.wire import ProtocolError

KEYS = frozenset(
    ["forward", "left", "back", "right", "jump", "inventory", "sneak", "sprint", "attack", "use"]
    + [f"hotbar.{slot}" for slot in range(1, 10)]
)
"""Keys that the game has; MineStudio's `pickItem` does nothing in survival."""

_IGNORED_KEYS = frozenset(["pickItem", "drop", "swapHands"])
_LONGEST_CHAT = 32500
"""Longest command in characters, as in Minecraft's command blocks."""


@dataclass
class StepRequest:
    """One step.

    Attributes:
        action: The engine's action: keys 0 or 1 and `camera`, (pitch, yaw) in degrees.
        chat: A command to execute before the tick; empty for none.
        voxels: The box whose blocks to tell, or None.
        mobs: The box whose mobs to tell, or None.
    """

    action: dict[str, Any] = field(default_factory=dict)
    chat: str = ""
    voxels: Box | None = None
    mobs: Box | None = None


def read_step(text: str) -> StepRequest:
    """Read the text of a step.

    Raises:
        ProtocolError: If a line is unknown or its value has the wrong form.
    """
    step = StepRequest()
    for line in text.split("\n"):
        key, _, value = line.partition(" ")
        if key in KEYS:
            step.action[key] = int(_number(key, value) != 0.0)
        elif key == "camera":
            angles = value.split()
            if len(angles) != 2:
                raise ProtocolError(f"camera needs pitch and yaw; got {value[:80]!r}")
            step.action["camera"] = (_number(key, angles[0]), _number(key, angles[1]))
        elif key == "chat":
            if len(value) > _LONGEST_CHAT:
                raise ProtocolError(f"a chat message may have {_LONGEST_CHAT} characters")
            if step.chat:
                raise ProtocolError("a step has more than one chat message")
            step.chat = value
        elif key == "voxels":
            step.voxels = _box(voxels_box, key, value)
        elif key == "mobs":
            step.mobs = _box(mobs_box, key, value)
        elif line.strip() and key not in _IGNORED_KEYS:
            raise ProtocolError(f"a step has the unknown line {line[:80]!r}")
    return step


def _number(key: str, word: str) -> float:
    # NumPy's booleans are written by their names.
    named = {"true": 1.0, "false": 0.0}.get(word.strip().lower())
    if named is not None:
        return named
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not abs(number) <= 1e6:
        raise ProtocolError(f"{key} needs a number; got {word[:80]!r}")
    return number


def _box(read: Callable[[list[float]], Box | None], key: str, value: str) -> Box | None:
    words = value.split(",")
    if len(words) != 6:
        raise ProtocolError(f"{key} needs six bounds; got {value[:80]!r}")
    try:
        return read([_number(key, word) for word in words])
    except ValueError as error:
        raise ProtocolError(str(error)) from error
