"""Lava: who is in it burns, sinks and swims; drops are lost; blocks take its place."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, LAVA
from rllib_minestudio.env.voxel.world.light_field import block_level, light_at
from tests.env.voxel.arena import FLOOR, arena, state, ticks

DEPTH = 4
"""Layers of lava below the floor of the stage."""


@pytest.fixture
def pool():
    """A stage with a pool of lava around the origin, and the player beside it."""
    engine = arena()
    for block, margin in (("stone", 1), ("lava", 0)):
        low, high = -3 - margin, 3 + margin
        engine.execute(
            f"/fill {low} {FLOOR - DEPTH - margin} {low} {high} {FLOOR - 1} {high} {block}"
        )
    engine.execute(f"/tp @p 10 {FLOOR} 0 90 0")
    engine.execute("/gamerule keepInventory true")
    ticks(engine, 2)
    engine.player.records["food"] = 10  # too little to heal
    return engine


def dive(engine, y=FLOOR - 2.0):
    engine.execute(f"/tp @p 0 {y} 0 0 0")


def test_lava_can_be_put_and_says_that_it_does_not_flow(pool):
    result = pool.execute(f"/setblock 20 {FLOOR} 20 lava")
    assert result.ok and result.lacking == "lava does not flow here"
    assert pool.execute(f"/setblock 21 {FLOOR} 20 lava[level=0]").ok
    assert not pool.execute(f"/setblock 22 {FLOOR} 20 lava[level=3]").ok
    ticks(pool, 40)
    world = state(pool).world
    assert world.block_at(20, FLOOR, 20) == LAVA and world.block_at(20, FLOOR, 21) == AIR


def test_who_is_in_lava_loses_four_points_in_half_a_second(pool):
    dive(pool)
    found = []
    for _ in range(31):
        ticks(pool, 1)
        found.append(pool.player.health)
    drops = [tick for tick in range(1, 31) if found[tick] < found[tick - 1]]
    assert found[0] == 16.0 and found[drops[0]] == 12.0 and found[drops[1]] == 8.0
    assert drops[0] == 10 and drops[1] - drops[0] == 10
    ticks(pool, 20)
    assert pool.player_dead


def test_the_edge_of_a_body_is_enough(pool):
    state(pool).world.fill((4, 5), (FLOOR - 1, FLOOR), (-1, 2), AIR)
    for x, health in ((4.5, 20.0), (4.25, 16.0)):
        pool.player.health = 20.0
        pool.execute(f"/tp @p {x} {FLOOR - 1} 0.5 0 0")
        ticks(pool, 1)
        assert pool.player.health == health


def test_resistance_to_fire_prevents_it(pool):
    assert not pool.execute("/effect give @p fire_resistance 100").lacking
    dive(pool)
    ticks(pool, 30)
    assert pool.player.health == 20.0
    pool.execute("/effect clear @p fire_resistance")
    ticks(pool, 1)
    assert pool.player.health == 16.0


def test_one_sinks_slowly_swims_up_and_climbs_out(pool):
    pool.execute("/effect give @p fire_resistance 100")
    dive(pool, FLOOR - 1.5)
    ticks(pool, 20)
    speed = pool.player.velocity[1]
    assert speed == pytest.approx(-0.04, abs=1e-3)  # a fixed point of v / 2 - 0.02
    ticks(pool, 60)
    assert pool.player.position[1] == FLOOR - DEPTH  # on the ground of the pool
    ticks(pool, 160, jump=1)
    assert pool.player.position[1] > FLOOR - 1
    pool.execute("/tp @p ~ ~ ~ 90 0")
    ticks(pool, 200, jump=1, forward=1)
    assert pool.player.position[1] >= FLOOR and pool.player.position[0] < -3.9


def test_lava_breaks_a_fall(pool):
    pool.execute("/effect give @p fire_resistance 100")
    dive(pool, FLOOR + 10)
    ticks(pool, 80)
    assert pool.player.health == 20.0


def test_drops_vanish_in_lava_unless_they_are_of_netherite(pool):
    for name in ("diamond", "netherite_ingot"):
        state(pool).drop_item(ITEM_ID[name], 1, (0.5, FLOOR + 1.0, 0.5), (0.0, 0.0, 0.0), 10)
    ticks(pool, 60)
    items = state(pool).items
    left = items.records[: items.count]
    assert left["item"].tolist() == [ITEM_ID["netherite_ingot"]]


def test_a_mob_in_lava_dies(pool):
    pool.execute(f"/summon cow 0 {FLOOR - 1} 0")
    pool.execute(f"/summon cow 20 {FLOOR} 0")
    ticks(pool, 60)
    assert state(pool).mobs.count == 1


def test_what_falls_into_lava_ends_on_its_ground(pool):
    pool.execute(f"/setblock 0 {FLOOR + 4} 0 sand")
    ticks(pool, 60)
    world = state(pool).world
    assert world.block_at(0, FLOOR - DEPTH, 0) == BLOCK_ID["sand"]
    assert world.block_at(0, FLOOR - DEPTH + 1, 0) == LAVA


def test_lava_is_aimed_through_and_built_over(pool):
    pool.execute(f"/setblock 3 {FLOOR - 3} 0 stone")
    pool.execute(f"/tp @p 4.1 {FLOOR} 0.5 90 80")
    pool.execute("/give @p cobblestone 4")
    ticks(pool, 2)
    target, world = state(pool).target[0], state(pool).world
    assert [int(target[axis]) for axis in "xyz"] == [3, FLOOR - 3, 0]
    ticks(pool, 1, use=1)
    assert world.block_at(3, FLOOR - 2, 0) == BLOCK_ID["cobblestone"]
    assert world.block_at(3, FLOOR - 1, 0) == LAVA


def test_lava_glows(pool):
    world = state(pool).world
    assert block_level(light_at(world.light, 0, FLOOR - 1, 0)) == 15
    assert block_level(light_at(world.light, 0, FLOOR + 4, 0)) == 10


def test_a_game_in_lava_is_saved_and_restored(pool):
    dive(pool)
    ticks(pool, 5)
    data = pool.snapshot()
    ticks(pool, 12)
    health = pool.player.health
    pool.restore(data)
    ticks(pool, 12)
    assert pool.player.health == health < 16.0
