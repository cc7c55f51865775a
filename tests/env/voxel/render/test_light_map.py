"""Minecraft's light map: its reference points, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.render.light import daylight, level_brightness, light_map
from rllib_minestudio.env.voxel.render.sky import sun_angle

NOON, MIDNIGHT = sun_angle(6000), sun_angle(18000)
STEP = 1 / 255


def test_daylight_by_the_hour() -> None:
    assert daylight(NOON) == 1.0
    assert daylight(MIDNIGHT) == pytest.approx(0.2)
    setting = [daylight(sun_angle(tick)) for tick in range(11000, 14500, 100)]
    assert setting == sorted(setting, reverse=True)
    assert setting[0] == 1.0 and setting[-1] == pytest.approx(0.2)


def test_levels_of_light() -> None:
    levels = level_brightness()
    assert (levels[0], levels[10], levels[15]) == pytest.approx((0, 1 / 3, 1))
    assert levels[12] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("angle", "level", "colour"),
    [
        (NOON, 15, (1.0, 1.0, 1.0)),
        (NOON, 10, (1.0, 1.0, 1.0)),  # no shadow under a roof nearby
        (NOON, 0, (0.2214, 0.2214, 0.2214)),  # an unlit cave
        (MIDNIGHT, 15, (0.7677, 0.7677, 1.0)),
        (MIDNIGHT, 0, (0.2214, 0.2214, 0.2214)),
    ],
)
def test_colours_at_minestudios_gamma(
    angle: float, level: int, colour: tuple[float, float, float]
) -> None:
    np.testing.assert_allclose(light_map(angle, 2.0)[0, level], colour, atol=STEP / 2 + 1e-4)


def test_one_level_worked_out_by_hand() -> None:
    """Level 12 at midnight: half of 0.24 of the sky's (0.48, 0.48, 1)."""
    expected = []
    for sky in (0.48, 0.48, 1.0):
        colour = 0.5 * 0.24 * sky
        colour = colour * 0.96 + 0.75 * 0.04
        corrected = 1 - (1 - colour) ** 4
        colour = colour + 2 * (corrected - colour)
        expected.append(min(colour * 0.96 + 0.75 * 0.04, 1))
    np.testing.assert_allclose(light_map(MIDNIGHT, 2.0)[0, 12], expected, atol=STEP / 2 + 1e-6)


def test_gamma_brightens_the_dark_and_one_is_the_corrected_colour() -> None:
    dark = [light_map(NOON, gamma)[0, 4, 0] for gamma in (0.0, 0.5, 1.0, 2.0, 16.0)]
    assert dark == sorted(dark) and dark[0] < 0.2 and dark[-1] == 1.0
    colour = 0.96 / 12 + 0.03  # level 4 gives a twelfth of the light
    corrected = 1 - (1 - colour) ** 4
    assert dark[2] == pytest.approx(corrected * 0.96 + 0.03, abs=STEP)


def test_more_light_is_never_darker() -> None:
    for angle in np.linspace(0, 2 * np.pi, 13):
        for axis in (0, 1):
            assert (np.diff(light_map(angle, 2.0), axis=axis) >= 0).all()


def test_block_light_is_that_of_the_reference_and_warm_below_level_10() -> None:
    """Levels 0 to 8 without light of the sky, at MineStudio's gamma."""
    reference = [
        *((56, 56, 56), (94, 81, 72), (131, 107, 88), (168, 136, 106), (205, 166, 126)),
        *((240, 197, 148), (255, 230, 172), (255, 255, 200), (255, 255, 231)),
    ]
    for angle in (NOON, MIDNIGHT):
        found = light_map(angle, 2.0)[:, 0] * 255
        np.testing.assert_allclose(found[:9], reference, atol=1)
        assert (found[10:] == 255).all()


def test_the_skys_light_is_that_of_the_reference() -> None:
    day, night = (light_map(angle, 2.0)[0] * 255 for angle in (NOON, MIDNIGHT))
    np.testing.assert_allclose(day[[0, 1, 2, 3, 4, 6], 0], [56, 82, 108, 135, 163, 221], atol=1)
    at_night = [(70, 70, 85), (93, 93, 128), (134, 134, 200), (196, 196, 255)]
    np.testing.assert_allclose(night[[4, 8, 12, 15]], at_night, atol=1)


def test_both_lights_add_up() -> None:
    """Block light of level 4 and the moon's of level 12, before the gamma: 0.205 and 0.12."""
    both = light_map(MIDNIGHT, 0.0)
    grey = 0.75 * 0.04
    linear = (both - grey) / 0.96
    linear = (linear - grey) / 0.96
    np.testing.assert_allclose(
        linear[4, 12] - linear[0, 12], linear[4, 0] - linear[0, 0], atol=2.5 / 255
    )
    assert linear[4, 0, 0] == pytest.approx(1.5 * (4 / 15) / (4 - 12 / 15), abs=1.5 / 255)
