"""Loot of mined blocks: Minecraft Java 1.16.5's loot tables, without enchantments.

A block drops `Block.drop`, or what its table in `data/block_loot.json` yields. A table that depends
on a block's state is applied to the default state. A bed or a tall plant is one block here, and
drops as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rllib_minestudio.env.voxel.data import read_json
from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEM_ID, Item
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, SHEARS


class Entry(NamedTuple):
    """One possible yield of a pool.

    Attributes:
        item: Name of the item that drops.
        tool: "shears" or "not shears" if it depends on the tool; empty if it does not.
        chance: Probability, given that tool.
        quantity: Least and largest quantity; all values in this range are equally likely.
        trials: Number of trials, each of which may add one to the quantity.
        success: Probability that a trial adds one.
        at_least: Minimum that a smaller quantity is raised to.
    """

    item: str
    tool: str = ""
    chance: float = 1.0
    quantity: tuple[int, int] = (1, 1)
    trials: int = 0
    success: float = 0.0
    at_least: int = 0


Pool = tuple[Entry, ...]
"""Entries of which the first whose tool and chance are met is the yield."""


def _entry(fields: dict[str, Any]) -> Entry:
    return Entry(**{**fields, "quantity": tuple(fields.get("quantity", (1, 1)))})


TABLES: dict[str, tuple[Pool, ...]] = {
    name: tuple(tuple(map(_entry, pool)) for pool in pools)
    for name, pools in read_json("block_loot.json").items()
}
"""Pools of the blocks that do not simply drop one `Block.drop`; each is rolled independently."""


def _quantity(state: GameState, entry: Entry) -> int:
    low, high = entry.quantity
    quantity = low if low == high else state.random_between(low, high)
    quantity += sum(state.random() < entry.success for _ in range(entry.trials))
    return max(quantity, entry.at_least)


def _roll(state: GameState, block: int, tool: Item | None) -> Iterator[tuple[str, int]]:
    """Yield the random loot of a block: names of items, and how many of each."""
    kind = kind_of(block)
    if (drop := BLOCKS[kind].drop) is not None:
        yield drop, 1
        return
    unfit = "not shears" if tool is not None and tool.tool == SHEARS else "shears"
    for pool in TABLES.get(BLOCKS[kind].name, ()):
        for entry in pool:
            if entry.tool != unfit and (entry.chance >= 1.0 or state.random() < entry.chance):
                yield entry.item, _quantity(state, entry)
                break


def drop_loot(state: GameState, block: int, tool: Item | None, cell: tuple[int, int, int]) -> None:
    """Drop what a block at `cell` yields to `tool` (None: the hand, or no tool)."""
    x, y, z = cell
    for name, quantity in _roll(state, block, tool):
        if quantity:
            state.scatter_item(ITEM_ID[name], quantity, (x + 0.5, y + 0.25, z + 0.5), DROP_DELAY)
