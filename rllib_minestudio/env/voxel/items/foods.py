"""What can be eaten and what it gives; the facts are in `data/foods.csv`."""

from __future__ import annotations

from typing import NamedTuple

from rllib_minestudio.env.voxel.data import read_csv


class FoodEffect(NamedTuple):
    """A status effect that eating gives.

    Attributes:
        name: Which effect.
        amplifier: Its level minus one.
        ticks: How long it lasts.
        chance: How likely it is.
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
        ticks: How long the use key is held for it.
        when_full: Whether one can eat it with a full food level.
        leaves: Name of the item that is left of it; empty for none.
        effects: What else it does.
    """

    nutrition: int
    saturation: float
    ticks: int
    when_full: bool = False
    leaves: str = ""
    effects: tuple[FoodEffect, ...] = ()


def _effect(text: str) -> FoodEffect:
    """Reads "poison 0 100 0.6": name, amplifier, ticks and, if it is not sure, the chance."""
    name, amplifier, ticks, *chance = text.split()
    return FoodEffect(name, int(amplifier), int(ticks), *map(float, chance))


FOODS: dict[str, Food] = {
    row["item"]: Food(
        nutrition=int(row["nutrition"]),
        saturation=float(row["saturation"]),
        ticks=int(row["ticks"]),
        when_full=row["when_full"] == "yes",
        leaves=row["leaves"],
        effects=tuple(_effect(text) for text in filter(None, row["effects"].split(";"))),
    )
    for row in read_csv("foods.csv")
}
"""Food by the name of its item (minecraft.wiki/w/Food)."""
