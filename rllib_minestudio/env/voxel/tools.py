"""How fast an item mines each block, and whether the block then drops something."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.blocks import BLOCKS, SWORD, UNBREAKABLE
from rllib_minestudio.env.voxel.items import Item

_TICKS_WITH_DROPS = 30.0
_TICKS_WITHOUT_DROPS = 100.0
"""Ticks per point of hardness at speed 1, when the block will drop something and when not."""
_SWORD_SPEED_ON_LEAVES = 1.5


def yields_drop(item: Item | None, block: int) -> bool:
    """Whether mining block id `block` with `item` (None: the bare hand) yields its drop."""
    wanted = BLOCKS[block]
    if wanted.harvest_tier == 0:
        return True
    return item is not None and item.tool == wanted.tool and item.tier >= wanted.harvest_tier


def _speed(item: Item | None, block: int) -> float:
    if item is None or item.tool is None:
        return 1.0
    if item.tool == SWORD:
        return _SWORD_SPEED_ON_LEAVES if BLOCKS[block].name.endswith("leaves") else 1.0
    return item.mining_speed if item.tool == BLOCKS[block].tool else 1.0


@cache
def mining_rates(item: Item | None) -> NDArray[np.float64]:
    """Share of each block that one tick mines, on the ground; float64 by block id.

    Speed / hardness / 30 where the block will drop something, / 100 where not
    (minecraft.wiki/w/Breaking).
    """
    rates = np.zeros(len(BLOCKS))
    for block, kind in enumerate(BLOCKS):
        if kind.hardness == UNBREAKABLE or block == 0:
            continue
        ticks = _TICKS_WITH_DROPS if yields_drop(item, block) else _TICKS_WITHOUT_DROPS
        rates[block] = _speed(item, block) / (kind.hardness * ticks)
    rates.flags.writeable = False
    return rates
