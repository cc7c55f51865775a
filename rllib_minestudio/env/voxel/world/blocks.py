"""Kinds of blocks of the embedded engine, and arrays by kind for the kernels.

The facts are in `data/blocks.csv`. A block of the world has a state as well, see `block_states`,
and a shape, see `block_shapes`; the arrays here are for what is the same in all states of a kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rllib_minestudio.env.voxel.data import read_csv

UNBREAKABLE = -1.0
"""Hardness of a block that no tool can mine."""

PICKAXE, SHOVEL, AXE, SWORD, HOE, SHEARS = "pickaxe", "shovel", "axe", "sword", "hoe", "shears"

LARGEST_KIND = 1023
"""A block of the world has 16 bits: ten for its kind, and six for its state."""


class Shape(Enum):
    """What shape a block has."""

    NONE = "none"
    """Air."""
    CUBE = "cube"
    """A full cube."""
    OTHER = "other"
    """What `block_shapes` says."""
    REFUSED = "refused"
    """Water, fire, a portal or technical block: a cube would be wrong, so it cannot be put."""


@dataclass(frozen=True)
class Block:
    """One block type.

    Attributes:
        name: Minecraft's identifier without the namespace.
        material: What it is made of, such as "stone", "wood" or "plant".
        hardness: Minecraft's hardness; `UNBREAKABLE` for bedrock and the like.
        tool: Class of tools that mine it faster, or None.
        harvest_tier: Lowest tier of that tool that yields drops (0 = bare hands do, 1 wood,
            2 stone, 3 iron, 4 diamond).
        drop: Name of the one item that mining yields; None for nothing, or where `loot` has a
            table for it.
        falls: Whether it falls when nothing is below it.
        shape: What shape it has.
        see_through: Whether one can see through it, although it is a full cube.
    """

    name: str
    material: str
    hardness: float
    tool: str | None
    harvest_tier: int
    drop: str | None
    falls: bool
    shape: Shape
    see_through: bool


BY_TABLE = "table"
"""The drop in `blocks.csv` of a block that has a table in `block_loot.json`."""


def _block(row: dict[str, str]) -> Block:
    return Block(
        name=row["block"],
        material=row["material"],
        hardness=float(row["hardness"]),
        tool=row["tool"] or None,
        harvest_tier=int(row["tier"]),
        drop=None if row["drop"] in ("", BY_TABLE) else row["drop"],
        falls=row["falls"] == "yes",
        shape=Shape(row["shape"]),
        see_through=row["see_through"] == "yes",
    )


BLOCKS: tuple[Block, ...] = tuple(map(_block, read_csv("blocks.csv")))
"""All kinds of blocks of Minecraft Java 1.16.5; a kind's id is its index here, and air is 0."""

BLOCK_ID: dict[str, int] = {block.name: index for index, block in enumerate(BLOCKS)}
"""Kind by name; also the block of that kind in its default state."""

AIR = BLOCK_ID["air"]
STONE = BLOCK_ID["stone"]
GRASS_BLOCK = BLOCK_ID["grass_block"]
DIRT = BLOCK_ID["dirt"]
BEDROCK = BLOCK_ID["bedrock"]
LAVA = BLOCK_ID["lava"]
SAND = BLOCK_ID["sand"]
GRAVEL = BLOCK_ID["gravel"]
OAK_LOG = BLOCK_ID["oak_log"]
OAK_LEAVES = BLOCK_ID["oak_leaves"]
BIRCH_LOG = BLOCK_ID["birch_log"]
BIRCH_LEAVES = BLOCK_ID["birch_leaves"]
SANDSTONE = BLOCK_ID["sandstone"]
CACTUS = BLOCK_ID["cactus"]
SNOW = BLOCK_ID["snow"]
SNOW_BLOCK = BLOCK_ID["snow_block"]

HARDNESS = np.array([block.hardness for block in BLOCKS], np.float32)
"""Hardness by kind, float32 as in Minecraft."""
SCREENS = ("crafting_table", "furnace", "chest", "enchanting_table")
"""Blocks that open a screen of the same name when used."""
FALLS = np.array([block.falls for block in BLOCKS])
"""Whether a block falls when nothing is below it, by kind, bool."""
