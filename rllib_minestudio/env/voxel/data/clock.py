"""Minecraft's time: ticks, days, and the times of day that have a name."""

TICKS_PER_SECOND = 20

DAY_TICKS = 24000
"""From sunrise to sunrise."""

TIMES = {"day": 1000, "noon": 6000, "night": 13000, "midnight": 18000}
"""Times of day by the names that `/time set` takes, in ticks since sunrise."""
