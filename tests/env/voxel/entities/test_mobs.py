"""Animals left to themselves: wandering, pushing, obstacles, falling, and distance."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import MOB_CAPACITY
from rllib_minestudio.env.voxel.world.blocks import STONE
from tests.env.voxel.arena import FLOOR, arena, state, ticks


def test_cows_wander_at_their_pace():
    engine = arena()
    for corner in ("25 {y} 25", "-25 {y} 25", "25 {y} -25", "-25 {y} -25"):
        engine.execute("/summon cow " + corner.format(y=FLOOR))
    mobs = state(engine).mobs
    start, fastest = mobs.position.copy(), 0.0
    ticks(engine, 20)
    for _ in range(600):
        before = mobs.position.copy()
        engine.tick({})
        fastest = max(fastest, np.hypot(*(mobs.position - before)[:, [0, 2]].T).max())
    roamed = np.hypot(*(mobs.position - start)[:, [0, 2]].T)
    assert (roamed > 1.0).sum() >= 3
    assert 0.07 < fastest < 0.12  # 0.2^2 * 0.98 / (1 - 0.546) = 0.0863 blocks a tick
    assert (mobs.position[:, 1] == FLOOR).all()


def test_overlapping_bodies_push_each_other_apart():
    engine = arena()
    engine.execute(f"/summon cow 5.0 {FLOOR} 5.0")
    engine.execute(f"/summon cow 5.3 {FLOOR} 5.0")
    ticks(engine, 40)
    x = state(engine).mobs.position[:, 0]
    assert abs(x[1] - x[0]) > 0.8


def test_the_player_pushes_cows():
    engine = arena()
    engine.execute(f"/summon cow 0.6 {FLOOR} 2.0")
    ticks(engine, 30, forward=1)
    assert state(engine).mobs.position[0, 2] > 3.0


def test_panicking_cows_climb_a_step_but_not_a_wall():
    engine = arena()
    world = state(engine).world
    world.fill((-4, 5), (FLOOR, FLOOR + 4), (-4, 5), STONE)
    world.fill((-3, 4), (FLOOR, FLOOR + 4), (-3, 4), 0)
    world.fill((-3, 4), (FLOOR, FLOOR + 1), (1, 4), STONE)
    engine.execute(f"/summon cow 0 {FLOOR} -2")
    engine.execute(f"/tp @p 30 {FLOOR} 30")
    mobs, highest = state(engine).mobs, 0.0
    for _ in range(400):
        mobs.records["panic_ticks"][0] = 100
        engine.tick({})
        highest = max(highest, mobs.position[0, 1])
        assert np.abs(mobs.position[0, [0, 2]] - 0.5).max() < 3.5
    assert FLOOR + 1 <= highest < FLOOR + 3


def test_a_deep_fall_kills_without_a_statistic():
    engine = arena()
    engine.execute(f"/summon pig 8 {FLOOR + 20} 8")
    ticks(engine, 80)
    assert state(engine).mobs.count == 0
    assert engine.info()["kill_entity"] == {}
    assert state(engine).items.count >= 1


def test_chickens_sink_slowly_and_land_unhurt():
    engine = arena()
    engine.execute(f"/summon chicken 8 {FLOOR + 20} 8")
    mobs, fastest = state(engine).mobs, 0.0
    taken = 0
    while not mobs.records["on_ground"][0]:
        before, taken = mobs.position[0, 1], taken + 1
        engine.tick({})
        fastest = max(fastest, before - mobs.position[0, 1])
    # A speed v becomes 0.6 * 0.98 * (v + 0.08), until it is 0.114 blocks a tick.
    assert 0.114 < fastest < 0.1142
    assert 170 < taken < 190 and mobs.position[0, 1] == FLOOR
    assert mobs.health.tolist() == [4.0]


def test_far_mobs_stand_still_and_are_not_near():
    engine = arena()
    engine.execute(f"/summon cow 5 {FLOOR} 5")
    engine.execute("/tp @p 3000 90 3000")
    before = state(engine).mobs.position.copy()
    ticks(engine, 100)
    assert np.array_equal(before, state(engine).mobs.position)
    assert engine.mobs_near(100.0) == []


def test_capacity_is_refused_politely():
    engine = arena()
    for _ in range(MOB_CAPACITY):
        assert engine.execute("/summon cow ~5 ~ ~5").ok
    assert not engine.execute("/summon cow ~5 ~ ~5").ok
    ticks(engine, 3)


def on_a_platform(around, depth):
    """A stage with a frightened cow on a platform, and something else around, so many layers."""
    engine = arena()
    engine.execute(f"/fill -9 {FLOOR - 1 - depth} -9 9 {FLOOR - 1 - depth} 9 stone")
    engine.execute(f"/fill -9 {FLOOR - depth} -9 9 {FLOOR - 1} 9 {around}")
    engine.execute(f"/fill -3 {FLOOR - depth} -3 3 {FLOOR - 1} 3 stone")
    engine.execute(f"/tp @p 30 {FLOOR} 30")
    engine.execute(f"/summon cow 0 {FLOOR} 0")
    return engine


@pytest.mark.parametrize(("around", "depth"), [("air", 4), ("lava", 1)])
def test_panicking_cows_step_neither_down_a_cliff_nor_into_lava(around, depth):
    engine = on_a_platform(around, depth)
    mobs, farthest = state(engine).mobs, 0.0
    for _ in range(600):
        mobs.records["panic_ticks"][0] = 100
        engine.tick({})
        farthest = max(farthest, np.abs(mobs.position[0, [0, 2]] - 0.5).max())
        assert mobs.position[0, 1] == FLOOR
    assert farthest > 2.0


def test_cows_step_down_three_blocks():
    engine = on_a_platform("air", 3)
    mobs, lowest = state(engine).mobs, float(FLOOR)
    for _ in range(600):
        mobs.records["panic_ticks"][0] = 100
        engine.tick({})
        lowest = min(lowest, mobs.position[0, 1])
    assert lowest == FLOOR - 3 and mobs.health[0] == 10.0
