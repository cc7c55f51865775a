"""Plants: which blocks are thin, where in its cell a plant stands, and what it grows on.

The facts are in `data/plants.csv`, from memory of Minecraft Java 1.16.5's classes of blocks. A
*thin* block is one that the game draws as flat pictures: plants, and cobwebs. Light, bodies and
the rays that draw the terrain pass through it; `cell_bits` knows where the thin blocks are, and
`render.plants` draws them. Cactus and bamboo grow on certain soils as well, but have a body.

What plants need besides their soil is left out: there is no water beside which sugar cane and in
which seagrass would grow, and mushrooms stand in any light.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import int32, int64

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, BLOCKS

CROSS, ROWS = "cross", "rows"
"""Planes of a thin block: two that cross along the diagonals, or two along either axis."""

NO_SHIFT, SHIFT_XZ, SHIFT_XYZ = range(3)
"""Along which axes a kind of plant stands off the middle of its cell, see `shift_of`."""

_SHIFTS = {"": NO_SHIFT, "xz": SHIFT_XZ, "xyz": SHIFT_XYZ}
_FULL = "full"
_SOILS = {
    "earth": ("grass_block", "dirt", "coarse_dirt", "podzol", "farmland"),
    "clays": tuple(
        block.name
        for block in BLOCKS
        if block.name.endswith("terracotta") and "glazed" not in block.name
    ),
}
"""Words of the column `soil` that stand for several kinds."""


@dataclass(frozen=True)
class Plant:
    """What is the same for all states of a kind of plant.

    Attributes:
        planes: `CROSS` or `ROWS`; empty for a plant with a body.
        shift: How it is shifted.
        soils: Kinds of blocks that it grows on.
        on_full_sides: Whether it grows on every block with a full upper side.
    """

    planes: str
    shift: int
    soils: frozenset[int]
    on_full_sides: bool


def _plants() -> dict[int, Plant]:
    found = {}
    for row in read_csv("plants.csv"):
        words = [name for word in row["soil"].split() for name in _SOILS.get(word, (word,))]
        plant = Plant(
            planes=row["planes"],
            shift=_SHIFTS[row["shift"]],
            soils=frozenset(BLOCK_ID[word] for word in words if word != _FULL),
            on_full_sides=_FULL in words,
        )
        found.update({BLOCK_ID[name]: plant for name in row["plants"].split()})
    return found


PLANTS: dict[int, Plant] = _plants()
"""All plants by kind."""

THIN_KINDS = frozenset(kind for kind, plant in PLANTS.items() if plant.planes)
"""The kinds of thin blocks."""

# ------------------------------------------------------------- where in its cell a plant stands
# Minecraft shifts plants by a hash of their column, so that meadows do not look like grids: up to
# a quarter of a block sideways, and grass up to a fifth down (`Block.getOffset`, from memory).

_LARGEST_SHIFT, _LARGEST_SINK = 0.25, 0.2
_STEPS = 15


@kernel()
def shift_of(x: int, z: int, shift: int) -> tuple[float, float, float]:
    """How far a plant in column (x, z) of the world stands off the middle of its cell.

    Args:
        x: The column.
        z: The column.
        shift: `NO_SHIFT`, `SHIFT_XZ` or `SHIFT_XYZ`.

    Returns:
        Blocks along x, y and z; the second is never positive.
    """
    if shift == NO_SHIFT:
        return 0.0, 0.0, 0.0
    seed = int64(int32(int64(x) * 3129871)) ^ (int64(z) * 116129781)
    seed = (seed * seed * 42317861 + seed * 11) >> 16
    along_x = ((seed & 15) / _STEPS * 2.0 - 1.0) * _LARGEST_SHIFT
    along_z = ((seed >> 8 & 15) / _STEPS * 2.0 - 1.0) * _LARGEST_SHIFT
    down = ((seed >> 4 & 15) / _STEPS - 1.0) * _LARGEST_SINK
    return along_x, down if shift == SHIFT_XYZ else 0.0, along_z
