"""Item types of the embedded engine: one table for weapons, tools, materials and block items.

A block's item has the block's id; every other item has an id from `FIRST_PLAIN_ITEM` on. Damage
and attack speed follow Minecraft Java 1.16.
"""

from __future__ import annotations

from dataclasses import dataclass

from rllib_minestudio.env.voxel.items.foods import FOODS, Food
from rllib_minestudio.env.voxel.world.blocks import AXE, BLOCKS, HOE, PICKAXE, SHEARS, SHOVEL, SWORD

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
        mining_wear: Uses that a mined block costs.
        attack_wear: Uses that an attack costs.
        use: What Minecraft lets one do with it and this engine does not; empty for nothing.
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

    @property
    def lacking(self) -> str:
        """A sentence about `use`; empty if there is nothing to say."""
        return f"{self.name} cannot be {self.use} here" if self.use else ""


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
                    mining_wear=2 if tool == SWORD else 1,
                    attack_wear=1 if tool == SWORD else 2,
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
    "dried_kelp",
)
_GOLDEN_APPLES = tuple(
    Item(name, use="eaten for absorption") for name in ("golden_apple", "enchanted_golden_apple")
)
_SHEARS = Item("shears", 1, SHEARS, durability=238, mining_wear=1, use="used on animals and plants")
_TRIDENT = Item(
    "trident",
    1,
    attack_damage=9.0,
    attack_speed=1.1,
    durability=250,
    mining_wear=2,
    attack_wear=1,
    use="thrown",
)

_NOT_PLACED, _NOT_SHOT, _NOT_USED = "placed", "shot or thrown", "used"
_CARRIED: dict[str, dict[int, str]] = {
    _NOT_PLACED: {
        64: "torch ladder poppy oak_sapling birch_sapling wheat_seeds redstone flower_pot chest "
        "pumpkin carved_pumpkin stone_bricks birch_planks iron_block enchanting_table "
        "oak_fence_gate",
        1: "water_bucket lava_bucket cake white_bed blue_bed oak_boat",
    },
    _NOT_SHOT: {64: "arrow fire_charge", 16: "egg ender_pearl snowball", 1: "bow crossbow"},
    "planted or fed to animals": {64: "carrot"},
    _NOT_USED: {
        64: "string flint red_dye lapis_lazuli book slime_ball sugar prismarine_shard "
        "map filled_map compass lead tropical_fish_spawn_egg",
        16: "bucket",
        1: "shield flint_and_steel fishing_rod milk_bucket potion",
    },
}
"""What MineStudio's benchmark gives besides: names by what is not done with it and by stack size.

They count, lie about and are picked up as in Minecraft, and are drawn as a lump.
"""
_DURABILITY = {
    "bow": 384,
    "crossbow": 326,
    "shield": 336,
    "flint_and_steel": 64,
    "fishing_rod": 64,
}
_ARMOUR = {"helmet": 11, "chestplate": 16, "leggings": 15, "boots": 13}
_ARMOUR_DURABILITY = {"iron": 15, "diamond": 33}


def _carried() -> tuple[Item, ...]:
    things = [
        Item(name, stack, use=use, durability=_DURABILITY.get(name, 0))
        for use, by_stack in _CARRIED.items()
        for stack, names in by_stack.items()
        for name in names.split()
    ]
    return tuple(things) + tuple(
        Item(f"{material}_{part}", 1, use="worn for protection", durability=factor * times)
        for material, factor in _ARMOUR_DURABILITY.items()
        for part, times in _ARMOUR.items()
    )


ITEMS: dict[int, Item] = {
    index: Item(block.name) for index, block in enumerate(BLOCKS) if block.name != "air"
} | {
    FIRST_PLAIN_ITEM + index: item
    for index, item in enumerate(
        (
            *_tools(),
            *(Item(name) for name in _MATERIAL_NAMES),
            *_carried(),
            *_GOLDEN_APPLES,
            _SHEARS,
            _TRIDENT,
        )
    )
}
"""Item by id. Ids of block items are the blocks' ids; 0 (air) is no item."""

ITEM_ID: dict[str, int] = {item.name: index for index, item in ITEMS.items()}
"""Item id by name."""

FOOD: dict[int, Food] = {ITEM_ID[name]: food for name, food in FOODS.items()}
"""What can be eaten, by item id."""

EMPTY = 0
"""Item id of an empty slot."""


def is_block_item(item: int) -> bool:
    """Whether `item` (an item id) can be placed as the block of the same id."""
    return 0 < item < FIRST_PLAIN_ITEM
