"""Terrain: the ground of each biome, its ores, trees and snow, from the seed alone.

Biomes and heights are in `climate`, trees in `trees`; what else grows is in `vegetation`.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.climate import (
    DESERT,
    HIGHEST_PEAK,
    MOUNTAINS,
    SNOWY_TUNDRA,
    hash_place,
    land_at,
    noise,
)
from rllib_minestudio.env.voxel.world.trees import HIGHEST_TIP, grow_trees

_SOIL_DEPTH = 3
_SNOW_LINE, _SNOW_LINE_SPREAD = 90.0, 8.0
"""On mountains, snow lies from a layer between these two up: Minecraft's air is 0.05 / 30 colder in
each layer above 64, give or take 4 layers, and snow falls below 0.15; mountains have 0.2."""
_BARE, _GRAVELLY = 0.62, 0.16
"""On mountains, a noise above the one leaves bare stone, below the other there is gravel."""
_BARE_ABOVE, _BARER = 80, 0.012
"""Above this layer mountains are barer by so much with each."""

assert HIGHEST_PEAK + HIGHEST_TIP + 1 < HEIGHT, "snow on the highest tree is within the world"


@kernel()
def generate_chunk(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], chunk_x: int, chunk_z: int, seed: int
) -> tuple[int, int]:
    """Write the 16 x 16 columns of a chunk, in all layers.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.

    Returns:
        The lowest layer that is not entirely solid, and the highest layer with a block in it.
    """
    lowest = HEIGHT - 1
    highest = 0
    is_cold = False
    for x in range(chunk_x * CHUNK, (chunk_x + 1) * CHUNK):
        for z in range(chunk_z * CHUNK, (chunk_z + 1) * CHUNK):
            biome, height = land_at(x, z, seed)
            start = block_index(x, 0, z)
            _fill_column(blocks[start : start + HEIGHT], x, z, biome, height, seed)
            top[column_index(x, z)] = height
            lowest = min(lowest, height + 1)
            highest = max(highest, height)
            is_cold |= biome == SNOWY_TUNDRA or height >= _SNOW_LINE - HIGHEST_TIP
    highest = max(highest, grow_trees(blocks, top, chunk_x, chunk_z, seed))
    if is_cold:
        highest = max(highest, _lay_snow(blocks, top, chunk_x, chunk_z, seed))
    return lowest, highest


@kernel()
def _fill_column(
    column: NDArray[np.uint16], x: int, z: int, biome: int, height: int, seed: int
) -> None:
    surface, soil = _ground_of(biome, x, z, height, seed)
    column[0] = b.BEDROCK
    column[1 : height - _SOIL_DEPTH] = b.STONE
    column[height - _SOIL_DEPTH : height] = soil
    if biome == DESERT:
        column[height - _SOIL_DEPTH - 2 : height - _SOIL_DEPTH] = b.SANDSTONE
    column[height] = surface
    column[height + 1 :] = b.AIR
    ore = hash_place(x, z, seed + 5)
    depth = int64((ore >> uint32(8)) % uint32(height - 12))
    if ore & uint32(31) == 0:
        column[4 + depth] = b.COAL_ORE
    elif ore & uint32(31) == 1:
        column[4 + depth * 3 // 4] = b.IRON_ORE
    elif ore & uint32(1023) == 2:
        column[4 + depth % 11] = b.DIAMOND_ORE


@kernel(inline="always")
def _ground_of(biome: int, x: int, z: int, height: int, seed: int) -> tuple[int, int]:
    """The highest block of the ground, and the blocks below it."""
    if biome == DESERT:
        return b.SAND, b.SAND
    if biome == MOUNTAINS:
        rock = noise(x * 0.05, z * 0.05, seed + 19)
        if rock + max(height - _BARE_ABOVE, 0) * _BARER > _BARE:
            return b.STONE, b.STONE
        if rock < _GRAVELLY:
            return b.GRAVEL, b.GRAVEL
    return b.GRASS_BLOCK, b.DIRT


@kernel()
def _lay_snow(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], chunk_x: int, chunk_z: int, seed: int
) -> int:
    """Lay a layer of snow on the tundra and on high mountains; return the highest one's y."""
    highest = 0
    for x in range(chunk_x * CHUNK, (chunk_x + 1) * CHUNK):
        for z in range(chunk_z * CHUNK, (chunk_z + 1) * CHUNK):
            biome, _ = land_at(x, z, seed)
            if biome != SNOWY_TUNDRA and biome != MOUNTAINS:
                continue
            column = column_index(x, z)
            y = int64(top[column]) + 1
            if biome == MOUNTAINS:
                line = _SNOW_LINE + noise(x * 0.125, z * 0.125, seed + 20) * _SNOW_LINE_SPREAD
                if y < line:
                    continue
            blocks[block_index(x, y, z)] = b.SNOW
            top[column] = y
            highest = max(highest, y)
    return highest
