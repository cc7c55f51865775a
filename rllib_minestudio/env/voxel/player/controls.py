"""Keys: MineStudio's action dictionary as one integer of bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rllib_minestudio.errors import InvalidActionError

FORWARD, BACK, LEFT, RIGHT, JUMP, SNEAK, SPRINT, ATTACK, USE, DROP, OPEN_INVENTORY = (
    1 << bit for bit in range(11)
)

_KEYS = (
    ("forward", FORWARD),
    ("back", BACK),
    ("left", LEFT),
    ("right", RIGHT),
    ("jump", JUMP),
    ("sneak", SNEAK),
    ("sprint", SPRINT),
    ("attack", ATTACK),
    ("use", USE),
    ("drop", DROP),
    ("inventory", OPEN_INVENTORY),
)
_HOTBAR = tuple((f"hotbar.{slot + 1}", slot) for slot in range(9))

NO_SLOT = -1


def read_keys(action: Mapping[str, Any]) -> int:
    """Bits of the keys that are held in `action`; a missing key is not held."""
    bits = 0
    get = action.get
    for name, bit in _KEYS:
        if get(name, 0):
            bits |= bit
    return bits


def read_hotbar(action: Mapping[str, Any]) -> int:
    """The hotbar slot (0-8) that `action` selects, the last of several, or `NO_SLOT`."""
    selected = NO_SLOT
    get = action.get
    for name, slot in _HOTBAR:
        if get(name, 0):
            selected = slot
    return selected


def read_camera(action: Mapping[str, Any]) -> tuple[float, float]:
    """Turn of the head (pitch, yaw) in degrees; none when missing.

    Raises:
        InvalidActionError: If it is not finite: the player's position would not stay finite either.
    """
    camera = action.get("camera")
    if camera is None:
        return 0.0, 0.0
    pitch, yaw = float(camera[0]), float(camera[1])
    if not (math.isfinite(pitch) and math.isfinite(yaw)):
        raise InvalidActionError(
            f"camera must be two finite numbers (pitch, yaw) in degrees; got ({pitch}, {yaw})."
        )
    return pitch, yaw
