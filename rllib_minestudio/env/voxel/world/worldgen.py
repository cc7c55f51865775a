"""Terrain: gentle hills and biomes, from the seed alone.

`making` has what is done to it next.

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
def fill_chunk(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], chunk_x: int, chunk_z: int, seed: int
) -> int:
    """Write the 16 x 16 columns of a chunk, in all layers: solid ground, and air above.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.

    Returns:
        The highest layer with a block in it.
    """
    highest = 0
    for x in range(chunk_x * CHUNK, (chunk_x + 1) * CHUNK):
        for z in range(chunk_z * CHUNK, (chunk_z + 1) * CHUNK):
            height = ground_height(x, z, seed)
            start = block_index(x, 0, z)
            _fill_column(blocks[start : start + HEIGHT], x, z, height, seed)
            top[column_index(x, z)] = height
            highest = max(highest, height)
    return highest


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
