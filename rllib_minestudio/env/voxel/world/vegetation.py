"""Grass, flowers and pumpkins of new land, in patches as Minecraft Java 1.16's (`RandomPatch`).

A chunk has so many *patches* of each kind as its biome says. A patch has a centre, and tries to
grow a plant so many times around it, at the sum of two random offsets along each axis, so that most
tries are near the centre. A try succeeds if it hits the air above the ground that the plant grows
on. The centre is on the ground, or at any height up to some limit: then few patches have a centre
near enough to the ground, and these have many plants.

Patches reach into other chunks. So a chunk goes through the patches of those around it as well,
always in the same order, and grows what falls into its own columns. What grows thus depends on the
seed alone, not on which chunks are there.

The counts are those of `misode/vanilla-worldgen@1.16`; heights of centres, kinds of flowers and
offsets are from memory. Left out are plants that need water (sugar cane) or darkness (mushrooms):
this land has none of either. Cactus grows with the trees, see `worldgen`.
"""

from __future__ import annotations

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.block_states import block_of
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.worldgen import (
    BIOMES,
    DESERT,
    FOREST,
    PLAINS,
    biome_at,
    ground_height,
    hash_place,
    noise,
)

# ------------------------------------------------------------------------------------ the patches

GRASS, TALL_GRASS, PLAINS_FLOWERS, FOREST_FLOWERS, FOREST_BUSHES, DEAD_BUSHES, PUMPKINS = (
    range(7)
)
"""Kinds of patches, in the order in which they grow."""

ON_GROUND, ABOVE_GROUND, TWICE_GROUND = range(3)
"""Height of a patch's centre: the ground's, any up to 32 above it, any up to twice as high."""

_ABOVE = 32

# Of each kind of patch: tries, and the height of the centre.
_TRIES = np.array([32, 64, 64, 64, 64, 4, 64], np.int64)
_CENTRE = np.array(
    [
        *(ON_GROUND, ABOVE_GROUND, ABOVE_GROUND, ABOVE_GROUND, ABOVE_GROUND),
        *(ON_GROUND, TWICE_GROUND),
    ],
    np.int64,
)

# In plains a noise of the place decides between many tulips with little grass, and the usual.
_TULIP_SHARE = 0.1
"""Below this value of the noise, in [0, 1), there are tulips."""
_TULIP_SCALE = 1.0 / 200.0

# Patches in a chunk in 1/32, a row for each land: whole ones, and the chance of one more.
_SURE = 32
_TULIPS_LAND = len(BIOMES)
_PATCHES = np.zeros((len(BIOMES) + 1, 7), np.int64)
_PATCHES[PLAINS, [GRASS, TALL_GRASS, PLAINS_FLOWERS]] = 10 * _SURE, 7 * _SURE, 4 * _SURE
_PATCHES[_TULIPS_LAND, [GRASS, PLAINS_FLOWERS]] = 5 * _SURE, 15 * _SURE
_PATCHES[FOREST, [GRASS, FOREST_FLOWERS, FOREST_BUSHES]] = 2 * _SURE, 2 * _SURE, _SURE
_PATCHES[DESERT, [GRASS, FOREST_FLOWERS, DEAD_BUSHES]] = _SURE, 2 * _SURE, 2 * _SURE
_PATCHES[:, PUMPKINS] = 1

REACH = 7
"""Columns by which a try may be off its patch's centre; layers are at most `_RISE` off."""
_RISE = 3

# --------------------------------------------------------------------------------------- the plants


def _ids(names: str) -> NDArray[np.int64]:
    return np.array([BLOCK_ID[name] for name in names.split()], np.int64)


_GRASS, _TALL, _DEAD_BUSH, _PUMPKIN = _ids("grass tall_grass dead_bush pumpkin")
_TULIPS = _ids("red_tulip orange_tulip white_tulip pink_tulip")
_DANDELION, _POPPY, _LILY = _ids("dandelion poppy lily_of_the_valley")
_MEADOW = _ids("poppy azure_bluet oxeye_daisy cornflower")
_BUSHES = _ids("lilac rose_bush peony")
_UPPER = np.zeros(len(b.BLOCKS), np.int64)
"""The upper half of plants that have one, by kind."""
for _kind in (int(_TALL), *_BUSHES.tolist()):
    _UPPER[_kind] = block_of(_kind, {"half": "upper"})

_SALT = 1000
"""Of the first kind of patch; the hashes of others have the numbers after it."""


@kernel()
def grow_plants(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], chunk_x: int, chunk_z: int, seed: int
) -> int:
    """Grow the plants of a chunk that `worldgen.generate_chunk` has just written.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16]; pumpkins count, thin plants do not.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.

    Returns:
        The highest layer with a plant in it.
    """
    highest = 0
    for near_x in range(chunk_x - 1, chunk_x + 2):
        for near_z in range(chunk_z - 1, chunk_z + 2):
            land = _land(near_x, near_z, seed)
            for feature in range(_PATCHES.shape[1]):
                number = _number(_PATCHES[land, feature], near_x, near_z, feature, seed)
                for patch in range(number):
                    grown = _grow_patch(
                        blocks, top, chunk_x, chunk_z, near_x, near_z, feature, patch, seed
                    )
                    highest = max(highest, grown)
    return highest


@kernel()
def _land(chunk_x: int, chunk_z: int, seed: int) -> int:
    """The row of `_PATCHES` for a chunk: the biome of its middle, or tulips."""
    x, z = chunk_x * CHUNK + CHUNK // 2, chunk_z * CHUNK + CHUNK // 2
    biome = biome_at(x, z, seed)
    return _TULIPS_LAND if biome == PLAINS and _has_tulips(x, z, seed) else biome


@kernel()
def _has_tulips(x: int, z: int, seed: int) -> bool:
    return noise(x * _TULIP_SCALE, z * _TULIP_SCALE, seed + 21) < _TULIP_SHARE


@kernel()
def _number(count: int, chunk_x: int, chunk_z: int, feature: int, seed: int) -> int:
    """The whole patches of a count, and perhaps one more."""
    more = count % _SURE
    if more == 0:
        return count // _SURE
    dice = int64(hash_place(chunk_x, chunk_z, seed + _SALT - 1 - feature))
    return count // _SURE + (1 if dice % _SURE < more else 0)


@kernel()
def _grow_patch(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    near_x: int,
    near_z: int,
    feature: int,
    patch: int,
    seed: int,
) -> int:
    """Grow what a patch of the chunk (near_x, near_z) has in the chunk (chunk_x, chunk_z).

    Returns:
        The highest layer with one of its plants, 0 if there are none.
    """
    salt = seed + _SALT + feature * 64 + patch
    dice = int64(hash_place(near_x, near_z, salt))
    x0, z0 = chunk_x * CHUNK, chunk_z * CHUNK
    x, z = near_x * CHUNK + (dice & 15), near_z * CHUNK + (dice >> 4 & 15)
    if max(x0 - x, x - x0 - CHUNK + 1, z0 - z, z - z0 - CHUNK + 1) > REACH:
        return 0
    y = ground_height(x, z, seed) + 1
    if _CENTRE[feature] != ON_GROUND:
        limit = y + _ABOVE if _CENTRE[feature] == ABOVE_GROUND else 2 * y
        at = (dice >> 8) * limit >> 24
        if abs(at - y) > _RISE + REACH:  # the ground is nowhere steeper than that
            return 0
        y = at
    bush = _BUSHES[dice % 4] if dice % 4 < len(_BUSHES) else _LILY
    highest = 0
    for number in range(_TRIES[feature]):
        dice = int64(hash_place(x, z, salt + (number + 1) * 4096))
        i = x + (dice & 7) - (dice >> 3 & 7)
        k = z + (dice >> 6 & 7) - (dice >> 9 & 7)
        if i // CHUNK != chunk_x or k // CHUNK != chunk_z:
            continue
        layer = y + (dice >> 12 & 3) - (dice >> 14 & 3)
        kind = bush if feature == FOREST_BUSHES else _kind(feature, i, k, dice >> 16, seed)
        if _grow(blocks, top, i, layer, k, kind):
            highest = max(highest, layer + (1 if _UPPER[kind] else 0))
    return highest


@kernel()
def _kind(feature: int, x: int, z: int, dice: int, seed: int) -> int:
    """What a try of a patch grows in column (x, z); `dice` is random."""
    if feature == PLAINS_FLOWERS:
        if _has_tulips(x, z, seed):
            return _TULIPS[dice % 4]
        return _DANDELION if dice % 3 == 0 else _MEADOW[dice // 3 % 4]
    if feature == FOREST_FLOWERS:
        return _DANDELION if dice % 3 == 0 else _POPPY
    if feature == TALL_GRASS:
        return _TALL
    if feature == DEAD_BUSHES:
        return _DEAD_BUSH
    return _PUMPKIN if feature == PUMPKINS else _GRASS


@kernel()
def _grow(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], x: int, y: int, z: int, kind: int
) -> bool:
    """Put a plant at a place if that is air above the ground that it grows on; tell whether."""
    start = block_index(x, 0, z)
    if not 0 < y < HEIGHT - 1 or blocks[start + y] != b.AIR:
        return False
    ground = b.SAND if kind == _DEAD_BUSH else b.GRASS_BLOCK
    upper = _UPPER[kind]
    if blocks[start + y - 1] != ground or (upper != 0 and blocks[start + y + 1] != b.AIR):
        return False
    blocks[start + y] = kind
    if upper != 0:
        blocks[start + y + 1] = upper
    if kind == _PUMPKIN:
        column = column_index(x, z)
        top[column] = max(int64(top[column]), y)
    return True
