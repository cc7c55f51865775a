"""Mining a block."""

from __future__ import annotations

import math
from collections.abc import Collection

from rllib_minestudio.env.agents.toolmaker.body import REACH, AgentBody, Skill
from rllib_minestudio.env.agents.toolmaker.hands import TOOLS, hold_one_of, hold_slot
from rllib_minestudio.env.agents.toolmaker.sight import Cell

STATIONS = ("crafting_table", "furnace")
_ORE = "_ore"

_AIM_DEGREES = 3.0
_HOLD_DEGREES = 5.0  # while mining the hand keeps still unless the aim is off by more
_JITTER = 0.1  # blocks beside where one means to aim
_LONGEST = 320  # ticks: a block without its tool, and what is in front of it
_HAND = ("log", "leaves", "dirt", "planks", "grass_block", "sand", "gravel", "table")
"""Blocks for which a pickaxe is no help, whatever kind of them."""
_HAND_ENDS = tuple(f"_{name}" for name in _HAND)


def is_precious(name: str) -> bool:
    """Whether a block is left alone where it is only in the way."""
    return name in STATIONS or name.endswith(_ORE)


def tools_for(block: str) -> tuple[str, ...]:
    """The tools to mine a block with, the best first; none where the hand does."""
    return () if f"_{block}".endswith(_HAND_ENDS) else TOOLS["pickaxe"]


def _equip(body: AgentBody, blocks: Collection[str]) -> Skill:
    """Take what mines the hardest of these blocks into the hand."""
    tools = max(map(tools_for, blocks), key=len)
    if tools:
        return (yield from hold_one_of(body, tools))
    every_tool = {name for kind in TOOLS.values() for name in kind}
    if body.slots[body.selected].name in every_tool:  # spare it
        free = (slot for slot in range(9) if body.slots[slot].name not in every_tool)
        yield from hold_slot(body, next(free, body.selected))
    return True


def mine(body: AgentBody, cell: Cell) -> Skill:
    """Look at a block in reach, and hold attack until it and what hides it are seen to be gone."""
    x, y, z = body.visible_point(cell)
    shift = body.random.uniform(-_JITTER, _JITTER, 3)
    aim = (x + float(shift[0]), y + float(shift[1]), z + float(shift[2]))
    attacking = False
    for _ in range(_LONGEST):
        name = body.memory.name_of(cell)
        if name == "air":
            return True
        if body.distance_to(cell) > REACH + 0.5:
            return False
        error = body.error_to(aim)
        off = math.hypot(*error)
        attacking = off < (_HOLD_DEGREES if attacking else _AIM_DEGREES)
        if not attacking:
            yield {"camera": error}
            continue
        ahead = [cell, *body.memory.obstacles(body.eye, aim)]
        if any(is_precious(str(body.memory.name_of(block))) for block in ahead if block != cell):
            return False
        yield from _equip(body, [str(body.memory.name_of(block)) for block in ahead])
        yield {"attack": 1}
    return False
