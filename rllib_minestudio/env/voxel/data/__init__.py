"""Tables of facts about Minecraft Java 1.16.5, as files that a reader can check.

blocks.csv      every block, in the order of Minecraft's registry, which gives the ids
block_loot.json drops of the blocks that do not simply drop one item
items.csv       every item, in the order of Minecraft's registry
tools.csv       items that mine faster or hit harder than the hand
foods.csv       items that can be eaten
item_tags.json  groups of items that recipes name with a #

`vocabulary.py` holds constants: names, and Minecraft's time.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def read_csv(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    """Return the rows of a table as dictionaries by column; an empty cell is an empty string."""
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_json(name: str) -> Any:
    """Return the contents of a JSON file of this folder."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
