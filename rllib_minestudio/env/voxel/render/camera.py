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
from typing import NamedTuple

import numpy as np
from numba import int32, int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.entities.records import HURT_TICKS
from rllib_minestudio.env.voxel.kernels import kernel, shared_with_kernels
from rllib_minestudio.env.voxel.player.player import STANDING_EYES, Player
from rllib_minestudio.env.voxel.world.box_field import WINDOW
from rllib_minestudio.env.voxel.world.light_field import light_at

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


# ------------------------ layout of the scratch memory in which a tile of rays advances in lockstep
# One flat array per type, one row of `LANES` values per quantity: constant offsets into a single
# array let LLVM see that the rows do not overlap, and so vectorise.

TILE_BITS = 3
TILE = 1 << TILE_BITS
LANES = TILE * TILE
(
    DIR_X, DIR_Y, DIR_Z,  # ray direction
    INV_X, INV_Y, INV_Z,  # its reciprocal
    ORG_X, ORG_Y, ORG_Z,  # nudged origin
    CELL_X, CELL_Y, CELL_Z,  # block the ray is in
    T_NOW, T_MAX,  # ray parameter reached, and where the view ends
    RAY_X, RAY_Y,  # where the ray passes on the plane one block ahead
    POINT_X, POINT_Y, POINT_Z,  # where in its block the ray ends, 0 to 1
    FOG, DEPTH, OPENNESS,  # of what the ray shows
    LIGHT_R, LIGHT_G, LIGHT_B,  # light on what the ray shows
    LEVEL_ABOVE, GLOW_ABOVE,  # how far that is from one level of light to the next
    CLEAR, TINT_R, TINT_G, TINT_B,  # share of what is behind glass, and the glass' own colour
    FROM_EYE_X, FROM_EYE_Y, FROM_EYE_Z,  # from the eye to the cell's lowest corner
    MET_AT, BEYOND,  # where the ray enters and leaves the box that it meets
    ENTERED, INSIDE_UNTIL,  # where it entered the last one, and will have left all
    T_KEPT,  # where it enters the cell from which it goes on
    HELD_X, HELD_Y, HELD_Z, HELD_T,  # cell and parameter of those that have ended, see `hold`
) = [LANES * row for row in range(43)]  # fmt: skip
WAITING = 43 * LANES  # seven values of each ray of two tiles, see `see_through`
FLOAT_SCRATCH = WAITING + 7 * 2 * LANES
(
    BLOCK_INDEX, FIELD,  # block the ray is in, and its entry of the box field
    FACE, FRONT, TEXEL, COLUMN,  # side hit, cell in front of it, its texel, that cell's column
    FRONT_FIELD,  # entry of the box field of that cell
    RED, GREEN, BLUE,
    KEY, FACE_OF,  # number of the face hit, its place in the list of the tile's faces
    FACE_KEY, WORD, LEVEL, GLOW,  # of each face in that list, see `corner_light`
    BLOCK, LOOK,  # block that the ray has ended in, and its special look; see `see_through`
    MET, SEEN_FACE,  # what becomes of the ray in a special cell, and the face on which it ends
    MODEL, MODEL_KNOWN,  # the boxes in its cell, see `see_through`
    SIDE, SURFACE,  # face of the box that the ray meets, and whether it is seen
    TINTS, PASSED,  # number of texels and of special cells that the ray has passed
    PIXEL,  # where in the frame it is
    WAITS,  # the tile's rays that begin to wait
    HELD_INDEX,  # cell of those that have ended
) = [LANES * row for row in range(29)]  # fmt: skip
# Of each face in the list, the eight cells around the one in front of it.
NEIGHBOUR, AROUND = 29 * LANES, 37 * LANES
WAITING_INTS = 45 * LANES  # three values of each ray of two tiles, see `see_through`
# Models of cells that rays have met, each in the one slot in which it may be.
MODELS_KNOWN = 2048
MODEL_CELL = WAITING_INTS + 3 * 2 * LANES
MODEL_IN_CELL = MODEL_CELL + MODELS_KNOWN
LIGHT_MAP = MODEL_IN_CELL + MODELS_KNOWN  # colour of each byte of light, kept from frame to frame
INT_SCRATCH = LIGHT_MAP + 256

SKY_DEPTH = np.float32(1e9)
NUDGE = np.float32(2e-4)
# Rays are never exactly parallel to an axis, so that no kernel divides by zero.
SMALLEST_SLOPE = np.float32(1e-6)
HALF, ONE, ZERO = np.float32(0.5), np.float32(1), np.float32(0)
INSIDE = 8
"""Bit of a face that is inside its cell, so that the cell in front of it is its own."""
# The eye's column inside the kernels' window.
CENTRE = WINDOW // 2


def new_scratch() -> tuple[Floats, Ints]:
    """Allocate the working memory of `render_terrain`; one pair per renderer."""
    return np.zeros(FLOAT_SCRATCH, np.float32), np.zeros(INT_SCRATCH, np.int32)


# --------------------------- where a frame is seen from, and how the view sways with steps and hits
# A frame shows Minecraft's partial tick 0 (`locomotion`): the eye is where it was a tick ago,
# and looks where it looks now.

SHIFT_X, SHIFT_Y = 0.5, 1.0
"""How far `bob` moves the view, in blocks."""
ROLL, NOD = 3.0, 5.0
"""How far `bob` turns it, in degrees."""
NOD_LAG = 0.2
"""Radians of the step by which the nod is late."""
HURT_ROLL = 14.0
"""Degrees. Minecraft 1.16 always tilts to the left: its client learns nothing of the attacker."""
FLICKERING_TICKS = 200
"""Ticks before its end from which night vision flickers."""
LOWERED = 0.6
"""How far below its place a hand is that is fully lowered, in blocks."""
POSE_STEPS = 48
"""Steps per block to which the places of a hand are rounded, so that those of a walking player are
soon all drawn: there are some twenty. In the game's window, half a step is three pixels."""

# What `_look` writes; those of a `HandPose` lie side by side, in its order.
COLUMN_X, COLUMN_Z, FOV_GAIN, SWING, DROP, ASIDE, RISE, HURT, HAND, CHARGE = range(3, 13)
SHINE, HEALTH, FOOD = range(13, 16)
SIZE = 16

Doubles = NDArray[np.float64]


@shared_with_kernels
def bobbing(bob: float, stride: float) -> tuple[float, float]:
    """How far the steps shift what is seen, to the right and upwards, in blocks."""
    phase = -stride * math.pi
    return SHIFT_X * math.sin(phase) * bob, -SHIFT_Y * abs(math.cos(phase) * bob)


@shared_with_kernels
def hurt_roll(hurt: float) -> float:
    """How far what is seen is rolled `hurt` ticks before the end of a hit, in degrees."""
    return -HURT_ROLL * math.sin((hurt / HURT_TICKS) ** 4 * math.pi)


@render_kernel
def _sway(bob: float, stride: float, hurt: int, matrix: Doubles) -> None:
    """Write the matrix (3, 4) from a still view to a swaying one, in view space.

    View space has x to the right, y up, and z towards the viewer. The formulas are those of
    `GameRenderer.bobView` and `bobHurt` of Minecraft Java 1.16.

    Args:
        bob: How much the view bobs, 0 to 0.1.
        stride: Phase of the steps.
        hurt: Ticks left of the reaction to a hit.
        matrix: float64 (3, 4), overwritten.
    """
    phase = -stride * math.pi
    nod = math.radians(NOD * abs(math.cos(phase - NOD_LAG) * bob))
    tilt = math.radians(hurt_roll(hurt))
    roll = tilt + math.radians(ROLL * math.sin(phase) * bob)
    x, y = bobbing(bob, stride)
    sin, cos = math.sin(roll), math.cos(roll)
    sin_nod, cos_nod = math.sin(nod), math.cos(nod)
    matrix[0, 0], matrix[0, 1], matrix[0, 2] = cos, -sin * cos_nod, sin * sin_nod
    matrix[1, 0], matrix[1, 1], matrix[1, 2] = sin, cos * cos_nod, -cos * sin_nod
    matrix[2, 0], matrix[2, 1], matrix[2, 2] = 0.0, sin_nod, cos_nod
    matrix[0, 3] = x * math.cos(tilt) - y * math.sin(tilt)
    matrix[1, 3] = x * math.sin(tilt) + y * math.cos(tilt)
    matrix[2, 3] = 0.0


@render_kernel
def _sway_camera(matrix: Doubles, camera: Floats, eye: Doubles) -> None:
    """Turn the camera's axes, and move the eye, as `_sway` says."""
    for axis in range(3):
        right, up, back = camera[RIGHT + axis], camera[UP + axis], -camera[FORWARD + axis]
        new_right = matrix[0, 0] * right + matrix[0, 1] * up + matrix[0, 2] * back
        new_up = matrix[1, 0] * right + matrix[1, 1] * up + matrix[1, 2] * back
        new_back = matrix[2, 0] * right + matrix[2, 1] * up + matrix[2, 2] * back
        # The world moves by the matrix's last column, so the eye moves the other way.
        eye[axis] -= matrix[0, 3] * new_right + matrix[1, 3] * new_up + matrix[2, 3] * new_back
        camera[RIGHT + axis] = new_right
        camera[UP + axis] = new_up
        camera[FORWARD + axis] = -new_back


@scratch_kernel
def _look(players: NDArray[np.void], light: Bytes, camera: Floats, seen: Doubles) -> None:
    """Move the camera to a player's eyes; write the eye and what else the frame depends on."""
    player = players[0]
    for axis in range(3):
        seen[axis] = player.position[axis] - player.moved[axis]
    seen[1] += STANDING_EYES - player.eye_drop_seen
    orient(camera, player.yaw, player.pitch)
    if player.bob_seen > 0.0 or player.hurt_ticks > 0:
        matrix = np.empty((3, 4), np.float64)
        _sway(player.bob_seen, player.stride, player.hurt_ticks, matrix)
        _sway_camera(matrix, camera, seen)
    seen[COLUMN_X], seen[COLUMN_Z] = math.floor(seen[0]), math.floor(seen[2])
    camera[EYE_X], camera[EYE_Y] = seen[0] - seen[COLUMN_X], seen[1]
    camera[EYE_Z] = seen[2] - seen[COLUMN_Z]
    seen[FOV_GAIN] = player.fov_gain_seen
    aside, rise = bobbing(player.bob_seen, player.stride)
    seen[SWING], seen[HURT] = player.swing_seen, player.hurt_ticks
    seen[DROP] = np.rint(player.hand_drop_seen * LOWERED * POSE_STEPS)
    seen[ASIDE], seen[RISE] = np.rint(aside * POSE_STEPS), np.rint(rise * POSE_STEPS)
    seen[HAND] = -1 if player.hand_item == player.held_item else player.hand_item
    charged = player.recharge_ticks * player.attack_speed / TICKS_PER_SECOND
    seen[CHARGE] = min(max(charged, 0.0), 1.0)
    x, y, z = int64(seen[COLUMN_X]), int64(math.floor(seen[1])), int64(seen[COLUMN_Z])
    seen[SHINE] = LIGHT + 3 * light_at(light, x, y, z)
    seen[HEALTH], seen[FOOD] = math.ceil(player.health), player.food


def night_vision(player: Player) -> float:
    """Return how well a player sees in the dark, 0 to 1; it flickers in its last ten seconds.

    As in `GameRenderer.getNightVisionScale` of Minecraft Java 1.16.
    """
    _, ticks = player.effects.get("night_vision", (0, 0))
    if ticks == 0 or ticks > FLICKERING_TICKS:
        return float(ticks > 0)
    return 0.7 + 0.3 * math.sin(0.2 * math.pi * ticks)


class HandPose(NamedTuple):
    """How a hand is held; equal poses give equal pictures.

    Bobbing shifts it. That it also turns, by half a degree at most, is left out.

    Attributes:
        swing: Progress of the arm's swing, 0 to 1.
        drop: How far the hand is lowered, in whole steps of 1 / `POSE_STEPS` blocks.
        aside: How far it bobs to the right, in such steps.
        rise: How far it bobs upwards.
        hurt: Ticks left of the reaction to a hit.
    """

    swing: float = 0.0
    drop: float = 0.0
    aside: float = 0.0
    rise: float = 0.0
    hurt: float = 0.0


class Viewpoint:
    """How a player sees the world, and what the display tells of the player.

    Attributes:
        eye: float64 (3,), position of the eye in the world.
        fov_gain: Share by which the field of view is wider than usual.
        pose: How the hand is held.
        hand: Item id that the hand shows, 0 for none; -1 for the one in the selected slot.
        charge: Share of a full attack that the bar below the crosshair shows.
        shine: Where in the camera vector the light at the eye is, which is that on the hand.
        health: Health points, rounded up, 0 to 20.
        food: Food level, 0 to 20.
    """

    def __init__(self, camera: Camera) -> None:
        """Prepare to move this camera."""
        self._camera = camera
        self._seen = np.zeros(SIZE)
        self.eye = self._seen[:3]
        self.fov_gain, self.pose, self.hand, self.charge = 0.0, HandPose(), -1, 1.0
        self.shine, self.health, self.food = LIGHT, 0, 0

    def follow(self, player: Player, light: Bytes) -> None:
        """Move the camera to a player's eyes, and read how the player sees.

        Args:
            player: The player.
            light: uint8 (2**23,), both levels of each cell, see `light_field`.
        """
        _look(player.records, light, self._camera.vector, self._seen)
        seen = self._seen.tolist()
        self._camera.column_x, self._camera.column_z = int(seen[COLUMN_X]), int(seen[COLUMN_Z])
        self.fov_gain, self.pose = seen[FOV_GAIN], HandPose._make(seen[SWING:HAND])
        self.hand, self.charge = int(seen[HAND]), seen[CHARGE]
        self.shine, self.health, self.food = map(int, seen[SHINE:])
