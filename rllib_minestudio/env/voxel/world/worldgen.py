"""How a chunk is made, from the seed alone: the order of the steps, as in Minecraft's generator.

The ground of each biome with its colours comes first, and snow last; biomes and heights are in
`climate`. Each step reads and writes blocks of this chunk alone: what begins in the chunks around
it, such as veins and trees, follows from the seed as well.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world import caves, cell_bits, trees, tunnels, vegetation
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.caves import VeinShapes
from rllib_minestudio.env.voxel.world.climate import (
    BIOMES,
    DESERT,
    HIGHEST_PEAK,
    MOUNTAINS,
    ROW_NOISES,
    SNOWY_TUNDRA,
    find_land,
    hash_place,
    land_at,
    noise,
)
from rllib_minestudio.env.voxel.world.column_bits import Bits
from rllib_minestudio.env.voxel.world.trees import HIGHEST_TIP
from rllib_minestudio.env.voxel.world.tunnels import Burrows

_SOIL_DEPTH = 3
_SNOW_LINE, _SNOW_LINE_SPREAD = 90.0, 8.0
"""On mountains, snow lies from a layer between these two up: Minecraft's air is 0.05 / 30 colder in
each layer above 64, give or take 4 layers, and snow falls below 0.15; mountains have 0.2."""
_BARE, _GRAVELLY = 0.66, 0.16
"""On mountains, a noise above the one leaves bare stone, below the other there is gravel."""
_BARE_ABOVE, _BARER = 80, 0.008
"""Above this layer mountains are barer by so much with each."""

_BLEND = 2
"""Near a border, a column may have the colours of one that is so many columns away."""
SNOWY = len(BIOMES)
"""The tint of a column of grass below snow, after those of all biomes."""

MANY_TINTS = -1
"""Instead of one tint, where columns have several."""

assert HIGHEST_PEAK + HIGHEST_TIP + 1 < HEIGHT, "snow on the highest tree is within the world"


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
) -> tuple[int, int, bool, int]:
    """Write the 16 x 16 columns of a chunk, in all layers.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        tints: The window's tints, uint8 [2**16]; see `Land`.
        hollow: Where the land is hollow, see `cell_bits`.
        burrows: The tunnels around that are known, updated.
        shapes: From `caves.find_shapes`.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.
        has_plants: Whether plants grow besides trees and cactus.

    Returns:
        A layer below which no plant grows, the highest layer with a block in it, whether snow lies
        in the chunk, and the tint of its columns, or `MANY_TINTS`.
    """
    high, tint = _fill_chunk(blocks, top, tints, chunk_x, chunk_z, seed)
    cell_bits.open_above(hollow, top, chunk_x, chunk_z)
    near = tunnels.spheres_near(burrows, chunk_x, chunk_z, seed)
    low = caves.carve(blocks, top, hollow, chunk_x, chunk_z, high, near)
    caves.grow_veins(blocks, chunk_x, chunk_z, seed, high + 1, shapes)
    caves.grow_emeralds(blocks, chunk_x, chunk_z, seed)
    high = max(high, trees.grow_trees(blocks, top, chunk_x, chunk_z, seed, near))
    if has_plants:
        high = max(high, vegetation.grow_plants(blocks, top, chunk_x, chunk_z, seed))
    snow = _lay_snow(blocks, top, tints, chunk_x, chunk_z, seed)
    return low, max(high, snow), snow > 0, tint if snow == 0 else MANY_TINTS


@kernel()
def _fill_chunk(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    tints: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    seed: int,
) -> tuple[int, int]:
    """Write the columns of a chunk, in all layers: solid ground, and air above.

    Arguments are those of `make_chunk`.

    Returns:
        The highest layer with a block in it, and the tint of all columns, or `MANY_TINTS`.
    """
    highest = 0
    x0, z0 = chunk_x * CHUNK, chunk_z * CHUNK
    is_mixed = False
    land, noises = np.empty((2, CHUNK), np.int64), np.empty((ROW_NOISES, CHUNK))
    for x in range(x0, x0 + CHUNK):
        find_land(land, noises, x, z0, seed)
        for z in range(z0, z0 + CHUNK):
            biome, height = land[:, z - z0]
            start, column = block_index(x, 0, z), column_index(x, z)
            _fill_column(blocks[start : start + HEIGHT], x, z, biome, height, seed)
            top[column], tints[column] = height, biome
            highest = max(highest, height)
            is_mixed |= biome != tints[column_index(x0, z0)]
    if is_mixed:
        _blend(tints, x0, z0, seed)
        return highest, MANY_TINTS
    return highest, int64(tints[column_index(x0, z0)])


@kernel()
def _blend(tints: NDArray[np.uint8], x0: int, z0: int, seed: int) -> None:
    """Mix the tints of a chunk with more than one biome, each with one near by.

    Minecraft gives a column the mean of the 25 around it (`biomeBlendRadius` 2). Here it has the
    colour of one of them, so that from afar the mean is the same.
    """
    own = np.empty((CHUNK, CHUNK), np.uint8)
    for i in range(CHUNK):
        for k in range(CHUNK):
            own[i, k] = tints[column_index(x0 + i, z0 + k)]
    span = 2 * _BLEND + 1
    for i in range(CHUNK):
        for k in range(CHUNK):
            dice = int64(hash_place(x0 + i, z0 + k, seed + 21))
            near_i = min(max(i + dice % span - _BLEND, 0), CHUNK - 1)
            near_k = min(max(k + (dice >> 8) % span - _BLEND, 0), CHUNK - 1)
            tints[column_index(x0 + i, z0 + k)] = own[near_i, near_k]


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
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    tints: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    seed: int,
) -> int:
    """Lay a layer of snow on the tundra and on high mountains, where nothing grows in its place.

    Arguments are those of `make_chunk`.

    Returns:
        The highest layer with snow in it, 0 if there is none.
    """
    x0, z0 = chunk_x * CHUNK, chunk_z * CHUNK
    is_cold = False
    for x in range(x0, x0 + CHUNK):
        for z in range(z0, z0 + CHUNK):
            column = column_index(x, z)
            is_cold |= tints[column] == SNOWY_TUNDRA or top[column] + 1 >= _SNOW_LINE
    if not is_cold:
        return 0
    highest = 0
    for x in range(x0, x0 + CHUNK):
        for z in range(z0, z0 + CHUNK):
            column, biome = column_index(x, z), land_at(x, z, seed)[0]
            y = int64(top[column]) + 1
            if biome == MOUNTAINS:
                line = _SNOW_LINE + noise(x * 0.125, z * 0.125, seed + 20) * _SNOW_LINE_SPREAD
                lies = y >= line
            else:
                lies = biome == SNOWY_TUNDRA
            index = block_index(x, y, z)
            if lies and blocks[index] == b.AIR and blocks[index - 1] != b.LAVA:
                blocks[index] = b.SNOW
                top[column] = y
                highest = max(highest, y)
                if blocks[index - 1] == b.GRASS_BLOCK:
                    tints[column] = SNOWY
    return highest
