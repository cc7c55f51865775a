"""How many items there are in a game, wherever they lie."""

from __future__ import annotations

from collections import Counter

from rllib_minestudio.env.voxel.entities.records import ITEM_CAPACITY, MOB_KIND_ID, UNTIED
from rllib_minestudio.env.voxel.game.game_state import GameState

_OLD = 5990
"""Ticks after which dropped items may soon vanish."""
_DEEP = -50.0
"""The height below which what is thrown soon vanishes."""


def count_items(state: GameState) -> Counter[int]:
    """Items by id: carried, in the grid and on the cursor, in all containers, and dropped."""
    counted: Counter[int] = Counter()
    inventory = state.player.inventory
    for item, quantity in zip(inventory.item.tolist(), inventory.quantity.tolist(), strict=True):
        counted[item] += quantity
    stacks = [stack for container in state.block_entities for stack in container.stacks]
    if state.screen is not None:
        menu = state.screen.menu
        stacks += [menu.carried, *(slot.stack for slot in menu.loose())]
    for stack in stacks:
        counted[stack.item] += stack.quantity
    dropped = state.items.records[: state.items.count]
    for item, quantity in zip(dropped["item"].tolist(), dropped["quantity"].tolist(), strict=True):
        counted[item] += quantity
    return +counted


def can_lose_items(state: GameState) -> bool:
    """Whether items may vanish in the next tick, mobs leave some, or furnaces change them."""
    dropped = state.items.records[: state.items.count]
    crowded = len(dropped) > ITEM_CAPACITY - 64
    deep = state.player.position[1] < _DEEP or (dropped["position"][:, 1] < _DEEP).any()
    gone = deep or (dropped["age"] > _OLD).any()
    dying = (state.mobs.records["death_ticks"][: state.mobs.count] == 1).any()  # and leaves loot
    falling = state.falling.count > 0 or bool(state.world.unsupported)  # may end as an item
    mobs = state.mobs.records[: state.mobs.count]
    laying = ((mobs["egg_ticks"] <= 1) & (mobs["kind"] == MOB_KIND_ID["chicken"])).any()
    led = (mobs["leash"] != UNTIED).any()  # its lead may come off
    enchanting = state.screen is not None and state.screen.kind == "enchanting_table"
    busy = any(not getattr(container, "is_idle", True) for container in state.block_entities)
    leaving = bool(gone) or bool(dying) or bool(laying) or bool(led)
    return crowded or leaving or falling or enchanting or busy
