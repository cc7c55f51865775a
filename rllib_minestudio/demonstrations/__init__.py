"""Demonstrations: episodes that a scripted agent plays, and what a network learns from them.

`recording` plays and writes them; `windows` cuts recorded episodes into pieces to imitate, which
`lanes` can put side by side.
"""

from rllib_minestudio.demonstrations.windows import (
    Window,
    WindowOptions,
    find_episodes,
    open_episode,
    shuffled,
    side_by_side,
    stack,
    stream,
    whole_episodes,
    windows,
)

__all__ = [
    "Window",
    "WindowOptions",
    "find_episodes",
    "open_episode",
    "shuffled",
    "side_by_side",
    "stack",
    "stream",
    "whole_episodes",
    "windows",
]
