"""What effects are called, and how levels and durations are written, as in Minecraft 1.16.

The table is `effects.csv`.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from rllib_minestudio.env.voxel.data import TICKS_PER_SECOND

_NO_END = 32767
"""Ticks from which the game shows no time."""
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


class EffectLook(NamedTuple):
    """A row of `effects.csv`.

    Attributes:
        title: The effect's name.
        is_below: Whether its icon is in the second row, where effects that do no good are.
        colour: Colour of the particles of who has it, RGB; it decides the order.
    """

    title: str
    is_below: bool
    colour: int


def _read() -> dict[str, EffectLook]:
    with (Path(__file__).parent / "effects.csv").open(newline="") as file:
        return {
            row["effect"]: EffectLook(row["title"], bool(row["harmful"]), int(row["colour"], 16))
            for row in csv.DictReader(file)
        }


EFFECT_LOOKS = _read()
"""By the effect's name."""


def roman(level: int) -> str:
    """Return a level as the game writes it: in Roman numerals up to ten."""
    return _ROMAN[level - 1] if level <= len(_ROMAN) else str(level)


def time_left(ticks: int) -> str:
    """Return a duration as the list shows it: minutes and seconds."""
    seconds = ticks // TICKS_PER_SECOND
    return "**:**" if ticks >= _NO_END else f"{seconds // 60}:{seconds % 60:02d}"
