"""Block types of the embedded engine: one table, plus arrays by block id for the kernels.

Hardness, tools and drops follow Minecraft Java 1.16. Every block but air is an opaque full cube.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

UNBREAKABLE = -1.0
"""Hardness of a block that no tool can mine."""

PICKAXE, SHOVEL, AXE, SWORD, HOE, SHEARS = "pickaxe", "shovel", "axe", "sword", "hoe", "shears"


@dataclass(frozen=True)
class Block:
    """One block type.

    Attributes:
        name: Minecraft's identifier without the namespace.
        hardness: Minecraft's hardness; `UNBREAKABLE` for bedrock.
        tool: Class of tool that mines it faster, or None.
        harvest_tier: Lowest tier of that tool that yields drops (0 = bare hands do, 1 wood,
            2 stone, 3 iron, 4 diamond).
        drop: Name of the item that mining yields; None where `loot` has a table for it.
        falls: Whether it falls when nothing is below it.
    """

    name: str
    hardness: float = 0.0
    tool: str | None = None
    harvest_tier: int = 0
    drop: str | None = None
    falls: bool = False


BLOCKS: tuple[Block, ...] = (
    Block("air"),
    Block("stone", 1.5, PICKAXE, 1, "cobblestone"),
    Block("grass_block", 0.6, SHOVEL, 0, "dirt"),
    Block("dirt", 0.5, SHOVEL, 0, "dirt"),
    Block("cobblestone", 2.0, PICKAXE, 1, "cobblestone"),
    Block("oak_planks", 2.0, AXE, 0, "oak_planks"),
    Block("bedrock", UNBREAKABLE),
    Block("sand", 0.5, SHOVEL, 0, "sand", falls=True),
    Block("gravel", 0.6, SHOVEL, falls=True),
    Block("coal_ore", 3.0, PICKAXE, 1, "coal"),
    Block("iron_ore", 3.0, PICKAXE, 2, "iron_ore"),
    Block("diamond_ore", 3.0, PICKAXE, 3, "diamond"),
    Block("oak_log", 2.0, AXE, 0, "oak_log"),
    Block("oak_leaves", 0.2, HOE),
    Block("birch_log", 2.0, AXE, 0, "birch_log"),
    Block("birch_leaves", 0.2, HOE),
    Block("sandstone", 0.8, PICKAXE, 1, "sandstone"),
    Block("cactus", 0.4, None, 0, "cactus"),
    Block("white_wool", 0.8, None, 0, "white_wool"),
    Block("bricks", 2.0, PICKAXE, 1, "bricks"),
    Block("obsidian", 50.0, PICKAXE, 4, "obsidian"),
    Block("crafting_table", 2.5, AXE, 0, "crafting_table"),
    Block("furnace", 3.5, PICKAXE, 1, "furnace"),
    Block("snow_block", 0.2, SHOVEL, 1),
    Block("hay_block", 0.5, HOE, 0, "hay_block"),
)
"""All block types; a block's id is its index here, and air is 0."""

BLOCK_ID: dict[str, int] = {block.name: index for index, block in enumerate(BLOCKS)}
"""Block id by name."""

AIR = BLOCK_ID["air"]
STONE = BLOCK_ID["stone"]
GRASS_BLOCK = BLOCK_ID["grass_block"]
DIRT = BLOCK_ID["dirt"]
BEDROCK = BLOCK_ID["bedrock"]
SAND = BLOCK_ID["sand"]
COAL_ORE = BLOCK_ID["coal_ore"]
IRON_ORE = BLOCK_ID["iron_ore"]
DIAMOND_ORE = BLOCK_ID["diamond_ore"]
OAK_LOG = BLOCK_ID["oak_log"]
OAK_LEAVES = BLOCK_ID["oak_leaves"]
BIRCH_LOG = BLOCK_ID["birch_log"]
BIRCH_LEAVES = BLOCK_ID["birch_leaves"]
SANDSTONE = BLOCK_ID["sandstone"]
CACTUS = BLOCK_ID["cactus"]

HARDNESS = np.array([block.hardness for block in BLOCKS], np.float32)
"""Hardness by block id, float32 as in Minecraft."""
FALLS = np.array([block.falls for block in BLOCKS])
"""Whether a block falls when nothing is below it, by block id, bool."""
