"""MineStudio's info as plain Python: no arrays, no default dictionaries, nothing unpicklable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from rllib_minestudio.plain_values import plain

_OF_ARRAYS = ("equipped_items", "location_stats")
"""What MineStudio's handlers tell in arrays without dimensions; the rest is as JSON gave it."""


def plain_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the handlers read, in plain objects; shares nothing that they keep."""
    told = {}
    for key, value in info.items():
        if key in _OF_ARRAYS:
            value = plain(value)
        elif isinstance(value, defaultdict):  # statistics
            value = dict(value)
        told[key] = value
    return told
