"""The cursor of a screen, as the player tracks it: it sees how far its own hand has moved."""

from __future__ import annotations

PIXELS_PER_DEGREE = 2400 / 360
"""MineRL's: a turn of the camera by a degree moves the cursor as far."""
WINDOW = (640, 360)
"""Width and height of the window in pixels."""


class Cursor:
    """Where the cursor is.

    Attributes:
        x: Pixels from the window's left.
        y: Pixels from its top.
    """

    def __init__(self) -> None:
        """Begin in the middle."""
        self.centre()

    def centre(self) -> None:
        """Go to the window's middle, where every screen that opens puts it."""
        self.x, self.y = WINDOW[0] / 2, WINDOW[1] / 2

    def move(self, pitch: float, yaw: float) -> None:
        """Follow a turn of the camera, in degrees, as far as the window goes."""
        self.x = min(max(self.x + yaw * PIXELS_PER_DEGREE, 0.0), float(WINDOW[0]))
        self.y = min(max(self.y + pitch * PIXELS_PER_DEGREE, 0.0), float(WINDOW[1]))

    def error_to(self, x: float, y: float) -> tuple[float, float]:
        """Degrees (pitch, yaw) that bring the cursor to a pixel."""
        return (y - self.y) / PIXELS_PER_DEGREE, (x - self.x) / PIXELS_PER_DEGREE
