"""What becomes of blocks that a change has left without what they need, after Minecraft Java 1.16.

Sand and gravel without ground fall. What has lost its support, or its other half, breaks and drops:
torches, signs, rails, doors, plants. Whatever made the change counts alike: players, commands,
blocks that fall, and blocks that broke a tick ago, so that a column of cactus breaks from the
bottom up, one block a tick.

The world lists the places that a change may concern; `notice` schedules a look at each of them. So
the work of a tick has a limit, and the order of all places is the same in every process.

A block that would land inside the player or a mob becomes an item there. Minecraft places the
block, and the body inside suffocates or is pushed out; this engine implements neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.entities.records import FALLING_CAPACITY
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.loot import drop_loot
from rllib_minestudio.env.voxel.game.placement import lacks_half, other_half, stands
from rllib_minestudio.env.voxel.game.use_and_drop import is_vacant
from rllib_minestudio.env.voxel.world.block_states import bears, kind_of, lands, needs_others
from rllib_minestudio.env.voxel.world.blocks import AIR, FALLS

FALL, SUPPORT = "fall", "support"
"""The kinds of scheduled ticks."""
_FALL_DELAY, _BREAK_DELAY = 2, 1
"""Ticks from a change to what becomes of it."""
_GRAVITY = 0.04
_DRAG = 0.98
MOST_LOOKS = 1024
"""Most places that are looked at in a tick, as each takes ten microseconds or more."""


def notice(state: GameState) -> None:
    """Schedule what becomes of the places that changes since the last tick's call may concern."""
    world, block_ticks = state.world, state.block_ticks
    for place in world.unsupported:
        block = world.block_at(*place)
        is_known = world.is_loaded(place[0], place[2])  # unless the player has been taken away
        if FALLS[kind_of(block)] or not is_known:
            block_ticks.schedule(FALL, place, _FALL_DELAY)
        if needs_others(block) or not is_known:
            block_ticks.schedule(SUPPORT, place, _BREAK_DELAY)
    world.unsupported.clear()


def break_unsupported(state: GameState, places: Iterator[Place]) -> None:
    """Break the blocks that still lack what they need; they drop what they yield to no tool.

    As in the game, a block drops nothing if only its other half is missing: what removed that half
    has dropped the whole.
    """
    world = state.world
    gone: dict[Place, int] = {}
    for place in islice(places, MOST_LOOKS):
        block = world.block_at(*place)
        if place in gone or not needs_others(block) or stands(block, place, world.block_next_to):
            continue
        gone[place] = AIR
        state.particles.burst(block, *place)
        if lacks_half(block, place, world.block_next_to):
            continue
        if (rest := other_half(place, block)) and world.is_loaded(rest[0][0], rest[0][2]):
            gone[rest[0]] = AIR
        drop_loot(state, block, None, place)
    world.set_blocks(gone)


# ------------------------------------------------------------------------------- falling blocks


def let_go(state: GameState, places: Iterator[Place]) -> None:
    """Turn blocks that still have no ground into falling ones, as many as there is room for."""
    world, falling = state.world, state.falling
    gone: dict[Place, int] = {}
    while falling.count < FALLING_CAPACITY and (place := next(places, None)) is not None:
        x, y, z = place
        block = world.block_at(x, y, z)
        if not FALLS[kind_of(block)] or bears(world.block_at(x, y - 1, z)):
            continue
        gone[place] = AIR
        row = falling.append()
        row["position"] = (x + 0.5, y, z + 0.5)
        row["block"] = block
    world.set_blocks(gone)


def _resting_layer(state: GameState, x: int, z: int, y: float, target: float) -> int | None:
    """Return the layer where a block that falls from y to `target` ends, or None.

    It falls through what has no body: into a flower, in whose place it cannot be put.
    """
    for layer in range(math.ceil(y) - 1, max(math.floor(target), 0) - 1, -1):
        if lands(state.world.block_at(x, layer, z)):
            return layer + 1
    return None


def move_falling(state: GameState) -> None:
    """Move the falling blocks by one tick, and place those that land."""
    falling = state.falling
    kept = np.ones(falling.count, bool)
    landed: dict[Place, int] = {}
    for row, record in enumerate(falling.records[: falling.count]):
        x, y, z = record["position"].tolist()
        if not state.world.is_loaded(x, z):
            continue
        speed = float(record["speed"]) + _GRAVITY
        column = math.floor(x), math.floor(z)
        layer = _resting_layer(state, *column, y, y - speed)
        record["speed"] = speed * _DRAG
        record["position"][1] = y - speed
        record["moved"][1] = -speed
        if layer is not None:
            kept[row] = False
            cell = (column[0], layer, column[1])
            block = int(record["block"])
            if cell not in landed and is_vacant(state, cell, block):
                landed[cell] = block
            else:
                state.scatter_item(kind_of(block), 1, (x, float(layer), z), DROP_DELAY)
        elif y - speed < 0.0:  # lost: it falls out of the world
            kept[row] = False
    falling.keep(kept)
    state.world.set_blocks(landed)
