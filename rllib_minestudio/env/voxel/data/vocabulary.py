"""Constants of Minecraft's commands, names and time."""

from __future__ import annotations

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
