"""Demonstrations: episodes played by a scripted agent, for a network to imitate.

`recording` plays and writes them. `windows` cuts recorded episodes into training windows, which it
can arrange in parallel lanes.
"""

from rllib_minestudio.demonstrations.windows import (
    Window,
    WindowOptions,
    contents,
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
    "contents",
    "find_episodes",
    "open_episode",
    "shuffled",
    "side_by_side",
    "stack",
    "stream",
    "whole_episodes",
    "windows",
]
