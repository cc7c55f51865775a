"""Dropped items: how they fall, slide, age, and come within the player's reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.events import ITEM_TOUCHED, emit
from rllib_minestudio.env.voxel.entities.mobs import ACTIVE_RANGE
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics

DROP_DELAY = 10
"""Ticks before an item from a block or a mob can be picked up."""
THROW_DELAY = 40
"""Ticks before an item that the player threw can be picked up."""

_GRAVITY = 0.04
_DRAG = 0.98
_GROUND_DRAG = 0.6 * 0.98
_HALF = 0.125
_HEIGHT = 0.25
_LIFETIME = 6000
_MERGE_PERIOD_MOVING, _MERGE_PERIOD_RESTING = 2, 40
"""Ticks between two looks for others to merge with; moving means from one block to the next."""
_MERGE_REACH = 0.5 + 2.0 * _HALF
_LARGEST_STACK = np.array(
    [ITEMS[item].max_stack if item in ITEMS else 0 for item in range(max(ITEMS) + 1)]
)
_REACH = 0.3 + 1.0 + _HALF
"""The player's box grown by one block, and the item's half."""
_REACH_BELOW = 0.5 + _HEIGHT
_REACH_ABOVE = 1.8 + 0.5


@kernel()
def _slide(blocks: NDArray[np.uint16], item: np.void) -> None:
    velocity = item.velocity
    velocity[1] -= _GRAVITY
    was_on_ground = item.on_ground != 0
    physics.move(blocks, item, _HALF, _HEIGHT, physics.NO_STEP, velocity[0], velocity[2])
    friction = _GROUND_DRAG if was_on_ground else _DRAG
    velocity[0] *= friction
    velocity[1] *= _DRAG
    velocity[2] *= friction


@kernel()
def _can_merge(item: np.void) -> bool:
    return 0 < item.quantity < _LARGEST_STACK[item["item"]] and item.age < _LIFETIME


@kernel()
def _merge(items: NDArray[np.void], count: int, row: int) -> None:
    """Merges an item with equal ones beside it; the smaller stack joins the larger."""
    item = items[row]
    for other_row in range(count):
        other = items[other_row]
        if (
            other_row == row
            or other["item"] != item["item"]
            or not _can_merge(item)
            or not _can_merge(other)
            or other.quantity + item.quantity > _LARGEST_STACK[item["item"]]
            or abs(other.position[0] - item.position[0]) >= _MERGE_REACH
            or abs(other.position[1] - item.position[1]) >= _HEIGHT
            or abs(other.position[2] - item.position[2]) >= _MERGE_REACH
        ):
            continue
        kept, gone = item, other
        if other.quantity >= item.quantity:
            kept, gone = other, item
        kept.quantity += gone.quantity
        kept.pickup_delay = max(kept.pickup_delay, gone.pickup_delay)
        kept.age = min(kept.age, gone.age)
        gone.quantity = 0  # it vanishes in the next tick


@kernel()
def _is_merge_due(item: np.void, x: float, y: float, z: float) -> bool:
    """Whether an item that was at (x, y, z) a tick ago looks for others now."""
    position = item.position
    moved = (
        np.floor(position[0]) != np.floor(x)
        or np.floor(position[1]) != np.floor(y)
        or np.floor(position[2]) != np.floor(z)
    )
    return item.ticks % (_MERGE_PERIOD_MOVING if moved else _MERGE_PERIOD_RESTING) == 0


@kernel()
def tick_items(
    blocks: NDArray[np.uint16],
    items: NDArray[np.void],
    count: int,
    players: NDArray[np.void],
    events: NDArray[np.void],
    event_count: NDArray[np.int64],
) -> int:
    """Advances every dropped item by one tick; removes those too old, or lost below the world.

    Args:
        blocks: The window's block ids.
        items: `ITEM_DTYPE` records.
        count: How many of them are in use.
        players: `PLAYER_DTYPE` [1].
        events: `EVENT_DTYPE` records; receives an `ITEM_TOUCHED` for each item in reach.
        event_count: int64 [1].

    Returns:
        How many items are left; rows in the events are theirs after the removal.
    """
    player = players[0]
    kept = 0
    for row in range(count):
        lost = items[row].age >= _LIFETIME or items[row].position[1] < physics.VOID
        if not lost and items[row].quantity > 0:
            if kept != row:
                items[kept] = items[row]
            kept += 1
    for row in range(kept):
        item = items[row]
        dx = item.position[0] - player.position[0]
        dy = item.position[1] - player.position[1]
        dz = item.position[2] - player.position[2]
        if max(abs(dx), abs(dz)) > ACTIVE_RANGE or item.quantity == 0:
            continue
        item.age += 1
        item.ticks += 1
        if item.pickup_delay > 0:
            item.pickup_delay -= 1
        x = item.position[0]
        y = item.position[1]
        z = item.position[2]
        _slide(blocks, item)
        if _is_merge_due(item, x, y, z):
            _merge(items, kept, row)
            if item.quantity == 0:
                continue
        in_reach = max(abs(dx), abs(dz)) < _REACH and -_REACH_BELOW < dy < _REACH_ABOVE
        if in_reach and item.pickup_delay == 0 and player.health > 0.0:
            emit(events, event_count, ITEM_TOUCHED, row, 1.0, item.position)
    return kept
