"""Counters of what the player did, under the names in MineStudio's info."""

from __future__ import annotations

STATISTICS = (
    "use_item",
    "pickup",
    "break_item",
    "craft_item",
    "mine_block",
    "damage_dealt",
    "custom",
    "kill_entity",
)
"""Info keys that hold counters, name -> count, which never decrease within a world; `damage_dealt`
is in tenths of a health point, as in Minecraft."""


class Statistics:
    """Counters by group and name since the world was created."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, int]] = {group: {} for group in STATISTICS}

    def add(self, group: str, name: str, amount: int = 1) -> None:
        """Increase the counter `name` of `group`, one of `STATISTICS`."""
        counters = self._groups[group]
        counters[name] = counters.get(name, 0) + amount

    def set(self, group: str, name: str, amount: int) -> None:
        """Set a counter."""
        self._groups[group][name] = amount

    def clear(self) -> None:
        """Remove all counters."""
        for counters in self._groups.values():
            counters.clear()

    def copy(self) -> dict[str, dict[str, int]]:
        """Return all groups as new dictionaries."""
        return {group: counters.copy() for group, counters in self._groups.items()}
