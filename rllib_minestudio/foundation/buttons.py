"""VPT's buttons: which keys exclude each other, and how one token names a choice from each group.

A token counts through the product of `BUTTON_GROUPS`, the last group fastest; one more token is the
inventory key, which excludes every other. The environment decodes tokens to keys; the network's
heads take the groups for what a token is made of.
"""

from __future__ import annotations

import math

HOTBAR_KEYS: tuple[str, ...] = tuple(f"hotbar.{slot}" for slot in range(1, 10))

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
