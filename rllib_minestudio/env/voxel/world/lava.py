"""What lava does to those who are in it, as in Minecraft Java 1.16; here it is still.

Lava has no body: one sinks into it, slowly. All numbers are the game's, from memory.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.physics import GRAVITY

DAMAGE = 4.0
"""Health points of a hit by lava, due each tick; invulnerability prevents most of them."""
SWIMMING_DEPTH = 0.4
"""Depth, in blocks, from which one swims in it instead of standing on its ground."""
RISE = 0.04
"""Speed upwards that the jump key adds in a tick to one who swims, in blocks per tick."""
LEAP = 0.3
"""Speed upwards of one who runs into its bank, with room above that."""
FALL_KEPT = 0.5
"""Share of the height fallen that is left after each tick in it."""

_SURFACE = 8.0 / 9.0
"""Height of lava in a block, unless there is lava above."""
_INSIDE = 0.001
"""Lava less than this far inside a body does not touch it."""
_KEPT, _KEPT_SHALLOW = 0.5, 0.8
"""Share of the velocity that is left after a tick; and of that up or down in shallow lava."""
_SINKING = GRAVITY / 4.0


@kernel(allocates=False)
def depth_in_lava(
    blocks: NDArray[np.uint16], position: NDArray[np.float64], half: float, height: float
) -> float:
    """How far lava rises above the feet of a body that touches it, in blocks; 0 if none does.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        position: The feet.
        half: Half the side of the body's footprint.
        height: Its height.
    """
    depth, inset, feet = 0.0, half - _INSIDE, position[1] + _INSIDE
    low, high = int64(np.floor(feet)), int64(np.floor(position[1] + height - _INSIDE))
    for x in range(int64(np.floor(position[0] - inset)), int64(np.floor(position[0] + inset)) + 1):
        for z in range(
            int64(np.floor(position[2] - inset)), int64(np.floor(position[2] + inset)) + 1
        ):
            for y in range(max(low, 0), min(high, HEIGHT - 1) + 1):
                if kind_of(blocks[block_index(x, y, z)]) != b.LAVA:
                    continue
                is_below = y + 1 < HEIGHT and kind_of(blocks[block_index(x, y + 1, z)]) == b.LAVA
                depth = max(depth, y + (1.0 if is_below else _SURFACE) - feet)
    return depth


@kernel(allocates=False)
def is_in_lava(blocks: NDArray[np.uint16], position: NDArray[np.float64]) -> bool:
    """Whether the feet are in a block of lava."""
    y = int64(np.floor(position[1]))
    if not 0 <= y < HEIGHT:
        return False
    x, z = int64(np.floor(position[0])), int64(np.floor(position[2]))
    return kind_of(blocks[block_index(x, y, z)]) == b.LAVA


@kernel(allocates=False)
def slow_down(velocity: NDArray[np.float64], depth: float) -> None:
    """End a tick of motion in lava: drag instead of the air's, and slow sinking."""
    velocity[0] *= _KEPT
    velocity[2] *= _KEPT
    if depth > SWIMMING_DEPTH:
        velocity[1] = velocity[1] * _KEPT - _SINKING
    else:
        velocity[1] = velocity[1] * _KEPT_SHALLOW - _SINKING - GRAVITY / 16.0
