"""Taking something into the hand."""

from __future__ import annotations

from collections.abc import Iterable

from rllib_minestudio.env.agents.toolmaker.body import AgentBody, Skill

HOTBAR = 9
"""Slots that the keys `hotbar.1` to `hotbar.9` select."""

TOOLS = {
    "pickaxe": ("diamond_pickaxe", "iron_pickaxe", "stone_pickaxe", "wooden_pickaxe"),
    "axe": ("diamond_axe", "iron_axe", "stone_axe", "wooden_axe"),
}
"""Tools by kind, the best first."""


def hold_slot(body: AgentBody, slot: int) -> Skill:
    """Take the hotbar's slot `slot` (0-8) into the hand."""
    if body.selected != slot:
        yield {f"hotbar.{slot + 1}": 1}
        body.selected = slot
        yield {}
    return True


def hold_one_of(body: AgentBody, names: Iterable[str]) -> Skill:
    """Take the first of these items that is in the hotbar into the hand."""
    for name in names:
        for slot in range(HOTBAR):
            if body.slots[slot].name == name:
                return (yield from hold_slot(body, slot))
    return False
