"""The sky: the colours of the hour, of fog and dome, and the glow of sunrise and sunset.

All formulas are Minecraft 1.16's. It mixes fog and sky by its render distance in chunks, and ends
the fog one chunk before it; for us, fog ends at the view distance. So fog and sky are those of a
render distance of one chunk more than the view distance, which is 5 for 64 blocks.

The game measures fog along the ray, not along the line of sight, where the driver has
`GL_NV_fog_distance`, as Nvidia's and Mesa's have. So does this renderer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float32, int32

from rllib_minestudio.env.voxel.data import DAY_TICKS, read_csv
from rllib_minestudio.env.voxel.render.camera import (
    BELOW_RGB,
    CLOUDS_RGB,
    DOME,
    EYE_Y,
    FOG_RGB,
    FORWARD,
    GLOW_ALPHA,
    GLOW_RGB,
    HOUR_RGB,
    IS_CLEAR,
    SKY_RGB,
    SKY_SHARE,
    SUN_SIDE,
    Camera,
    Floats,
    Ints,
    render_kernel,
)
from rllib_minestudio.env.voxel.render.ray_tiles import (
    BLUE,
    DEPTH,
    DIR_X,
    DIR_Y,
    DIR_Z,
    GREEN,
    HALF,
    LANES,
    ONE,
    RED,
    SKY_DEPTH,
    T_MAX,
    ZERO,
)
from rllib_minestudio.env.voxel.render.texels import colour

Colour = tuple[float, float, float]

# -------------------------------------------------------------- what the hour and the biome decide

# Colours change in steps of this many ticks, so that a renderer can reuse them.
SKY_STEP_TICKS = 20

SKY_OF_BIOME: tuple[Colour, ...] = tuple(colour(row["sky"]) for row in read_csv("biomes.csv"))
"""Colour of the sky by day, for each of `BIOMES` (`sky_color` in the game's files of biomes)."""
FOG_BY_DAY: Colour = (192.0, 216.0, 255.0)
"""Colour of the fog (`fog_color` of all biomes of the overworld)."""
MOON_PHASES = 8
GLOW_REACH = 0.4
"""The sky glows while the cosine of the sun's angle is between this and its negative."""


class Sky(NamedTuple):
    """Everything that depends on the hour.

    Attributes:
        sun_angle: Radians from the zenith, growing after noon; pi at midnight.
        moon_phase: Picture of the moon, 0 for the full moon, 0 to 7.
        overhead: RGB of the sky, 0..255; black at night.
        fog: RGB of the fog, before the sky and the glow are mixed into it.
        glow: RGB of sunrise and sunset.
        glow_alpha: How much of the glow shows where the sun crosses the horizon, 0..1.
        stars: Brightness of the stars, 0..0.5.
        clouds: RGB of the clouds' upper side.
    """

    sun_angle: float
    moon_phase: int
    overhead: Colour
    fog: Colour
    glow: Colour
    glow_alpha: float
    stars: float
    clouds: Colour


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def sun_angle(daytime: float) -> float:
    """The sun's angle from the zenith in radians, 0 at noon (tick 6000).

    Args:
        daytime: Ticks since sunrise; any number, taken modulo a day.
    """
    turn = (daytime / DAY_TICKS - 0.25) % 1.0
    return 2 * math.pi * (turn + (0.5 - math.cos(math.pi * turn) / 2 - turn) / 3)


def sky_at(time: float, by_day: Colour = SKY_OF_BIOME[0]) -> Sky:
    """Compute the sky at a time.

    Args:
        time: Ticks since the first sunrise; the day decides the moon's phase.
        by_day: Colour of the biome's sky by day.
    """
    angle = sun_angle(time)
    height = math.cos(angle)
    day = _clamp(2 * height + 0.5)
    night = _clamp(0.75 - 2 * height)
    grey, blue = day * 0.94 + 0.06, day * 0.91 + 0.09
    glow, glow_alpha = _glow(height)
    bright = 255 * (day * 0.9 + 0.1)
    return Sky(
        sun_angle=angle,
        moon_phase=int(time // DAY_TICKS) % MOON_PHASES,
        overhead=(by_day[0] * day, by_day[1] * day, by_day[2] * day),
        fog=(FOG_BY_DAY[0] * grey, FOG_BY_DAY[1] * grey, FOG_BY_DAY[2] * blue),
        glow=glow,
        glow_alpha=glow_alpha,
        stars=night * night / 2,
        clouds=(bright, bright, 255 * (day * 0.85 + 0.15)),
    )


def _glow(height: float) -> tuple[Colour, float]:
    """Colour and alpha of the glow, given the cosine of the sun's angle."""
    if abs(height) > GLOW_REACH:
        return (0.0, 0.0, 0.0), 0.0
    share = height / GLOW_REACH / 2 + 0.5
    colour = 255 * (0.3 * share + 0.7), 255 * (0.7 * share * share + 0.2), 255 * 0.2
    return colour, (0.01 + 0.99 * math.sin(math.pi * share)) ** 2


def render_distance(view_distance: float) -> float:
    """The game's render distance, in chunks, whose fog ends at a view distance in blocks."""
    return view_distance / 16 + 1


def sky_share(render_distance: float) -> float:
    """Share of the sky's colour in the fog's, at a render distance in chunks."""
    return 1 - (0.25 + 0.75 * render_distance / 32) ** 0.25


def apply_sky(camera: Camera, sky: Sky) -> None:
    """Write the hour's colours into the camera vector; `mix_fog` then follows the eye."""
    vector, distance = camera.vector, render_distance(camera.view_distance)
    vector[SKY_RGB : SKY_RGB + 3] = sky.overhead
    vector[HOUR_RGB : HOUR_RGB + 3] = sky.fog
    vector[GLOW_RGB : GLOW_RGB + 3] = sky.glow
    vector[GLOW_ALPHA] = sky.glow_alpha
    vector[SUN_SIDE] = -1.0 if math.sin(sky.sun_angle) > 0 else 1.0
    vector[SKY_SHARE] = sky_share(distance)
    vector[DOME] = camera.view_distance / distance
    vector[CLOUDS_RGB : CLOUDS_RGB + 3] = sky.clouds
    vector[IS_CLEAR] = sky.glow_alpha == 0 and sky.stars == 0


# ------------------------------------------------------------------------------------- fog and dome
# Fog has one colour in a frame, which depends on where the camera looks, and hides the sky's lower
# part. The sky is a plane 16 blocks above the eye, in fog that begins at the eye and ends at the
# render distance. A ray that rises by the angle e meets it 16 / sin(e) blocks away.

DOME_HEIGHT = 16.0
HORIZON_HEIGHT = np.float32(63)
"""Below this height of the eye, a black plane lies below the horizon."""
BLACK_PLANE = np.float32(4 / DOME_HEIGHT)
"""How far below the eye that plane is, relative to the sky above it."""
DARK_HEIGHT = np.float32(32)
"""Below this height of the eye, the fog darkens."""
FAN_SLOPE = np.float32(1 / 3)
"""How steeply the glow's rim rises towards the sun, for an alpha of 1: by 40 in 120."""
FAN_REACH = np.float32(1.2)
"""Radius of the glow's rim over the distance of its centre: 120 to 100."""


@render_kernel
def mix_fog(camera: Floats) -> None:
    """Write the colours of the fog, and of what lies below the horizon, for the camera's place."""
    toward = max(camera[FORWARD] * camera[SUN_SIDE], ZERO) * camera[GLOW_ALPHA]
    depth = min(max(camera[EYE_Y] / DARK_HEIGHT, ZERO), ONE)
    below = ONE if camera[EYE_Y] >= HORIZON_HEIGHT else ZERO
    for c in range(3):
        fog = camera[HOUR_RGB + c]
        fog += (camera[GLOW_RGB + c] - fog) * toward
        fog += (camera[SKY_RGB + c] - fog) * camera[SKY_SHARE]
        camera[FOG_RGB + c] = fog * depth * depth
        camera[BELOW_RGB + c] = fog * depth * depth * below


def brighten_fog(camera: Floats, night_vision: float) -> None:
    """Raise the fog's colour to full brightness in its own tone, by a share of 0 to 1."""
    fog = camera[FOG_RGB : FOG_RGB + 3]
    fog *= 1.0 + night_vision * (255.0 / max(float(fog.max()), 1.0) - 1.0)


@render_kernel
def show_sky(camera: Floats, s: Floats, n: Ints) -> None:
    """Write the dome along each ray as three integer channels, and its depth."""
    fr, fg, fb = camera[FOG_RGB], camera[FOG_RGB + 1], camera[FOG_RGB + 2]
    sr, sg, sb = camera[SKY_RGB] - fr, camera[SKY_RGB + 1] - fg, camera[SKY_RGB + 2] - fb
    br, bg, bb = camera[BELOW_RGB] - fr, camera[BELOW_RGB + 1] - fg, camera[BELOW_RGB + 2] - fb
    # Divided by the ray's slope times its length, this is the fog's share.
    above, below = camera[DOME], camera[DOME] * BLACK_PLANE
    for i in range(LANES):
        rise = s[DIR_Y + i] * s[T_MAX + i]
        is_up = rise > ZERO
        clear = ONE - min((above if is_up else below) / abs(rise), ONE)
        s[DEPTH + i] = SKY_DEPTH
        n[RED + i] = int32(fr + (sr if is_up else br) * clear + HALF)
        n[GREEN + i] = int32(fg + (sg if is_up else bg) * clear + HALF)
        n[BLUE + i] = int32(fb + (sb if is_up else bb) * clear + HALF)
    if camera[GLOW_ALPHA] > ZERO:
        _add_glow(camera, s, n)


@render_kernel
def lowest_slope(camera: Floats) -> float:
    """Rays below this slope see nothing of glow, sun, moon and stars: the black plane hides it."""
    return ZERO if camera[EYE_Y] < HORIZON_HEIGHT else -SKY_DEPTH


@render_kernel
def _add_glow(camera: Floats, s: Floats, n: Ints) -> None:
    """Lay the glow of sunrise or sunset over the dome.

    The game draws a fan of 16 triangles around the eye: its centre, 100 away on the horizon where
    the sun crosses it, has the full alpha, and its rim, a circle of radius 120, none. The circle is
    tilted: its plane rises by 40 * alpha on the sun's side. Here, the rim is round. For a ray
    (forward, up, side), with slope k of that plane, alpha falls off as
    `M / (M + W)`, M = 1.2 (k forward - up) and W = hypot(k side, up).
    """
    red, green, blue = camera[GLOW_RGB], camera[GLOW_RGB + 1], camera[GLOW_RGB + 2]
    alpha, lowest = camera[GLOW_ALPHA], lowest_slope(camera)
    slope = alpha * FAN_SLOPE
    sunward = slope * camera[SUN_SIDE]
    for i in range(LANES):
        up, side = s[DIR_Y + i], slope * s[DIR_Z + i]
        inside = max(FAN_REACH * (sunward * s[DIR_X + i] - up), ZERO)
        inside = inside if up >= lowest else ZERO
        share = alpha * inside / (inside + np.sqrt(side * side + up * up))
        r, g, b = float32(n[RED + i]), float32(n[GREEN + i]), float32(n[BLUE + i])
        n[RED + i] = int32(r + (red - r) * share + HALF)
        n[GREEN + i] = int32(g + (green - g) * share + HALF)
        n[BLUE + i] = int32(b + (blue - b) * share + HALF)
