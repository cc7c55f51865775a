"""How the arm, or the item in hand, stands before the eye while the arm swings.

The poses are those of Minecraft 1.16's first-person view: its chain of translations and rotations
(view space: x right, y up, z towards the viewer, in blocks) with the display settings of handheld
items (turn -90 about y, 25 about z, scale 0.68) and of blocks (turn 45, scale 0.4).
"""

from __future__ import annotations

import math

import numpy as np

from rllib_minestudio.env.voxel.render.block_rays import Matrix, X, Y, Z, scale, shift, turn

# Minecraft holds items at (0.56, -0.52, -0.72), where the tip of a sword is out of the picture; a
# little further away the whole blade is seen.
ITEM_PLACE = (0.58, -0.52, -0.92)


def item_pose(swing: float, is_flat: bool) -> Matrix:
    """From the unit cube of an item in hand to view space.

    Args:
        swing: Progress of the arm's swing, 0..1.
        is_flat: Whether the item is a picture and not a block.
    """
    strong = math.sin(math.sqrt(swing) * math.pi)
    late = math.sin(swing * swing * math.pi)
    arm = (
        shift(-0.4 * strong, 0.2 * math.sin(math.sqrt(swing) * 2 * math.pi), 0.0)
        @ shift(0.0, 0.0, -0.2 * math.sin(swing * math.pi))
        @ shift(*ITEM_PLACE)
        @ turn(Y, 45 - 20 * late)
        @ turn(Z, -20 * strong)
        @ turn(X, -80 * strong)
        @ turn(Y, -45)
    )
    if is_flat:
        display = shift(1.13 / 16, 3.2 / 16, 1.13 / 16) @ turn(Y, -90) @ turn(Z, 25) @ scale(0.68)
    else:
        display = turn(Y, 45) @ scale(0.4)
    return arm @ display @ shift(-0.5, -0.5, -0.5)


def arm_pose(swing: float) -> Matrix:
    """From the bare arm's unit cube (y from the shoulder to the hand) to view space.

    Args:
        swing: Progress of the arm's swing, 0..1.
    """
    root = math.sqrt(swing)
    strong = math.sin(root * math.pi)
    return (
        shift(
            0.64 - 0.3 * strong,
            -0.6 + 0.4 * math.sin(root * 2 * math.pi),
            -0.72 - 0.4 * math.sin(swing * math.pi),
        )
        @ turn(Y, 45 + 70 * strong)
        @ turn(Z, -20 * math.sin(swing * swing * math.pi))
        @ shift(-1.0, 3.6, 3.5)
        @ turn(Z, 120)
        @ turn(X, 200)
        @ turn(Y, -135)
        @ shift(5.6, 0.0, 0.0)
        # The right arm of the player's model: 4 x 12 x 4 pixels from (-8, 0, -2).
        @ shift(-8 / 16, 0.0, -2 / 16)
        @ np.diag([4 / 16, 12 / 16, 4 / 16, 1.0])
    )
