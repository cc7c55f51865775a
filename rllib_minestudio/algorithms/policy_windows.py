"""How demonstrations are cut for a policy: what it reads of them, at its size."""

from __future__ import annotations

from collections.abc import Mapping

from rllib_minestudio.demonstrations import WindowOptions
from rllib_minestudio.observations import IMAGE, Part


def window_options(parts: Mapping[str, Part], length: int, burn_in: int) -> WindowOptions:
    """Return how recorded episodes are cut for a policy.

    Args:
        parts: What it reads of observations (`RecurrentRLModule.observation_parts`).
        length: Steps to imitate.
        burn_in: Frames before them.
    """
    size = None
    if IMAGE in parts:
        height, width, _ = parts[IMAGE].shape
        size = (width, height)
    names = tuple(name for name in parts if name != IMAGE)
    return WindowOptions(length, burn_in, size, names)
