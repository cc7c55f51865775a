"""Item types of the embedded engine: one table for weapons, tools, materials and block items.

A block's item has the block's id; every other item has an id from `FIRST_PLAIN_ITEM` on. Damage
and attack speed follow Minecraft Java 1.16.
"""

from __future__ import annotations

from dataclasses import dataclass

from rllib_minestudio.env.voxel.blocks import AXE, BLOCKS, HOE, PICKAXE, SHOVEL, SWORD

FIRST_PLAIN_ITEM = 256
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
        tier: 0 for no tool, 1 wood and gold, 2 stone, 3 iron, 4 diamond.
        mining_speed: Speed on the blocks the tool is made for; 1 is the bare hand.
        attack_damage: Health points of a fully charged attack.
        attack_speed: Attacks per second at full charge.
        durability: Uses before it breaks; 0 for items that do not wear.
    """

    name: str
    max_stack: int = 64
    tool: str | None = None
    tier: int = 0
    mining_speed: float = 1.0
    attack_damage: float = FIST_DAMAGE
    attack_speed: float = FIST_SPEED
    durability: int = 0


@dataclass(frozen=True)
class _Material:
    name: str
    tier: int
    mining_speed: float
    durability: int
    damage: dict[str, float]
    axe_speed: float
    hoe_speed: float


_MATERIALS = (
    _Material("wooden", 1, 2.0, 59, {SWORD: 4, AXE: 7, PICKAXE: 2, SHOVEL: 2.5, HOE: 1}, 0.8, 1.0),
    _Material("stone", 2, 4.0, 131, {SWORD: 5, AXE: 9, PICKAXE: 3, SHOVEL: 3.5, HOE: 1}, 0.8, 2.0),
    _Material("iron", 3, 6.0, 250, {SWORD: 6, AXE: 9, PICKAXE: 4, SHOVEL: 4.5, HOE: 1}, 0.9, 3.0),
    _Material(
        "diamond", 4, 8.0, 1561, {SWORD: 7, AXE: 9, PICKAXE: 5, SHOVEL: 5.5, HOE: 1}, 1.0, 4.0
    ),
    _Material("golden", 1, 12.0, 32, {SWORD: 4, AXE: 7, PICKAXE: 2, SHOVEL: 2.5, HOE: 1}, 1.0, 1.0),
)

_TOOL_SPEED = {SWORD: 1.6, PICKAXE: 1.2, SHOVEL: 1.0}


def _tools() -> tuple[Item, ...]:
    tools = []
    for material in _MATERIALS:
        attack_speed = _TOOL_SPEED | {AXE: material.axe_speed, HOE: material.hoe_speed}
        for tool, damage in material.damage.items():
            tools.append(
                Item(
                    name=f"{material.name}_{tool}",
                    max_stack=1,
                    tool=tool,
                    tier=material.tier,
                    mining_speed=material.mining_speed,
                    attack_damage=float(damage),
                    attack_speed=attack_speed[tool],
                    durability=material.durability,
                )
            )
    return tuple(tools)


_MATERIAL_NAMES = (
    "stick",
    "coal",
    "iron_ingot",
    "gold_ingot",
    "diamond",
    "leather",
    "beef",
    "cooked_beef",
    "porkchop",
    "cooked_porkchop",
    "mutton",
    "cooked_mutton",
    "bread",
    "apple",
    "wheat",
)

ITEMS: dict[int, Item] = {
    index: Item(block.name) for index, block in enumerate(BLOCKS) if block.name != "air"
} | {
    FIRST_PLAIN_ITEM + index: item
    for index, item in enumerate(_tools() + tuple(Item(name) for name in _MATERIAL_NAMES))
}
"""Item by id. Ids of block items are the blocks' ids; 0 (air) is no item."""

ITEM_ID: dict[str, int] = {item.name: index for index, item in ITEMS.items()}
"""Item id by name."""

EMPTY = 0
"""Item id of an empty slot."""


def is_block_item(item: int) -> bool:
    """Whether `item` (an item id) can be placed as the block of the same id."""
    return 0 < item < FIRST_PLAIN_ITEM
