"""Grass, flowers and pumpkins of new land, in patches as Minecraft Java 1.16's (`RandomPatch`).

A chunk has so many *patches* of each kind as its biome says. A patch has a centre, and tries to
grow a plant so many times around it, at the difference of two random offsets along each axis, so
that most tries are near the centre. A try succeeds if it hits the air above the ground that the
plant grows on. The centre is at any height up to some limit: few patches have a centre near enough
to the ground, and these have many plants. Or it is on the ground, and so are a quarter of the
tries; here these follow the ground, which on gentle land comes to the same.

Patches reach into other chunks. So a chunk goes through the patches of those around it as well,
always in the same order, and grows what falls into its own columns. What grows thus depends on the
seed alone, not on which chunks are there.

The counts are those of `misode/vanilla-worldgen@1.16`; heights of centres, kinds of flowers and
offsets are from memory. Left out are plants that need water (sugar cane) or darkness (mushrooms):
this land has none of either. Cactus grows with the trees, see `trees`.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, THIN_KINDS, block_of, kind_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, block_index, column_index
from rllib_minestudio.env.voxel.world.climate import (
    BIOMES,
    BIRCH_FOREST,
    DESERT,
    FOREST,
    HIGHEST_GROUND,
    HIGHEST_PEAK,
    LOWEST_GROUND,
    MOUNTAINS,
    PLAINS,
    SAVANNA,
    SNOWY_TUNDRA,
    TAIGA,
    biome_at,
    ground_height,
    hash_place,
    noise,
)

# ------------------------------------------------------------------------------------ the patches

GRASS, TALL_GRASS, PLAINS_FLOWERS, FLOWERS, FOREST_BUSHES, DEAD_BUSHES, PUMPKINS = range(7)
FERNS, LARGE_FERNS = 7, 8
"""Kinds of patches, in the order in which they grow."""

# Of each kind of patch: tries, and below which layer the centre may be anywhere; 0 if it is on the
# ground. In Minecraft these are the layers up to 32 above the ground, and up to twice as high.
_TRIES = np.array([32, 64, 64, 64, 64, 4, 64, 32, 64], np.int64)
MOST_TRIES = 64
_USUAL_GROUND = 67
_LIMIT = np.array([0, 99, 99, 99, 99, 0, 134, 0, 99], np.int64)

# In plains a noise of the place decides between many tulips with little grass, and the usual.
_TULIP_SHARE = 0.1
"""Below this value of the noise, in [0, 1), there are tulips."""
_TULIP_SCALE = 1.0 / 200.0

# Patches in a chunk in 1/32, a row for each land: whole ones, and the chance of one more.
_SURE = 32
_TULIPS_LAND = len(BIOMES)
_PATCHES = np.zeros((len(BIOMES) + 1, len(_TRIES)), np.int64)
_PATCHES[PLAINS, [GRASS, TALL_GRASS, PLAINS_FLOWERS]] = 10 * _SURE, 7 * _SURE, 4 * _SURE
_PATCHES[_TULIPS_LAND, [GRASS, PLAINS_FLOWERS]] = 5 * _SURE, 15 * _SURE
_PATCHES[FOREST, [GRASS, FLOWERS, FOREST_BUSHES]] = 2 * _SURE, 2 * _SURE, _SURE
_PATCHES[BIRCH_FOREST] = _PATCHES[FOREST]
_PATCHES[TAIGA, [FERNS, FLOWERS, LARGE_FERNS]] = _SURE, 2 * _SURE, 7 * _SURE
_PATCHES[SAVANNA, [GRASS, TALL_GRASS, FLOWERS]] = 20 * _SURE, 7 * _SURE, 4 * _SURE
_PATCHES[SNOWY_TUNDRA, [GRASS, FLOWERS]] = _SURE, 2 * _SURE
_PATCHES[MOUNTAINS] = _PATCHES[SNOWY_TUNDRA]
_PATCHES[DESERT, [GRASS, FLOWERS, DEAD_BUSHES]] = _SURE, 2 * _SURE, 2 * _SURE
_PATCHES[:, PUMPKINS] = 1

REACH = 7
"""Columns by which a try may be off its patch's centre; layers are at most `_RISE` off."""
_RISE = 3

# --------------------------------------------------------------------------------------- the plants


def _ids(names: str) -> NDArray[np.int64]:
    return np.array([BLOCK_ID[name] for name in names.split()], np.int64)


_GRASS, _TALL, _DEAD_BUSH, _PUMPKIN = _ids("grass tall_grass dead_bush pumpkin")
_FERN, _LARGE_FERN = _ids("fern large_fern")
_TULIPS = _ids("red_tulip orange_tulip white_tulip pink_tulip")
_DANDELION, _POPPY, _LILY = _ids("dandelion poppy lily_of_the_valley")
_MEADOW = _ids("poppy azure_bluet oxeye_daisy cornflower")
_BUSHES = _ids("lilac rose_bush peony")
_UPPER = np.zeros(len(b.BLOCKS), np.int64)
"""The upper half of plants that have one, by kind."""
for _tall in (int(_TALL), int(_LARGE_FERN), *_BUSHES.tolist()):
    _UPPER[_tall] = block_of(_tall, {"half": "upper"})

_IS_ABOVE_GROUND = np.array(
    [
        block.name.endswith(("_log", "_leaves"))
        or kind in THIN_KINDS
        or kind in (b.AIR, b.CACTUS, int(_PUMPKIN))
        for kind, block in enumerate(b.BLOCKS)
    ]
)
"""Whether a kind of block is what lies and grows on the ground of new land, or air."""

_SALT = 1000
"""Of the first kind of patch; the hashes of others have the numbers after it."""


@kernel()
def grow_plants(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], chunk_x: int, chunk_z: int, seed: int
) -> int:
    """Grow the plants of a chunk whose ground and trees have just been written.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16]; pumpkins count, thin plants do not.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.

    Returns:
        The highest layer with a plant in it.
    """
    highest, dices = 0, np.empty((2, MOST_TRIES), np.uint32)
    for near_x in range(chunk_x - 1, chunk_x + 2):
        for near_z in range(chunk_z - 1, chunk_z + 2):
            land = _land(near_x, near_z, seed)
            for feature in range(_PATCHES.shape[1]):
                number = _number(_PATCHES[land, feature], near_x, near_z, feature, seed)
                for patch in range(number):
                    grown = _grow_patch(
                        blocks,
                        top,
                        chunk_x,
                        chunk_z,
                        near_x,
                        near_z,
                        land,
                        feature,
                        patch,
                        seed,
                        dices,
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


@kernel(inline="always")
def _grow_patch(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    near_x: int,
    near_z: int,
    land: int,
    feature: int,
    patch: int,
    seed: int,
    dices: NDArray[np.uint32],
) -> int:
    """Grow what a patch of the chunk (near_x, near_z) has in the chunk (chunk_x, chunk_z).

    `land` is the row of `_PATCHES` for the patch's chunk.

    Returns:
        The highest layer with one of its plants, 0 if there are none.
    """
    salt = seed + _SALT + feature * 64 + patch
    dice = int64(hash_place(near_x, near_z, salt))
    x0, z0 = chunk_x * CHUNK, chunk_z * CHUNK
    x, z = near_x * CHUNK + (dice & 15), near_z * CHUNK + (dice >> 4 & 15)
    if max(x0 - x, x - x0 - CHUNK + 1, z0 - z, z - z0 - CHUNK + 1) > REACH:
        return 0
    follows = _LIMIT[feature] == 0
    y = _height_of_centre(feature, x, z, dice >> 8, land, seed)
    highest_ground = HIGHEST_PEAK if land == MOUNTAINS else HIGHEST_GROUND
    if not follows and (y < LOWEST_GROUND - _RISE or y > highest_ground + 1 + _RISE):
        return 0
    bush = _BUSHES[dice % 4] if dice % 4 < len(_BUSHES) else _LILY
    inside = _roll_inside(x, z, x0, z0, salt, _TRIES[feature], follows, dices)
    highest = 0
    for number in range(inside):
        dice = int64(dices[0, number])
        i, k = x + _across(dice), z + _across(dice >> 6)
        layer = _above_ground(blocks, top, i, k) if follows else y + _up(dice)
        if blocks[block_index(i, layer, k)] != b.AIR:
            continue
        kind = bush if feature == FOREST_BUSHES else _kind(feature, i, k, dice >> 16, seed)
        if _grow(blocks, top, i, layer, k, kind):
            highest = max(highest, layer + (1 if _UPPER[kind] else 0))
    return highest


@kernel(inline="always")
def _height_of_centre(feature: int, x: int, z: int, dice: int, land: int, seed: int) -> int:
    """The layer of a patch's centre that is not on the ground; `dice` is below 2**24."""
    limit = _LIMIT[feature]
    if land == MOUNTAINS and limit > 0:
        limit += ground_height(x, z, seed) - _USUAL_GROUND
    return dice * limit >> 24


@kernel(inline="always")
def _across(dice: int) -> int:
    """How far a try is off its patch's centre along an axis, of six random bits."""
    return (dice & 7) - (dice >> 3 & 7)


@kernel(inline="always")
def _up(dice: int) -> int:
    """How far a try is above its patch's centre."""
    return (dice >> 12 & 3) - (dice >> 14 & 3)


@kernel(inline="always")
def _above_ground(blocks: NDArray[np.uint16], top: NDArray[np.uint8], x: int, z: int) -> int:
    """The layer above the ground of a column, trees and cactus not counted."""
    start, y = block_index(x, 0, z), int64(top[column_index(x, z)])
    while _IS_ABOVE_GROUND[kind_of(blocks[start + y])]:
        y -= 1
    return y + 1


@kernel(inline="always")
def _roll_inside(
    x: int, z: int, x0: int, z0: int, salt: int, tries: int, level: bool, dices: NDArray[np.uint32]
) -> int:
    """Write the random numbers of a patch's tries that fall into the chunk at (x0, z0).

    Args:
        x: The patch's column.
        z: The patch's column.
        x0: First column of the chunk.
        z0: First column of the chunk.
        salt: For the hash.
        tries: How many tries the patch has.
        level: Whether only those count that are level with the patch's centre.
        dices: uint32 [2, at least `tries`]; the numbers are written into its first row.

    Returns:
        How many there are.
    """
    for number in range(tries):
        dices[1, number] = hash_place(x, z, salt + (number + 1) * 4096)
    found = 0
    for number in range(tries):
        dice = int64(dices[1, number])
        i, k = x + _across(dice) - x0, z + _across(dice >> 6) - z0
        dices[0, found] = dices[1, number]
        # One comparison for both ends, and no branch: most tries of other chunks are outside.
        is_inside = (uint64(i) < uint64(CHUNK)) & (uint64(k) < uint64(CHUNK))
        found += int64(is_inside & ((not level) | (_up(dice) == 0)))
    return found


@kernel()
def _kind(feature: int, x: int, z: int, dice: int, seed: int) -> int:
    """What a try of a patch grows in column (x, z); `dice` is random."""
    if feature == PLAINS_FLOWERS:
        if _has_tulips(x, z, seed):
            return _TULIPS[dice % 4]
        return _DANDELION if dice % 3 == 0 else _MEADOW[dice // 3 % 4]
    if feature == FLOWERS:
        return _DANDELION if dice % 3 == 0 else _POPPY
    if feature == TALL_GRASS:
        return _TALL
    if feature == FERNS:
        return _GRASS if dice % 5 == 0 else _FERN
    if feature == LARGE_FERNS:
        return _LARGE_FERN
    if feature == DEAD_BUSHES:
        return _DEAD_BUSH
    return _PUMPKIN if feature == PUMPKINS else _GRASS


@kernel(inline="always")
def _grow(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], x: int, y: int, z: int, kind: int
) -> bool:
    """Put a plant into the air if that is above the ground that it grows on; tell whether."""
    start = block_index(x, 0, z)
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
