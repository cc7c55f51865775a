"""Falling sand and gravel, after Minecraft Java 1.16: a scheduled tick lets go of a block.

A block that would land inside the player or a mob becomes an item there. Minecraft places the
block, and the body inside suffocates or is pushed out; this engine implements neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rllib_minestudio.env.voxel.entities.mobs import DROP_DELAY
from rllib_minestudio.env.voxel.entities.records import FALLING_CAPACITY
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.use_and_drop import is_vacant
from rllib_minestudio.env.voxel.world.block_states import bears, kind_of, lands
from rllib_minestudio.env.voxel.world.blocks import AIR, FALLS

FALL = "fall"
"""The kind of scheduled tick."""
DELAY = 2
"""Ticks between the loss of the ground and the fall."""
_GRAVITY = 0.04
_DRAG = 0.98


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


def move(state: GameState) -> None:
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
