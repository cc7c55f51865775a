"""Terrain: gentle hills, biomes, trees and cactus, from the seed alone.

What else grows on it is in `vegetation`.

Everything at a place follows from hashes of its coordinates, so chunks come out the same in any
order and at any distance from the origin. Kernels are compiled without fastmath: the same bits
everywhere.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index

BIOMES: tuple[str, ...] = ("plains", "forest", "desert")
"""Names of all biomes; kernels know them by index."""
PLAINS, FOREST, DESERT = range(3)

_BASE_HEIGHT = 63.0
_SOIL_DEPTH = 3
_TREE_CELL = 6
"""Side, in columns, of the cells that may hold one tree each."""
_TREE_CHANCE = np.array([4, 170, 40], np.int64)
"""Chance, out of 256, of a tree (in the desert, a cactus) in a cell, by biome.

Minecraft's hundred tries for a cactus in a chunk, at any height up to twice the ground's, come to
three in four chunks; here, a third of the chances have no room.
"""
_CANOPY = 2
"""Largest horizontal reach of a tree from its trunk, in columns."""
_BIOME_SCALE = 1.0 / 260.0
_SEARCH_STEP = 48
_SEARCH_RINGS = 200


@kernel()
def hash_place(x: int, z: int, salt: int) -> int:
    """Well-mixed 32-bit hash of a place: multiplicative mixing with xor shifts (lowbias32)."""
    value = (
        (uint32(x) * uint32(0x9E3779B1))
        ^ (uint32(z) * uint32(0x85EBCA77))
        ^ (uint32(salt) * uint32(0xC2B2AE3D))
    )
    value = uint32(value ^ (value >> uint32(16)))
    value = uint32(value * uint32(0x7FEB352D))
    value = uint32(value ^ (value >> uint32(15)))
    value = uint32(value * uint32(0x846CA68B))
    return uint32(value ^ (value >> uint32(16)))


@kernel(inline="always")
def _lattice(x: int, z: int, salt: int) -> float:
    return (hash_place(x, z, salt) >> uint32(8)) * (1.0 / 16777216.0)


@kernel()
def noise(x: float, z: float, salt: int) -> float:
    """Value noise in [0, 1): random values on the integer lattice, smoothly interpolated."""
    floor_x = np.floor(x)
    floor_z = np.floor(z)
    i = int64(floor_x)
    k = int64(floor_z)
    u = x - floor_x
    v = z - floor_z
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    low = _lattice(i, k, salt) * (1.0 - u) + _lattice(i + 1, k, salt) * u
    high = _lattice(i, k + 1, salt) * (1.0 - u) + _lattice(i + 1, k + 1, salt) * u
    return low * (1.0 - v) + high * v


@kernel()
def biome_at(x: int, z: int, seed: int) -> int:
    """Index in `BIOMES` of the biome at column (x, z)."""
    warmth = noise(x * _BIOME_SCALE, z * _BIOME_SCALE, seed + 11)
    wetness = noise(x * _BIOME_SCALE, z * _BIOME_SCALE, seed + 12)
    ragged = noise(x * 0.06, z * 0.06, seed + 13) * 0.04
    if warmth + ragged > 0.7:
        return DESERT
    if wetness + ragged > 0.62:
        return FOREST
    return PLAINS


@kernel()
def ground_height(x: int, z: int, seed: int) -> int:
    """The y of the highest ground block of column (x, z), trees not counted."""
    hills = noise(x * 0.011, z * 0.011, seed + 1) * 5.5
    bumps = noise(x * 0.045, z * 0.045, seed + 2) * 1.6
    return int64(_BASE_HEIGHT + hills + bumps)


@kernel()
def find_biome(biome: int, x: int, z: int, seed: int, out: NDArray[np.int64]) -> bool:
    """Search for the nearest place amid a biome, ring by ring around (x, z).

    Args:
        biome: Index in `BIOMES`.
        x: Column where the search begins.
        z: Column where the search begins.
        seed: The world's seed.
        out: int64 [2]; receives the place's x and z.

    Returns:
        Whether there is one within about 9,600 blocks.
    """
    for ring in range(_SEARCH_RINGS):
        for i in range(-ring, ring + 1):
            for k in range(-ring, ring + 1):
                if max(abs(i), abs(k)) != ring:
                    continue
                place_x = x + i * _SEARCH_STEP
                place_z = z + k * _SEARCH_STEP
                inside = True
                for dx in range(-1, 2):
                    for dz in range(-1, 2):
                        near_x = place_x + dx * _SEARCH_STEP
                        near_z = place_z + dz * _SEARCH_STEP
                        inside = inside and biome_at(near_x, near_z, seed) == biome
                if inside:
                    out[0] = place_x
                    out[1] = place_z
                    return True
    return False


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
    for x in range(chunk_x * CHUNK, (chunk_x + 1) * CHUNK):
        for z in range(chunk_z * CHUNK, (chunk_z + 1) * CHUNK):
            height = ground_height(x, z, seed)
            start = block_index(x, 0, z)
            _fill_column(blocks[start : start + HEIGHT], x, z, height, seed)
            top[column_index(x, z)] = height
            lowest = min(lowest, height + 1)
            highest = max(highest, height)
    first_x = (chunk_x * 16 - _CANOPY) // _TREE_CELL
    last_x = (chunk_x * 16 + 15 + _CANOPY) // _TREE_CELL
    first_z = (chunk_z * 16 - _CANOPY) // _TREE_CELL
    last_z = (chunk_z * 16 + 15 + _CANOPY) // _TREE_CELL
    for cell_x in range(first_x, last_x + 1):
        for cell_z in range(first_z, last_z + 1):
            tip = _grow_plant(blocks, top, chunk_x, chunk_z, cell_x, cell_z, seed)
            highest = max(highest, tip)
    return lowest, highest


@kernel()
def _fill_column(column: NDArray[np.uint16], x: int, z: int, height: int, seed: int) -> None:
    sandy = biome_at(x, z, seed) == DESERT
    column[0] = b.BEDROCK
    column[1 : height - _SOIL_DEPTH] = b.STONE
    column[height - _SOIL_DEPTH : height] = b.SAND if sandy else b.DIRT
    if sandy:
        column[height - _SOIL_DEPTH - 2 : height - _SOIL_DEPTH] = b.SANDSTONE
    column[height] = b.SAND if sandy else b.GRASS_BLOCK
    column[height + 1 :] = b.AIR
    ore = hash_place(x, z, seed + 5)
    depth = int64((ore >> uint32(8)) % uint32(height - 12))
    if ore & uint32(31) == 0:
        column[4 + depth] = b.COAL_ORE
    elif ore & uint32(31) == 1:
        column[4 + depth * 3 // 4] = b.IRON_ORE
    elif ore & uint32(1023) == 2:
        column[4 + depth % 11] = b.DIAMOND_ORE


@kernel()
def _grow_plant(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    cell_x: int,
    cell_z: int,
    seed: int,
) -> int:
    """Grow a cell's plant, if it has one, inside one chunk, and return the y of its tip."""
    dice = int64(hash_place(cell_x, cell_z, seed + 77))
    x = cell_x * _TREE_CELL + (dice & 255) % _TREE_CELL
    z = cell_z * _TREE_CELL + (dice >> 8 & 255) % _TREE_CELL
    biome = biome_at(x, z, seed)
    if (dice >> 16 & 255) >= _TREE_CHANCE[biome]:
        return 0
    ground = ground_height(x, z, seed)
    if biome == DESERT:
        if x // CHUNK != chunk_x or z // CHUNK != chunk_z or not _has_room(x, z, ground, seed):
            return 0
        tip = ground + 1 + (dice >> 24) % 3
        start = block_index(x, 0, z)
        blocks[start + ground + 1 : start + tip + 1] = b.CACTUS
        column = column_index(x, z)
        top[column] = max(int64(top[column]), tip)  # a tree next to it may be higher
        return tip
    birch = biome == FOREST and (dice >> 28) % 4 == 0
    log = b.BIRCH_LOG if birch else b.OAK_LOG
    leaves = b.BIRCH_LEAVES if birch else b.OAK_LEAVES
    trunk = 4 + (dice >> 24 & 15) % 3 + (1 if birch else 0)
    for i in range(x - _CANOPY, x + _CANOPY + 1):
        for k in range(z - _CANOPY, z + _CANOPY + 1):
            if i // CHUNK == chunk_x and k // CHUNK == chunk_z:
                _grow_tree_column(blocks, top, i, k, x, z, ground, trunk, log, leaves, seed)
    return ground + trunk + 1


@kernel()
def _has_room(x: int, z: int, ground: int, seed: int) -> bool:
    """Whether a cactus in column (x, z) would touch nothing, so far as its cell and the land go."""
    if x % _TREE_CELL == _TREE_CELL - 1 or z % _TREE_CELL == _TREE_CELL - 1:
        return False  # the cell beyond may have a cactus in its first columns
    for side in range(4):
        step = 1 - 2 * (side & 1)
        near_x, near_z = x + (step if side < 2 else 0), z + (step if side >= 2 else 0)
        if ground_height(near_x, near_z, seed) > ground:
            return False
    return True


@kernel()
def _grow_tree_column(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    i: int,
    k: int,
    x: int,
    z: int,
    ground: int,
    trunk: int,
    log: int,
    leaves: int,
    seed: int,
) -> None:
    """Write column (i, k) of the tree at (x, z): two wide layers of leaves below two narrow."""
    start = block_index(i, 0, k)
    tip = 0
    for layer in range(-2, 2):
        reach = _CANOPY if layer < 0 else 1
        away = max(abs(i - x), abs(k - z))
        corner = abs(i - x) == reach and abs(k - z) == reach
        trimmed = corner and (layer == 1 or hash_place(i * 4 + layer, k, seed) & uint32(1))
        y = ground + trunk + layer
        if away <= reach and not trimmed and blocks[start + y] == b.AIR:
            blocks[start + y] = leaves
            tip = y
    if i == x and k == z:
        blocks[start + ground] = b.DIRT
        blocks[start + ground + 1 : start + ground + trunk + 1] = log
        blocks[start + ground + trunk + 1] = leaves
        tip = ground + trunk + 1
    column = column_index(i, k)
    top[column] = max(int64(top[column]), tip)
