"""How bright the sky's light is, by its level and the hour: Minecraft 1.16.5's light map.

The game makes a colour for each level of light, 0 to 15, and multiplies textures by it
(`LightTexture`). The light of torches and the like is not simulated, so only the sky's counts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import LEVELS

# Twice on its way, a colour goes this far towards a light grey, so that nothing is quite black.
GREY, TOWARDS_GREY = 0.75, 0.04
# How far the night's blue goes towards white.
TOWARDS_WHITE = 0.35


def daylight(sun_angle: float) -> float:
    """What the hour leaves of the sun's light: 0.2 at night, 1 by day (`getSunBrightness`).

    Args:
        sun_angle: Radians from the zenith, see `sky.sun_angle`.
    """
    darkness = min(max(1 - (math.cos(sun_angle) * 2 + 0.2), 0.0), 1.0)
    return (1 - darkness) * 0.8 + 0.2


def level_brightness() -> NDArray[np.float64]:
    """Share of the light at each level, float64 (16,): 0 at level 0, 1 at 15, a third at 10."""
    share = np.arange(LEVELS) / (LEVELS - 1)
    return share / (4 - 3 * share)


def light_map(sun_angle: float, gamma: float) -> NDArray[np.float32]:
    """Factors on red, green and blue at each level of the sky's light.

    Args:
        sun_angle: Radians from the zenith, see `sky.sun_angle`.
        gamma: How far a colour goes from itself (0) towards its gamma-corrected self (1). Beyond 1
            it overshoots and is cut to what can be shown, as in the game.

    Returns:
        float32 (16, 3), 0 to 1, in steps of 1/255: the game keeps them in a texture.
    """
    sun = daylight(sun_angle)
    sky = _towards(np.array([sun, sun, 1.0]), 1.0, TOWARDS_WHITE)
    colours = level_brightness()[:, None] * (sun * 0.95 + 0.05) * sky
    colours = np.clip(_towards(colours, GREY, TOWARDS_GREY), 0, 1)
    colours = _towards(colours, 1 - (1 - colours) ** 4, gamma)
    colours = np.clip(_towards(colours, GREY, TOWARDS_GREY), 0, 1)
    return (np.rint(colours * 255) / 255).astype(np.float32)


def _towards(
    colours: NDArray[np.float64], goal: float | NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    return colours + (goal - colours) * share
