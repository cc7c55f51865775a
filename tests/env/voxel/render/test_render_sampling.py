"""Frames made of samples, against bilinear interpolation of the whole window, done exactly."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from rllib_minestudio.env.voxel import AVERAGE, SAMPLES
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ItemStack
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.window import mixture, sampling_of
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.menu import ScreenView
from tests.env.voxel.render.render_stage import FLOOR, MIDNIGHT, NOON, Stage

WINDOW = (640, 360)
VPT = (128, 128)


def interpolated(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.float64]:
    """An image scaled as OpenCV's INTER_LINEAR does, but exactly."""
    out = image.astype(np.float64)
    for axis, length in ((0, size[1]), (1, size[0])):
        whole = out.shape[axis]
        places = np.clip((np.arange(length) + 0.5) * whole / length - 0.5, 0, whole - 1)
        low = np.minimum(places.astype(int), whole - 2)
        share = (places - low).reshape([-1 if i == axis else 1 for i in range(3)])
        out = np.take(out, low, axis) * (1 - share) + np.take(out, low + 1, axis) * share
    return out


def outdoors(stage: Stage) -> float:
    stage.fill((-6, -3), (0, 5), (8, 9), "bricks")
    stage.stand(yaw=25, pitch=10)
    return NOON


def by_night(stage: Stage) -> float:
    stage.fill((-3, 4), (4, 5), (2, 9), "oak_planks")
    stage.stand(pitch=-35)
    return MIDNIGHT


def sun(stage: Stage) -> float:
    stage.stand(yaw=90, pitch=-45)
    return 9000


def sunset(stage: Stage) -> float:
    stage.stand(yaw=70, pitch=-15)
    return 12600


def moon(stage: Stage) -> float:
    stage.stand(yaw=-90, pitch=-50)
    return 16000


def below_clouds(stage: Stage) -> float:
    stage.player.position[1] += 20
    stage.player.yaw, stage.player.pitch = 20, -35
    return NOON


def among_mobs(stage: Stage) -> float:
    for number, kind in enumerate(("cow", "sheep", "pig")):
        stage.add_mob(kind, ahead=2 + 3 * number, side=number - 1.0, yaw=0.4 * number)
    stage.mobs.records["hurt_ticks"][0] = 5
    stage.stand(pitch=15)
    stage.hold("iron_sword")
    return NOON


def dropped_things(stage: Stage) -> float:
    for number, item in enumerate(("beef", "oak_log", "iron_sword")):
        stage.add_item(item, ahead=1.5 + number)
    stage.stand(pitch=35)
    stage.hold("oak_log")
    return NOON


def swinging(stage: Stage) -> float:
    stage.hold("iron_sword")
    stage.player.records["swing_seen"] = 1 / 3
    return 12800


def mining(stage: Stage) -> float:
    """A block with cracks and an outline, at the next steps."""
    stage.fill((0, 2), (0, 2), (2, 4), "oak_planks")
    stage.stand(yaw=-20, pitch=25)
    record = stage.player.records
    record["is_mining"], record["mining_progress"], record["recharge_ticks"] = 1, 0.8, 2
    record["mining_x"], record["mining_y"], record["mining_z"] = stage.x, FLOOR + 1, stage.z + 2
    record["bob_seen"], record["stride"], record["fov_gain_seen"] = 0.1, 3.3, 0.11
    return NOON


def reeling(stage: Stage) -> float:
    stage.hold("oak_log")
    stage.stand(pitch=50)
    stage.player.records["hurt_ticks"], stage.player.records["hand_drop_seen"] = 9, 0.3
    return NOON


def hurt_and_laden(stage: Stage) -> float:
    stage.player.health, stage.player.records["food"] = 7.0, 13
    stage.player.selected = 4
    for slot, item in enumerate(("dirt", "beef", "stone_axe", "cobblestone")):
        stage.player.inventory.set(slot, ITEM_ID[item], 1 if item == "stone_axe" else 7 * slot + 1)
    stage.stand(pitch=60)
    return NOON


SCENES = (
    outdoors,
    by_night,
    sun,
    sunset,
    moon,
    below_clouds,
    among_mobs,
    dropped_things,
    swinging,
    hurt_and_laden,
    mining,
    reeling,
)


@pytest.fixture(scope="module")
def whole() -> Renderer:
    return Renderer(WINDOW)


@pytest.mark.parametrize("scene", SCENES)
def test_vpts_frame_is_the_window_scaled_down(
    whole: Renderer, scene: Callable[[Stage], float]
) -> None:
    stage = Stage()
    hour = scene(stage)
    window = stage.draw(whole, hour)
    frame = stage.draw(Renderer(VPT, sampling=SAMPLES), hour)
    expected = interpolated(window, VPT)
    assert np.abs(frame - expected).max() < 0.6, "half a grey level, and what 11 bits round"
    assert frame.std() > 10, "something is seen"


@pytest.mark.parametrize("kind", LAYOUTS)
def test_vpts_frame_of_a_screen_is_the_window_scaled_down(whole: Renderer, kind: str) -> None:
    stage = Stage()
    hour = outdoors(stage)
    planks = ItemStack(ITEM_ID["oak_planks"], 7, 0)
    axe = ItemStack(ITEM_ID["stone_axe"], 1, 40)
    stacks = [planks if index % 3 else axe for index in range(len(LAYOUTS[kind].slots))]
    view = ScreenView(kind, tuple(stacks), (301, 203), planks, burn=0.4, progress=0.7)
    window = stage.draw(whole, hour, screen=view)
    frame = stage.draw(Renderer(VPT, sampling=SAMPLES), hour, screen=view)
    assert np.abs(frame - interpolated(window, VPT)).max() < 0.6


@pytest.mark.parametrize("size", [(64, 64), (100, 77), (320, 180), (227, 128), (800, 450), WINDOW])
def test_any_size_is_the_window_scaled(whole: Renderer, size: tuple[int, int]) -> None:
    stage = Stage()
    hour = among_mobs(stage)
    expected = interpolated(stage.draw(whole, hour), size)
    frame = stage.draw(Renderer(size, sampling=SAMPLES), hour)
    # Columns and rows are mixed one after the other, and rounded each time.
    assert np.abs(frame - expected).max() < 1.1


@pytest.mark.parametrize("scene", [among_mobs, mining, reeling, sunset, moon, below_clouds])
@pytest.mark.parametrize("size", [VPT, (100, 77), (320, 180)])
def test_opencv_agrees_but_for_its_rounding(
    whole: Renderer, size: tuple[int, int], scene: Callable[[Stage], float]
) -> None:
    stage = Stage()
    hour = scene(stage)
    scaled = cv2.resize(stage.draw(whole, hour), dsize=size, interpolation=cv2.INTER_LINEAR)
    frame = stage.draw(Renderer(size, sampling=SAMPLES), hour)
    assert np.abs(frame.astype(int) - scaled).max() <= 1


def test_vpts_columns_are_the_windows_and_rows_are_mixed_from_two() -> None:
    columns, rows = mixture(128, 640), mixture(128, 360)
    assert columns.is_plain and columns.sources.tolist() == list(range(2, 640, 5))
    assert not rows.is_plain and len(rows.sources) == 256
    places = rows.sources[rows.first] + rows.weight / 2048
    np.testing.assert_allclose(places, (np.arange(128) + 0.5) * 2.8125 - 0.5, atol=1 / 4096)


def test_only_what_is_needed_is_drawn() -> None:
    assert sampling_of(SAMPLES, VPT, 16 / 9).drawn == (128, 256)
    assert sampling_of(SAMPLES, (1280, 720), 16 / 9).drawn == WINDOW
    assert sampling_of(AVERAGE, VPT, 16 / 9).drawn == VPT


def test_a_window_as_large_as_the_frame_is_drawn_into_it(whole: Renderer) -> None:
    stage = Stage()
    hour = outdoors(stage)
    frame = stage.draw(Renderer(WINDOW, sampling=SAMPLES), hour)
    np.testing.assert_array_equal(frame, stage.draw(whole, hour))
