"""The player's motion against Minecraft's published numbers (minecraft.wiki, Java 1.16)."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.world.blocks import STONE
from tests.env.voxel.arena import FLOOR, arena, state, ticks


def speed(engine, count=40, **keys):
    """Blocks per second after reaching full speed."""
    ticks(engine, 20, **keys)
    before = engine.player.position.copy()
    ticks(engine, count, **keys)
    return float(np.hypot(*(engine.player.position - before)[[0, 2]])) * 20 / count


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"forward": 1}, 4.317),
        ({"back": 1}, 4.317),
        ({"left": 1}, 4.317),
        ({"forward": 1, "sprint": 1}, 5.612),
        ({"forward": 1, "sneak": 1}, 1.295),
        ({"forward": 1, "sneak": 1, "sprint": 1}, 1.295 * 1.3),  # it begins before sneaking slows
        ({"forward": 1, "back": 1}, 0.0),
    ],
)
def test_steady_speeds(keys, expected):
    assert speed(arena(), **keys) == pytest.approx(expected, abs=0.002)


def test_diagonal_walking_is_a_little_faster_than_straight():
    # two inputs of 0.98 are normalised to length 1
    assert speed(arena(), forward=1, left=1) == pytest.approx(4.317 / 0.98, abs=0.003)


def test_jump_apex_and_duration():
    engine = arena()
    heights = []
    for tick in range(14):
        engine.tick({"jump": int(tick == 0)})
        heights.append(engine.player.position[1] - FLOOR)
    assert max(heights) == pytest.approx(1.2522, abs=1e-4)
    assert heights.index(0.0) == 11  # twelve ticks in the air


def test_directions_of_keys_and_angles():
    # yaw 0 looks to +z (south), yaw 90 to -x (west); left of south is east
    engine = arena(yaw=0.0)
    ticks(engine, 10, forward=1)
    assert engine.player.position[2] > 1.0
    engine = arena(yaw=90.0)
    ticks(engine, 10, forward=1)
    assert engine.player.position[0] < 0.0
    engine = arena(yaw=0.0)
    ticks(engine, 10, left=1)
    assert engine.player.position[0] > 1.0


def test_camera_turns_and_pitch_is_limited():
    engine = arena()
    engine.tick({"camera": np.array([30.0, 200.0])})
    assert engine.player.pitch == pytest.approx(30.0)
    assert engine.player.yaw == pytest.approx(-160.0)
    engine.tick({"camera": (500.0, 0.0)})
    assert engine.player.pitch == 90.0


def test_sprinting_jump_is_faster_than_sprinting():
    assert speed(arena(), count=12, forward=1, sprint=1, jump=1) > 6.5


def test_tapping_forward_twice_sprints():
    engine = arena()
    engine.tick({"forward": 1})
    engine.tick({})
    ticks(engine, 3, forward=1)
    assert engine.player.sprinting


def test_walls_stop_the_player_and_end_sprinting():
    engine = arena()
    state(engine).world.fill((-3, 4), (FLOOR, FLOOR + 3), (4, 5), STONE)
    ticks(engine, 30, forward=1, sprint=1)
    assert engine.player.position[2] == pytest.approx(4.0 - 0.3, abs=1e-6)


def test_one_block_needs_a_jump():
    engine = arena()
    state(engine).world.fill((-3, 4), (FLOOR, FLOOR + 1), (3, 30), STONE)
    ticks(engine, 30, forward=1)
    assert engine.player.position[1] == FLOOR
    ticks(engine, 30, forward=1, jump=1)
    assert engine.player.position[1] >= FLOOR + 1
    assert engine.player.position[2] > 4.0


@pytest.mark.parametrize("direction", ["forward", "back", "left", "right"])
def test_sneaking_does_not_fall_off_an_edge(direction):
    engine = arena()
    state(engine).world.fill((-39, 39), (FLOOR - 1, FLOOR), (-39, 39), 0)
    state(engine).world.fill((-1, 2), (FLOOR - 1, FLOOR), (-1, 2), STONE)
    ticks(engine, 100, sneak=1, **{direction: 1})
    assert engine.player.position[1] == FLOOR
    overhang = np.abs(engine.player.position[[0, 2]] - 0.5).max()
    assert 1.5 < overhang <= 1.8
    ticks(engine, 20, **{direction: 1})
    assert engine.player.position[1] < FLOOR


def test_falling_hurts_beyond_three_blocks():
    for height, damage in ((3, 0.0), (4, 1.0), (10, 7.0)):
        engine = arena()
        engine.execute(f"/tp @p ~ ~{height} ~")
        ticks(engine, 40)
        assert engine.player.position[1] == FLOOR
        assert engine.info()["custom"].get("damage_taken", 0) == 10 * damage


def test_falling_follows_gravity_and_drag():
    engine = arena()
    engine.execute("/tp @p ~ ~20 ~")
    speed_down, y = 0.0, engine.player.position[1]
    for _ in range(15):
        engine.tick({})
        y -= speed_down
        speed_down = (speed_down + 0.08) * 0.98
        assert engine.player.position[1] == pytest.approx(y, abs=1e-9)


def test_speed_effect_scales_walking():
    engine = arena()
    engine.execute("/effect give @p speed 60 1")
    assert speed(engine, forward=1) == pytest.approx(4.317 * 1.4, abs=0.01)


def test_action_is_not_mutated_and_accepts_arrays():
    engine = arena()
    camera = np.array([1.0, 2.0], np.float32)
    action = {"forward": np.array([1]), "jump": np.array(0), "attack": 0, "camera": camera}
    copies = {name: np.array(value) for name, value in action.items()}
    engine.tick(action)
    assert set(action) == set(copies)
    assert all(np.array_equal(action[name], copies[name]) for name in copies)
    assert engine.player.velocity[2] > 0.0
