"""What can be eaten and what it gives, after Minecraft Java 1.16."""

from __future__ import annotations

from typing import NamedTuple

_EATING_TICKS, _QUICK_EATING_TICKS = 32, 16


class FoodEffect(NamedTuple):
    """A status effect that eating gives: its name, its level minus one, and its length in ticks."""

    name: str
    amplifier: int
    ticks: int


class Food(NamedTuple):
    """One food.

    Attributes:
        nutrition: Points of the food level.
        saturation: Points of saturation, which never exceeds the food level.
        ticks: How long the use key is held for it.
        when_full: Whether one can eat it with a full food level.
        effects: What else it does.
    """

    nutrition: int
    saturation: float
    ticks: int = _EATING_TICKS
    when_full: bool = False
    effects: tuple[FoodEffect, ...] = ()


FOODS: dict[str, Food] = {
    "apple": Food(4, 2.4),
    "beef": Food(3, 1.8),
    "bread": Food(5, 6.0),
    "carrot": Food(3, 3.6),
    "cooked_beef": Food(8, 12.8),
    "cooked_mutton": Food(6, 9.6),
    "cooked_porkchop": Food(8, 12.8),
    "dried_kelp": Food(1, 0.6, _QUICK_EATING_TICKS),
    "enchanted_golden_apple": Food(
        4,
        9.6,
        when_full=True,
        effects=(
            FoodEffect("regeneration", 1, 400),
            FoodEffect("resistance", 0, 6000),
            FoodEffect("fire_resistance", 0, 6000),
            FoodEffect("absorption", 3, 2400),
        ),
    ),
    "golden_apple": Food(
        4,
        9.6,
        when_full=True,
        effects=(FoodEffect("regeneration", 1, 100), FoodEffect("absorption", 0, 2400)),
    ),
    "mutton": Food(2, 1.2),
    "porkchop": Food(3, 1.8),
}
"""Food by the name of its item (minecraft.wiki/w/Food)."""
