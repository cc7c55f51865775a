"""Demonstrations: episodes that a scripted agent plays, and what a network learns from them.

`recording` plays and writes them; `windows` cuts recorded episodes into pieces to imitate.
"""

from rllib_minestudio.demonstrations.sources import find_episodes, open_episode
from rllib_minestudio.demonstrations.windows import (
    Window,
    WindowOptions,
    check_parts,
    shuffled,
    stack,
    stream,
    windows,
)

__all__ = [
    "Window",
    "WindowOptions",
    "check_parts",
    "find_episodes",
    "open_episode",
    "shuffled",
    "stack",
    "stream",
    "windows",
]
