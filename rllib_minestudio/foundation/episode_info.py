"""Keys of an environment's infos that describe the course of an episode, and its frames."""

from __future__ import annotations

TASK = "task"
"""The name of the episode's task."""
SUCCESS = "success"
"""Whether the task is solved; the last step's value counts."""
ENGINE_ERROR = "engine_error"
"""Why `MineStudioEnv` truncated the episode early, in one line."""
RESET_ERROR = "reset_error"
"""Why `MineStudioEnv` built a new engine before the episode could begin, in one line."""
POV = "pov"
"""The frame as rendered by the game, before it was scaled to an observation."""
