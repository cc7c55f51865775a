"""The cursor of an open screen, which the camera moves."""

from __future__ import annotations

from rllib_minestudio.env.voxel.screens.geometry import WINDOW

PIXELS_PER_DEGREE = 2400.0 / 360.0
"""MineRL's scale: the mouse's way around a whole turn is 2400 pixels."""


class ScreenCursor:
    """A place in the window, in pixels; it starts at the centre.

    Attributes:
        x: From the left edge, 0 to 640.
        y: From the upper edge, 0 to 360.
    """

    def __init__(self) -> None:
        """Puts it at the centre."""
        self.centre()

    def centre(self) -> None:
        """Moves it to the window's middle, where every screen that opens has it."""
        self.x, self.y = WINDOW[0] / 2, WINDOW[1] / 2

    def turn(self, pitch: float, yaw: float) -> None:
        """Moves it by a turn of the camera, in degrees, as far as the window goes."""
        self.x = min(max(self.x + yaw * PIXELS_PER_DEGREE, 0.0), float(WINDOW[0]))
        self.y = min(max(self.y + pitch * PIXELS_PER_DEGREE, 0.0), float(WINDOW[1]))

    @property
    def pixel(self) -> tuple[int, int]:
        """The pixel that its tip is on."""
        return int(self.x), int(self.y)
