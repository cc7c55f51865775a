"""Where a frame is seen from, and how the view sways with steps and hits.

A frame shows Minecraft's partial tick 0 (see `player.view`): the eye is where it was a tick ago,
and looks where it looks now.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND
from rllib_minestudio.env.voxel.entities.records import HURT_TICKS
from rllib_minestudio.env.voxel.kernels import shared_with_kernels
from rllib_minestudio.env.voxel.player.player import STANDING_EYES, Player
from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FORWARD,
    RIGHT,
    UP,
    Camera,
    Floats,
    orient,
    render_kernel,
    scratch_kernel,
)

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

# What `_look` writes.
COLUMN_X, COLUMN_Z, FOV_GAIN, SWING, DROP, BOB, STRIDE, HURT, HAND, CHARGE = range(3, 13)
SIZE = 13

Doubles = NDArray[np.float64]


@shared_with_kernels
def bobbing(bob: float, stride: float) -> tuple[float, float]:
    """How far the steps shift what is seen, to the right and upwards, in blocks."""
    phase = -stride * math.pi
    return SHIFT_X * math.sin(phase) * bob, -SHIFT_Y * abs(math.cos(phase) * bob)


@shared_with_kernels
def hurt_roll(hurt: int) -> float:
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
def _look(players: NDArray[np.void], camera: Floats, seen: Doubles) -> None:
    """Move the camera to a player's eyes; write the eye and what else the view depends on."""
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
    seen[SWING], seen[DROP] = player.swing_seen, player.hand_drop_seen
    seen[BOB], seen[STRIDE], seen[HURT] = player.bob_seen, player.stride, player.hurt_ticks
    seen[HAND] = -1 if player.hand_item == player.held_item else player.hand_item
    charged = player.recharge_ticks * player.attack_speed / TICKS_PER_SECOND
    seen[CHARGE] = min(max(charged, 0.0), 1.0)


def night_vision(player: Player) -> float:
    """Return how well a player sees in the dark, 0 to 1; it flickers in its last ten seconds.

    As in `GameRenderer.getNightVisionScale` of Minecraft Java 1.16.
    """
    _, ticks = player.effects.get("night_vision", (0, 0))
    if ticks == 0 or ticks > FLICKERING_TICKS:
        return float(ticks > 0)
    return 0.7 + 0.3 * math.sin(0.2 * math.pi * ticks)


class Viewpoint:
    """How a player sees the world.

    Attributes:
        eye: float64 (3,), position of the eye in the world.
        fov_gain: Share by which the field of view is wider than usual.
        swing: Progress of the arm's swing, 0 to 1.
        drop: How far the hand is lowered, 0 to 1.
        bob: How much the view bobs, 0 to 0.1.
        stride: Phase of the steps.
        hurt: Ticks left of the reaction to a hit.
        hand: Item id that the hand shows, 0 for none; -1 for the one in the selected slot.
        charge: Share of a full attack that the bar below the crosshair shows.
    """

    def __init__(self, camera: Camera) -> None:
        """Prepare to move this camera."""
        self._camera = camera
        self._seen = np.zeros(SIZE)
        self.eye = self._seen[:3]
        self.fov_gain = self.swing = self.drop = self.bob = self.stride = 0.0
        self.hurt, self.hand, self.charge = 0, -1, 1.0

    def follow(self, player: Player) -> None:
        """Move the camera to the player's eyes, and read how the player sees."""
        _look(player.records, self._camera.vector, self._seen)
        seen = self._seen.tolist()
        self._camera.column_x, self._camera.column_z = int(seen[COLUMN_X]), int(seen[COLUMN_Z])
        self.fov_gain, self.swing, self.drop, self.bob, self.stride = seen[FOV_GAIN:HURT]
        self.hurt, self.hand, self.charge = int(seen[HURT]), int(seen[HAND]), seen[CHARGE]
