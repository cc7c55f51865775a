"""Colours of the hour: fog and sky from the time of day.

The formulas are Minecraft 1.16's (as documented on minecraft.wiki, "Daylight cycle" and "Light"):
the sun's angle runs a little unevenly, and everything else follows from its cosine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rllib_minestudio.env.voxel.data.clock import DAY_TICKS
from rllib_minestudio.env.voxel.render.camera import HORIZON, LEVELS, LIGHT, ZENITH, Camera
from rllib_minestudio.env.voxel.render.light_map import light_map

# Finest time step that changes colours; lets a renderer keep them for a while.
SKY_STEP_TICKS = 20

Colour = tuple[float, float, float]
DAY_ZENITH: Colour = (110.0, 158.0, 255.0)
DAY_HORIZON: Colour = (188.0, 212.0, 255.0)
SUNSET: Colour = (232.0, 132.0, 62.0)


class Sky(NamedTuple):
    """Everything the hour decides.

    Attributes:
        sun_angle: Radians from the zenith, growing after noon; pi at midnight.
        horizon: RGB of fog and of the sky's lower rim.
        zenith: RGB of the sky overhead.
        stars: Brightness of the stars, 0..1.
    """

    sun_angle: float
    horizon: Colour
    zenith: Colour
    stars: float


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _mix(one: Colour, other: Colour, amount: float) -> Colour:
    return (
        one[0] + (other[0] - one[0]) * amount,
        one[1] + (other[1] - one[1]) * amount,
        one[2] + (other[2] - one[2]) * amount,
    )


def sun_angle(daytime: float) -> float:
    """The sun's angle from the zenith in radians, 0 at noon (tick 6000).

    Args:
        daytime: Ticks since sunrise; any number, taken modulo a day.
    """
    turn = (daytime / DAY_TICKS - 0.25) % 1.0
    return 2 * math.pi * (turn + (0.5 - math.cos(math.pi * turn) / 2 - turn) / 3)


def sky_at(daytime: float) -> Sky:
    """Colours at a time of day.

    Args:
        daytime: Ticks since sunrise; any number, taken modulo a day.
    """
    angle = sun_angle(daytime)
    height = math.cos(angle)
    day = _clamp(height * 2 + 0.5)
    # 1 while the sun touches the horizon, 0 at day and night.
    dusk = _clamp(1 - abs(height) / 0.35)
    fog = (day * 0.94 + 0.06, day * 0.94 + 0.06, day * 0.91 + 0.09)
    horizon = (DAY_HORIZON[0] * fog[0], DAY_HORIZON[1] * fog[1], DAY_HORIZON[2] * fog[2])
    zenith = _mix((3.0, 4.0, 9.0), DAY_ZENITH, day)
    return Sky(
        sun_angle=angle,
        horizon=_mix(horizon, SUNSET, 0.45 * dusk),
        zenith=zenith,
        stars=_clamp(0.25 - 2 * height) if height < 0.125 else 0.0,
    )


def apply_sky(camera: Camera, sky: Sky, gamma: float) -> None:
    """Write the hour's colours and light into the camera vector."""
    camera.vector[LIGHT : LIGHT + 3 * LEVELS] = light_map(sky.sun_angle, gamma).reshape(-1)
    camera.vector[HORIZON : HORIZON + 3] = sky.horizon
    camera.vector[ZENITH : ZENITH + 3] = sky.zenith
