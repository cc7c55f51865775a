"""Info keys by which an environment tells how an episode goes, and what it looks like."""

from __future__ import annotations

TASK = "task"
"""The name of the episode's task."""
SUCCESS = "success"
"""Whether the task is solved; what the last step says counts."""
ENGINE_ERROR = "engine_error"
"""Why `MineStudioEnv` truncated the episode before its time, in one line."""
POV = "pov"
"""The frame as the game drew it, before it was scaled to an observation."""
