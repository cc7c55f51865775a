"""The words of the tables: items, tags, and alternatives of both, as sets of item ids."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from rllib_minestudio.env.voxel.data import read_json
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.screens.geometry import DATA

_TAG = "#"
_OR = "|"


def rows(table: str) -> list[dict[str, str]]:
    """The rows of data/`table`, by column."""
    with (DATA / table).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_TAGS: dict[str, str] = read_json("item_tags.json")


def names(word: str) -> Iterator[str]:
    """Names of the items that a word of a table stands for.

    Args:
        word: An item's name, "#" and a tag's name, or several of these with "|" between them.

    Yields:
        Names, a tag's items in its order.
    """
    for part in word.split(_OR):
        if part.startswith(_TAG):
            for member in _TAGS[part.removeprefix(_TAG)].split():
                yield from names(member)
        else:
            yield part


def items(word: str) -> frozenset[int]:
    """Ids of the items that a word of a table stands for."""
    return frozenset(ITEM_ID[name] for name in names(word))
