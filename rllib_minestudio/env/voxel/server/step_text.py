"""What a step asks for: lines of the form "KEY VALUE", as MineStudio writes an action."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from rllib_minestudio.env.voxel.server.wire import ProtocolError

KEYS = frozenset(
    ["forward", "left", "back", "right", "jump", "inventory", "sneak", "sprint", "attack", "use"]
    + [f"hotbar.{slot}" for slot in range(1, 10)]
)
"""Keys that the game has; MineStudio's `pickItem` does nothing in survival."""

_IGNORED_KEYS = frozenset(["pickItem", "drop", "swapHands"])
_LARGEST_REACH = 50
"""Farthest block, from the player, that MineStudio's action space lets a step ask for."""
_LARGEST_VOLUME = 32768
"""Most blocks that a step may ask for, as many as `/fill` may change."""
_FARTHEST_MOB = 1000
_LONGEST_CHAT = 32500
"""Longest command in characters, as in Minecraft's command blocks."""

Box = tuple[int, int, int, int, int, int]
"""x0, x1, y0, y1, z0, z1 relative to the player, in blocks, both ends included."""


@dataclass
class Step:
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


def read_step(text: str) -> Step:
    """Read the text of a step.

    Raises:
        ProtocolError: If a line is unknown or its value has the wrong form.
    """
    step = Step()
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
            step.voxels = _box(key, value, _LARGEST_REACH)
            if step.voxels is not None and _volume(step.voxels) > _LARGEST_VOLUME:
                raise ProtocolError(f"voxels may ask for {_LARGEST_VOLUME} blocks; got {value!r}")
        elif key == "mobs":
            step.mobs = _box(key, value, _FARTHEST_MOB)
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


def _box(key: str, value: str, reach: int) -> Box | None:
    """Six bounds, in order; None where all are zero, as in an action that asks for nothing."""
    words = value.split(",")
    if len(words) != 6:
        raise ProtocolError(f"{key} needs six bounds; got {value[:80]!r}")
    x0, x1, y0, y1, z0, z1 = (int(_number(key, word)) for word in words)
    if not any((x0, x1, y0, y1, z0, z1)):
        return None
    if max(map(abs, (x0, x1, y0, y1, z0, z1))) > reach or x0 > x1 or y0 > y1 or z0 > z1:
        rule = f"must be x0,x1,y0,y1,z0,z1 in order, at most {reach} blocks away"
        raise ProtocolError(f"{key} {rule}; got {value[:80]!r}")
    return x0, x1, y0, y1, z0, z1


def _volume(box: Box) -> int:
    x0, x1, y0, y1, z0, z1 = box
    return (x1 - x0 + 1) * (y1 - y0 + 1) * (z1 - z0 + 1)
