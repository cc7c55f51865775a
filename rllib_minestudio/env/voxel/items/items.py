"""Item types of the embedded engine: blocks, tools, food and everything else of Minecraft 1.16.5.

The facts are in `data/items.csv` and `data/tools.csv`. A block's item has the block's id; every
other item has an id from `FIRST_PLAIN_ITEM` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.items.foods import FOODS, Food
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, BLOCKS, LARGEST_KIND, Shape

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
        mining_speed: Speed on the blocks the tool is made for; 1 is the bare hand.
        attack_damage: Health points of a fully charged attack.
        attack_speed: Attacks per second at full charge.
        durability: Uses before it breaks; 0 for items that do not wear.
        mining_wear: Uses that a mined block costs.
        attack_wear: Uses that an attack costs.
        use: What Minecraft lets one do with it and this engine does not; empty for nothing.
        stands_in: Whether it is placed as a full cube that it is not in Minecraft.
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
    stands_in: bool = False

    @property
    def lacking(self) -> str:
        """A sentence about `use` or the shape; empty if there is nothing to say."""
        if self.use:
            return f"{self.name} cannot be {self.use} here"
        return f"{self.name} is placed as a full cube here" if self.stands_in else ""


_SAME_NAME_ONLY = ("wheat",)
"""Items with the name of a block that they are not: the block is the crop."""


def _read_items() -> dict[int, Item]:
    tools = {row["item"]: row for row in read_csv("tools.csv")}
    items: dict[int, Item] = {}
    for row in read_csv("items.csv"):
        name = row["item"]
        tool = tools.get(name)
        block = None if name in _SAME_NAME_ONLY else BLOCK_ID.get(name)
        identity = FIRST_PLAIN_ITEM + len(items) if block is None else block
        items[identity] = Item(
            name,
            max_stack=int(row["stack"]),
            durability=int(row["durability"] or 0),
            use=row["use"],
            stands_in=block is not None and BLOCKS[block].shape is Shape.STAND_IN,
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
"""Item by id. Ids of block items are the blocks' ids; 0 (air) is no item."""

ITEM_ID: dict[str, int] = {item.name: index for index, item in ITEMS.items()}
"""Item id by name."""

FOOD: dict[int, Food] = {ITEM_ID[name]: food for name, food in FOODS.items()}
"""What can be eaten, by item id."""

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
