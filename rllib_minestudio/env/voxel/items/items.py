"""Item types of the embedded engine: blocks, tools, food and all other items of Minecraft 1.16.5.

They are read from `data/items.csv`, `data/tools.csv` and `data/item_names.csv`. A block's item has
the block's id; all other items have ids from `FIRST_PLAIN_ITEM` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    LARGEST_KIND,
    SHEARS,
    SWORD,
    Shape,
)

# ------------------------------------------------------------ mining speeds, right tools, tool wear

RIGHT_TOOL_TICKS = 30.0
_WRONG_TOOL_TICKS = 100.0
"""Ticks per point of hardness at speed 1, with and without the tool that a block requires."""
_SPEED_BY_MATERIAL = {
    SWORD: {"leaves": 1.5, "plant": 1.5, "gourd": 1.5, "web": 15.0, "bamboo": float("inf")},
    SHEARS: {"leaves": 15.0, "web": 15.0, "wool": 5.0},
}
"""Speeds of swords and shears by material, where faster than the hand; bamboo breaks at once."""
_SHEARED = frozenset(("grass", "fern", "dead_bush", "vine", "tripwire"))
"""Blocks that count as a use of shears, besides those that shears mine faster."""
_SHEARS_HARVEST = frozenset(("cobweb", "redstone_wire", "tripwire"))
_HASTE_PER_LEVEL = np.float32(0.2)
_FATIGUE_FACTORS = tuple(map(np.float32, (1.0, 0.3, 0.09, 0.0027, 8.1e-4)))
"""Factors on the speed by level of mining fatigue; higher levels use the last one."""


def is_right_tool(item: Item | None, block: int) -> bool:
    """Whether a kind of block, mined with `item` (None: the bare hand), drops something."""
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
    """Whether mining a kind of block counts as a use of `item`, a tool that mining wears."""
    return item.tool != SHEARS or _speed(item, block) > 1.0 or BLOCKS[block].name in _SHEARED


def mining_wear(item: Item, block: int) -> int:
    """Return the uses that mining a kind of block costs; only shears wear on zero hardness."""
    return item.mining_wear if BLOCKS[block].hardness or item.tool == SHEARS else 0


@cache
def _plain_speeds(item: Item | None) -> NDArray[np.float32]:
    return np.array([_speed(item, block) for block in range(len(BLOCKS))], np.float32)


def mining_speeds(
    item: Item | None, haste: int, fatigue: int, efficiency: int = 0
) -> NDArray[np.float32]:
    """Return the mining speed on the ground, float32 by kind of block; the bare hand's is 1.

    Args:
        item: The item in hand.
        haste: Level of the haste effect, 0 for none.
        fatigue: Level of the mining fatigue effect, 0 for none.
        efficiency: Level of the item's enchantment, 0 for none: on blocks that it mines faster
            than the hand, its square and one are added.
    """
    speeds = _plain_speeds(item)
    if efficiency:
        speeds = np.where(speeds > 1.0, speeds + np.float32(efficiency**2 + 1), speeds)
    # Round to float32 after each factor, as Minecraft does: its progress sums depend on it.
    quickened = speeds * (np.float32(1.0) + np.float32(haste) * _HASTE_PER_LEVEL)
    return quickened * _FATIGUE_FACTORS[min(fatigue, len(_FATIGUE_FACTORS) - 1)]


@cache
def mining_ticks(item: Item | None) -> NDArray[np.float32]:
    """Return ticks per hardness at speed 1, float32 by kind (minecraft.wiki/w/Breaking)."""
    ticks = np.array(
        [
            RIGHT_TOOL_TICKS if is_right_tool(item, block) else _WRONG_TOOL_TICKS
            for block in range(len(BLOCKS))
        ],
        np.float32,
    )
    ticks.flags.writeable = False
    return ticks


# --------------------------------------------------------------------------------------------- food
# Read from `data/foods.csv`.


class FoodEffect(NamedTuple):
    """A status effect that eating gives.

    Attributes:
        name: One of `player.player.EFFECTS`.
        amplifier: Level minus one.
        ticks: Duration in ticks.
        chance: Probability.
    """

    name: str
    amplifier: int
    ticks: int
    chance: float = 1.0


class Food(NamedTuple):
    """One food.

    Attributes:
        nutrition: Points of the food level.
        saturation: Points of saturation, which never exceeds the food level.
        ticks: Ticks for which the use key must be held to eat it.
        when_full: Whether it can be eaten with a full food level.
        leaves: Name of the item that it leaves behind; empty for none.
        cures: Name of the status effect that it ends; "all" for every one, empty for none.
        effects: Status effects that it may give.
    """

    nutrition: int
    saturation: float
    ticks: int
    when_full: bool = False
    leaves: str = ""
    cures: str = ""
    effects: tuple[FoodEffect, ...] = ()


def read_effects(text: str) -> tuple[FoodEffect, ...]:
    """Read "poison 0 100 0.6; ...": name, amplifier, ticks and, if below 1, the chance of each."""
    return tuple(map(_effect, filter(None, text.split(";"))))


def _effect(text: str) -> FoodEffect:
    name, amplifier, ticks, *chance = text.split()
    return FoodEffect(name, int(amplifier), int(ticks), *map(float, chance))


FOODS: dict[str, Food] = {
    row["item"]: Food(
        nutrition=int(row["nutrition"]),
        saturation=float(row["saturation"]),
        ticks=int(row["ticks"]),
        when_full=row["when_full"] == "yes",
        leaves=row["leaves"],
        cures=row["cures"],
        effects=read_effects(row["effects"]),
    )
    for row in read_csv("foods.csv")
}
"""Food by the name of its item (minecraft.wiki/w/Food)."""

FIRST_PLAIN_ITEM = LARGEST_KIND + 1
"""Id of the first item that is not a block."""

FIST_DAMAGE = 1.0
"""Damage of an attack without a weapon, in health points."""
FIST_SPEED = 4.0
"""Attacks per second without a weapon."""


@dataclass(frozen=True)
class Item:
    """One item type.

    Attributes:
        name: Minecraft's identifier without the namespace.
        max_stack: Largest quantity in one slot.
        tool: Class of tool ("sword", "pickaxe", ...), or None.
        tier: 0 for no tool, 1 wood and gold, 2 stone, 3 iron, 4 diamond, 5 netherite.
        mining_speed: Speed on the blocks that the tool is for; the bare hand's is 1.
        attack_damage: Health points of a fully charged attack.
        attack_speed: Attacks per second at full charge.
        durability: Uses before it breaks; 0 for items that do not wear.
        mining_wear: Uses that a mined block costs.
        attack_wear: Uses that an attack costs.
        use: What can be done with it in Minecraft but not here, as a participle ("placed"); empty
            for nothing.
        title: What the game's display calls it, in English.
        rarity: "common", "uncommon", "rare" or "epic", which gives the title its colour.
    """

    name: str
    max_stack: int = 64
    tool: str | None = None
    tier: int = 0
    mining_speed: float = 1.0
    attack_damage: float = FIST_DAMAGE
    attack_speed: float = FIST_SPEED
    durability: int = 0
    mining_wear: int = 0
    attack_wear: int = 0
    use: str = ""
    title: str = ""
    rarity: str = "common"

    @property
    def lacking(self) -> str:
        """What this engine does not do with the item, as a sentence; empty for nothing."""
        return f"{self.name} cannot be {self.use} here" if self.use else ""


_SAME_NAME_ONLY = ("wheat",)
"""Items that are not the block of the same name, which is the crop."""


_SMALL_WORDS = frozenset(("a", "of", "on", "the"))


def _title(name: str) -> str:
    """The title of most items: "Lily of the Valley" for "lily_of_the_valley"."""
    first, *others = name.split("_")
    words = [word if word in _SMALL_WORDS else word.capitalize() for word in others]
    return " ".join([first.capitalize(), *words])


def _read_items() -> dict[int, Item]:
    tools = {row["item"]: row for row in read_csv("tools.csv")}
    names = {row["item"]: row for row in read_csv("item_names.csv")}
    items: dict[int, Item] = {}
    for row in read_csv("items.csv"):
        name = row["item"]
        tool, named = tools.get(name), names.get(name, {})
        block = None if name in _SAME_NAME_ONLY else BLOCK_ID.get(name)
        identity = FIRST_PLAIN_ITEM + len(items) if block is None else block
        items[identity] = Item(
            name,
            max_stack=int(row["stack"]),
            durability=int(row["durability"] or 0),
            use=row["use"],
            title=named.get("name") or _title(name),
            rarity=named.get("rarity") or "common",
            **(_of_tool(tool) if tool else {}),
        )
    return items


def _of_tool(row: dict[str, str]) -> dict[str, Any]:
    return {
        "tool": row["tool"] or None,
        "tier": int(row["tier"]),
        "mining_speed": float(row["mining_speed"]),
        "attack_damage": float(row["attack_damage"]),
        "attack_speed": float(row["attack_speed"]),
        "mining_wear": int(row["mining_wear"]),
        "attack_wear": int(row["attack_wear"]),
    }


ITEMS: dict[int, Item] = _read_items()
"""Item by id; 0 (air) is not an item."""

ITEM_ID: dict[str, int] = {item.name: index for index, item in ITEMS.items()}
"""Item id by name."""

FOOD: dict[int, Food] = {ITEM_ID[name]: food for name, food in FOODS.items()}
"""Food by item id."""

EMPTY = 0
"""Item id of an empty slot."""

_ONLY_IN_CREATIVE_MODE = frozenset(
    BLOCK_ID[name]
    for name in (
        *("command_block", "chain_command_block", "repeating_command_block"),
        *("structure_block", "jigsaw"),
    )
)


def is_block_item(item: int) -> bool:
    """Whether `item` (an item id) can be placed as the block of the same id."""
    return (
        0 < item < FIRST_PLAIN_ITEM
        and BLOCKS[item].shape is not Shape.REFUSED
        and item not in _ONLY_IN_CREATIVE_MODE
    )
