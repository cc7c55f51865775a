"""Hand, hotbar and status display."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.render.renderer import Renderer
from tests.env.voxel.render.render_stage import Stage

WIDTH, HEIGHT = 640, 360
# Where Minecraft's window of this size has them.
HOTBAR = (slice(338, 360), slice(229, 411))
HEARTS = (slice(321, 330), slice(229, 310))
FOOD = (slice(321, 330), slice(330, 411))
HAND = (slice(180, 320), slice(420, 640))


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer((WIDTH, HEIGHT))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def changed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one != other).any(-1)


def test_selection_moves_along_the_hotbar(renderer: Renderer, stage: Stage) -> None:
    first = stage.draw(renderer)
    stage.player.selected = 8
    last = stage.draw(renderer)
    rows, columns = np.nonzero(changed(first, last))
    assert rows.min() >= 337, "nothing above the bar moved"
    assert columns.min() < 240 and columns.max() > 400


def test_items_and_quantities_show(renderer: Renderer, stage: Stage) -> None:
    stage.player.selected = 8
    frames = [stage.draw(renderer)]
    for quantity in (1, 2, 23):
        stage.player.inventory.set(3, ITEM_ID["beef"], quantity)
        frames.append(stage.draw(renderer))
    for before, after in pairwise(frames):
        rows, columns = np.nonzero(changed(before, after))
        assert len(rows) > 3
        assert rows.min() >= 338 and columns.min() >= 289 and columns.max() <= 310


@pytest.mark.parametrize(("field", "area"), [("health", HEARTS), ("food", FOOD)])
def test_status_icons_follow_the_player(
    renderer: Renderer, stage: Stage, field: str, area: tuple[slice, slice]
) -> None:
    full = stage.draw(renderer)
    brightness = [int(full[area].sum())]
    for points in (13, 6, 0):
        stage.player.records[field] = points
        frame = stage.draw(renderer)
        outside = changed(full, frame)
        outside[area] = False
        assert not outside.any()
        brightness.append(int(frame[area].sum()))
    assert sorted(brightness, reverse=True) == brightness


def test_the_display_depends_on_its_state_alone(stage: Stage) -> None:
    size, random = (64, 64), np.random.default_rng(0)
    one = Renderer(size)
    for _ in range(60):
        change = random.integers(6)
        if change < 3:
            stage.player.selected = int(random.integers(9))
        elif change == 3:
            stage.player.inventory.set(
                int(random.integers(9)), ITEM_ID["beef"], int(random.integers(1, 3))
            )
        elif change == 4:
            stage.player.records[random.choice(["health", "food"])] = random.integers(18, 21)
        else:
            stage.player.experience = int(random.integers(20))
        np.testing.assert_array_equal(stage.draw(one), stage.draw(Renderer(size)))


@pytest.mark.parametrize("sampling", ["average", "samples"])
def test_the_hand_may_lie_outside_of_a_narrow_view(sampling: str, stage: Stage) -> None:
    narrow = Renderer((64, 64), fov_degrees=30.0, aspect=1.0, sampling=sampling)
    empty = stage.draw(narrow)
    stage.player.inventory.set(0, ITEM_ID["iron_sword"], 1)
    held = stage.draw(narrow)
    display = HEARTS[0].start * 64 // HEIGHT
    assert not changed(empty, held)[:display].any()


def test_a_display_that_changes_is_as_one_drawn_anew(stage: Stage) -> None:
    kept = Renderer((128, 128))
    rng = np.random.default_rng(0)
    for _ in range(12):
        slot, item = int(rng.integers(9)), str(rng.choice(["beef", "iron_sword", "oak_log"]))
        stage.player.inventory.set(slot, ITEM_ID[item], int(rng.integers(3)))
        stage.player.selected = int(rng.integers(9))
        stage.player.records["food"] = int(rng.integers(21))
        stage.player.health = float(rng.integers(1, 21))
        drawn = stage.draw(kept)
    np.testing.assert_array_equal(drawn, stage.draw(Renderer((128, 128))))


def test_the_item_in_hand_is_seen_and_swings(renderer: Renderer, stage: Stage) -> None:
    arm = stage.draw(renderer)
    stage.hold("iron_sword")
    sword = stage.draw(renderer)
    assert changed(arm, sword)[HAND].mean() > 0.1
    steel = sword[HAND].astype(int)
    grey = (np.ptp(steel, axis=-1) < 12) & (steel.mean(-1) > 180)
    assert grey.sum() > 800, "the blade"
    stage.hold("oak_log")
    assert changed(sword, stage.draw(renderer))[HAND].mean() > 0.1
    stage.hold("iron_sword")
    stage.player.records["swing_seen"] = 1 / 3
    assert changed(sword, stage.draw(renderer)).mean() > 0.02


def test_the_crosshair_marks_the_middle(stage: Stage) -> None:
    stage.stand(pitch=-60)
    for width, height in ((64, 64), (128, 128), (640, 360), (1280, 720)):
        frame = stage.draw(Renderer((width, height))).astype(int)
        middle = frame[height // 2, width // 2]
        beside = frame[height // 2, width // 2 + width // 8]
        assert np.abs(middle - beside).max() > 60
