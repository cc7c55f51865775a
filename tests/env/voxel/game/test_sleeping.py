"""Beds: when and where one can sleep, what a night costs, and where one wakes."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.game import spawning
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, block_of
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks

BED = BLOCK_ID["red_bed"]
NIGHT = 13000
HEAD, FOOT = (0, FLOOR, 3), (0, FLOOR, 2)


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    """The stage at night, with a bed ahead whose head is the farther half."""
    game = state(stage)
    game.spawn_point = None
    game.raining = False
    game.time = NIGHT
    stage.execute("/gamerule doDaylightCycle true")
    cleared(stage, pitch=35.0)
    game.world.set_blocks(
        {
            FOOT: block_of(BED, {"facing": "south", "part": "foot"}),
            HEAD: block_of(BED, {"facing": "south", "part": "head"}),
        }
    )
    stage.tick({})
    return stage


def slept(engine):
    return state(engine).statistics.copy()["custom"].get("sleep_in_bed", 0)


def test_a_night_takes_a_hundred_ticks(engine):
    before, day = slept(engine), state(engine).time
    state(engine).raining = True
    engine.tick({"use": 1})
    assert state(engine).bed == HEAD and slept(engine) == before + 1
    seen = [engine.player.position.copy()]
    for _ in range(spawning.DEEP_SLEEP - 2):
        engine.tick({"forward": 1, "jump": 1, "camera": (10.0, 10.0)})
        seen.append(engine.player.position.copy())
    assert state(engine).bed == HEAD and engine.player.pitch == 0.0
    assert np.ptp(seen, axis=0).max() == 0.0
    assert state(engine).time == day + spawning.DEEP_SLEEP - 1
    engine.tick({})
    assert state(engine).bed is None and not state(engine).raining
    assert state(engine).time == 24000
    x, y, z = engine.player.position
    assert y == FLOOR and max(abs(x - 0.5), abs(z - 3.5)) <= 2.0
    engine.tick({"forward": 1})
    assert np.hypot(*engine.player.velocity[[0, 2]]) > 0.0


@pytest.mark.parametrize("time", [0, 12541, 23460])
def test_by_day_the_bed_only_becomes_the_spawn_point(engine, time):
    state(engine).time = time
    before = slept(engine)
    engine.tick({"use": 1})
    assert state(engine).bed is None and slept(engine) == before
    assert state(engine).spawn_point == HEAD
    engine.execute(f"/tp @p 5 {FLOOR} 5")
    engine.execute("/kill @p")
    assert np.hypot(*(engine.player.position[[0, 2]] - (0.5, 3.5))) < 3.0


@pytest.mark.parametrize(("time", "raining"), [(12542, False), (23459, False), (12010, True)])
def test_the_hours_of_sleep_are_minecrafts(engine, time, raining):
    state(engine).time, state(engine).raining = time, raining
    assert spawning.lie_down(state(engine), FOOT) and state(engine).bed == HEAD


def test_a_bed_is_too_far_away_beyond_three_blocks(engine):
    for z, near in ((-0.6, False), (-0.4, True)):  # the foot's middle is at 2.5
        engine.player.position[:] = (0.5, FLOOR, z)
        assert spawning.lie_down(state(engine), FOOT) == near
        state(engine).bed = None


def test_a_bed_below_stone_is_blocked(engine):
    state(engine).world.set_block(0, FLOOR + 1, 3, BLOCK_ID["stone"])
    assert not spawning.lie_down(state(engine), FOOT)
    assert state(engine).spawn_point is None


def test_half_a_bed_is_none(engine):
    state(engine).world.set_block(*HEAD, 0)
    assert not spawning.lie_down(state(engine), FOOT)


def test_a_hit_and_a_bed_that_vanishes_end_the_sleep(engine):
    engine.tick({"use": 1})
    engine.player.records["hurt_ticks"] = 10
    engine.tick({})
    assert state(engine).bed is None and state(engine).time < 24000
    engine.player.records["hurt_ticks"] = 0
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 35")
    ticks(engine, 5)
    engine.tick({"use": 1})
    assert state(engine).bed == HEAD
    engine.execute(f"/setblock 0 {FLOOR} 3 air")
    engine.tick({})
    assert state(engine).bed is None


@pytest.mark.parametrize("command", ["/tp @p 30.5 100 30.5", "/kill @p"])
def test_a_teleport_and_a_death_end_the_sleep(engine, command):
    engine.tick({"use": 1})
    state(engine).spawn_point = None
    assert engine.execute(command).ok
    there = engine.player.position.copy()
    ticks(engine, 5)
    assert state(engine).bed is None and state(engine).time < 24000
    assert np.abs(engine.player.position - there)[[0, 2]].max() < 1.0
    engine.tick({"camera": (0.0, 10.0)})
    assert engine.player.yaw != 0.0


def test_a_sleeper_who_dies_lies_there(engine):
    engine.tick({"use": 1})
    engine.player.health = 0.0
    ticks(engine, 3)
    assert engine.player_dead and state(engine).bed is None
    state(engine).player_dead = False


def test_the_sun_stands_still_where_the_rule_says_so(engine):
    engine.execute("/gamerule doDaylightCycle false")
    engine.tick({"use": 1})
    ticks(engine, spawning.DEEP_SLEEP)
    assert state(engine).bed is None and state(engine).time == NIGHT + 1


def test_a_snapshot_goes_on_sleeping(engine):
    engine.tick({"use": 1})
    ticks(engine, 20)
    saved = engine.snapshot()
    ticks(engine, 90)
    woken = engine.player.position.copy(), state(engine).time
    engine.restore(saved)
    assert state(engine).bed == HEAD and state(engine).sleep_ticks == 21
    ticks(engine, 90)
    assert (engine.player.position == woken[0]).all() and state(engine).time == woken[1]
