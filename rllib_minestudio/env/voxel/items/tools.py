"""How fast an item mines each block, and whether it is the right tool for it."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.items import Item
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, SHEARS, SWORD

RIGHT_TOOL_TICKS = 30.0
_WRONG_TOOL_TICKS = 100.0
"""Ticks per point of hardness at speed 1, with the tool that a block asks for and without."""
_SPEED_BY_MATERIAL = {
    SWORD: {"leaves": 1.5, "plant": 1.5, "gourd": 1.5, "web": 15.0, "bamboo": float("inf")},
    SHEARS: {"leaves": 15.0, "web": 15.0, "wool": 5.0},
}
"""What swords and shears mine faster than the hand; a sword cuts bamboo at once."""
_SHEARED = frozenset(("grass", "fern", "dead_bush", "vine", "tripwire"))
"""Blocks that count as a use of shears, besides those that they mine faster."""
_SHEARS_HARVEST = frozenset(("cobweb", "redstone_wire", "tripwire"))
_HASTE_PER_LEVEL = np.float32(0.2)
_FATIGUE_FACTORS = tuple(map(np.float32, (1.0, 0.3, 0.09, 0.0027, 8.1e-4)))
"""Factor on the speed by level of mining fatigue; higher levels are as the last."""


def is_right_tool(item: Item | None, block: int) -> bool:
    """Whether block id `block`, mined with `item` (None: the bare hand), drops something."""
    wanted = BLOCKS[block]
    if wanted.harvest_tier == 0:
        return True
    if item is None:
        return False
    if item.tool == SHEARS:
        return wanted.name in _SHEARS_HARVEST
    return item.tool == wanted.tool and item.tier >= wanted.harvest_tier


def _speed(item: Item | None, block: int) -> float:
    if item is None or item.tool is None:
        return 1.0
    if item.tool in _SPEED_BY_MATERIAL:
        return _SPEED_BY_MATERIAL[item.tool].get(BLOCKS[block].material, 1.0)
    return item.mining_speed if item.tool == BLOCKS[block].tool else 1.0


def counts_as_use(item: Item, block: int) -> bool:
    """Whether mining block id `block` counts as a use of `item`, a tool that it wears."""
    return item.tool != SHEARS or _speed(item, block) > 1.0 or BLOCKS[block].name in _SHEARED


def mining_wear(item: Item, block: int) -> int:
    """Uses that mining block id `block` costs: none where a touch breaks it, but for shears."""
    return item.mining_wear if BLOCKS[block].hardness or item.tool == SHEARS else 0


@cache
def _plain_speeds(item: Item | None) -> NDArray[np.float32]:
    return np.array([_speed(item, block) for block in range(len(BLOCKS))], np.float32)


def mining_speeds(item: Item | None, haste: int, fatigue: int) -> NDArray[np.float32]:
    """Speed on each block on the ground, float32 by block id; 1 is the bare hand's.

    Args:
        item: What is in the hand.
        haste: Level of the effect, 0 for none.
        fatigue: Level of mining fatigue, 0 for none.
    """
    # One factor after the other, rounded to float32 each time: Minecraft's sums depend on it.
    quickened = _plain_speeds(item) * (np.float32(1.0) + np.float32(haste) * _HASTE_PER_LEVEL)
    return quickened * _FATIGUE_FACTORS[min(fatigue, len(_FATIGUE_FACTORS) - 1)]


@cache
def mining_ticks(item: Item | None) -> NDArray[np.float32]:
    """Ticks per point of hardness at speed 1, float32 by block id (minecraft.wiki/w/Breaking)."""
    ticks = np.array(
        [
            RIGHT_TOOL_TICKS if is_right_tool(item, block) else _WRONG_TOOL_TICKS
            for block in range(len(BLOCKS))
        ],
        np.float32,
    )
    ticks.flags.writeable = False
    return ticks
