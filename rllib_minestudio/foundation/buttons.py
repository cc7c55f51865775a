"""VPT's buttons: groups of mutually exclusive keys, and tokens that encode a choice from each.

Tokens enumerate the Cartesian product of `BUTTON_GROUPS`, the last group varying fastest. One more
token is the inventory key, which excludes all others. The environment decodes tokens to keys, and
the network's heads are built from the groups.
"""

from __future__ import annotations

import math

HOTBAR_KEYS: tuple[str, ...] = tuple(f"hotbar.{slot}" for slot in range(1, 10))

KEYS: tuple[str, ...] = (
    *("attack", "back", "forward", "jump", "left", "right", "sneak", "sprint", "use", "drop"),
    "inventory",
    *HOTBAR_KEYS,
)
"""Every key that a token can press, in VPT's order."""

BUTTON_GROUPS: dict[str, tuple[str, ...]] = {
    "hotbar": ("none", *HOTBAR_KEYS),
    "fore_back": ("none", "forward", "back"),
    "left_right": ("none", "left", "right"),
    "sprint_sneak": ("none", "sprint", "sneak"),
    "use": ("none", "use"),
    "drop": ("none", "drop"),
    "attack": ("none", "attack"),
    "jump": ("none", "jump"),
    "camera": ("none", "camera"),
}
"""Mutually exclusive choices, most significant group first."""

INVENTORY_TOKEN = math.prod(len(choices) for choices in BUTTON_GROUPS.values())
NUM_BUTTONS = INVENTORY_TOKEN + 1
"""Number of tokens: 8641."""
