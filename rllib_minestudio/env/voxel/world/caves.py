"""Caves, ravines and veins, after the carvers and `OreFeature` of Minecraft Java 1.16.

What is carved is the union of the spheres that `tunnels` walks: it depends on the seed alone, not
on which chunks are there. A tunnel's spheres have a level floor; those of a ravine are narrower in
some layers than in others. Below layer `LAVA_LAYERS` what is carved is filled with lava.

Left out is water, which stops a carver in the game.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float32, int64, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, KIND_MASK, LARGEST_KIND, kind_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.climate import MOUNTAINS, biome_at, hash_place
from rllib_minestudio.env.voxel.world.column_bits import (
    COLUMN_WORDS,
    WORD_LAYERS,
    Bits,
    bits_from,
    lowest_bit,
    set_run,
    without_lowest,
)
from rllib_minestudio.env.voxel.world.physics import random
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


# ------- veins of ores, and of other stone, earth and gravel, after `OreFeature` of Minecraft Java
# Veins of ores, and of other stone, earth and gravel, after `OreFeature` of Minecraft Java 1.16.
# A vein of some size is a row of as many spheres along a slanted line, of random radii that grow
# towards its middle. It replaces stone and its like; what is carved out before stays open, so a
# vein can lie bare in a cave. `data/veins.csv` says how many veins of a kind begin in a chunk, and
# where: in one of so many layers, or at the sum of two dice of them.
#
# As veins begin at whole coordinates, their shapes do not depend on the place. There is a fixed
# collection of shapes for each size, and a vein takes one of them: it has only to be written.
#
# Veins reach into other chunks. So a chunk goes through those of the chunks around it as well,
# always in the same order, and writes what falls into its own columns.

_TABLE = read_csv("veins.csv")


def _column(name: str) -> NDArray[np.int64]:
    return np.array([int(row[name]) for row in _TABLE])


_BLOCK = np.array([BLOCK_ID[row["block"]] for row in _TABLE], np.uint16)
_COUNT, _LOWEST_OF_KIND, _LAYERS, _DICE = (
    _column(name) for name in ("count", "lowest", "layers", "dice")
)
SIZES, _SIZE_OF = np.unique(_column("size"), return_inverse=True)
"""Sizes of veins, ascending."""
_IS_STONE = np.zeros(LARGEST_KIND + 1, np.bool_)
"""What veins replace: Minecraft's tag `base_stone_overworld`."""
for _name in ("stone", "granite", "diorite", "andesite"):
    _IS_STONE[BLOCK_ID[_name]] = True

SHAPES = 256
"""Shapes of each size."""
REACH = 8
"""No block of a vein is farther than this from where it begins, along any axis; -8 to 7."""
_SIDE = 2 * REACH
_SALT, _EMERALD_SALT = 2000, 2900
_EMERALD_ORE = BLOCK_ID["emerald_ore"]
_FIRST_STATE = 2
"""Of the generator that rolls the shapes: with it, the mean vein of each size is as large as the
mean of all possible ones, to half a percent."""


class VeinShapes(NamedTuple):
    """A collection of shapes.

    Attributes:
        first: Where the runs of each shape begin, those of the smallest size first;
            int64 [sizes * `SHAPES` + 1].
        runs: Runs of blocks on top of each other, uint16 [n]: four bits each for x, z and the
            lowest y, `REACH` more than counted from where the vein begins, and for their number.
        bounds: Columns of each shape, int8 [shapes, 4]: the first x and z from where the vein
            begins, then the last.
    """

    first: NDArray[np.int64]
    runs: NDArray[np.uint16]
    bounds: NDArray[np.int8]


@kernel()
def find_shapes() -> VeinShapes:
    """Roll the collection of shapes, which is always the same."""
    state = np.full(1, _FIRST_STATE, np.uint64)
    first, count = np.zeros(len(SIZES) * SHAPES + 1, np.int64), 0
    runs = np.empty(len(SIZES) * SHAPES * _SIDE * _SIDE, np.uint16)
    bounds = np.empty((len(SIZES) * SHAPES, 4), np.int8)
    for number in range(len(SIZES) * SHAPES):
        cells = np.zeros((_SIDE, _SIDE, _SIDE), np.bool_)
        _roll_shape(cells, SIZES[number // SHAPES], state)
        count = _add_runs(cells, runs, count, bounds[number])
        first[number + 1] = count
    return VeinShapes(first, runs[:count].copy(), bounds)


@kernel()
def _add_runs(
    cells: NDArray[np.bool_], runs: NDArray[np.uint16], count: int, bounds: NDArray[np.int8]
) -> int:
    """Add the runs of a shape, write its bounds, and return how many runs there are now."""
    bounds[:2], bounds[2:] = REACH, -REACH
    for x in range(_SIDE):
        for z in range(_SIDE):
            for y in range(_SIDE):
                if not cells[x, z, y]:
                    continue
                if y == 0 or not cells[x, z, y - 1]:
                    runs[count] = x | z << 4 | y << 8
                    count += 1
                runs[count - 1] += 1 << 12
                bounds[0], bounds[1] = min(bounds[0], x - REACH), min(bounds[1], z - REACH)
                bounds[2], bounds[3] = max(bounds[2], x - REACH), max(bounds[3], z - REACH)
    return count


@kernel()
def _roll_shape(cells: NDArray[np.bool_], size: int, state: NDArray[np.uint64]) -> None:
    """Mark the cells of a vein that begins in the middle, bool [x, z, y]."""
    angle = random(state) * np.pi
    x, z = np.sin(angle) * size / 8.0, np.cos(angle) * size / 8.0
    low, high = int64(random(state) * 3) - 2.0, int64(random(state) * 3) - 2.0
    spheres = np.empty((size, 4))
    for number in range(size):
        share = number / size
        radius = (np.sin(np.pi * share) + 1.0) * random(state) * size / 16.0
        spheres[number, 0] = x - 2.0 * x * share
        spheres[number, 1] = low + (high - low) * share
        spheres[number, 2] = z - 2.0 * z * share
        spheres[number, 3] = (radius + 1.0) / 2.0
    for number in range(size):
        _mark(cells, spheres[number])


@kernel()
def _mark(cells: NDArray[np.bool_], sphere: NDArray[np.float64]) -> None:
    """Mark the cells whose middle is in a sphere."""
    x, y, z, radius = sphere
    for i in range(int64(np.floor(x - radius)), int64(np.floor(x + radius)) + 1):
        dx = (i + 0.5 - x) / radius
        for k in range(int64(np.floor(z - radius)), int64(np.floor(z + radius)) + 1):
            dz = (k + 0.5 - z) / radius
            for j in range(int64(np.floor(y - radius)), int64(np.floor(y + radius)) + 1):
                dy = (j + 0.5 - y) / radius
                if dx * dx + dy * dy + dz * dz < 1.0:
                    cells[i + REACH, k + REACH, j + REACH] = True


@kernel()
def grow_veins(
    blocks: NDArray[np.uint16], chunk_x: int, chunk_z: int, seed: int, high: int, shapes: VeinShapes
) -> None:
    """Grow the veins of a chunk in its stone.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.
        high: There is no stone from this layer up.
        shapes: From `find_shapes`.
    """
    runs, bounds = shapes.runs, shapes.bounds
    for kind in range(len(_BLOCK)):
        for near_x in range(chunk_x - 1, chunk_x + 2):
            for near_z in range(chunk_z - 1, chunk_z + 2):
                for number in range(_COUNT[kind]):
                    dice = int64(hash_place(near_x, near_z, seed + _SALT + kind * 64 + number))
                    x = (near_x - chunk_x) * CHUNK + (dice & 15)
                    z = (near_z - chunk_z) * CHUNK + (dice >> 4 & 15)
                    shape = uint32(_SIZE_OF[kind] * SHAPES + (dice >> 8 & SHAPES - 1))
                    if x + bounds[shape, 0] >= CHUNK or x + bounds[shape, 2] < 0:
                        continue
                    if z + bounds[shape, 1] >= CHUNK or z + bounds[shape, 3] < 0:
                        continue
                    y = _LOWEST_OF_KIND[kind] + _roll_layer(dice >> 16, _LAYERS[kind], _DICE[kind])
                    if y - REACH < high:
                        of_vein = runs[shapes.first[shape] : shapes.first[shape + 1]]
                        _write(blocks, chunk_x, chunk_z, x, y, z, _BLOCK[kind], of_vein)


@kernel()
def grow_emeralds(blocks: NDArray[np.uint16], chunk_x: int, chunk_z: int, seed: int) -> None:
    """Put the emeralds of a chunk of mountains into its stone, each by itself.

    Three to eight, in the layers 4 to 31 (`EmeraldOreFeature`, from memory). Arguments are those of
    `grow_veins`.
    """
    if biome_at(chunk_x * CHUNK + CHUNK // 2, chunk_z * CHUNK + CHUNK // 2, seed) != MOUNTAINS:
        return
    number = 3 + int64(hash_place(chunk_x, chunk_z, seed + _EMERALD_SALT)) % 6
    for emerald in range(1, number + 1):
        dice = int64(hash_place(chunk_x, chunk_z, seed + _EMERALD_SALT + emerald))
        x, z = chunk_x * CHUNK + (dice & 15), chunk_z * CHUNK + (dice >> 4 & 15)
        index = block_index(x, 4 + (dice >> 8) % 28, z)
        if blocks[index] == b.STONE:
            blocks[index] = _EMERALD_ORE


@kernel(inline="always")
def _roll_layer(dice: int, layers: int, number: int) -> int:
    """The sum of one or two dice of so many layers, of 16 random bits."""
    if number == 1:
        return dice * layers >> 16
    return ((dice & 255) * layers >> 8) + ((dice >> 8) * layers >> 8)


@kernel(allocates=False)
def _write(
    blocks: NDArray[np.uint16],
    chunk_x: int,
    chunk_z: int,
    x: int,
    y: int,
    z: int,
    block: int,
    runs: NDArray[np.uint16],
) -> None:
    """Write a vein's blocks inside a chunk; x and z are from the corner of the chunk."""
    for number in range(len(runs)):
        run = int64(runs[number])
        i, k = x - REACH + (run & 15), z - REACH + (run >> 4 & 15)
        if uint64(i) >= uint64(CHUNK) or uint64(k) >= uint64(CHUNK):
            continue
        start = block_index(chunk_x * CHUNK + i, 0, chunk_z * CHUNK + k)
        layer = y - REACH + (run >> 8 & 15)
        low, high = max(layer, 0), min(layer + (run >> 12), HEIGHT)
        for index in range(uint32(start + low), uint32(start + max(low, high))):
            before = blocks[index]
            blocks[index] = block if _IS_STONE[before & KIND_MASK] else before
