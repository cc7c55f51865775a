"""Terrain, streaming, and the box field against a brute-force rebuild."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.world.blocks import STONE, is_thin
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, WINDOW, block_index
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.caches import check_tops, check_world


def loaded_world(x=0, z=0, seed=3):
    world = World()
    world.reset(seed)
    world.load_around(x, z)
    return world


def test_box_field_of_fresh_terrain():
    check_world(loaded_world())


@settings(max_examples=6, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-30, 30),
            st.integers(50, 110),
            st.integers(-30, 30),
            st.sampled_from([0, 1]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_box_field_after_edits_equals_a_full_rebuild(edits):
    world = loaded_world()
    for x, y, z, block in edits:
        world.set_block(x, y, z, block)
    check_world(world)


def test_box_field_after_streaming_and_a_fill():
    world = loaded_world()
    for step in range(1, 14):
        world.load_around(step * 11, -step * 7)
    world.fill((140, 150), (70, 90), (-95, -88), STONE)
    check_world(world)


def test_no_box_contains_a_block():
    world = loaded_world()
    rng = np.random.default_rng(0)
    blocks = world.blocks.reshape(WINDOW, WINDOW, HEIGHT)
    for _ in range(300):
        x, z = rng.integers(-60, 60, 2)
        y = int(rng.integers(60, world.ceiling))
        cell = int(world.box[block_index(int(x), y, int(z))])
        radius, up, down = (cell & 31) - 1, cell >> 5 & 31, cell >> 10 & 31
        if cell == 0:
            assert blocks[x & 255, z & 255, y] != 0
            continue
        xs = np.arange(x - radius, x + radius + 1) & 255
        zs = np.arange(z - radius, z + radius + 1) & 255
        inside = blocks[np.ix_(xs, zs, np.arange(y - down, min(y + up + 1, HEIGHT)))]
        assert not (inside != 0)[~is_thin(inside)].any()


@pytest.mark.parametrize("place", [(0, 0), (29_999_900, -29_999_900), (-1_234_567, 7_654_321)])
def test_terrain_is_the_same_whatever_was_loaded_before(place):
    direct = loaded_world(*place)
    wandering = loaded_world(place[0] - 100, place[1] + 60)
    wandering.load_around(place[0] - 40, place[1])
    wandering.load_around(*place)
    for dx in range(-80, 80, 3):
        for dz in range(-80, 80, 3):
            column = block_index(place[0] + dx, 0, place[1] + dz)
            assert np.array_equal(
                direct.blocks[column : column + HEIGHT], wandering.blocks[column : column + HEIGHT]
            )
            assert direct.surface(place[0] + dx, place[1] + dz) == wandering.surface(
                place[0] + dx, place[1] + dz
            )


def test_five_chunks_each_way_are_loaded():
    world = loaded_world(8, 8)
    assert world.is_loaded(8 - 80, 8 + 80)
    assert not world.is_loaded(8 - 90, 8)
    assert world.block_at(-72, 0, 87) != 0


def test_tops_are_the_highest_blocks():
    world = loaded_world()
    world.set_block(3, 120, 4, STONE)
    world.set_block(5, world.surface(5, 6) - 1, 6, 0)
    assert world.surface(3, 4) == 121
    check_tops(world)


def test_edits_survive_leaving_and_coming_back():
    world = loaded_world()
    y = world.surface(2, 3)
    assert world.set_block(2, y, 3, STONE)
    world.load_around(2000, 0)
    assert world.block_at(2, y, 3) == 0  # not loaded
    world.load_around(0, 0)
    assert world.block_at(2, y, 3) == STONE
    assert world.surface(2, 3) == y + 1
    assert world.num_edits == 1
    check_world(world)


def test_edits_out_of_reach_are_refused():
    world = loaded_world()
    assert not world.set_block(500, 70, 0, STONE)
    assert not world.set_block(0, HEIGHT, 0, STONE)
    assert not world.set_block(0, -1, 0, STONE)
    assert not world.set_block(0, 0, 0, world.block_at(0, 0, 0))


def test_seeds_differ_and_repeat():
    one, two, other = loaded_world(seed=5), loaded_world(seed=5), loaded_world(seed=6)
    assert np.array_equal(one.blocks, two.blocks)
    assert not np.array_equal(one.blocks, other.blocks)
