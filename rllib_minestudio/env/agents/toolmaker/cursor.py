"""The cursor of a screen, as the player tracks it: it sees how far its own hand has moved."""

from __future__ import annotations

from rllib_minestudio.env.voxel.screens import cursor
from rllib_minestudio.env.voxel.screens.cursor import PIXELS_PER_DEGREE


class TrackedCursor(cursor.ScreenCursor):
    """Where the cursor is, if every turn of the hand moves it as in the game."""

    def error_to(self, x: float, y: float) -> tuple[float, float]:
        """Degrees (pitch, yaw) that bring the cursor to a pixel."""
        return (y - self.y) / PIXELS_PER_DEGREE, (x - self.x) / PIXELS_PER_DEGREE
