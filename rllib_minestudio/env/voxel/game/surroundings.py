"""Where the player is: the biome, the light and the sky, as MineStudio's `location_stats`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.render.sky import sun_angle
from rllib_minestudio.env.voxel.world import blocks as b
from rllib_minestudio.env.voxel.world.addressing import block_index, column_index
from rllib_minestudio.env.voxel.world.worldgen import BIOMES, biome_at

SEA_LEVEL = 63
FULL_LIGHT = 15
_REACH = FULL_LIGHT - 1
"""How many blocks the light of the sky reaches into a cave."""
_SIDE = 2 * _REACH + 1
_DARKEST_NIGHT = 11
"""Levels by which a night without moon dims the light of the sky; rain dims it by up to a third."""
_RAIN_DIMS = 5 / 16


class Climate(NamedTuple):
    """What Minecraft 1.16 says of a biome.

    Attributes:
        number: Its id in the game's registry.
        temperature: Above 1.5 it never rains, below 0.15 it snows.
        rainfall: 0 to 1.
    """

    number: int
    temperature: float
    rainfall: float


CLIMATES: dict[str, Climate] = {
    "plains": Climate(1, 0.8, 0.4),
    "forest": Climate(4, 0.7, 0.8),
    "desert": Climate(2, 2.0, 0.0),
}
"""Climate by biome (minecraft.wiki, "Biome/Before 1.18"), for each of `BIOMES`."""


def location_stats(state: GameState) -> dict[str, Any]:
    """Return `location_stats` under MineStudio's names.

    `light_level` is the light at the player's feet, 0 to 15, as it is at this hour;
    `sky_light_level` the share of the sky's light that reaches there, whatever the hour, 0 to 1;
    `sun_brightness` what the hour and the weather leave of the daylight, 0 to 1.
    """
    player, world = state.player, state.world
    x, y, z = player.position.tolist()
    column, level, row = math.floor(x), math.floor(y), math.floor(z)
    climate = CLIMATES[BIOMES[biome_at(column, row, world.seed)]]
    from_sky = int(sky_light(world.blocks, world.top, column, level, row))
    sun = sun_brightness(state.daytime, state.raining)
    return {
        "xpos": x,
        "ypos": y,
        "zpos": z,
        "yaw": player.yaw,
        "pitch": player.pitch,
        "sea_level": SEA_LEVEL,
        "is_raining": state.raining,
        "biome_id": climate.number,
        "biome_temperature": climate.temperature,
        "biome_rainfall": climate.rainfall,
        "can_see_sky": from_sky == FULL_LIGHT,
        "sky_light_level": from_sky / FULL_LIGHT,
        "light_level": max(from_sky - int((1.0 - sun) * _DARKEST_NIGHT), 0),
        "sun_brightness": sun,
    }


def sun_brightness(daytime: float, raining: bool) -> float:
    """Return the daylight, 0 at night and 1 by day (minecraft.wiki, "Light", internal sky light).

    Args:
        daytime: Ticks since sunrise.
        raining: Whether it rains.
    """
    day = min(max(2.0 * math.cos(sun_angle(daytime)) + 0.5, 0.0), 1.0)
    return day * (1.0 - _RAIN_DIMS) if raining else day


@kernel(inline="always")
def _lets_light_pass(block: int) -> bool:
    return b.LETS_LIGHT_PASS[block]


@kernel()
def sky_light(blocks: NDArray[np.uint16], top: NDArray[np.uint8], x: int, y: int, z: int) -> int:
    """Light of the sky at a block by day, 0 to 15.

    It is 15 under the open sky, and one less for each block on the shortest way from there.

    Args:
        blocks: The world's block ids, uint16 [2**23].
        top: The world's column tops, uint8 [2**16].
        x: Column.
        y: Layer.
        z: Column.
    """
    if y > top[column_index(x, z)]:
        return FULL_LIGHT
    if y < 0 or not _lets_light_pass(blocks[block_index(x, y, z)]):
        return 0
    seen = np.zeros(_SIDE**3, np.uint8)
    queue = np.empty(_SIDE**3, np.int32)
    middle = (_REACH * _SIDE + _REACH) * _SIDE + _REACH
    seen[middle] = 1
    queue[0] = middle
    begin, end = 0, 1
    for light in range(_REACH, 0, -1):  # all blocks that are one step farther away, each time
        last = end
        while begin < last:
            cell = queue[begin]
            begin += 1
            for step in (1, -1, _SIDE, -_SIDE, _SIDE * _SIDE, -_SIDE * _SIDE):
                near = cell + step
                if seen[near]:
                    continue
                seen[near] = 1
                i = x + near // (_SIDE * _SIDE) - _REACH
                j = y + near // _SIDE % _SIDE - _REACH
                k = z + near % _SIDE - _REACH
                if j > top[column_index(i, k)]:
                    return light
                if j >= 0 and _lets_light_pass(blocks[block_index(i, j, k)]):
                    queue[end] = near
                    end += 1
    return 0
