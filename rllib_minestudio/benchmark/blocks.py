"""Blocks and items by shell pattern."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCKS
from rllib_minestudio.evaluation.filters.conditions import matches

__all__ = ["AIR", "BLOCK_NAMES", "matching_blocks"]

BLOCK_NAMES: tuple[str, ...] = tuple(block.name for block in BLOCKS)
"""Names of all blocks of Minecraft 1.16.5, by block id."""


@cache
def matching_blocks(pattern: str) -> NDArray[np.bool_]:
    """Return whether a block's name fits a shell pattern, by block id: bool [blocks]."""
    return np.array([matches(name, pattern) for name in BLOCK_NAMES])
