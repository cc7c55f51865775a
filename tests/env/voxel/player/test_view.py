"""What moves a view besides the position, tick by tick, against Minecraft's recurrences."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import STONE
from tests.env.voxel.arena import FLOOR, arena, state, ticks


def seen(engine: VoxelEngine, field: str) -> float:
    return float(state(engine).player.records[field][0])


def test_the_frames_eye_is_where_the_player_was_a_tick_ago() -> None:
    engine = arena()
    before = engine.player.position.copy()
    for keys in ({"forward": 1}, {"forward": 1, "jump": 1}, {"left": 1}, {}):
        engine.tick(keys)
        moved = state(engine).player.records["moved"][0]
        np.testing.assert_allclose(engine.player.position - moved, before, atol=1e-12)
        before = engine.player.position.copy()
    engine.execute(f"/tp @p 5 {FLOOR} 5")
    assert not state(engine).player.records["moved"].any(), "a leap is no motion"


def test_sprinting_widens_the_field_of_view_by_halves() -> None:
    """To 70 * 1.15 = 80.5 degrees; the frame is a tick behind what follows the player's speed."""
    engine = arena()
    engine.tick({"forward": 1, "sprint": 1})
    assert state(engine).player.sprinting
    gains = []
    for _ in range(20):
        engine.tick({"forward": 1, "sprint": 1})
        gains.append(seen(engine, "fov_gain_seen"))
    np.testing.assert_allclose(gains, 0.15 * (1 - 0.5 ** np.arange(20)), atol=1e-12)
    assert 70 * (1 + gains[-1]) == pytest.approx(80.5, abs=1e-3)


def test_speed_and_slowness_change_the_field_of_view() -> None:
    engine = arena()
    for effect, level, factor in (("speed", 1, 1.2), ("slowness", 2, 0.775)):
        engine.execute("/effect clear @p")
        engine.execute(f"/effect give @p {effect} 100 {level}")
        ticks(engine, 30)
        assert 1 + seen(engine, "fov_gain_seen") == pytest.approx(factor, abs=1e-6)


def test_the_bobbing_follows_the_speed_and_its_phase_the_way() -> None:
    engine = arena()
    bob = way = 0.0
    for tick in range(40):
        before = engine.player.position.copy()
        engine.tick({"forward": 1} if tick < 25 else {})
        step = float(np.hypot(*(engine.player.position - before)[[0, 2]]))
        assert seen(engine, "bob_seen") == pytest.approx(bob, abs=1e-12), "a tick behind"
        # Its speed is that after friction, as a tick ends.
        bob += 0.4 * (min(0.1, float(np.hypot(*engine.player.velocity[[0, 2]]))) - bob)
        way += 0.6 * step
        assert seen(engine, "stride") == pytest.approx(way, abs=1e-9)
        if tick == 24:
            assert bob == pytest.approx(0.1, abs=1e-3)
    assert bob < 0.01


def test_who_sneaks_or_flies_takes_no_steps() -> None:
    engine = arena()
    ticks(engine, 3, sneak=1)
    still = seen(engine, "stride")
    ticks(engine, 10, sneak=1, forward=1)
    assert seen(engine, "stride") == still
    ticks(engine, 10, forward=1)
    walking = seen(engine, "bob")
    ticks(engine, 3, forward=1, jump=1)
    assert walking > 0.09 and seen(engine, "bob") == pytest.approx(walking * 0.6**3)


def test_the_camera_sinks_by_halves() -> None:
    engine = arena()
    heights = []
    for _ in range(6):
        engine.tick({"sneak": 1})
        heights.append(1.62 - seen(engine, "eye_drop_seen"))
    np.testing.assert_allclose(heights, [1.62, 1.62, 1.445, 1.3575, 1.31375, 1.291875])


def test_a_swing_takes_six_ticks_and_repeats_after_four_while_mining() -> None:
    engine = arena()
    engine.player.pitch = -60.0
    shown = []
    for tick in range(10):
        engine.tick({"attack": int(tick == 0)})
        shown.append(seen(engine, "swing_seen") * 6)
    np.testing.assert_allclose(shown, [0, 0, 1, 2, 3, 4, 5, 0, 0, 0], atol=1e-12)
    engine.player.pitch = 90.0
    shown = []
    for _ in range(10):
        engine.tick({"attack": 1})
        shown.append(seen(engine, "swing_seen") * 6)
    np.testing.assert_allclose(shown, [0, 0, 1, 2, 3, 0, 1, 2, 3, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("effect", "level", "length"), [("haste", 0, 5), ("haste", 1, 4), ("mining_fatigue", 0, 8)]
)
def test_effects_change_how_long_a_swing_takes(effect: str, level: int, length: int) -> None:
    engine = arena()
    engine.execute(f"/effect give @p {effect} 100 {level}")
    engine.player.pitch = -60.0
    shown = []
    for tick in range(14):
        engine.tick({"attack": int(tick == 0)})
        shown.append(seen(engine, "swing_seen"))
    assert np.count_nonzero(shown) == length - 1
    assert max(shown) == pytest.approx((length - 1) / length)


def test_the_hand_sinks_with_the_old_item_and_rises_with_the_new_one() -> None:
    """By 0.4 a tick at most, and up to the cube of the charge, which takes five ticks."""
    engine = arena()
    engine.execute("/give @p stick")
    ticks(engine, 20)
    rows = []
    for tick in range(9):
        engine.tick({"hotbar.2": int(tick == 0)})
        rows.append((seen(engine, "hand_drop_seen"), seen(engine, "hand_item") > 0))
    drops = [0, 0.4, 0.8, 1, 1 - 0.6**3, 1 - 0.8**3, 1 - 0.912, 0, 0]
    np.testing.assert_allclose([drop for drop, _ in rows], drops, atol=1e-6)
    assert [shows for _, shows in rows] == [True] * 2 + [False] * 7
    assert state(engine).player.records["held_item"][0] == 0 != ITEM_ID["stick"]


def test_mining_neither_lowers_the_hand_nor_shows_a_charge() -> None:
    """Minecraft's client restarts the charge for attacks and misses alone."""
    engine = arena()
    engine.player.pitch = 90.0
    ticks(engine, 12, attack=1)
    assert state(engine).player.records["is_mining"][0]
    assert seen(engine, "hand_drop") == 0.0
    assert seen(engine, "recharge_ticks") > 5
    assert engine.player.attack_charge < 1.0, "the server does restart it"
    engine.tick({})
    engine.player.pitch = -60.0
    engine.tick({"attack": 1})
    assert seen(engine, "recharge_ticks") == 1
    assert seen(engine, "hand_drop") > 0.3


def test_a_rule_reads_the_present_eye() -> None:
    """A walking player mines what is under the crosshair of the present eye, not of the frame's."""
    engine = arena()
    world = state(engine).world
    world.fill((0, 1), (FLOOR, FLOOR + 3), (8, 9), STONE)
    while engine.player.position[2] <= 3.5:
        engine.tick({"forward": 1})
    z = float(engine.player.position[2])
    moved = float(state(engine).player.records["moved"][0, 2])
    assert 8.0 - z < 4.5 <= 8.0 - (z - moved)
    engine.tick({"attack": 1})
    assert state(engine).player.records["is_mining"][0]
