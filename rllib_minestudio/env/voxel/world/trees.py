"""Trees and cactus: cells of the land hold one each, or none.

A cell's tree may reach into other chunks, each of which grows its own part of it.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.box_field import CHUNK, block_index, column_index
from rllib_minestudio.env.voxel.world.caves import is_carved
from rllib_minestudio.env.voxel.world.tunnels import Spheres
from rllib_minestudio.env.voxel.world.worldgen import (
    DESERT,
    FOREST,
    biome_at,
    ground_height,
    hash_place,
)

_TREE_CELL = 6
"""Side, in columns, of the cells that may hold one tree each."""
_TREE_CHANCE = np.array([4, 170, 40], np.int64)
"""Chance, out of 256, of a tree (in the desert, a cactus) in a cell, by biome.

Minecraft's hundred tries for a cactus in a chunk, at any height up to twice the ground's, come to
three in four chunks; here, a third of the chances have no room.
"""
_CANOPY = 2
"""Largest horizontal reach of a tree from its trunk, in columns."""


@kernel()
def grow_trees(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    seed: int,
    near: Spheres,
) -> int:
    """Grow the trees and the cactus of a chunk.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.
        near: What is carved out of the land, from `tunnels.spheres_near`.

    Returns:
        The highest layer of one of them, 0 if there are none.
    """
    highest = 0
    first_x = (chunk_x * 16 - _CANOPY) // _TREE_CELL
    last_x = (chunk_x * 16 + 15 + _CANOPY) // _TREE_CELL
    first_z = (chunk_z * 16 - _CANOPY) // _TREE_CELL
    last_z = (chunk_z * 16 + 15 + _CANOPY) // _TREE_CELL
    for cell_x in range(first_x, last_x + 1):
        for cell_z in range(first_z, last_z + 1):
            tip = _grow_plant(blocks, top, chunk_x, chunk_z, cell_x, cell_z, seed, near)
            highest = max(highest, tip)
    return highest


@kernel()
def _grow_plant(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    chunk_x: int,
    chunk_z: int,
    cell_x: int,
    cell_z: int,
    seed: int,
    near: Spheres,
) -> int:
    """Grow a cell's plant, if it has one, inside one chunk, and return the y of its tip."""
    dice = int64(hash_place(cell_x, cell_z, seed + 77))
    x = cell_x * _TREE_CELL + (dice & 255) % _TREE_CELL
    z = cell_z * _TREE_CELL + (dice >> 8 & 255) % _TREE_CELL
    biome = biome_at(x, z, seed)
    if (dice >> 16 & 255) >= _TREE_CHANCE[biome]:
        return 0
    ground = ground_height(x, z, seed)
    if is_carved(near, x - chunk_x * CHUNK, ground, z - chunk_z * CHUNK):
        return 0
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
