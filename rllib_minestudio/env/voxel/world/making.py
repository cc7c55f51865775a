"""How the blocks of a chunk are made: the order of the steps, as in Minecraft's world generator.

Each step reads and writes blocks of this chunk alone. What begins in the chunks around it, such as
veins and trees, follows from the seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import (
    caves,
    hollows,
    trees,
    tunnels,
    vegetation,
    veins,
    worldgen,
)
from rllib_minestudio.env.voxel.world.column_bits import Bits
from rllib_minestudio.env.voxel.world.tunnels import Burrows
from rllib_minestudio.env.voxel.world.veins import VeinShapes


@kernel()
def make_chunk(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    tints: NDArray[np.uint8],
    hollow: Bits,
    burrows: Burrows,
    shapes: VeinShapes,
    chunk_x: int,
    chunk_z: int,
    seed: int,
    has_plants: bool,
) -> tuple[int, int, bool]:
    """Write the 16 x 16 columns of a chunk, in all layers.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        tints: The window's tints, uint8 [2**16]; see `Land`.
        hollow: Where the land is hollow, see `hollows`.
        burrows: The tunnels around that are known, updated.
        shapes: From `veins.find_shapes`.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.
        has_plants: Whether plants grow besides trees and cactus.

    Returns:
        A layer below which no plant grows, the highest layer with a block in it, and whether snow
        lies in the chunk.
    """
    high = worldgen.fill_chunk(blocks, top, tints, chunk_x, chunk_z, seed)
    hollows.open_above(hollow, top, chunk_x, chunk_z)
    near = tunnels.spheres_near(burrows, chunk_x, chunk_z, seed)
    low = caves.carve(blocks, top, hollow, chunk_x, chunk_z, high, near)
    veins.grow_veins(blocks, chunk_x, chunk_z, seed, high + 1, shapes)
    veins.grow_emeralds(blocks, chunk_x, chunk_z, seed)
    high = max(high, trees.grow_trees(blocks, top, chunk_x, chunk_z, seed, near))
    if has_plants:
        high = max(high, vegetation.grow_plants(blocks, top, chunk_x, chunk_z, seed))
    snow = worldgen.lay_snow(blocks, top, tints, chunk_x, chunk_z, seed)
    return low, max(high, snow), snow > 0
