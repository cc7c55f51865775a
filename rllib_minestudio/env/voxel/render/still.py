"""The picture of a world in which nothing changes: behind a screen the player stands still."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.render.camera import Bytes, Camera, Floats
from rllib_minestudio.env.voxel.world.world import World


class StillPicture:
    """Terrain and sky as they were last drawn, for as long as they would be drawn the same.

    They follow from the world's blocks, from the camera and from the hour; animals, items, hand and
    display are drawn over them in every frame.
    """

    def __init__(self, pixels: int) -> None:
        """Begins without a picture, with the memory for one of `pixels` pixels."""
        self._of: tuple[World, bytes] | None = None
        # Written to at once, as the system gives out memory when it is first written to.
        self._drawn = np.full(3 * pixels, 255, np.uint8)
        self._depth = np.full(pixels, np.inf, np.float32)

    def repeat(self, world: World, camera: Camera, hour: int, drawn: Bytes, depth: Floats) -> bool:
        """Fills in the picture and its depth, if there is one.

        Args:
            world: The blocks.
            camera: Where they are seen from, and in which light.
            hour: Number of the present step of the sky.
            drawn: uint8 (h * w * 3,), receives the picture.
            depth: float32 (h * w,), receives the depth.

        Returns:
            Whether there was one; if not, `keep` it when it is drawn.
        """
        of = self._of
        if of is None or of[0] is not world or of[1] != _state(world, camera, hour):
            return False
        drawn[:] = self._drawn
        depth[:] = self._depth
        return True

    def keep(self, world: World, camera: Camera, hour: int, drawn: Bytes, depth: Floats) -> None:
        """Keeps a picture that has just been drawn; arguments as of `repeat`."""
        self._of = world, _state(world, camera, hour)
        self._drawn[:] = drawn
        self._depth[:] = depth


def _state(world: World, camera: Camera, hour: int) -> bytes:
    """All that the picture follows from, but for the world itself."""
    numbers = np.array((world.changes, camera.column_x, camera.column_z, hour), np.int64)
    return numbers.tobytes() + camera.vector.tobytes()
