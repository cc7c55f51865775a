"""The camera: one flat float32 vector that every kernel reads.

The eye is split into a block column (exact integers, any distance from the origin) and the
position inside it. Kernels only see offsets of a few dozen blocks, so a frame 30,000,000 blocks
away is as sharp as one at the origin.

Rays are `forward + sx * right + sy * up` with `sx`, `sy` on a plane one block ahead, so the
ray parameter t is the planar depth in blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numba import int32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel

# Indices into the camera vector.
EYE_X, EYE_Y, EYE_Z = 0, 1, 2  # eye inside its block column (x, z in 0..1); y in the world
FORWARD, RIGHT, UP = 3, 6, 9  # three unit vectors
STEP_X, STEP_Y = 12, 13  # size of a window's pixel on the plane one block ahead
VIEW = 14  # view distance in blocks
MIP_DEPTH = 15  # depth from which the second mip level is used; each further level doubles it
FOG_RGB, SKY_RGB = 16, 19  # of the fog, and of the sky overhead, 0..255
FOG_START, FOG_SCALE = 22, 23  # fog = (distance / view - start) * scale, clipped to 0..1
LIGHT = 24  # RGB factors by the byte of a cell's light, see `light.light_map`
LEVELS = 16  # of each of the two lights
BELOW_RGB = LIGHT + 3 * LEVELS**2  # of what lies below the horizon
HOUR_RGB = BELOW_RGB + 3  # of the hour's fog, which FOG_RGB is mixed from
GLOW_RGB, GLOW_ALPHA = HOUR_RGB + 3, HOUR_RGB + 6  # of sunrise and sunset; alpha is 0 otherwise
SUN_SIDE = GLOW_ALPHA + 1  # 1 in the morning, when the sun is in the east (+x), else -1
SKY_SHARE = GLOW_ALPHA + 2  # of the sky's colour in the fog's
DOME = GLOW_ALPHA + 3  # how far the fog rises into the sky, see `sky.show_sky`
CLOUDS_RGB = GLOW_ALPHA + 4  # of the clouds' upper sides
IS_CLEAR = CLOUDS_RGB + 3  # 1 by day, when nothing shines through the fog along the horizon
CAMERA_SIZE = IS_CLEAR + 1

# Terrain fades into the fog over the last quarter of the view distance, as in Minecraft 1.16.
FOG_BEGIN = 0.75

WIDEST = 165.0
"""Degrees; Minecraft's widest field of view, 110, at its widest, 1.5 times that."""

# Not bit-identical from one compilation to the next, so never used by the simulation.
render_kernel = kernel(fastmath=True, allocates=False)
# For what runs for each tile or ray: inlined, as each array is seven words to hand over, and LLVM
# itself inlines nothing into kernels as large as the terrain's.
inlined_kernel = kernel(fastmath=True, allocates=False, inline="always")
# For those that create arrays, to work in.
scratch_kernel = kernel(fastmath=True)

Bytes = NDArray[np.uint8]
Shorts = NDArray[np.uint16]
Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Words = NDArray[np.uint32]


@inlined_kernel
def either(bits: int, more: int) -> int:
    """The bits of both in 32 bits: `|` of numba gives 64, and a loop with those is half as fast."""
    return int32(int32(bits) | int32(more))


@render_kernel
def orient(camera: Floats, yaw: float, pitch: float) -> None:
    """Write the camera's three axes for Minecraft's angles.

    Args:
        camera: The camera vector, float32 (CAMERA_SIZE,).
        yaw: Degrees; 0 looks to +z (south), 90 to -x (west).
        pitch: Degrees; positive looks down.
    """
    sin_yaw = math.sin(math.radians(yaw))
    cos_yaw = math.cos(math.radians(yaw))
    sin_pitch = math.sin(math.radians(pitch))
    cos_pitch = math.cos(math.radians(pitch))
    camera[FORWARD] = -sin_yaw * cos_pitch
    camera[FORWARD + 1] = -sin_pitch
    camera[FORWARD + 2] = cos_yaw * cos_pitch
    camera[RIGHT] = -cos_yaw
    camera[RIGHT + 1] = 0.0
    camera[RIGHT + 2] = -sin_yaw
    camera[UP] = -sin_yaw * sin_pitch
    camera[UP + 1] = cos_pitch
    camera[UP + 2] = cos_yaw * sin_pitch


@dataclass
class Camera:
    """A pinhole camera whose window may squeeze the view, as MineStudio's square observations do.

    Attributes:
        width: Pixels per row of the window.
        height: Rows of the window.
        fov_degrees: Vertical field of view of a player who walks.
        aspect: Width over height of the *view*, whatever the frame's own aspect.
        view_distance: In blocks.
    """

    width: int
    height: int
    fov_degrees: float
    aspect: float
    view_distance: float
    vector: Floats = field(init=False, repr=False)
    column_x: int = field(init=False, default=0)
    column_z: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Fill in what does not change from frame to frame."""
        camera = self.vector = np.zeros(CAMERA_SIZE, np.float32)
        camera[VIEW] = self.view_distance
        camera[FOG_START] = FOG_BEGIN
        camera[FOG_SCALE] = 1 / (1 - FOG_BEGIN)
        self.widen(0.0)

    def widen(self, gain: float) -> float:
        """Widen the field of view.

        Args:
            gain: Share of `fov_degrees` to add to it; it does not grow beyond `WIDEST`.

        Returns:
            Half the height of the view one block ahead.
        """
        degrees = min(self.fov_degrees * (1 + gain), max(WIDEST, self.fov_degrees))
        half_height = math.tan(math.radians(degrees) / 2)
        camera = self.vector
        camera[STEP_X] = 2 * half_height * self.aspect / self.width
        camera[STEP_Y] = 2 * half_height / self.height
        # A texel (1/16 block) is one pixel wide at depth 1 / (16 * step).
        camera[MIP_DEPTH] = 1 / (16 * math.sqrt(float(camera[STEP_X]) * float(camera[STEP_Y])))
        return half_height

    def place(self, x: float, y: float, z: float, yaw: float, pitch: float) -> None:
        """Move the eye to (x, y, z) in the world and turn it, with angles as in `orient`."""
        self.column_x, self.column_z = math.floor(x), math.floor(z)
        self.vector[EYE_X] = x - self.column_x
        self.vector[EYE_Y] = y
        self.vector[EYE_Z] = z - self.column_z
        orient(self.vector, yaw, pitch)
