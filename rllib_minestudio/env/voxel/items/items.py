"""Item types of the embedded engine: blocks, tools, food and all other items of Minecraft 1.16.5.

They are read from `data/items.csv`, `data/tools.csv` and `data/item_names.csv`. A block's item has
the block's id; all other items have ids from `FIRST_PLAIN_ITEM` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import repeat
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


# ------------------ what a stack has besides its item: a tool's wear, enchantments, a potion's kind
# All of it is one number, the `data` of a stack, which goes wherever the stack goes: `WEAR_BITS`
# bits of wear; then, for a potion, its index in `POTIONS`; for anything else, three bits for the
# level of each enchantment that such an item can have, in the order of `data/enchantments.csv`.

WEAR_BITS = 12
"""No tool has more than 2,031 uses."""
_WEAR = (1 << WEAR_BITS) - 1
_LEVEL_BITS = 3
_LEVEL = (1 << _LEVEL_BITS) - 1


def wear_of(data: int) -> int:
    """Return how often a tool has been used up so far."""
    return data & _WEAR


def with_wear(data: int, wear: int) -> int:
    """Return a tool's data with another wear."""
    return data & ~_WEAR | wear


# ------------------------------------------------------------------------------------- enchantments


class Enchantment(NamedTuple):
    """A row of `data/enchantments.csv`.

    Attributes:
        name: Minecraft's identifier without the namespace.
        levels: The highest level.
        category: What it is for: a class of items, see `_CATEGORIES`.
        weight: How likely a table offers it among others.
        is_treasure: Whether no table offers it.
        least: Enchanting power that level 0 needs; each level needs `least_by_level` more.
        least_by_level: See `least`.
        most: Power above which a table does not offer level 0; `most_by_level` more for each level.
        most_by_level: See `most`.
    """

    name: str
    levels: int
    category: str
    weight: int
    is_treasure: bool
    least: int
    least_by_level: int
    most: int
    most_by_level: int


ENCHANTMENTS: dict[str, Enchantment] = {
    row["enchantment"]: Enchantment(
        row["enchantment"],
        int(row["levels"]),
        row["category"],
        int(row["weight"]),
        row["treasure"] == "yes",
        *(int(row[name]) for name in ("least", "least_by_level", "most", "most_by_level")),
    )
    for row in read_csv("enchantments.csv")
}
"""All of Minecraft 1.16.5 by name."""

ACTING = frozenset(
    (
        *("efficiency", "fire_aspect", "flame", "infinity", "knockback", "looting", "power"),
        *("punch", "sharpness", "silk_touch", "unbreaking"),
    )
)
"""Those that have consequences in this engine."""

_DIGGERS = ("pickaxe", "axe", "shovel", "hoe")
_ARMOUR = {
    "helmet": "armor_head",
    "chestplate": "armor_chest",
    "leggings": "armor_legs",
    "boots": "armor_feet",
}
_ALSO_WORN = ("elytra", "carved_pumpkin", "player_head", "zombie_head", "skeleton_skull")
_OF_AXES = ("sharpness", "smite", "bane_of_arthropods")
"""Enchantments of swords that an axe takes, too, though no table offers them."""


@cache
def categories_of(item: int) -> frozenset[str]:
    """Return the classes of enchantments that an item can have."""
    kind = ITEMS[item]
    end = kind.name.rpartition("_")[2]
    found = set()
    if end == "sword":
        found.add("weapon")
    if end in _DIGGERS:
        found.add("digger")
    if end in _ARMOUR:
        found |= {"armor", _ARMOUR[end]}
    if kind.name in ("bow", "crossbow", "trident", "fishing_rod"):
        found.add(kind.name)
    if kind.durability:
        found |= {"breakable", "vanishable"}
    if end in _ARMOUR or kind.name in _ALSO_WORN:
        found |= {"wearable", "vanishable"}
    return frozenset(found)


@cache
def possible_enchantments(item: int) -> tuple[str, ...]:
    """Return the names of the enchantments that an item can have, in the order of the table."""
    if ITEMS[item].name == "enchanted_book":
        return ()
    categories, is_axe = categories_of(item), ITEMS[item].name.endswith("_axe")
    return tuple(
        name
        for name, enchantment in ENCHANTMENTS.items()
        if enchantment.category in categories or (is_axe and name in _OF_AXES)
    )


def level_of(item: int, data: int, name: str) -> int:
    """Return the level of an enchantment of a stack, 0 for none."""
    bits = data >> WEAR_BITS
    possible = possible_enchantments(item) if bits and item not in POTION_ITEMS else ()
    return bits >> _LEVEL_BITS * possible.index(name) & _LEVEL if name in possible else 0


def enchantments_of(item: int, data: int) -> dict[str, int]:
    """Return the enchantments of a stack and their levels."""
    if not data >> WEAR_BITS or item in POTION_ITEMS:
        return {}
    levels = {name: level_of(item, data, name) for name in possible_enchantments(item)}
    return {name: level for name, level in levels.items() if level}


def enchanted(item: int, data: int, levels: Mapping[str, int]) -> int:
    """Return a stack's data with other enchantments.

    Args:
        item: The item.
        data: The data before, whose wear stays.
        levels: Level by name; names of `possible_enchantments`, levels 1 to 7.
    """
    data = wear_of(data)
    for place, name in enumerate(possible_enchantments(item)):
        data |= levels.get(name, 0) << WEAR_BITS + _LEVEL_BITS * place
    return data


LARGEST_DATA = (1 << WEAR_BITS + _LEVEL_BITS * max(map(len, map(possible_enchantments, ITEMS)))) - 1
"""Largest data of a stack."""

# ------------------------------------------------------------------------------------------ potions

POTIONS: dict[str, tuple[FoodEffect, ...]] = {
    row["potion"]: read_effects(row["effects"]) for row in read_csv("potions.csv")
}
"""What each kind of potion does to who drinks it (minecraft.wiki/w/Potion)."""
_KINDS = tuple(POTIONS)
POTION_ITEMS = frozenset(
    ITEM_ID[name] for name in ("potion", "splash_potion", "lingering_potion", "tipped_arrow")
)
"""Items that have a kind of potion."""


def potion_of(data: int) -> str:
    """Return the kind of a potion, one of `POTIONS`."""
    return _KINDS[min(data >> WEAR_BITS, len(_KINDS) - 1)]


def potion_data(kind: str) -> int:
    """Return the data of a kind of potion."""
    return _KINDS.index(kind) << WEAR_BITS


# ------------------------------- the player's inventory: slots, stacking, and its entries in `info`

HOTBAR_SLOTS = 9
"""Slots 0-8 are the hotbar, which the keys `hotbar.1` to `hotbar.9` select."""
MAIN_SLOTS = 36
"""Slots 0-35 receive what the player picks up."""
FEET_SLOT, LEGS_SLOT, CHEST_SLOT, HEAD_SLOT, OFFHAND_SLOT = range(36, 41)
SLOTS = 41

_EQUIPMENT = {
    "offhand": OFFHAND_SLOT,
    "head": HEAD_SLOT,
    "chest": CHEST_SLOT,
    "legs": LEGS_SLOT,
    "feet": FEET_SLOT,
}


class ItemStack(NamedTuple):
    """Contents of one slot: item id (0 if empty), quantity, and its data."""

    item: int
    quantity: int
    data: int


class Inventory:
    """41 slots: 0-8 hotbar, 9-35 the rest, 36-39 armour (feet to head), 40 the off hand.

    Attributes:
        item: Item id by slot, int32 [41]; 0 is empty.
        quantity: Stack size by slot, int32 [41].
        data: What else there is by slot, int64 [41]; see below.
        version: Number that grows with every change, so that callers can cache derived values.
    """

    def __init__(self) -> None:
        self.item = np.zeros(SLOTS, np.int32)
        self.quantity = np.zeros(SLOTS, np.int32)
        self.data = np.zeros(SLOTS, np.int64)
        self.version = 0
        self._shown: list[tuple[int, str, int]] = []
        self._shown_version = -1
        self._equipped: list[tuple[str, str, int, int]] = []
        self._equipped_at = (-1, -1)

    def __getitem__(self, slot: int) -> ItemStack:
        return ItemStack(int(self.item[slot]), int(self.quantity[slot]), int(self.data[slot]))

    def stacks(self) -> list[ItemStack]:
        """Return the stacks of all slots, much faster than by indexing each."""
        columns = self.item.tolist(), self.quantity.tolist(), self.data.tolist()
        # Like `ItemStack._make`, but without a Python call per stack.
        return list(map(tuple.__new__, repeat(ItemStack), zip(*columns, strict=True)))

    def set(self, slot: int, item: int, quantity: int, data: int = 0) -> None:
        """Put a stack in `slot`, replacing what was there; a quantity of 0 empties the slot."""
        if quantity <= 0:
            item, quantity, data = EMPTY, 0, 0
        self.item[slot] = item
        self.quantity[slot] = quantity
        self.data[slot] = data
        self.version += 1

    def add(self, item: int, quantity: int, data: int = 0) -> int:
        """Add items as Minecraft does: first to stacks of the item, then to empty slots in order.

        Returns:
            The quantity that did not fit.
        """
        limit = ITEMS[item].max_stack
        if limit > 1:
            for slot in np.flatnonzero(self.item[:MAIN_SLOTS] == item).tolist():
                moved = min(quantity, limit - int(self.quantity[slot]))
                if moved > 0:
                    self.set(slot, item, int(self.quantity[slot]) + moved)
                    quantity -= moved
        for slot in np.flatnonzero(self.item[:MAIN_SLOTS] == EMPTY).tolist():
            if quantity <= 0:
                break
            moved = min(quantity, limit)
            self.set(slot, item, moved, data)
            quantity -= moved
        return max(quantity, 0)

    def take(self, slot: int, quantity: int = 1) -> ItemStack:
        """Remove up to `quantity` from `slot`, and return what was removed."""
        item, held, data = self[slot]
        taken = min(held, quantity)
        self.set(slot, item, held - taken, data)
        return ItemStack(item if taken else EMPTY, taken, data)

    def remove(self, item: int | None = None, at_most: int | None = None) -> int:
        """Remove items from every slot.

        Args:
            item: Id of the only item to remove; None for all.
            at_most: Most items to remove; None for no limit.

        Returns:
            How many items were removed.
        """
        removed = 0
        for slot in np.flatnonzero(self.item).tolist():
            if item is not None and self.item[slot] != item:
                continue
            wanted = int(self.quantity[slot])
            if at_most is not None:
                wanted = min(wanted, at_most - removed)
            removed += self.take(slot, wanted).quantity
        return removed

    def clear(self) -> None:
        """Empty every slot."""
        self.item[:] = EMPTY
        self.quantity[:] = 0
        self.data[:] = 0
        self.version += 1

    def describe(self) -> dict[int, dict[str, Any]]:
        """Return `{slot: {"type": name, "quantity": n}}` for the main slots, as new objects.

        Empty slots are included as `{"type": "none", "quantity": 0}`, as in MineStudio.
        """
        if self._shown_version != self.version:
            self._shown = [
                (slot, ITEMS[item].name if item else "none", quantity)
                for slot, (item, quantity) in enumerate(
                    zip(
                        self.item[:MAIN_SLOTS].tolist(),
                        self.quantity[:MAIN_SLOTS].tolist(),
                        strict=True,
                    )
                )
            ]
            self._shown_version = self.version
        return {slot: {"type": name, "quantity": n} for slot, name, n in self._shown}

    def equipment(self, selected: int) -> dict[str, dict[str, Any]]:
        """Return what is worn and held: `{"mainhand": {"type", "damage", "maxDamage"}, ...}`.

        Args:
            selected: The hotbar slot in the main hand.
        """
        if self._equipped_at != (self.version, selected):
            self._equipped = [
                (place, *self._tool_in(slot))
                for place, slot in (("mainhand", selected), *_EQUIPMENT.items())
            ]
            self._equipped_at = (self.version, selected)
        return {
            place: {"type": name, "damage": damage, "maxDamage": most}
            for place, name, damage, most in self._equipped
        }

    def _tool_in(self, slot: int) -> tuple[str, int, int]:
        item = int(self.item[slot])
        if item == EMPTY:
            return "air", 0, 0
        return ITEMS[item].name, wear_of(int(self.data[slot])), ITEMS[item].durability
