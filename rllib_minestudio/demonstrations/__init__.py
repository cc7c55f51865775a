"""Demonstrations: episodes played by a scripted agent, for a network to imitate.

`recording` plays and writes them. `windows` cuts recorded episodes into training windows, which it
can arrange in parallel lanes.
"""

from rllib_minestudio.demonstrations.windows import (
    MineStudioWindows,
    Stretch,
    Window,
    WindowOptions,
    shuffled,
    side_by_side,
    stack,
    stream,
    stretches,
    whole_episodes,
    windows,
)
from rllib_minestudio.recordings.episodes import contents, find_episodes, open_episode, survey

__all__ = [
    "MineStudioWindows",
    "Stretch",
    "Window",
    "WindowOptions",
    "contents",
    "find_episodes",
    "open_episode",
    "shuffled",
    "side_by_side",
    "stack",
    "stream",
    "stretches",
    "survey",
    "whole_episodes",
    "windows",
]
