"""What ground and blocks do to those on and in them; the oracle plays the motion tick by tick."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, turned_to
from tests.env.voxel.arena import FLOOR, arena, state, ticks


@pytest.fixture(scope="module")
def engine():
    return arena()


@pytest.fixture
def on(engine):
    """Builds a ground of one block and puts the player onto it, at rest."""

    def build(block, start=(0.5, FLOOR, 0.5)):
        world = state(engine).world
        world.fill((-30, 31), (FLOOR, FLOOR + 8), (-30, 31), 0)
        world.fill((-30, 31), (FLOOR - 1, FLOOR), (-30, 31), BLOCK_ID[block])
        engine.player.revive()
        engine.execute(f"/tp @p {start[0]} {start[1]} {start[2]} 0 0")
        ticks(engine, 6)
        return engine

    return build


def speed(engine, count=60, **keys):
    """Blocks per tick after some ticks with keys held."""
    ticks(engine, count, **keys)
    before = engine.player.position.copy()
    ticks(engine, 1, **keys)
    return float(np.hypot(*(engine.player.position - before)[[0, 2]]))


def test_walking_speed_by_the_ground(on):
    usual = speed(on("stone"), forward=1)
    assert usual == pytest.approx(0.2159, abs=1e-4)  # 4.317 blocks a second
    assert speed(on("soul_sand"), forward=1) == pytest.approx(0.098 / (1 - 0.4 * 0.546), abs=1e-4)
    assert speed(on("honey_block"), forward=1) < 0.6 * usual
    assert speed(on("slime_block"), forward=1) < 0.7 * usual
    assert speed(on("ice"), forward=1) == pytest.approx(usual, rel=0.1)


def test_ice_lets_one_slide_on(on):
    def slide(block):
        engine = on(block)
        ticks(engine, 40, forward=1)
        before = engine.player.position[2]
        ticks(engine, 40)
        return engine.player.position[2] - before

    assert slide("stone") < 0.4
    assert slide("ice") > 1.5
    assert slide("blue_ice") > slide("ice")


def height_of_fall(engine, height):
    engine.execute(f"/tp @p ~ {FLOOR + height} ~")
    for _ in range(100):
        engine.tick({})
        if engine.player.on_ground:
            break


@pytest.mark.parametrize(
    ("block", "damage"),
    [("stone", 7), ("hay_block", 2), ("slime_block", 0), ("honey_block", 2)],
)
def test_how_soft_one_lands(on, block, damage):
    engine = on(block)
    height_of_fall(engine, 10)
    assert 20 - engine.player.health == damage


def test_a_bed_softens_a_fall_by_half_and_throws_up(on):
    engine = on("stone")
    bed = BLOCK_ID["white_bed"]
    head = turned_to(turned_to(bed, part="head"), facing="south")
    state(engine).world.set_blocks(
        {(0, FLOOR, 0): turned_to(bed, facing="south"), (0, FLOOR, 1): head}
    )
    height_of_fall(engine, 10)
    assert 20 - engine.player.health == 3
    assert engine.player.velocity[1] > 0.5


def test_slime_throws_up_again_and_sneaking_prevents_it(on):
    engine = on("slime_block")
    height_of_fall(engine, 6)
    highest = max(engine.player.position[1] for _ in range(20) if engine.tick({}) is None)
    assert highest > FLOOR + 3
    engine = on("slime_block")
    engine.execute(f"/tp @p ~ {FLOOR + 6} ~")
    heights = []
    for _ in range(60):
        engine.tick({"sneak": 1})
        heights.append(engine.player.position[1])
    assert max(heights[30:]) == pytest.approx(FLOOR)


def test_a_ladder_is_climbed_held_on_to_and_slid_down(on):
    engine = on("stone")
    world = state(engine).world
    world.fill((-2, 3), (FLOOR, FLOOR + 7), (2, 3), BLOCK_ID["stone"])
    world.fill((0, 1), (FLOOR, FLOOR + 7), (1, 2), BLOCK_ID["ladder"])  # faces north
    ticks(engine, 30, forward=1)
    climbed = engine.player.position[1] - FLOOR
    assert climbed > 2
    ticks(engine, 5, sneak=1)
    held = engine.player.position[1]
    ticks(engine, 20, sneak=1)
    assert engine.player.position[1] == held
    ticks(engine, 10)
    assert held - engine.player.position[1] == pytest.approx(1.5, abs=0.2)  # 0.15 a tick
    ticks(engine, 200)
    assert engine.player.health == 20


def test_a_cobweb_holds_and_breaks_a_fall(on):
    engine = on("stone")
    state(engine).world.fill((-2, 3), (FLOOR, FLOOR + 2), (-2, 3), BLOCK_ID["cobweb"])
    engine.execute(f"/tp @p 0.5 {FLOOR + 8} 0.5")
    ticks(engine, 600)  # 0.05 of a fall
    assert engine.player.health == 20
    assert engine.player.position[1] == pytest.approx(FLOOR)
    assert speed(engine, 10, forward=1) < 0.06


def test_a_step_of_half_a_block_is_walked_up_and_a_fence_is_not_jumped(on):
    engine = on("stone")
    world = state(engine).world
    world.fill((-9, 10), (FLOOR, FLOOR + 1), (3, 4), BLOCK_ID["oak_slab"])
    ticks(engine, 40, forward=1)
    assert engine.player.position[2] > 4
    engine = on("stone")
    world.fill((-9, 10), (FLOOR, FLOOR + 1), (3, 4), BLOCK_ID["oak_fence"])
    ticks(engine, 60, forward=1, jump=1, sprint=1)
    assert engine.player.position[2] < 3.4
