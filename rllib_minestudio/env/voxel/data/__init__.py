"""Tables of facts of Minecraft Java 1.16.5, as files that a reader can check.

blocks.csv      every block; the order is that of Minecraft's registry, and gives the ids
block_loot.json what blocks drop that do not simply drop one item
items.csv       every item, in the order of Minecraft's registry
tools.csv       items that mine faster or hit harder than the hand
foods.csv       items that can be eaten
item_tags.json  groups of items that recipes name with a #

Two files of constants lie beside them: `vocabulary.py`, of time, and `vocabulary.py`, of names.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def read_csv(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    """The rows of a table, by column; an empty cell is an empty text."""
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_json(name: str) -> Any:
    """The contents of a JSON file."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
