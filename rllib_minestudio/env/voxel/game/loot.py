"""Loot of blocks and mobs: Minecraft Java 1.16.5's loot tables.

A block drops `Block.drop`, once for each piece that was put into it, or what its table in
`data/block_loot.json` yields. Both halves of a bed, a door or a tall plant break together, and drop
as a whole. A mob drops what a table in `data/mob_loot.json` yields, which `MobKind.loot` names, and
for a sheep with wool its colour, too. That file has the tables of all mobs; a mob whose table asks
for something that is not implemented here cannot be added.

A table is a list of pools, which are rolled one after the other. A pool is a list of entries, of
which the first that is met is the yield, or an object with conditions for the whole pool and one of

    "first_of": [...]    the first entry that is met
    "one_of": [...]      one entry at random, by weight

To add a condition or function of Minecraft's, add a field to `Pool` or `LootEntry`, and its effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rllib_minestudio.env.voxel.data import read_csv, read_json
from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.entities.records import MOB_KINDS
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS, Item
from rllib_minestudio.env.voxel.screens.crafting import SMELTING
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, SHEARS, kind_of, properties_of
from rllib_minestudio.errors import EngineError


class Circumstances(NamedTuple):
    """What loot depends on besides chance.

    Attributes:
        tool: What a block was mined with; None for the hand, or for no tool.
        properties: A block's stored properties.
        silk_touch: Whether the tool takes blocks as they are.
        by_player: Whether the player killed the mob.
        on_fire: Whether the mob was burning.
        looting: Level of the enchantment of that name on the weapon, 0 for none.
    """

    tool: Item | None = None
    properties: Mapping[str, str] = MappingProxyType({})
    silk_touch: bool = False
    by_player: bool = False
    on_fire: bool = False
    looting: int = 0


class LootEntry(NamedTuple):
    """One possible yield of a pool.

    Attributes:
        item: Name of the item that drops; empty for nothing.
        tool: "shears" or "not shears" if it depends on the tool; empty if it does not.
        state: Stored properties that the block must have.
        chance: Probability, given tool and state.
        quantity: Least and largest quantity; all values in this range are equally likely.
        trials: Number of trials, each of which may add one to the quantity.
        success: Probability that a trial adds one.
        at_least: Minimum that a smaller quantity is raised to.
        looting: Most that each level of looting adds; what all levels add is a random number that
            is rounded, as Minecraft's `looting_enchant`.
        smelted_on_fire: Whether it drops as a furnace would leave it if the mob was on fire.
        weight: Share in the probability, in a pool that yields one of its entries.
        table: Pools of another table, which are rolled in the place of an item.
    """

    item: str = ""
    tool: str = ""
    state: Mapping[str, str] = MappingProxyType({})
    chance: float = 1.0
    quantity: tuple[int, int] = (1, 1)
    trials: int = 0
    success: float = 0.0
    at_least: int = 0
    looting: int = 0
    smelted_on_fire: bool = False
    weight: int = 1
    table: tuple[Pool, ...] = ()


class Pool(NamedTuple):
    """A part of a table, which yields at most one entry each time that it is rolled.

    Attributes:
        entries: The possible yields.
        by_weight: Whether one of them is drawn by weight, instead of the first that is met.
        rolls: Least and largest number of times that it is rolled.
        killed_by_player: Whether it yields something only if the player killed the mob.
        chance: Probability that it yields anything.
        chance_per_looting: What each level of looting adds to that.
    """

    entries: tuple[LootEntry, ...]
    by_weight: bool = False
    rolls: tuple[int, int] = (1, 1)
    killed_by_player: bool = False
    chance: float = 1.0
    chance_per_looting: float = 0.0


Table = tuple[Pool, ...]
"""Pools, each of which is rolled independently."""


# ------------------------------------------------------------------------------- reading the tables

_RANGES = ("quantity", "rolls")
"""Fields that hold a least and a largest number."""


def read_table(tables: Mapping[str, Any], name: str, file: str) -> Table:
    """Read one of the tables of a file.

    Args:
        tables: The file's contents.
        name: The table's name.
        file: The file's name, for messages.

    Raises:
        EngineError: If there is no such table, or if it has a condition or function that is not
            implemented.
    """
    if name not in tables:
        raise EngineError(f"{file}: there is no table {name!r}.")

    def entry(fields: dict[str, Any]) -> LootEntry:
        values = known(fields, LootEntry._fields)
        if "table" in values:
            values["table"] = read_table(tables, values["table"], file)
        return LootEntry(**values)

    def pool(contents: Any) -> Pool:
        fields = {"first_of": contents} if isinstance(contents, list) else dict(contents)
        of = "one_of" if "one_of" in fields else "first_of"
        entries = tuple(map(entry, fields.pop(of)))
        return Pool(entries, of == "one_of", **known(fields, Pool._fields[2:]))

    def known(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        for field in fields:
            if field not in names:
                raise EngineError(
                    f"{file}: the table {name!r} needs {field!r}, which is not implemented; "
                    f"known here are {', '.join(names)}."
                )
        return {
            field: tuple(value) if field in _RANGES else value for field, value in fields.items()
        }

    return tuple(map(pool, tables[name]))


_BLOCK_LOOT, _MOB_LOOT = "block_loot.json", "mob_loot.json"
_OF_BLOCKS: Mapping[str, Any] = read_json(_BLOCK_LOOT)
_OF_MOBS: Mapping[str, Any] = read_json(_MOB_LOOT)

TABLES: dict[str, Table] = {name: read_table(_OF_BLOCKS, name, _BLOCK_LOOT) for name in _OF_BLOCKS}
"""Tables of the blocks that do not simply drop one `Block.drop`."""
SILK_TOUCH: dict[str, str] = {row["block"]: row["item"] for row in read_csv("silk_touch.csv")}
"""What a tool with silk touch yields, by block, where that is something else than otherwise."""
MOB_TABLES: dict[str, Table] = {
    name: read_table(_OF_MOBS, name, _MOB_LOOT)
    for kind in MOB_KINDS
    for name in _OF_MOBS
    if name.split("/")[0] == kind.loot
}
"""Tables of the mobs that exist here: `sheep/red`, and `sheep` for a shorn one."""


# -------------------------------------------------------------------------------- rolling the pools


def roll(state: GameState, table: Table, case: Circumstances) -> Iterator[tuple[str, int]]:
    """Yield the random loot of a table: names of items, and how many of each, 0 included."""
    for pool in table:
        chance = pool.chance + pool.chance_per_looting * case.looting
        if (pool.killed_by_player and not case.by_player) or not _happens(state, chance):
            continue
        for _ in range(_between(state, pool.rolls)):
            entry = _choose(state, pool, case)
            if entry is None:
                continue
            yield from roll(state, entry.table, case)
            if entry.item:
                yield _name(entry, case), _quantity(state, entry, case)


def _happens(state: GameState, chance: float) -> bool:
    return chance >= 1.0 or state.random() < chance


def _between(state: GameState, ends: tuple[int, int]) -> int:
    low, high = ends
    return low if low == high else state.random_between(low, high)


def _choose(state: GameState, pool: Pool, case: Circumstances) -> LootEntry | None:
    """Return the entry that a pool yields, or None."""
    unfit = "not shears" if case.tool is not None and case.tool.tool == SHEARS else "shears"
    met = (
        entry
        for entry in pool.entries
        if entry.tool != unfit
        and entry.state.items() <= case.properties.items()
        and _happens(state, entry.chance)
    )
    if not pool.by_weight:
        return next(met, None)
    among = list(met)
    left = state.random() * sum(entry.weight for entry in among)
    for entry in among:
        left -= entry.weight
        if left < 0.0:
            return entry
    return None


def _name(entry: LootEntry, case: Circumstances) -> str:
    if not (entry.smelted_on_fire and case.on_fire):
        return entry.item
    return ITEMS[SMELTING[ITEM_ID[entry.item]].result].name


def _quantity(state: GameState, entry: LootEntry, case: Circumstances) -> int:
    quantity = _between(state, entry.quantity)
    quantity += sum(state.random() < entry.success for _ in range(entry.trials))
    if entry.looting and case.looting:
        quantity += math.floor(case.looting * state.random() * entry.looting + 0.5)
    return max(quantity, entry.at_least)


# ---------------------------------------------------------------------------------------- the drops


def drop_loot(
    state: GameState,
    block: int,
    tool: Item | None,
    cell: tuple[int, int, int],
    silk_touch: bool = False,
) -> None:
    """Drop what a block at `cell` yields to `tool` (None: the hand, or no tool)."""
    x, y, z = cell
    place = (x + 0.5, y + 0.25, z + 0.5)
    mined, properties = BLOCKS[kind_of(block)], properties_of(block)
    if silk_touch and (whole := SILK_TOUCH.get(mined.name)):
        state.scatter_item(ITEM_ID[whole], _pieces(properties), place, DROP_DELAY)
    elif mined.drop is not None:
        state.scatter_item(ITEM_ID[mined.drop], _pieces(properties), place, DROP_DELAY)
    elif table := TABLES.get(mined.name):
        _scatter(state, table, Circumstances(tool=tool, properties=properties), place)


_EXPERIENCE = {
    "coal_ore": (0, 2),
    "diamond_ore": (3, 7),
    "emerald_ore": (3, 7),
    "lapis_ore": (2, 5),
    "nether_quartz_ore": (2, 5),
    "redstone_ore": (1, 5),
    "nether_gold_ore": (0, 1),
    "spawner": (15, 43),
}


def experience_of(state: GameState, block: str) -> int:
    """Return the experience in a block that is mined with the right tool."""
    least, most = _EXPERIENCE.get(block, (0, 0))
    return state.random_between(least, most) if most else 0


def _pieces(properties: Mapping[str, str]) -> int:
    """How many items were put into a block: two for a double slab, one for each layer of snow."""
    if properties.get("type") == "double":
        return 2
    return int(next((properties[name] for name in ("layers", "pickles") if name in properties), 1))


def drop_mob_loot(
    state: GameState, table: str, place: tuple[float, float, float], case: Circumstances
) -> None:
    """Drop what a mob yields that has died with its feet at `place`, by one of `MOB_TABLES`."""
    _scatter(state, MOB_TABLES[table], case, place)


def _scatter(
    state: GameState, table: Table, case: Circumstances, place: tuple[float, float, float]
) -> None:
    for name, quantity in roll(state, table, case):
        if quantity > 0:
            state.scatter_item(ITEM_ID[name], quantity, place, DROP_DELAY)
