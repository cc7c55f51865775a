"""Trees and cactus of new land: where they grow, and the shape of each kind.

The land is divided into cells of 6 x 6 columns, each of which may have one tree, by a chance that
depends on its biome. A tree reaches into other chunks. So a chunk goes through the cells around it,
always in the same order, and grows what falls into its own columns: the trees depend on the seed
alone, not on which chunks are there.

Shapes and heights of trunks are those of Minecraft Java 1.16's `TrunkPlacer`s and
`FoliagePlacer`s, from memory; heights also by `misode/vanilla-worldgen@1.16`. Oaks are the plain
ones. The game tries ten trees in a chunk of woods, and those under a crown fail: about seven are
left, by Poisson's law for crowns of 21 columns. Taiga and birch forest have as many here; a forest
has five, as it always had.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.env.voxel.world.box_field import CHUNK, block_index, column_index
from rllib_minestudio.env.voxel.world.caves import is_carved
from rllib_minestudio.env.voxel.world.climate import (
    BIOMES,
    BIRCH_FOREST,
    DESERT,
    FOREST,
    MOUNTAINS,
    PLAINS,
    SAVANNA,
    SNOWY_TUNDRA,
    TAIGA,
    ground_height,
    hash_place,
    land_at,
)
from rllib_minestudio.env.voxel.world.tunnels import NEAR, Spheres

TREE_CELL = 6
"""Side, in columns, of the cells that may hold one tree each."""
_CHANCE = np.zeros(len(BIOMES), np.int64)
"""Chance, out of 256, of a tree (in the desert, a cactus) in a cell, by biome.

Minecraft's hundred tries for a cactus in a chunk, at any height up to twice the ground's, come to
three in four chunks; here, a third of the chances have no room.
"""
_CHANCE[[PLAINS, FOREST, DESERT]] = 4, 170, 40
_DENSE = [BIRCH_FOREST, TAIGA]
_CHANCE[_DENSE] = 240  # 6.7 in a chunk
_CHANCE[SAVANNA] = 38  # 1.06 in a chunk, of 1.1 tries
_CHANCE[[SNOWY_TUNDRA, MOUNTAINS]] = 4  # one in nine chunks, of 0.1 tries
_LARGEST_CHANCE = int(_CHANCE.max())
_IS_DENSE = np.zeros(len(BIOMES), np.bool_)
"""Where nearly all cells have a tree: there none is in a cell's outer columns, so that between any
two there are columns without."""
_IS_DENSE[_DENSE] = True

OAK, BIRCH, SPRUCE, PINE, ACACIA = range(5)
"""Kinds of trees."""
_WOODS = ("oak", "birch", "spruce", "spruce", "acacia")
_LOG = np.array([BLOCK_ID[f"{wood}_log"] for wood in _WOODS])
_LEAVES = np.array([BLOCK_ID[f"{wood}_leaves"] for wood in _WOODS])
_LOWEST_TRUNK = np.array([4, 5, 5, 6, 5], np.int64)
_MORE_TRUNK = np.array([[3, 1], [3, 1], [3, 2], [5, 1], [3, 3]], np.int64)
"""A trunk is as high as the lowest and two random numbers, each below one of these."""

_REACH = np.array([2, 2, 3, 2, 6], np.int64)
"""Largest horizontal reach of each kind from its place, in columns."""
_FARTHEST = int(_REACH.max())
assert _FARTHEST <= NEAR, "whether their ground is carved is known"
HIGHEST_TIP = 13
"""Layers by which no tree is higher than the ground below it."""

Window = NDArray[np.uint16]
"""Blocks of the window, uint16 [2**23]."""
Tops = NDArray[np.uint8]
"""Column tops of the window, uint8 [2**16]."""


@kernel()
def grow_trees(
    blocks: Window, top: Tops, chunk_x: int, chunk_z: int, seed: int, near: Spheres
) -> int:
    """Grow the trees of a chunk whose ground has just been written.

    Args:
        blocks: The window's block ids.
        top: The window's column tops.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.
        near: What is carved out of the land, from `tunnels.spheres_near`.

    Returns:
        The highest layer that they may reach.
    """
    highest = 0
    x0, z0 = chunk_x * CHUNK, chunk_z * CHUNK
    low, high = -_FARTHEST, CHUNK - 1 + _FARTHEST
    for cell_x in range((x0 + low) // TREE_CELL, (x0 + high) // TREE_CELL + 1):
        for cell_z in range((z0 + low) // TREE_CELL, (z0 + high) // TREE_CELL + 1):
            dice = int64(hash_place(cell_x, cell_z, seed + 77))
            if (dice >> 16 & 255) >= _LARGEST_CHANCE:
                continue
            x = cell_x * TREE_CELL + (dice & 255) % TREE_CELL
            z = cell_z * TREE_CELL + (dice >> 8 & 255) % TREE_CELL
            biome, ground = land_at(x, z, seed)
            if (dice >> 16 & 255) >= _CHANCE[biome]:
                continue
            if _IS_DENSE[biome]:
                x = cell_x * TREE_CELL + 1 + (dice & 255) % (TREE_CELL - 2)
                z = cell_z * TREE_CELL + 1 + (dice >> 8 & 255) % (TREE_CELL - 2)
                ground = ground_height(x, z, seed)
            if is_carved(near, x - x0, ground, z - z0):
                continue
            away = max(max(x0 - x, x - x0 - CHUNK + 1), max(z0 - z, z - z0 - CHUNK + 1))
            if biome == DESERT:
                tip = _grow_cactus(blocks, top, x, z, ground, dice, away, seed)
            else:
                tip = _grow_tree(blocks, top, x0, z0, x, z, ground, biome, dice, away, seed)
            highest = max(highest, tip)
    return highest


# --------------------------------------------------------------------------- parts of trees


@kernel(inline="always")
def _put_leaf(blocks: Window, top: Tops, x: int, y: int, z: int, leaves: int) -> None:
    """Put leaves where there is air."""
    index = block_index(x, y, z)
    if blocks[index] == b.AIR:
        blocks[index] = leaves
        column = column_index(x, z)
        top[column] = max(int64(top[column]), y)


@kernel(inline="always")
def _put_log(blocks: Window, top: Tops, x0: int, z0: int, x: int, y: int, z: int, log: int) -> None:
    """Put a log if it is in the chunk at (x0, z0)."""
    if x0 <= x < x0 + CHUNK and z0 <= z < z0 + CHUNK:
        blocks[block_index(x, y, z)] = log
        column = column_index(x, z)
        top[column] = max(int64(top[column]), y)


@kernel()
def _put_row(
    blocks: Window, top: Tops, x0: int, z0: int, x: int, y: int, z: int, reach: int, leaves: int
) -> None:
    """Put a square of leaves without its corners, as far as it is in the chunk at (x0, z0)."""
    for i in range(max(x - reach, x0), min(x + reach + 1, x0 + CHUNK)):
        for k in range(max(z - reach, z0), min(z + reach + 1, z0 + CHUNK)):
            if reach == 0 or abs(i - x) < reach or abs(k - z) < reach:
                _put_leaf(blocks, top, i, y, k, leaves)


@kernel()
def _put_trunk(
    blocks: Window, top: Tops, x0: int, z0: int, x: int, z: int, ground: int, trunk: int, log: int
) -> None:
    """Put a straight trunk on dirt, as far as it is in the chunk at (x0, z0)."""
    if x0 <= x < x0 + CHUNK and z0 <= z < z0 + CHUNK:
        start, column = block_index(x, 0, z), column_index(x, z)
        blocks[start + ground] = b.DIRT
        blocks[start + ground + 1 : start + ground + trunk + 1] = log
        top[column] = max(int64(top[column]), ground + trunk)


# --------------------------------------------------------------------------- kinds of trees


@kernel(inline="always")
def _kind(biome: int, dice: int, more: int) -> int:
    """What grows in a biome: by the numbers of `misode/vanilla-worldgen@1.16`, without fancy oaks.

    Args:
        biome: Index in `BIOMES`.
        dice: Of the cell.
        more: Another random number, below 2**32.
    """
    if biome == FOREST:
        return BIRCH if (dice >> 28) % 4 == 0 else OAK
    if biome == BIRCH_FOREST:
        return BIRCH
    if biome == TAIGA:
        return PINE if more % 3 == 0 else SPRUCE
    if biome == SAVANNA:
        return OAK if more % 5 == 0 else ACACIA
    if biome == MOUNTAINS:
        return OAK if more % 3 == 0 else SPRUCE
    return SPRUCE if biome == SNOWY_TUNDRA else OAK


@kernel()
def _grow_tree(
    blocks: Window,
    top: Tops,
    x0: int,
    z0: int,
    x: int,
    z: int,
    ground: int,
    biome: int,
    dice: int,
    away: int,
    seed: int,
) -> int:
    """Grow what a tree at (x, z), `away` columns from the chunk at (x0, z0), has in that chunk.

    Returns:
        The y of its tip, 0 if it does not reach the chunk.
    """
    more = int64(hash_place(x, z, seed + 78))
    kind = _kind(biome, dice, more)
    if away > _REACH[kind]:
        return 0
    log, leaves = _LOG[kind], _LEAVES[kind]
    trunk = _LOWEST_TRUNK[kind] + (dice >> 24 & 15) % _MORE_TRUNK[kind, 0]
    trunk += (more >> 4 & 15) % _MORE_TRUNK[kind, 1]
    more >>= 8
    base = ground + trunk + 1
    if kind == ACACIA:
        return _grow_acacia(blocks, top, x0, z0, x, z, ground, trunk, more)
    if kind == SPRUCE:
        tip = base + _put_spruce_crown(blocks, top, x0, z0, x, base, z, trunk, leaves, more)
    elif kind == PINE:
        tip = base + _put_pine_crown(blocks, top, x0, z0, x, base, z, leaves, more)
    else:
        tip = base
        _put_round_crown(blocks, top, x0, z0, x, base, z, leaves, seed)
    _put_trunk(blocks, top, x0, z0, x, z, ground, trunk, log)
    return tip


@kernel()
def _put_round_crown(
    blocks: Window,
    top: Tops,
    x0: int,
    z0: int,
    x: int,
    base: int,
    z: int,
    leaves: int,
    seed: int,
) -> None:
    """The crown of oaks and birches: two wide rows below two narrow ones, corners at random."""
    for layer in range(-2, 2):
        reach = 2 if layer < 0 else 1
        for i in range(max(x - reach, x0), min(x + reach + 1, x0 + CHUNK)):
            for k in range(max(z - reach, z0), min(z + reach + 1, z0 + CHUNK)):
                corner = abs(i - x) == reach and abs(k - z) == reach
                if corner and (layer == 1 or hash_place(i * 4 + layer, k, seed) & uint32(1)):
                    continue
                _put_leaf(blocks, top, i, base - 1 + layer, k, leaves)


@kernel()
def _put_spruce_crown(
    blocks: Window,
    top: Tops,
    x0: int,
    z0: int,
    x: int,
    base: int,
    z: int,
    trunk: int,
    leaves: int,
    dice: int,
) -> int:
    """A crown in tiers, each growing from its tip downwards; return how far it is above `base`."""
    widest = 2 + dice % 2
    offset = (dice >> 1) % 3
    bare = 1 + (dice >> 4) % 2
    reach, limit, first = (dice >> 5) % 2, 1, 0
    for layer in range(offset, -max(4, trunk - bare) - 1, -1):
        _put_row(blocks, top, x0, z0, x, base + layer, z, reach, leaves)
        if reach >= limit:
            reach, first = first, 1
            limit = min(limit + 1, widest)
        else:
            reach += 1
    return offset


@kernel()
def _put_pine_crown(
    blocks: Window,
    top: Tops,
    x0: int,
    z0: int,
    x: int,
    base: int,
    z: int,
    leaves: int,
    dice: int,
) -> int:
    """A small crown at the tip of a long trunk; return how far it is above `base`."""
    widest, layers = 1 + dice % 2, 3 + (dice >> 1) % 2
    reach, offset = 0, 1
    for layer in range(offset, offset - layers - 1, -1):
        _put_row(blocks, top, x0, z0, x, base + layer, z, reach, leaves)
        if reach >= 1 and layer == offset - layers + 1:
            reach -= 1
        elif reach < widest:
            reach += 1
    return offset


@kernel()
def _grow_acacia(
    blocks: Window,
    top: Tops,
    x0: int,
    z0: int,
    x: int,
    z: int,
    ground: int,
    trunk: int,
    dice: int,
) -> int:
    """A trunk that bends to one side, perhaps with a branch to another; return its tip."""
    log, leaves = _LOG[ACACIA], _LEAVES[ACACIA]
    side, other = dice & 3, dice >> 2 & 3
    bend = trunk - (dice >> 4 & 3) - 1
    steps = 3 - (dice >> 6) % 3
    if x0 <= x < x0 + CHUNK and z0 <= z < z0 + CHUNK:
        blocks[block_index(x, ground, z)] = b.DIRT
    i, k = x, z
    for layer in range(trunk):
        if layer >= bend and steps > 0:
            i, k = i + _step_x(side), k + _step_z(side)
            steps -= 1
        _put_log(blocks, top, x0, z0, i, ground + 1 + layer, k, log)
    tip = ground + 1 + trunk
    _put_flat_crown(blocks, top, x0, z0, i, tip, k, 3, leaves)
    if other == side:
        return tip
    i, k = x, z
    layer, highest = bend - (dice >> 8 & 1) - 1, 0
    for _ in range(1 + (dice >> 9) % 3):
        if layer >= trunk:
            break
        if layer >= 1:
            i, k, highest = i + _step_x(other), k + _step_z(other), ground + 2 + layer
            _put_log(blocks, top, x0, z0, i, ground + 1 + layer, k, log)
        layer += 1
    if highest > 0:
        _put_flat_crown(blocks, top, x0, z0, i, highest, k, 2, leaves)
    return tip


@kernel(inline="always")
def _step_x(side: int) -> int:
    return 1 - 2 * (side & 1) if side < 2 else 0


@kernel(inline="always")
def _step_z(side: int) -> int:
    return 1 - 2 * (side & 1) if side >= 2 else 0


@kernel()
def _put_flat_crown(
    blocks: Window, top: Tops, x0: int, z0: int, x: int, y: int, z: int, reach: int, leaves: int
) -> None:
    """An acacia's crown around the tip of a branch: a wide row, and a cross on top of it."""
    _put_row(blocks, top, x0, z0, x, y - 1, z, reach, leaves)
    reach -= 1
    for i in range(max(x - reach, x0), min(x + reach + 1, x0 + CHUNK)):
        for k in range(max(z - reach, z0), min(z + reach + 1, z0 + CHUNK)):
            if max(abs(i - x), abs(k - z)) <= 1 or i == x or k == z:
                _put_leaf(blocks, top, i, y, k, leaves)


# --------------------------------------------------------------------------- cactus


@kernel()
def _grow_cactus(
    blocks: Window, top: Tops, x: int, z: int, ground: int, dice: int, away: int, seed: int
) -> int:
    """Grow a cactus if it is in the chunk and has room; return the y of its tip, else 0."""
    if away > 0 or not _has_room(x, z, ground, seed):
        return 0
    tip = ground + 1 + (dice >> 24) % 3
    start = block_index(x, 0, z)
    blocks[start + ground + 1 : start + tip + 1] = b.CACTUS
    column = column_index(x, z)
    top[column] = max(int64(top[column]), tip)  # a tree next to it may be higher
    return tip


@kernel()
def _has_room(x: int, z: int, ground: int, seed: int) -> bool:
    """Whether a cactus in column (x, z) would touch nothing, so far as its cell and the land go."""
    if x % TREE_CELL == TREE_CELL - 1 or z % TREE_CELL == TREE_CELL - 1:
        return False  # the cell beyond may have a cactus in its first columns
    for side in range(4):
        if ground_height(x + _step_x(side), z + _step_z(side), seed) > ground:
            return False
    return True
