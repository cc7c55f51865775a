"""The sky of Minecraft 1.16: its numbers, and the same in drawn frames of the game's window."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import DAY_TICKS
from rllib_minestudio.env.voxel.render.camera import FORWARD, RIGHT, STEP_X, STEP_Y, UP
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.sky import (
    FOG_BY_DAY,
    SKY_OF_BIOME,
    sky_at,
    sky_share,
    star_table,
    sun_angle,
)
from rllib_minestudio.env.voxel.world.climate import biome_at
from tests.env.voxel.render.render_stage import FLOOR, MIDNIGHT, NOON, Stage
from tests.env.voxel.render.test_resource_packs import folder, plain, png

WIDTH, HEIGHT, VIEW = 640, 360, 64.0
CHUNKS = 5
"""The game's render distance whose fog ends at `VIEW`."""
SUNSET = 12780
"""A multiple of 20, at which the sun is within a tenth of a degree of the horizon."""
PLAIN_COLOUR = (200, 100, 50)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Stone in one colour, no clouds, a red sun."""
    nothing = np.zeros((256, 256, 4), np.uint8)
    return folder(
        tmp_path_factory.mktemp("pack"),
        {
            "block/stone": plain(PLAIN_COLOUR),
            "environment/clouds": png(nothing),
            "environment/sun": plain((100, 0, 0), 32, 32),
        },
    )


@pytest.fixture(scope="module")
def renderer(pack: str) -> Renderer:
    return Renderer((WIDTH, HEIGHT), resource_pack=pack, view_distance=VIEW)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def rays_of(renderer: Renderer) -> NDArray[np.float64]:
    """Unit vectors of all pixels, float64 (HEIGHT, WIDTH, 3)."""
    camera = renderer.camera.vector.astype(np.float64)
    forward, right, up = (camera[i : i + 3] for i in (FORWARD, RIGHT, UP))
    across = (np.arange(WIDTH) + 0.5 - WIDTH / 2)[None, :, None] * camera[STEP_X] * right
    down = (np.arange(HEIGHT) + 0.5 - HEIGHT / 2)[:, None, None] * camera[STEP_Y] * up
    rays = forward + across - down
    return rays / np.linalg.norm(rays, axis=-1, keepdims=True)


def pixel_at(renderer: Renderer, direction: NDArray[np.float64]) -> tuple[int, int]:
    """Row and column of the pixel whose ray is nearest to a direction."""
    nearest = (rays_of(renderer) @ direction).argmax()
    return divmod(int(nearest), WIDTH)


def direction(azimuth: float, elevation: float) -> NDArray[np.float64]:
    """Unit vector at degrees from east (+x) towards south (+z), and above the horizon."""
    a, e = math.radians(azimuth), math.radians(elevation)
    return np.array((math.cos(e) * math.cos(a), math.sin(e), math.cos(e) * math.sin(a)))


def look(stage: Stage, towards: NDArray[np.float64]) -> None:
    """Turn the player so that a direction is somewhat off the crosshair."""
    x, y, z = towards
    yaw = math.degrees(math.atan2(-x, z))
    stage.stand(yaw - 10, -math.degrees(math.asin(y)) + 7)


def sky_of(stage: Stage) -> NDArray[np.float64]:
    """The biome's sky by day."""
    return np.array(SKY_OF_BIOME[biome_at(stage.x, stage.z, stage.world.seed)])


def mixed(one: NDArray[np.float64], other: NDArray[np.float64], share: float):
    return one + (other - one) * share


# ---------------------------------------------------------------------------------------- numbers


def test_colours_by_the_hour() -> None:
    """The reference's: 0.187 and 0.146 of the sky's blue in the fog at 8 and 12 chunks."""
    assert sky_share(8) == pytest.approx(0.187, abs=5e-4)
    assert sky_share(12) == pytest.approx(0.146, abs=5e-4)
    noon, midnight = sky_at(NOON), sky_at(MIDNIGHT)
    fog = mixed(np.array(noon.fog), np.array(noon.overhead), sky_share(8))
    assert np.rint(fog).tolist() == [179, 207, 255]
    assert noon.overhead == (120, 167, 255) and midnight.overhead == (0, 0, 0)
    night = [FOG_BY_DAY[0] * 0.06, FOG_BY_DAY[1] * 0.06, FOG_BY_DAY[2] * 0.09]
    np.testing.assert_allclose(midnight.fog, night)
    np.testing.assert_allclose(midnight.clouds, [25.5, 25.5, 38.25])
    assert noon.clouds == (255, 255, 255)
    assert (noon.stars, midnight.stars) == (0, 0.5)


def test_the_sky_glows_while_the_sun_crosses_the_horizon() -> None:
    for time in range(0, DAY_TICKS, 100):
        cosine, sky = math.cos(sun_angle(time)), sky_at(time)
        share = 1.25 * cosine + 0.5
        if abs(cosine) > 0.4:
            assert sky.glow_alpha == 0
            continue
        assert sky.glow_alpha == pytest.approx((0.01 + 0.99 * math.sin(math.pi * share)) ** 2)
        expected = [0.3 * share + 0.7, 0.7 * share**2 + 0.2, 0.2]
        np.testing.assert_allclose(sky.glow, np.array(expected) * 255)


def test_the_moon_has_eight_phases_and_begins_full() -> None:
    phases = [sky_at(MIDNIGHT + day * DAY_TICKS).moon_phase for day in range(10)]
    assert phases == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


def test_stars_are_the_games() -> None:
    """Its 780, the first of which was worked out by hand from Java's generator."""
    stars = star_table()
    assert len(stars) == 780
    x, y, z = np.array((-0.33376896, 0.43831766, 0.29899096))
    first = np.array((-z, y, x)) / math.hypot(x, y, z)
    np.testing.assert_allclose(stars[0, :3], first, atol=1e-6)
    assert math.sqrt(stars[0, 9]) == pytest.approx(2 * 0.15018425 / 100, rel=1e-5)
    directions, one, two = stars[:, :3], stars[:, 3:6], stars[:, 6:9]
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, atol=1e-6)
    for a, b in ((directions, one), (directions, two), (one, two)):
        np.testing.assert_allclose((a * b).sum(1) / np.linalg.norm(b, axis=1), 0, atol=1e-3)


# ----------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize(("wall", "share"), [(40, 0.0), (54, 0.375), (60, 0.75)])
def test_fog_grows_over_the_last_quarter_of_the_view(
    renderer: Renderer, stage: Stage, wall: int, share: float
) -> None:
    """A wall at three distances. Its north side, in the open at noon, has 0.8 of its colour."""
    stage.fill((-4, 5), (0, 12), (wall, wall + 1), "stone")
    frame = stage.draw(renderer)
    row, column = pixel_at(renderer, direction(91, 3))
    distance = (
        renderer.depth.reshape(HEIGHT, WIDTH)[row, column] / rays_of(renderer)[row, column, 2]
    )
    assert distance == pytest.approx(wall - 0.5, abs=0.3)
    fog = mixed(np.array(FOG_BY_DAY), sky_of(stage), sky_share(CHUNKS))
    exact = np.clip((distance / VIEW - 0.75) * 4, 0, 1)
    assert exact == pytest.approx(max(share - 0.03, 0), abs=0.03)
    expected = mixed(np.array(PLAIN_COLOUR) * 0.8, fog, exact)
    np.testing.assert_allclose(frame[row, column], expected, atol=1)


@pytest.mark.parametrize("elevation", [5, 20, 60])
def test_the_dome_is_bluer_the_higher_one_looks(
    renderer: Renderer, stage: Stage, elevation: float
) -> None:
    """A plane 16 up, in fog that ends 5 chunks away: all fog at 5 degrees, 0.23 of it at 60."""
    towards = direction(90, elevation)
    look(stage, towards)
    frame = stage.draw(renderer)
    row, column = pixel_at(renderer, towards)
    fog = mixed(np.array(FOG_BY_DAY), sky_of(stage), sky_share(CHUNKS))
    share = min(16 / (16 * CHUNKS * rays_of(renderer)[row, column, 1]), 1)
    np.testing.assert_allclose(frame[row, column], mixed(sky_of(stage), fog, share), atol=0.6)


def fan(towards: NDArray[np.float64], alpha: float) -> float:
    """Alpha of the game's fan of 16 triangles along a ray, with the sun in the west."""
    centre = np.array((-100.0, 0.0, 0.0))
    turns = np.arange(17) * 2 * math.pi / 16
    up = 40 * alpha * np.cos(turns)
    rim = np.stack([-120 * np.cos(turns), up, 120 * np.sin(turns)], 1)
    for one, two in pairwise(rim):
        # towards * t = centre + u (one - centre) + v (two - centre)
        t, u, v = np.linalg.solve(np.stack([towards, centre - one, centre - two], 1), centre)
        if t > 0 and u >= 0 and v >= 0 and u + v <= 1:
            return alpha * (1 - u - v)
    return 0.0


@pytest.mark.parametrize(
    ("azimuth", "elevation", "seen"),
    [(180, 1.5, (0.8, 1)), (205, 4, (0.3, 0.8)), (150, 9, (0.1, 0.5)), (0, 4, (0, 0))],
)
def test_sunset_glows_on_the_suns_side_only(
    renderer: Renderer, stage: Stage, azimuth: float, elevation: float, seen: tuple[float, float]
) -> None:
    towards = direction(azimuth, elevation)
    look(stage, towards)
    # The sun itself is red in this pack, and adds nothing to green and blue.
    frame = stage.draw(renderer, SUNSET)
    row, column = pixel_at(renderer, towards)
    sky, ray = sky_at(SUNSET, tuple(sky_of(stage))), rays_of(renderer)[row, column]
    forward = renderer.camera.vector[FORWARD : FORWARD + 3]
    fog = mixed(np.array(sky.fog), np.array(sky.glow), sky.glow_alpha * max(-forward[0], 0))
    fog = mixed(fog, np.array(sky.overhead), sky_share(CHUNKS))
    share = fan(ray, sky.glow_alpha)
    assert seen[0] <= share <= seen[1]
    expected = mixed(mixed(np.array(sky.overhead), fog, min(1 / (CHUNKS * ray[1]), 1)),
                     np.array(sky.glow), share)  # fmt: skip
    # The game's rim has corners, ours is round.
    np.testing.assert_allclose(frame[row, column, 1:], expected[1:], atol=2.5)


def test_fog_reddens_towards_the_sunset_and_darkens_deep_down(
    renderer: Renderer, stage: Stage
) -> None:
    east, west = [], []
    for yaw, colours in ((-90, east), (90, west)):
        stage.stand(yaw)
        stage.draw(renderer, SUNSET)
        colours.extend(renderer.camera.vector[16:19])
    assert west[0] > east[0] + 60 and west[2] < east[2]
    stage.stand()
    stage.draw(renderer)
    noon = renderer.camera.vector[16:19].copy()
    stage.player.position[1] = 16 - stage.player.eye_height
    stage.draw(renderer)
    np.testing.assert_allclose(renderer.camera.vector[16:19], noon / 4, rtol=1e-5)


def test_night_is_black_and_a_star_stands_where_the_games_does(
    renderer: Renderer, stage: Stage
) -> None:
    time = 17_000
    angle = sun_angle(time)
    turn = np.array(
        [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]]
    )
    stars = star_table().astype(np.float64)
    places = stars[:, :3] @ turn.T
    # A large one that is high in the sky, and far from the moon.
    number = next(
        i
        for i in range(len(stars))
        if places[i, 1] > 0.6 and abs(places[i, 2]) > 0.4 and stars[i, 9] > 0.0047**2
    )
    look(stage, places[number])
    frame = stage.draw(renderer, time).astype(int)
    row, column = pixel_at(renderer, places[number])
    around = frame[row - 6 : row + 7, column - 6 : column + 7]
    # Additive, in a grey of half the brightness with an alpha of one half.
    assert frame[row, column].min() - np.median(around) == pytest.approx(64, abs=12)
    assert np.median(frame[:200, :300], (0, 1)).max() <= 8
    stars_seen = (frame[:200, :300].min(-1) > 50).sum()
    assert 15 < stars_seen < 120


@pytest.mark.parametrize(
    ("day", "lit"), [(0, 1.0), (1, 0.75), (2, 0.5), (3, 0.25), (4, 0.0), (6, 0.5)]
)
def test_the_moon_shows_its_phase(renderer: Renderer, stage: Stage, day: int, lit: float) -> None:
    """At midnight it stands in the zenith, 8 of 32 texels of a square of 40 at 100 wide."""
    stage.stand(0, -80)
    frame = stage.draw(renderer, MIDNIGHT + day * DAY_TICKS).astype(int)
    rays = rays_of(renderer)
    places = np.abs(rays[..., [0, 2]] / rays[..., 1:2]).max(-1)
    disc = places < 0.2 / 4 * 0.95
    assert 400 < disc.sum() < 1000
    bright = frame.min(-1) > 130
    assert bright[disc].mean() == pytest.approx(lit, abs=0.07)
    ring = (places > 0.2 / 4 * 1.05) & (places < 0.1)
    assert frame[ring & ~bright].mean() < 8
    if lit == 0.5:
        # Phase 2 has its light where the picture's left half is, which points south.
        south = rays[..., 2] > 0
        assert bright[disc & south].mean() == pytest.approx(float(day == 2), abs=0.07)


def test_sun_is_added_to_the_sky(renderer: Renderer, stage: Stage) -> None:
    """The pack's sun is a full square of 60 at a distance of 100."""
    stage.stand(0, -78)
    frame = stage.draw(renderer).astype(int)
    rays = rays_of(renderer)
    inside = np.abs(rays[..., [0, 2]] / rays[..., 1:2]).max(-1)
    row, column = pixel_at(renderer, np.array((0.2, 1.0, -0.28)) / math.sqrt(1 + 0.2**2 + 0.28**2))
    assert inside[row, column] < 0.3
    fog = mixed(np.array(FOG_BY_DAY), sky_of(stage), sky_share(CHUNKS))
    dome = mixed(sky_of(stage), fog, 1 / (CHUNKS * rays[row, column, 1]))
    np.testing.assert_allclose(frame[row, column] - dome, [100, 0, 0], atol=1)
    row, column = pixel_at(renderer, np.array((0.2, 1.0, 0.32)) / math.sqrt(1 + 0.2**2 + 0.32**2))
    np.testing.assert_allclose(frame[row, column, 0], dome[0], atol=3)


def test_below_the_horizon_it_is_black_only_for_low_eyes(renderer: Renderer) -> None:
    colours = []
    for eye in (90.0, 62.9):
        stage = Stage()
        stage.world.fill((-80, 80), (0, FLOOR), (-80, 80), 0)
        stage.fill((-24, 24), (-1, 0), (-24, 24), "air")
        stage.player.position[:] = 0.5, eye - stage.player.eye_height, 0.5
        stage.player.pitch = 60.0
        colours.append(stage.draw(renderer)[100, 300].astype(int))
    assert colours[0].min() > 150
    assert colours[1].max() < 40


def test_small_frames_keep_the_stars_light(pack: str, stage: Stage) -> None:
    stage.stand(0, -50)
    light = []
    for size in ((256, 144), (640, 360)):
        frame = stage.draw(Renderer(size, resource_pack=pack), MIDNIGHT).min(-1).astype(float)
        top = frame[: size[1] // 2, : size[0] // 2]
        beyond_the_dome = top - np.median(top, 1, keepdims=True)
        light.append(np.where(beyond_the_dome > 3, beyond_the_dome, 0).mean())
    assert light[0] == pytest.approx(light[1], rel=0.3)


def test_a_packs_moon_replaces_ours(tmp_path: Path, stage: Stage) -> None:
    path = folder(tmp_path, {"environment/moon_phases": plain((0, 90, 0), 256, 128)})
    stage.stand(0, -80)
    frame = stage.draw(Renderer((WIDTH, HEIGHT), resource_pack=path), MIDNIGHT).astype(int)
    assert ((frame[..., 1] - frame[..., 0]) > 80).sum() > 5000, "all of the square"
