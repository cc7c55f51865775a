"""Clouds against boxes in double precision, one by one; and where a single one stands."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import DroppedItems, Mobs
from rllib_minestudio.env.voxel.player.player import Player
from rllib_minestudio.env.voxel.render.camera import (
    FOG_RGB,
    FORWARD,
    RIGHT,
    SKY_DEPTH,
    STEP_X,
    STEP_Y,
    UP,
)
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.render.render_stage import MIDNIGHT, NOON, Stage
from tests.env.voxel.render.test_resource_packs import folder, png

SIZE, VIEW = 48, 64.0
BOTTOM, TOP, CELL, SHIFT = 128.33, 132.33, 12, 3.96
BOX = np.array((CELL, TOP - BOTTOM, CELL))
CELLS = np.random.RandomState(3).rand(256, 256) < 0.4
Vector = NDArray[np.float64]


def pack_with(path: Path, cells: NDArray[np.bool_]) -> str:
    picture = np.full((256, 256, 4), 255, np.uint8)
    picture[..., 3] = np.where(cells, 255, 0)
    return folder(path, {"environment/clouds": png(picture)})


@pytest.fixture(scope="module")
def cloudless(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    pack = pack_with(tmp_path_factory.mktemp("cloudless"), np.zeros((256, 256), bool))
    return Renderer((SIZE, SIZE), resource_pack=pack)


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    """With clouds without any pattern."""
    return Renderer((SIZE, SIZE), resource_pack=pack_with(tmp_path_factory.mktemp("wild"), CELLS))


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    world.reset(7)
    world.load_around(0, 0)
    return world


def rays_of(renderer: Renderer) -> Vector:
    """Directions of all pixels, float64 (h * w, 3), one block ahead in depth."""
    camera = renderer.camera.vector.astype(np.float64)
    forward, right, up = (camera[i : i + 3] for i in (FORWARD, RIGHT, UP))
    across = np.arange(renderer.width) + 0.5 - renderer.width / 2
    down = np.arange(renderer.height) + 0.5 - renderer.height / 2
    rays = forward + across[None, :, None] * camera[STEP_X] * right
    return (rays - down[:, None, None] * camera[STEP_Y] * up).reshape(-1, 3)


def faces_met(eye: Vector, rays: Vector, ticks: int) -> tuple[Vector, Vector]:
    """Depth and shade of the first face that each ray meets, whichever side of it; inf for none."""
    x, z = eye[0] + 0.03 * ticks, eye[2] + SHIFT
    middle_x, middle_z = math.floor(x / CELL), math.floor(z / CELL)
    nearest, shade = np.full(len(rays), np.inf), np.zeros(len(rays))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(middle_x - 24, middle_x + 40):
            for k in range(middle_z - 24, middle_z + 40):
                if not CELLS[k % 256, i % 256]:
                    continue
                low = np.array((CELL * i - x, BOTTOM - eye[1], CELL * k - z))
                one, two = low / rays, (low + BOX) / rays
                enter, leave = np.minimum(one, two), np.maximum(one, two)
                t_in, t_out = enter.max(1), leave.min(1)
                t = np.where(t_in > 0, t_in, t_out)
                axis = np.where(t_in > 0, enter.argmax(1), leave.argmin(1))
                is_met = (t_in < t_out) & (t_out > 0) & (t < nearest)
                rises = (rays[:, 1] > 0) == (t_in > 0)  # meets a floor, from below or from inside
                of_axis = np.select([axis == 0, axis == 2, rises], [0.9, 0.8, 0.7], 1.0)
                nearest, shade = np.where(is_met, t, nearest), np.where(is_met, of_axis, shade)
    return nearest, shade


@pytest.mark.parametrize(
    ("height", "yaw", "pitch", "ticks", "time"),
    [
        (70.0, 20.0, -30.0, 0, NOON),
        (70.0, 200.0, -12.0, 31_000, MIDNIGHT),
        (110.0, 115.0, -20.0, 12_345, NOON),
        (120.0, -70.0, -60.0, 999, MIDNIGHT),
        (130.0, 60.0, 4.0, 77, NOON),
        (130.9, 300.0, -25.0, 400_000, NOON),
        (140.0, 75.0, 30.0, 5_000, NOON),
    ],
)
def test_pixels_show_the_face_that_a_ray_meets_first(
    world: World, cloudless: Renderer, renderer: Renderer, height: float, yaw: float, pitch: float,
    ticks: int, time: int,
) -> None:  # fmt: skip
    """From the ground, from near below, from inside the layer and from above."""
    player = Player()
    player.position[:] = 3.3, height - player.eye_height, -5.7
    player.yaw, player.pitch = yaw, pitch
    frames = [
        one.draw(world, player, Mobs(), DroppedItems(), player.inventory, time, ticks=ticks)
        .astype(float)
        .reshape(-1, 3)
        for one in (cloudless, renderer)
    ]
    eye, rays = player.position + np.array([0.0, player.eye_height, 0.0]), rays_of(renderer)
    t, shade = faces_met(eye, rays, ticks)
    white = np.array((255.0, 255, 255)) if time == NOON else np.array((25.5, 25.5, 38.25))
    fog = renderer.camera.vector[FOG_RGB : FOG_RGB + 3]
    distance = np.where(np.isfinite(t), t, 0) * np.linalg.norm(rays, axis=1)
    share = np.clip((distance / VIEW - 0.75) * 4, 0, 1)[:, None]
    faces = white * shade[:, None] * (1 - share) + fog * share
    is_seen = (t < np.minimum(renderer.depth, SKY_DEPTH))[:, None]
    expected = np.where(is_seen, 0.2 * frames[0] + 0.8 * faces, frames[0])
    middle = np.zeros((SIZE, SIZE), bool)
    middle[: SIZE * 3 // 5, : SIZE // 2 - 2] = True  # neither hand nor display nor crosshair
    error = np.abs(frames[1] - expected).max(-1)[middle.reshape(-1)]
    assert (error <= 1.5).mean() > 0.995
    assert is_seen[middle.reshape(-1)].mean() > 0.15


def test_one_cloud_stands_where_its_pixel_says_and_drifts_west(tmp_path: Path) -> None:
    """Cell (2, 1) of the picture, seen at 640x360 from 30 blocks below."""
    cells = np.zeros((256, 256), bool)
    cells[1, 2] = True
    renderer = Renderer((640, 360), resource_pack=pack_with(tmp_path, cells))
    stage = Stage()
    stage.stand(-70, -40)
    corners = {}
    for ticks in (0, 200):
        frame = stage.draw(renderer, NOON, ticks=ticks).astype(int)
        whiter = frame[..., 2] < 210  # the grey of its underside, where sky and fog have 255
        rays = rays_of(renderer).reshape(360, 640, 3)
        eye = stage.player.position + np.array([0.0, stage.player.eye_height, 0.0])
        places = eye + rays * ((BOTTOM - eye[1]) / rays[..., 1:2])
        seen = places[:200][whiter[:200] & (rays[:200, :, 1] > 0.05)]
        corners[ticks] = seen[:, 0].min(), seen[:, 2].min(), seen[:, 2].max()
    # Its far sides are hidden behind the underside, and its near ones show nothing else.
    assert corners[0][1] == pytest.approx(CELL - SHIFT, abs=0.4)
    assert corners[0][2] == pytest.approx(2 * CELL - SHIFT, abs=0.4)
    assert corners[0][0] == pytest.approx(2 * CELL, abs=0.4)
    assert corners[200][0] - corners[0][0] == pytest.approx(-0.03 * 200, abs=0.4)


def test_the_layer_repeats_and_far_places_are_as_sharp(
    cloudless: Renderer, renderer: Renderer
) -> None:
    covered = []
    for x in (0, 3072, -3072 * 9000):
        stage = Stage(x, 0)
        stage.stand(25, -45)
        clear, cloudy = stage.draw(cloudless)[:24], stage.draw(renderer)[:24]
        covered.append((clear != cloudy).any(-1))
    assert 0.2 < covered[0].mean() < 0.8
    for other in covered[1:]:
        assert (covered[0] == other).mean() > 0.99
