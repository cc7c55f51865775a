"""Where the player is: the biome, the light and the sky, as MineStudio's `location_stats`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.render.sky import sun_angle
from rllib_minestudio.env.voxel.world import sky_light
from rllib_minestudio.env.voxel.world.worldgen import BIOMES, biome_at

SEA_LEVEL = 63
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
    from_sky = sky_light.level_at(world.light, column, level, row)
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
        "can_see_sky": from_sky == sky_light.FULL,
        "sky_light_level": from_sky / sky_light.FULL,
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
