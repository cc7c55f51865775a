"""The enchanting table, as in Minecraft Java 1.16.5: three offers, what they cost, what they give.

The offers follow from the player's enchanting seed, which changes with each enchantment, and from
the bookshelves around the table (`EnchantmentMenu`, `EnchantmentHelper`, from memory). Java's
generator is another one, so the same seed offers other things than in the game, as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from rllib_minestudio.env.voxel.items.items import (
    ENCHANTMENTS,
    ITEM_ID,
    ITEMS,
    Enchantment,
    ItemStack,
    categories_of,
    enchanted,
    enchantments_of,
    possible_enchantments,
)
from rllib_minestudio.env.voxel.screens.geometry import NOTHING, Container

LAPIS = ITEM_ID["lapis_lazuli"]
ITEM_SLOT, LAPIS_SLOT = range(2)
OFFERS = 3
MOST_SHELVES = 15
"""Bookshelves beyond which more have no effect."""
_ENCHANTABILITY = {
    "wooden": 15,
    "stone": 5,
    "iron": 14,
    "diamond": 10,
    "golden": 22,
    "netherite": 15,
}
"""How well tools of a material are enchanted."""
_OF_ARMOUR = {
    "leather": 15,
    "chainmail": 12,
    "iron": 9,
    "golden": 25,
    "diamond": 10,
    "turtle": 9,
    "netherite": 15,
}
_EXCLUSIVE: tuple[frozenset[str], ...] = tuple(
    frozenset(names)
    for names in (
        ("sharpness", "smite", "bane_of_arthropods"),
        ("protection", "blast_protection", "fire_protection", "projectile_protection"),
        ("silk_touch", "fortune"),
        ("depth_strider", "frost_walker"),
        ("infinity", "mending"),
        ("multishot", "piercing"),
        ("riptide", "loyalty"),
        ("riptide", "channeling"),
    )
)
"""Of each of these sets an item has one at most."""


class Offer(NamedTuple):
    """One of a table's offers.

    Attributes:
        level: Levels of experience that the player must have; 0 for no offer.
        clue: Name of one of the enchantments that it gives; empty for no offer.
        clue_level: The level of that enchantment.
    """

    level: int = 0
    clue: str = ""
    clue_level: int = 0


NO_OFFERS = (Offer(),) * OFFERS


def enchantability(item: int) -> int:
    """Return how well an item is enchanted, 0 for not at all."""
    name = ITEMS[item].name
    material, _, kind = name.rpartition("_")
    if kind in ("sword", "pickaxe", "axe", "shovel", "hoe"):
        return _ENCHANTABILITY[material]
    if kind in ("helmet", "chestplate", "leggings", "boots"):
        return _OF_ARMOUR[material]
    return int(name in ("bow", "crossbow", "trident", "fishing_rod"))


def offers(seed: int, stack: ItemStack, shelves: int) -> tuple[Offer, ...]:
    """Return a table's three offers for a stack.

    Args:
        seed: The player's enchanting seed.
        stack: What is to be enchanted.
        shelves: Bookshelves around the table.
    """
    if stack.quantity != 1 or not enchantability(stack.item) or _is_enchanted(stack):
        return NO_OFFERS
    random, found = Random(seed), []
    levels = [_level(random, slot, shelves) for slot in range(OFFERS)]
    for slot, level in enumerate(levels):
        given = enchant(seed, slot, stack.item, level) if level > slot else {}
        if not given:
            found.append(Offer())
            continue
        clue = sorted(given)[Random(seed + slot + OFFERS).randrange(len(given))]
        found.append(Offer(level, clue, given[clue]))
    return tuple(found)


def _is_enchanted(stack: ItemStack) -> bool:
    return bool(enchantments_of(stack.item, stack.data))


def _level(random: Random, slot: int, shelves: int) -> int:
    """Draw the level that an offer costs (`getEnchantmentCost`)."""
    shelves = min(shelves, MOST_SHELVES)
    base = random.randint(1, 8) + shelves // 2 + random.randint(0, shelves)
    return (max(base // 3, 1), base * 2 // 3 + 1, max(base, shelves * 2))[slot]


def enchant(seed: int, slot: int, item: int, level: int) -> dict[str, int]:
    """Return the enchantments that an offer gives (`selectEnchantment`).

    Args:
        seed: The player's enchanting seed.
        slot: Which offer, 0 to 2.
        item: The item.
        level: The level that it costs.

    Returns:
        Levels by name; none if the item can have nothing at that level.
    """
    random, ease = Random(seed + slot), enchantability(item)
    power = level + 1 + random.randint(0, ease // 4) + random.randint(0, ease // 4)
    power = max(round(power * (1.0 + (random.random() + random.random() - 1.0) * 0.15)), 1)
    possible = dict(_possible(item, power))
    given: dict[str, int] = {}
    while possible:
        name = _drawn(random, [ENCHANTMENTS[name] for name in possible])
        given[name] = possible.pop(name)
        if random.randrange(50) > power:
            break
        possible = {other: best for other, best in possible.items() if not excludes(name, other)}
        power //= 2
    return given


def _possible(item: int, power: int) -> Iterator[tuple[str, int]]:
    """Yield what a table offers for an item, each with its highest level at a power."""
    categories = categories_of(item)
    for name in possible_enchantments(item):
        enchantment = ENCHANTMENTS[name]
        if enchantment.is_treasure or enchantment.category not in categories:
            continue
        for level in range(enchantment.levels, 0, -1):
            least = enchantment.least + level * enchantment.least_by_level
            most = enchantment.most + level * enchantment.most_by_level
            if least <= power <= most:
                yield name, level
                break


def _drawn(random: Random, among: Sequence[Enchantment]) -> str:
    left = random.randrange(sum(enchantment.weight for enchantment in among))
    for enchantment in among:
        left -= enchantment.weight
        if left < 0:
            break
    return enchantment.name


def excludes(one: str, other: str) -> bool:
    """Return whether an item that has one of two enchantments cannot have the other."""
    return any({one, other} <= names for names in _EXCLUSIVE)


# ---------------------------------------------------------------------------------------- the table


class EnchantingTable(Container):
    """What lies on an open enchanting table: the item, and lapis lazuli.

    Attributes:
        shelves: Bookshelves around it.
    """

    def __init__(self, shelves: int) -> None:
        super().__init__(2)
        self.shelves = shelves

    def offers(self, seed: int) -> tuple[Offer, ...]:
        """Return the three offers for the item; see `offers`."""
        return offers(seed, self.stacks[ITEM_SLOT], self.shelves)

    def can_take(self, slot: int, seed: int, level: int) -> bool:
        """Whether a player of a level of experience can take an offer."""
        offer, lapis = self.offers(seed)[slot], self.stacks[LAPIS_SLOT]
        return 0 < offer.level <= level and lapis.item == LAPIS and lapis.quantity > slot

    def take(self, slot: int, seed: int) -> None:
        """Enchant the item by an offer that can be taken, and use lapis lazuli up."""
        stack, lapis = self.stacks[ITEM_SLOT], self.stacks[LAPIS_SLOT]
        given = enchant(seed, slot, stack.item, self.offers(seed)[slot].level)
        data = enchanted(stack.item, stack.data, given)
        self.stacks[ITEM_SLOT] = stack._replace(data=data)
        left = lapis.quantity - slot - 1
        self.stacks[LAPIS_SLOT] = lapis._replace(quantity=left) if left else NOTHING
