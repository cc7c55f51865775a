"""Where frames are seen from: field of view, bobbing over a step, hurt, and the attack's bar."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.textures import textures_of
from tests.env.voxel.render.render_stage import Stage

WIDTH, HEIGHT = 640, 360


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer((WIDTH, HEIGHT))


@pytest.fixture
def stage() -> Stage:
    """A block 4 ahead, before nothing but the sky: the floor is gone."""
    stage = Stage()
    stage.fill((-24, 24), (-1, 0), (-24, 24), "air")
    stage.fill((0, 1), (1, 2), (4, 5), "oak_planks")
    return stage


def block_in_frame(stage: Stage, renderer: Renderer) -> NDArray[np.bool_]:
    """The pixels that show the stage's block; land far below is not it."""
    stage.draw(renderer)
    return (renderer.depth < 6.0).reshape(HEIGHT, WIDTH)


def turned(axis: int, degrees: float) -> NDArray[np.float64]:
    """Rotation about x (0) or z (2) of view space, which has y up and z towards the viewer."""
    sin, cos = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    one, two = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[one, one] = matrix[two, two] = cos
    matrix[one, two], matrix[two, one] = -sin, sin
    return matrix


def expected_block(
    stage: Stage, fov: float = 70.0, bob: float = 0.0, stride: float = 0.0, hurt: int = 0
) -> NDArray[np.bool_]:
    """The pixels that show the block to a player who looks south, by the reference's formulas."""
    phase = -math.pi * stride
    shift = np.array([math.sin(phase) * bob / 2, -abs(math.cos(phase) * bob), 0.0])
    roll, nod = 3 * bob * math.sin(phase), 5 * bob * abs(math.cos(phase - 0.2))
    tilt = turned(2, -14 * math.sin(math.pi * (hurt / 10) ** 4))
    sway = tilt @ turned(2, roll) @ turned(0, nod)
    # A point p of still view space is seen at sway @ p + tilt @ shift.
    tan = math.tan(math.radians(fov / 2))
    across = ((np.arange(WIDTH) + 0.5) / WIDTH * 2 - 1) * tan * 16 / 9
    up = (1 - (np.arange(HEIGHT) + 0.5) / HEIGHT * 2) * tan
    ray = np.stack([*np.meshgrid(across, up), -np.ones((HEIGHT, WIDTH))], -1)
    still = ray @ sway  # the inverse of a rotation is its transpose
    origin = -(tilt @ shift) @ sway
    # View space looks south: its x is west, its z north.
    low = np.array([-0.5, 1 - 1.62, -4.5])
    with np.errstate(divide="ignore"):
        one, other = (low - origin) / still, (low + 1 - origin) / still
    enter, leave = np.minimum(one, other).max(-1), np.maximum(one, other).min(-1)
    return (enter < leave) & (enter > 0)


def assert_agree(shown: NDArray[np.bool_], expected: NDArray[np.bool_]) -> None:
    assert expected.sum() > 2000
    assert (shown != expected).sum() < 0.003 * expected.sum(), "rays that graze an edge"


def test_the_block_is_where_it_should_be(renderer: Renderer, stage: Stage) -> None:
    assert_agree(block_in_frame(stage, renderer), expected_block(stage))


@pytest.mark.parametrize(("gain", "degrees"), [(0.15, 80.5), (0.075, 75.25), (-0.1, 63.0)])
def test_the_field_of_view_scales_the_width_of_a_block(
    gain: float, degrees: float, renderer: Renderer, stage: Stage
) -> None:
    stage.player.records["fov_gain_seen"] = gain
    shown = block_in_frame(stage, renderer)
    width = 1 / 3.5 / (2 * math.tan(math.radians(degrees / 2)) * 16 / 9) * WIDTH
    assert shown[190].sum() == pytest.approx(width, abs=1.01)
    assert_agree(shown, expected_block(stage, degrees))
    stage.player.records["fov_gain_seen"] = 0.0
    assert_agree(block_in_frame(stage, renderer), expected_block(stage))


def test_no_field_of_view_grows_beyond_what_can_be_drawn(stage: Stage) -> None:
    wide = Renderer((64, 64), fov_degrees=150.0)
    stage.player.records["fov_gain_seen"] = 0.5
    stage.draw(wide)
    assert np.isfinite(wide.depth).all()
    assert wide.camera.vector[13] * 64 / 2 == pytest.approx(math.tan(math.radians(82.5)))


@pytest.mark.parametrize("stride", [0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 6.3])
def test_the_view_bobs_over_two_steps(stride: float, renderer: Renderer, stage: Stage) -> None:
    stage.player.records["bob_seen"], stage.player.records["stride"] = 0.1, stride
    shown = block_in_frame(stage, renderer)
    assert_agree(shown, expected_block(stage, bob=0.1, stride=stride))
    assert (shown != expected_block(stage)).sum() > 300


def test_bobbing_lifts_the_eye_by_a_tenth_and_shifts_it_by_a_twentieth(
    renderer: Renderer, stage: Stage
) -> None:
    places = []
    for stride in (0.0, 0.5, 1.0, 1.5):
        stage.player.records["bob_seen"], stage.player.records["stride"] = 0.1, stride
        stage.draw(renderer)
        vector = renderer.camera.vector.astype(float)
        column = np.array([renderer.camera.column_x, 0.0, renderer.camera.column_z])
        places.append(vector[:3] + column - stage.player.position - np.array([0, 1.62, 0]))
    np.testing.assert_allclose([place[1] for place in places], [0.1, 0, 0.1, 0], atol=2e-3)
    np.testing.assert_allclose([place[0] for place in places], [0, -0.05, 0, 0.05], atol=2e-3)


@pytest.mark.parametrize("hurt", [0, 5, 7, 8, 9, 10])
def test_a_hit_tilts_the_view_to_the_left(hurt: int, renderer: Renderer, stage: Stage) -> None:
    stage.player.records["hurt_ticks"] = hurt
    shown = block_in_frame(stage, renderer)
    assert_agree(shown, expected_block(stage, hurt=hurt))
    right = renderer.camera.vector[6:9].astype(float)
    angle = 14 * math.sin(math.pi * (hurt / 10) ** 4)
    assert math.degrees(math.asin(right[1])) == pytest.approx(angle, abs=1e-3)


def test_hurt_and_bobbing_together(renderer: Renderer, stage: Stage) -> None:
    record = stage.player.records
    record["hurt_ticks"], record["bob_seen"], record["stride"] = 8, 0.08, 0.3
    shown = block_in_frame(stage, renderer)
    assert_agree(shown, expected_block(stage, bob=0.08, stride=0.3, hurt=8))


def test_the_eye_is_where_it_was_a_tick_ago_and_looks_where_it_looks_now(
    renderer: Renderer, stage: Stage
) -> None:
    there = stage.draw(renderer)
    stage.player.position[:] += 0.3, 0.2, -0.4
    stage.player.records["moved"][0] = 0.3, 0.2, -0.4
    np.testing.assert_array_equal(stage.draw(renderer), there)
    stage.player.yaw = 10.0
    assert (stage.draw(renderer) != there).any()


def test_mobs_items_and_falling_blocks_are_where_they_were_a_tick_ago(renderer: Renderer) -> None:
    stage = Stage()
    stage.add_mob("cow", ahead=5)
    stage.add_item("beef", ahead=2)
    there = stage.draw(renderer)
    for rows in (stage.mobs.records, stage.items.records):
        rows["position"][0] += 0.3, 0.1, -0.2
        rows["moved"][0] = 0.3, 0.1, -0.2
    np.testing.assert_array_equal(stage.draw(renderer), there)


@pytest.mark.parametrize("item", [None, "iron_sword", "stone"])
def test_the_hand_bobs_sinks_and_tilts(item: str | None, renderer: Renderer, stage: Stage) -> None:
    if item is not None:
        stage.hold(item)
    still = first_row_of_hand(stage, renderer)
    for field, value in (("hand_drop_seen", 0.3), ("bob_seen", 0.1), ("hurt_ticks", 9)):
        stage.player.records[field] = value
        assert first_row_of_hand(stage, renderer) > still + 5, field
        stage.player.records[field] = 0


def first_row_of_hand(stage: Stage, renderer: Renderer) -> int:
    """The hand's highest row: the frame's first that differs from one with a lowered hand."""
    frame = stage.draw(renderer)
    drop = float(stage.player.records["hand_drop_seen"][0])
    stage.player.records["hand_drop_seen"] = 1.0
    lowered = stage.draw(renderer)
    stage.player.records["hand_drop_seen"] = drop
    return int(np.flatnonzero((frame != lowered).any((1, 2)))[0])


def test_the_hand_shows_the_old_item_until_it_is_lowered(renderer: Renderer, stage: Stage) -> None:
    stage.hold("iron_sword")
    sword = stage.draw(renderer)
    stage.player.inventory.set(1, ITEM_ID["stone"], 1)
    stage.player.selected = 1
    stage.player.records["hand_item"] = ITEM_ID["iron_sword"]
    np.testing.assert_array_equal(stage.draw(renderer)[:330], sword[:330])
    stage.player.records["hand_item"] = stage.player.records["held_item"]
    assert (stage.draw(renderer)[:330] != sword[:330]).any()


@pytest.mark.parametrize(("ticks", "filled"), [(0, 0), (1, 3), (2, 6), (4, 13), (5, None)])
def test_the_bar_below_the_crosshair_shows_the_charge(
    ticks: int, filled: int | None, renderer: Renderer, stage: Stage
) -> None:
    """A fist is charged after five ticks; the bar inverts what is behind it."""
    stage.stand(pitch=-60)
    plain = stage.draw(renderer).astype(int)
    stage.player.records["recharge_ticks"] = ticks
    frame = stage.draw(renderer).astype(int)
    changed = np.argwhere((frame != plain).any(-1))
    if filled is None:
        assert not len(changed)
        return
    assert changed.min(0)[1] >= 312 and changed.max(0)[1] < 328
    assert changed.min(0)[0] >= 189 and changed.max(0)[0] < 193
    icons = textures_of(None).picture("gui/icons")[94:98] / 255
    empty, full = (icons[:, x : x + 16, :3] * (icons[:, x : x + 16, 3:] > 0.1) for x in (36, 52))
    full = full * (np.arange(16) < filled)[:, None]
    below = plain[189:193, 312:328] / 255
    for strength in (empty, full):
        below = strength * (1 - below) + below * (1 - strength)
    np.testing.assert_allclose(frame[189:193, 312:328], below * 255, atol=1.5)
