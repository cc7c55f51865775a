"""The dust of blocks: how it starts, flies and ends, and that no rule depends on it."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.entities.particles import PARTICLE_CAPACITY, Particles
from rllib_minestudio.env.voxel.world.blocks import STONE
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.arena import FLOOR, arena, state, ticks
from tests.env.voxel.twin import digest


@pytest.fixture(scope="module")
def world() -> World:
    """A floor at y = 100, far above the ground."""
    world = World()
    world.reset(1)
    world.load_around(0, 0)
    world.fill((-8, 9), (99, 100), (-8, 9), STONE)
    return world


def burst(y: int, seed: int = 5) -> Particles:
    particles = Particles()
    particles.begin(seed)
    particles.burst(STONE, 0, y, 0)
    return particles


def test_a_cube_bursts_into_64_that_fly_outwards() -> None:
    rows = burst(100).records[:64]
    assert burst(100).count == 64
    middles = (np.stack(np.mgrid[0:4, 0:4, 0:4], -1).reshape(-1, 3) + 0.5) / 4
    np.testing.assert_allclose(rows["position"], middles + np.array([0, 100, 0]))
    velocity = rows["velocity"] - np.array([0, 0.1, 0])
    speed = np.linalg.norm(velocity, axis=1)
    assert speed.min() >= 0.06 and speed.max() <= 0.18
    outward = middles - 0.5
    assert ((velocity * outward).sum(1) / speed / np.linalg.norm(outward, axis=1)).mean() > 0.5
    assert rows["life"].min() >= 4 and rows["life"].max() < 40
    assert rows["half"].min() >= 0.05 and rows["half"].max() <= 0.1
    for corner in ("column", "row"):
        assert rows[corner].min() >= 0 and rows[corner].max() < 12
    assert (rows["block"] == STONE).all()


def test_it_flies_as_gravity_and_drag_have_it(world: World) -> None:
    particles = burst(120)
    particles.records["life"] = 30
    position = particles.records["position"][:64].copy()
    velocity = particles.records["velocity"][:64].copy()
    for _ in range(30):
        before = position.copy()
        particles.tick(world.blocks)
        velocity[:, 1] -= 0.04
        position += velocity
        velocity *= 0.98
        np.testing.assert_allclose(particles.records["position"][:64], position, atol=1e-9)
        np.testing.assert_allclose(particles.records["seen"][:64], before, atol=1e-9)
    assert particles.count == 64
    particles.tick(world.blocks)
    assert particles.count == 0, "its life is over"


def test_it_lies_on_the_ground_and_stops_at_walls(world: World) -> None:
    particles = burst(101)
    particles.records["life"] = 60
    for _ in range(60):
        particles.tick(world.blocks)
    rows = particles.records[: particles.count]
    assert rows["resting"].all()
    np.testing.assert_allclose(rows["position"][:, 1], 100.001)
    boxed = burst(100)
    world.fill((-1, 2), (100, 102), (-1, 2), STONE)
    world.fill((0, 1), (100, 101), (0, 1), 0)
    for _ in range(10):
        boxed.tick(world.blocks)
    world.fill((-1, 2), (100, 102), (-1, 2), 0)
    places = boxed.records["position"][: boxed.count]
    assert boxed.count > 10 and (np.floor(places) == (0, 100, 0)).all()


def test_the_oldest_make_room() -> None:
    particles = Particles()
    particles.begin(3)
    for y in range(10):
        particles.burst(STONE, 0, y, 0)
    assert particles.count == PARTICLE_CAPACITY
    heights = particles.records["position"][:, 1]
    assert heights.min() > 2 and (np.diff(heights[::64]) > 0).all()


def test_each_hit_throws_one_off_the_face() -> None:
    engine = arena()
    engine.player.pitch = 90.0
    for count in (1, 2, 3):
        engine.tick({"attack": 1})
        assert state(engine).particles.count == count
    row = state(engine).particles.records[2]
    assert row["position"][1] == pytest.approx(FLOOR + 0.1)
    assert 0.1 <= row["position"][0] <= 0.9 and 0.1 <= row["position"][2] <= 0.9
    assert 0.03 <= row["half"] <= 0.06
    assert np.linalg.norm(row["velocity"] - (0, 0.1, 0)) <= 0.18 * 0.2
    engine.player.pitch = -60.0
    engine.tick({"attack": 1})
    assert state(engine).particles.count == 3, "no block, no dust"


def test_a_mined_block_bursts() -> None:
    engine = arena()
    engine.execute(f"/setblock 0 {FLOOR + 1} 2 oak_leaves")
    count = 0
    while count < 64:
        engine.tick({"attack": 1})
        count = state(engine).particles.count
    assert state(engine).world.block_at(0, FLOOR + 1, 2) == 0
    ticks(engine, 41)
    assert state(engine).particles.count == 0


def test_the_game_is_the_same_without_it() -> None:
    with_dust, without = arena(), arena()
    for engine in (with_dust, without):
        engine.execute("/give @p diamond_shovel")
        engine.execute("/summon cow ~3 ~ ~3")
        engine.execute(f"/fill ~-2 {FLOOR} ~2 ~2 {FLOOR + 2} ~4 dirt")
    dust = 0
    for _ in range(60):
        with_dust.tick({"attack": 1, "camera": (0.0, 3.0)})
        without.tick({"attack": 1, "camera": (0.0, 3.0)})
        state(without).particles.clear()
        dust = max(dust, state(with_dust).particles.count)
    assert dust > 20
    assert digest(with_dust) == digest(without)


def test_equal_seeds_give_equal_dust() -> None:
    def rows(seed: int) -> bytes:
        engine = VoxelEngine(frame_size=(32, 32))
        engine.reset(seed, "plains")
        engine.player.pitch = 90.0
        ticks(engine, 20, attack=1)
        particles = state(engine).particles
        return particles.records[: particles.count].tobytes() + particles.rng.tobytes()

    assert rows(3) == rows(3) != rows(4)
