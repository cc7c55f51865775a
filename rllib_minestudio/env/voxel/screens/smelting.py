"""The furnace: what burns how long, what becomes of what, and the course of it by ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from rllib_minestudio.env.voxel.items.inventory import ItemStack
from rllib_minestudio.env.voxel.items.items import EMPTY, ITEM_ID
from rllib_minestudio.env.voxel.screens.containers import (
    NOTHING,
    Container,
    is_same,
    room_beside,
)
from rllib_minestudio.env.voxel.screens.crafting import REMAINDERS
from rllib_minestudio.env.voxel.screens.ingredients import items, rows

INPUT, FUEL, OUTPUT = range(3)
"""Slots of a furnace."""
_COOLING = 2
"""Ticks of progress that are lost per tick without fire."""


class Smelting(NamedTuple):
    """What smelting an item gives.

    Attributes:
        result: Item id.
        experience: Points for each.
        ticks: How long it takes.
    """

    result: int
    experience: float
    ticks: int


def _read_smelting() -> dict[int, Smelting]:
    return {
        item: Smelting(ITEM_ID[row["result"]], float(row["experience"]), int(row["ticks"]))
        for row in rows("smelting.csv")
        for item in items(row["ingredient"])
    }


def _read_fuel() -> dict[int, int]:
    ticks = {item: int(row["ticks"]) for row in rows("fuel.csv") for item in items(row["fuel"])}
    return {item: duration for item, duration in ticks.items() if duration}


SMELTING: dict[int, Smelting] = _read_smelting()
"""By id of the item that is smelted."""
BURN_TICKS: dict[int, int] = _read_fuel()
"""How long an item burns, by item id; in the table, later rows take back what earlier ones say."""

_WET_SPONGE, _BUCKET, _WATER_BUCKET = (
    ITEM_ID[name] for name in ("wet_sponge", "bucket", "water_bucket")
)


class Furnace(Container):
    """A furnace's slots and fire.

    Attributes:
        burning: Ticks that the fire still burns.
        burn_ticks: Ticks that it burns in all.
        progress: Ticks that the item in `INPUT` has been smelted for.
    """

    def __init__(self) -> None:
        """Makes an empty furnace without fire."""
        super().__init__(3)
        self.burning = self.burn_ticks = self.progress = 0
        self._smelted: Counter[Smelting] = Counter()

    def set(self, slot: int, item: int, quantity: int, damage: int = 0) -> None:
        """As `Container.set`; another item in `INPUT` is smelted from the beginning."""
        before = self.stacks[slot]
        super().set(slot, item, quantity, damage)
        if slot == INPUT and (quantity <= 0 or not is_same(before, self.stacks[slot])):
            self.progress = 0

    @property
    def is_idle(self) -> bool:
        """Whether a tick changes nothing."""
        without_work = self.stacks[INPUT].item == EMPTY or self.stacks[FUEL].item == EMPTY
        return not self.burning and not self.progress and without_work

    @property
    def burn(self) -> float:
        """Share of the fuel's burning time that is left."""
        return self.burning / self.burn_ticks if self.burning else 0.0

    @property
    def done(self) -> float:
        """Share of the smelting that is done."""
        smelting = SMELTING.get(self.stacks[INPUT].item)
        return self.progress / smelting.ticks if smelting else 0.0

    def tick(self) -> None:
        """Advances the fire and the smelting by one tick."""
        if self.burning:
            self.burning -= 1
        if not self.burning and EMPTY in (self.stacks[INPUT].item, self.stacks[FUEL].item):
            self.progress = max(self.progress - _COOLING, 0)
            return
        smelting = self._possible()
        if not self.burning and smelting:
            self._light()
        if self.burning and smelting:
            self.progress += 1
            if self.progress == smelting.ticks:
                self.progress = 0
                self._smelt(smelting)
        else:
            self.progress = 0

    def _possible(self) -> Smelting | None:
        """What the input becomes, if there is room for it."""
        smelting = SMELTING.get(self.stacks[INPUT].item)
        output = self.stacks[OUTPUT]
        if smelting is None or output.item == EMPTY:
            return smelting
        fits = output.item == smelting.result and room_beside(output) > 0
        return smelting if fits else None

    def _light(self) -> None:
        fuel = self.stacks[FUEL]
        self.burning = self.burn_ticks = BURN_TICKS.get(fuel.item, 0)
        if not self.burning:
            return
        if fuel.quantity > 1:
            self.stacks[FUEL] = fuel._replace(quantity=fuel.quantity - 1)
        else:
            left = REMAINDERS.get(fuel.item)
            self.stacks[FUEL] = NOTHING if left is None else ItemStack(left, 1, 0)

    def _smelt(self, smelting: Smelting) -> None:
        source, output = self.stacks[INPUT], self.stacks[OUTPUT]
        self.stacks[OUTPUT] = ItemStack(smelting.result, output.quantity + 1, 0)
        if source.item == _WET_SPONGE and self.stacks[FUEL].item == _BUCKET:
            self.stacks[FUEL] = ItemStack(_WATER_BUCKET, 1, 0)
        left = source.quantity - 1
        self.stacks[INPUT] = source._replace(quantity=left) if left else NOTHING
        self._smelted[smelting] += 1

    def take_experience(self, random: Callable[[], float]) -> int:
        """Points for what was smelted since the last call; fractions are points by chance.

        Args:
            random: Draws a number in [0, 1).
        """
        points = 0
        for smelting, count in self._smelted.items():
            whole, fraction = divmod(smelting.experience * count, 1.0)
            points += int(whole) + (fraction > 0.0 and random() < fraction)
        self._smelted.clear()
        return points
