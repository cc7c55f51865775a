"""What a mined block drops: Minecraft Java 1.16's loot tables, without enchantments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rllib_minestudio.env.voxel.entities.drops import DROP_DELAY
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEM_ID, Item
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, SHEARS


class Pool(NamedTuple):
    """A part of a loot table that is rolled for by itself.

    Attributes:
        item: What drops.
        chance: How likely it is to.
        low: Least quantity.
        high: Largest quantity, all from the least on being equally likely.
        otherwise: One of this drops instead; None for nothing.
    """

    item: str
    chance: float = 1.0
    low: int = 1
    high: int = 1
    otherwise: str | None = None


_STICKS = Pool("stick", 0.02, 1, 2)
TABLES: dict[str, tuple[Pool, ...]] = {
    "oak_leaves": (Pool("oak_sapling", 0.05), _STICKS, Pool("apple", 0.005)),
    "birch_leaves": (Pool("birch_sapling", 0.05), _STICKS),
    "gravel": (Pool("flint", 0.1, otherwise="gravel"),),
    "snow_block": (Pool("snowball", low=4, high=4),),
}
"""Tables of the blocks that do not simply drop one of `Block.drop`."""
_SHEARED = "leaves"
"""Last word of the names of blocks that shears take whole."""


def _roll(state: GameState, block: int, tool: Item | None) -> Iterator[tuple[str, int]]:
    name = BLOCKS[block].name
    if tool is not None and tool.tool == SHEARS and name.endswith(_SHEARED):
        yield name, 1
        return
    for pool in TABLES.get(name, ()):
        if pool.chance >= 1.0 or state.random() < pool.chance:
            steady = pool.low == pool.high
            yield pool.item, pool.low if steady else state.random_between(pool.low, pool.high)
        elif pool.otherwise is not None:
            yield pool.otherwise, 1
    if (drop := BLOCKS[block].drop) is not None:
        yield drop, 1


def drop_loot(state: GameState, block: int, tool: Item | None, cell: tuple[int, int, int]) -> None:
    """Drops what block id `block` at `cell` yields to `tool` (None: the hand, or no one)."""
    x, y, z = cell
    for name, quantity in _roll(state, block, tool):
        state.scatter_item(ITEM_ID[name], quantity, (x + 0.5, y + 0.25, z + 0.5), DROP_DELAY)
