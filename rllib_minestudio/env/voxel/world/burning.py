"""What burns, and where fire is or may spread, as in Minecraft Java 1.16 (`FireBlock`).

A row of `data/flammable.csv` has two odds of some kinds of blocks: that fire beside one spreads,
and that the block burns away.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, BLOCKS, LARGEST_KIND
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, block_index

FIRE = BLOCK_ID["fire"]
SPREADS = (3, 6, 3)
"""Cells to which a fire may spread: one column to each side, from one below to four up."""
_INSET = 0.001
"""Fire less than this far inside a body does not touch it."""


def _read() -> dict[int, tuple[int, int]]:
    found = {}
    for row in read_csv("flammable.csv"):
        patterns = row["kinds"].split()
        for kind, block in enumerate(BLOCKS):
            if any(fnmatchcase(block.name, pattern) for pattern in patterns):
                found[kind] = int(row["ignites"]), int(row["burns"])
    return found


FLAMMABLE = _read()
"""What burns: kind -> (odds that it is set on fire, odds that it burns away)."""

_IGNITES = np.zeros(LARGEST_KIND + 1, np.int64)
_IGNITES[list(FLAMMABLE)] = [ignites for ignites, _ in FLAMMABLE.values()]


@kernel(allocates=False)
def _kind_at(blocks: NDArray[np.uint16], x: int, y: int, z: int) -> int:
    if y < 0 or y >= HEIGHT:
        return AIR
    return kind_of(blocks[block_index(x, y, z)])


@kernel(allocates=False)
def _odds_at(blocks: NDArray[np.uint16], x: int, y: int, z: int) -> int:
    """How easily a cell is set on fire: by the neighbour that burns best; 0 if it is not empty."""
    if y < 0 or y >= HEIGHT or _kind_at(blocks, x, y, z) != AIR:
        return 0
    odds = _IGNITES[_kind_at(blocks, x - 1, y, z)]
    odds = max(odds, _IGNITES[_kind_at(blocks, x + 1, y, z)])
    odds = max(odds, _IGNITES[_kind_at(blocks, x, y - 1, z)])
    odds = max(odds, _IGNITES[_kind_at(blocks, x, y + 1, z)])
    odds = max(odds, _IGNITES[_kind_at(blocks, x, y, z - 1)])
    return max(odds, _IGNITES[_kind_at(blocks, x, y, z + 1)])


@kernel(allocates=False)
def ignition_odds(
    blocks: NDArray[np.uint16], x: int, y: int, z: int, odds: NDArray[np.int64]
) -> bool:
    """Write how easily each cell around a fire at (x, y, z) is set on fire.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        x: Column of the fire.
        y: Its layer.
        z: Its row.
        odds: int64 `SPREADS`, by dx + 1, dy + 1, dz + 1, overwritten; 0 for the fire itself.

    Returns:
        Whether any of them is not 0.
    """
    found = False
    for i in range(3):
        for j in range(6):
            for k in range(3):
                odds[i, j, k] = _odds_at(blocks, x + i - 1, y + j - 1, z + k - 1)
                found = found or odds[i, j, k] > 0
    return found


@kernel(allocates=False)
def is_in_fire(
    blocks: NDArray[np.uint16], position: NDArray[np.float64], half: float, height: float
) -> bool:
    """Whether a body touches fire.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        position: The feet.
        half: Half the side of the body's footprint.
        height: Its height.
    """
    inset = half - _INSET
    low, high = (
        int64(np.floor(position[1] + _INSET)),
        int64(np.floor(position[1] + height - _INSET)),
    )
    for x in range(int64(np.floor(position[0] - inset)), int64(np.floor(position[0] + inset)) + 1):
        for z in range(
            int64(np.floor(position[2] - inset)), int64(np.floor(position[2] + inset)) + 1
        ):
            for y in range(low, high + 1):
                if _kind_at(blocks, x, y, z) == FIRE:
                    return True
    return False
