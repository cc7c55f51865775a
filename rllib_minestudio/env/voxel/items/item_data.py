"""What a stack has besides its item: a tool's wear, enchantments, a potion's kind.

All of it is one number, the `data` of a stack, which goes wherever the stack goes: `WEAR_BITS` bits
of wear; then, for a potion, its index in `POTIONS`; for anything else, three bits for the level of
each enchantment that such an item can have, in the order of `data/enchantments.csv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS, FoodEffect, read_effects

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
