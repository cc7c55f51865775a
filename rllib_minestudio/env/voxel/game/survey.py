"""What is where in the loaded land, seen or not: for judges and for scripts that need not look."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.world.addressing import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from rllib_minestudio.env.voxel.world.worldgen import BIOMES, biome_at

_BIOME_STEP = 8
"""Blocks between the places where a biome is looked for."""


def places_of(
    state: GameState, names: Collection[str], radius: int
) -> list[tuple[int, int, int]]:
    """Places (x, y, z) of all loaded blocks of these names in a cube around the player's feet.

    Args:
        state: The game.
        names: Names of blocks; one that there is not is nowhere.
        radius: Half the cube's side in blocks.
    """
    wanted = [BLOCK_ID[name] for name in names if name in BLOCK_ID]
    x, y, z = (math.floor(v) for v in state.player.position.tolist())
    loaded = state.world.is_loaded
    columns = [
        (i, k)
        for i in range(x - radius, x + radius + 1)
        for k in range(z - radius, z + radius + 1)
        if loaded(i, k)
    ]
    layers = np.arange(max(y - radius, 0), min(y + radius + 1, HEIGHT))
    column_x, column_z = np.array(columns, np.int64).reshape(-1, 2).T[:, :, None]
    blocks = state.world.blocks[block_index(column_x, layers, column_z)]  # [columns, layers]
    column, layer = np.nonzero(np.isin(blocks, wanted))
    return [
        (*columns[c][:1], int(layers[level]), *columns[c][1:])
        for c, level in zip(column.tolist(), layer.tolist(), strict=True)
    ]


def items_near(state: GameState, radius: float) -> list[dict[str, Any]]:
    """The dropped items within `radius` blocks of the player.

    Returns:
        Dictionaries with name and x, y, z (bottom centre).
    """
    items, feet = state.items, state.player.position.tolist()
    return [
        {"name": ITEMS[item].name, "x": place[0], "y": place[1], "z": place[2]}
        for item, quantity, place in zip(
            items.item.tolist(), items.quantity.tolist(), items.position.tolist(), strict=True
        )
        if quantity and math.dist(place, feet) <= radius
    ]


def nearest_biome(state: GameState, name: str, radius: int) -> tuple[int, int] | None:
    """The nearest column (x, z) of a biome, loaded or not, within a square around the player.

    Args:
        state: The game.
        name: One of `BIOMES`.
        radius: Half the square's side in blocks; columns are looked at 8 blocks apart.
    """
    x, _, z = (math.floor(v) for v in state.player.position.tolist())
    wanted, seed = BIOMES.index(name), state.world.seed
    steps = range(-radius, radius + 1, _BIOME_STEP)
    found = [(x + i, z + k) for i in steps for k in steps if biome_at(x + i, z + k, seed) == wanted]
    return min(found, key=lambda column: math.dist(column, (x, z)), default=None)
