"""Tables whose rows stand for families: `{dye}_wool` is sixteen rows, one for each dye.

`families.csv` has the members of each family and their colours, which other columns of a row name
as `{colour}`, `{dark}` and `{other}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.render.textures import colour
from tools.painting.art import FOLDER, RGB

_MEMBER = re.compile(r"\{(\w+)\}")


def expanded(file: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with every family expanded; the first column names the family."""
    families: dict[str, list[dict[str, str]]] = {}
    for row in read_csv("families.csv", FOLDER):
        families.setdefault(row["family"], []).append(row)
    for row in read_csv(file, FOLDER):
        name = next(iter(row.values()))
        family = _MEMBER.search(name)
        for member in families[family[1]] if family else [{}]:
            names = {**member, family[1]: member["member"]} if family else {}
            yield {column: value.format(**names) for column, value in row.items()}


def colours_of(text: str) -> dict[str, RGB]:
    """Parse colours by letter, such as "m=d02020 o=101010"."""
    pairs = (pair.split("=") for pair in text.split())
    return {letter: colour(value) for letter, value in pairs}
