"""Caves and ravines are carved out of the land, after the carvers of Minecraft Java 1.16.

What is carved is the union of the spheres that `tunnels` walks: it depends on the seed alone, not
on which chunks are there. A tunnel's spheres have a level floor; those of a ravine are narrower in
some layers than in others. Below layer `LAVA_LAYERS` what is carved is filled with lava.

Left out is water, which stops a carver in the game.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int64, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.climate import hash_place
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_from,
    lowest_bit,
    set_run,
    without_lowest,
)
from rllib_minestudio.env.voxel.world.tunnels import ACROSS, RAVINE_SALT, UP, Spheres, X, Y, Z

LAVA_LAYERS = 11
"""Below this layer lava fills what is carved."""

_LOWEST = 2
"""The lowest layer that is carved."""
_FLOOR = np.float32(0.7)
"""Share of a sphere's radius below its centre where the floor is."""
_HIGHER = np.float32(6.0)
"""By how much less the height in a ravine counts than that in a tunnel."""
_HALF, _ONE = np.float32(0.5), np.float32(1.0)


@kernel(inline="always")
def _share_across(near: Spheres, number: int, x: int, z: int) -> float:
    """Square of how far column (x, z) is from the middle of a sphere, in its radii."""
    across = near[number, ACROSS]
    dx = (float32(x) + _HALF - near[number, X]) / across
    dz = (float32(z) + _HALF - near[number, Z]) / across
    return dx * dx + dz * dz


@kernel(inline="always")
def _layers(near: Spheres, number: int, share: float) -> tuple[int, int]:
    """The layers that a sphere of a tunnel has in a column, from the first to before the second."""
    middle, up = near[number, Y] + _HALF, near[number, UP]
    half = up * np.sqrt(_ONE - share)
    # Conversion rounds towards 0, which below the world does not matter.
    low, high = int64(middle - min(half, up * _FLOOR)) + 1, int64(middle + half) + 1
    return max(low, _LOWEST), high


@kernel(inline="always")
def _layers_of_ravine(near: Spheres, number: int) -> tuple[int, int]:
    """The layers that a sphere of a ravine can have, from the first to before the second."""
    middle, up = near[number, Y], near[number, UP]
    low, high = int64(np.floor(middle - up)), int64(np.floor(middle + up)) + 2
    return max(low, _LOWEST), min(high, HEIGHT)


@kernel()
def _narrowness(salt: int, y: int) -> float:
    """How much narrower a ravine is in a layer: its share across counts so many times."""
    dice = int64(hash_place(y, 0, salt))
    while y > 0 and dice % 3 != 0:  # as narrow as in the layer below
        y -= 1
        dice = int64(hash_place(y, 0, salt))
    narrow = 1.0 + (dice >> 8 & 0xFFF) / 4096.0 * ((dice >> 20) / 4096.0)
    return float32(narrow * narrow)


@kernel(inline="always")
def _is_in_ravine(near: Spheres, number: int, share: float, y: int, narrowness: float) -> bool:
    up = (float32(y) - _HALF - near[number, Y]) / near[number, UP]
    return share * narrowness + up * up / _HIGHER < _ONE


@kernel()
def is_carved(near: Spheres, x: int, y: int, z: int) -> bool:
    """Whether a cell of the land is carved out.

    Args:
        near: From `spheres_near` of a chunk.
        x: The cell's column from the corner of the chunk, `-NEAR` to 16 + `NEAR` - 1.
        y: Its layer.
        z: As x.
    """
    for number in range(len(near)):
        share = _share_across(near, number, x, z)
        if share >= _ONE:
            continue
        salt = int64(near[number, RAVINE_SALT])
        low, high = _layers_of_ravine(near, number) if salt else _layers(near, number, share)
        is_inside = not salt or _is_in_ravine(near, number, share, y, _narrowness(salt, y))
        if is_inside and low <= y < high:
            return True
    return False


@kernel()
def carve(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    hollow: Bits,
    chunk_x: int,
    chunk_z: int,
    high: int,
    near: Spheres,
) -> int:
    """Carve caves and ravines out of a chunk that is plain up to its tops.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16]; lower where the ground is carved away.
        hollow: Where the land is hollow; updated.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        high: The highest top.
        near: From `spheres_near`.

    Returns:
        The lowest top.
    """
    narrowness = np.empty(HEIGHT, np.float32)
    for number in range(len(near)):
        x, z, across = near[number, X], near[number, Z], near[number, ACROSS]
        if near[number, Y] - near[number, UP] > high or min(x, z) <= -across:
            continue
        if max(x, z) >= CHUNK + across:
            continue
        if near[number, RAVINE_SALT] == 0:
            _open_sphere(hollow, chunk_x, chunk_z, near, number)
        else:
            _open_ravine(hollow, chunk_x, chunk_z, near, number, narrowness)
    lowest = HEIGHT
    for x in range(chunk_x * CHUNK, (chunk_x + 1) * CHUNK):
        for z in range(chunk_z * CHUNK, (chunk_z + 1) * CHUNK):
            lowest = min(lowest, _empty_column(blocks, top, hollow, x, z))
    return lowest


@kernel(inline="always")
def _span(middle: float, radius: float) -> tuple[int, int]:
    """The columns of a chunk that a sphere may touch, from the first to before the second."""
    first, last = int64(np.floor(middle - radius)), int64(np.floor(middle + radius))
    return max(first, 0), min(last + 1, CHUNK)


@kernel(allocates=False)
def _open_sphere(hollow: Bits, chunk_x: int, chunk_z: int, near: Spheres, number: int) -> None:
    first_x, last_x = _span(near[number, X], near[number, ACROSS])
    first_z, last_z = _span(near[number, Z], near[number, ACROSS])
    for x in range(first_x, last_x):
        for z in range(first_z, last_z):
            share = _share_across(near, number, x, z)
            if share < _ONE:
                low, high = _layers(near, number, share)
                column = column_index(chunk_x * CHUNK + x, chunk_z * CHUNK + z)
                if low < high:
                    set_run(hollow, uint32(COLUMN_WORDS * column), low, high)


@kernel(allocates=False)
def _open_ravine(
    hollow: Bits,
    chunk_x: int,
    chunk_z: int,
    near: Spheres,
    number: int,
    narrowness: NDArray[np.float32],
) -> None:
    """Open a sphere of a ravine; `narrowness` is float32 [128], to be written to."""
    first_x, last_x = _span(near[number, X], near[number, ACROSS])
    first_z, last_z = _span(near[number, Z], near[number, ACROSS])
    if first_x >= last_x or first_z >= last_z:
        return
    low, high = _layers_of_ravine(near, number)
    for y in range(low, high):
        narrowness[y] = _narrowness(int64(near[number, RAVINE_SALT]), y)
    for x in range(first_x, last_x):
        for z in range(first_z, last_z):
            share = _share_across(near, number, x, z)
            if share >= _ONE:
                continue
            first = COLUMN_WORDS * column_index(chunk_x * CHUNK + x, chunk_z * CHUNK + z)
            for y in range(low, high):
                if _is_in_ravine(near, number, share, y, narrowness[y]):
                    bit = uint64(1) << uint64(y % WORD_LAYERS)
                    hollow[uint32(first + y // WORD_LAYERS)] |= bit


@kernel(allocates=False)
def _empty_column(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], hollow: Bits, x: int, z: int
) -> int:
    """Write air and lava where a column is hollow up to its top, and return its new top.

    Where grass is carved away, it grows on the earth below.
    """
    column, start = column_index(x, z), block_index(x, 0, z)
    y = int64(top[column])
    ground = blocks[start + y]
    for part in range(COLUMN_WORDS):
        word = hollow[COLUMN_WORDS * column + part] & ~bits_from(y + 1, part)
        while word:
            layer = part * WORD_LAYERS + lowest_bit(word)
            blocks[uint32(start + layer)] = b.LAVA if layer < LAVA_LAYERS else b.AIR
            word = without_lowest(word)
    if blocks[start + y] == ground:
        return y
    while blocks[start + y] == b.AIR:
        y -= 1
    if blocks[start + y] == b.DIRT and kind_of(ground) == b.GRASS_BLOCK:
        blocks[start + y] = ground
    top[column] = y
    return y
