"""Tables of facts about Minecraft Java 1.16.5, as files that a reader can check.

blocks.csv      every block, in the order of Minecraft's registry, which gives the ids
block_light.csv the light that blocks emit, and exceptions to what they let through
biomes.csv      the biomes of this land: number, climate, colours of sky, grass and leaves, and the
                chance of a herd, and of each further one, in a chunk
herds.csv       what herds there are in a biome, by weight, of how many
veins.csv       veins of ores and the like: how many begin in a chunk, how large and where
plants.csv      plants: how they are drawn, and what they grow on
block_loot.json drops of the blocks that do not simply drop one item
items.csv       every item, in the order of Minecraft's registry
tools.csv       items that mine faster or hit harder than the hand
foods.csv       items that can be eaten
mobs.csv        the mobs that exist here: their bodies, goals and loot tables
mob_loot.json   drops of all of Minecraft's mobs
item_tags.json  groups of items that recipes name with a #

Below the two readers are constants: names that commands use, and Minecraft's time.
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


# ------------------------------------------------ constants of Minecraft's commands, names and time

NAMESPACE = "minecraft:"
"""Prefix of the names of everything that comes with the game; it may be left out."""

WEATHERS = ("clear", "rain", "thunder")
DIFFICULTIES = ("peaceful", "easy", "normal", "hard")

NO_ENTITY, NO_PLAYER = "No entity was found", "No player was found"
"""Messages of commands whose selector matches nothing."""


# --------------------------------------------------------------------------------- Minecraft's time
# Ticks, days, and named times of day.

TICKS_PER_SECOND = 20

DAY_TICKS = 24000
"""From sunrise to sunrise."""

TIMES = {"day": 1000, "noon": 6000, "night": 13000, "midnight": 18000}
"""Times of day by the names that `/time set` takes, in ticks since sunrise."""
