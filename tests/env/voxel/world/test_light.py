"""Both lights against a naive flood fill after each of many edits, and reference points."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    STONE,
    block_of,
    emission,
    optics_of,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, WINDOW, block_index
from rllib_minestudio.env.voxel.world.light_field import FULL, block_level, light_at, sky_level
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.caches import check_light, check_shade, flood, open_to_sky

TORCH, GLOWSTONE, SLAB = BLOCK_ID["torch"], BLOCK_ID["glowstone"], BLOCK_ID["oak_slab"]
LEAVES, STAIRS = BLOCK_ID["oak_leaves"], BLOCK_ID["oak_stairs"]
HALF, LOW, HIGH = 5, 90, 100
"""Edits are in a cuboid of ten blocks each way, high above the ground."""
AROUND = 8
"""Light that leaves the cuboid by more and comes back to it has used up its levels."""
BUILT = (
    *(AIR, AIR, AIR, AIR, STONE, STONE, STONE, LEAVES, BLOCK_ID["glass"], BLOCK_ID["ice"]),
    *(TORCH, GLOWSTONE, BLOCK_ID["soul_torch"], BLOCK_ID["brown_mushroom"]),
    *(block_of(BLOCK_ID["furnace"], {"lit": lit}) for lit in ("true", "false")),
    *(block_of(SLAB, {"type": form}) for form in ("bottom", "top", "double")),
    *(block_of(STAIRS, {"facing": facing}) for facing in ("north", "south", "west", "east")),
    *(block_of(STAIRS, {"half": "top"}), BLOCK_ID["farmland"]),
    *(block_of(BLOCK_ID["snow"], {"layers": layers}) for layers in ("3", "8")),
)


def world_at(x: int, z: int) -> World:
    world = World()
    world.reset(1)
    world.load_around(x, z)
    return world


def check_arena(world: World, x: int, z: int) -> None:
    """Compares the light in and around the cuboid of edits with what it should be."""
    span = np.arange(-HALF - AROUND, HALF + AROUND)
    part = np.ix_((x + span) % WINDOW, (z + span) % WINDOW, np.arange(LOW - AROUND - 4, HIGH + 12))
    optics = optics_of(world.blocks.reshape(WINDOW, WINDOW, HEIGHT)[part])
    kept = world.light.reshape(WINDOW, WINDOW, HEIGHT)[part]
    inner = np.s_[AROUND - 1 : 1 - AROUND, AROUND - 1 : 1 - AROUND, 4:-1]
    sky = flood(optics, np.where(open_to_sky(optics), FULL, 0))
    assert np.array_equal(sky_level(kept)[inner], sky[inner]), "sky light"
    glow = flood(optics, emission(optics))
    assert np.array_equal(block_level(kept)[inner], glow[inner]), "block light"


def edit(world: World, random: Random, x: int, z: int) -> str:
    """Changes a block, a few, or a cuboid; says how."""
    low = [
        random.randrange(-HALF, HALF),
        random.randrange(LOW, HIGH),
        random.randrange(-HALF, HALF),
    ]
    at, block = (x + low[0], low[1], z + low[2]), random.choice(BUILT)
    way = random.random()
    if way < 0.85:
        world.set_block(*at, block)
        return f"{block} at {at}"
    if way < 0.9:
        places = [(at[0], y, at[2]) for y in random.sample(range(LOW, HIGH), 3)]
        world.set_blocks({place: random.choice(BUILT) for place in places})
        return f"three blocks at {places}"
    most = (x + HALF, HIGH, z + HALF)
    ends = [min(place + random.randint(1, 9), end) for place, end in zip(at, most, strict=True)]
    world.fill(*zip(at, ends, strict=True), block)
    return f"{block} from {at} to {ends}"


def edit_and_compare(seed: int, edits: int) -> None:
    random = Random(seed)
    x, z = random.choice(((0, 0), (250, -130), (-7, 249)))  # some across the window's border
    world, done = world_at(x, z), []
    for _ in range(edits):
        done.append(edit(world, random, x, z))
        try:
            check_arena(world, x, z)
        except AssertionError as error:
            raise AssertionError(f"{seed}, edit {len(done)}: {'; '.join(done[-3:])}") from error
    check_light(world)
    check_shade(world)


def test_light_equals_a_naive_flood_after_each_edit() -> None:
    edit_and_compare(seed=0, edits=150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_light_equals_a_naive_flood_after_each_of_ten_thousand_edits(seed: int) -> None:
    edit_and_compare(seed, edits=1000)


def test_light_at_the_worlds_ends() -> None:
    world = world_at(0, 0)
    world.fill((-3, 4), (0, 3), (-3, 4), AIR)
    for block in (GLOWSTONE, block_of(SLAB, {"type": "top"}), AIR):
        for x, layer in enumerate((0, 1, HEIGHT - 2, HEIGHT - 1)):
            world.set_block(3 * x, layer, 0, block)
            world.set_block(3 * x + 1, layer, 0, TORCH)
        check_light(world)
    check_shade(world)


def levels(world: World, *cells: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Levels of the sky's and of block light."""
    found = [light_at(world.light, *cell) for cell in cells]
    return [(sky_level(light), block_level(light)) for light in found]


def test_a_torch_loses_a_level_with_each_step_and_lights_around_corners() -> None:
    world = world_at(0, 0)
    world.fill((-9, 10), (20, 29), (-9, 10), STONE)
    world.fill((0, 6), (22, 23), (0, 1), AIR)
    world.fill((5, 6), (22, 23), (0, 6), AIR)
    world.set_block(0, 22, 0, TORCH)
    tunnel = [*((x, 22, 0) for x in range(6)), *((5, 22, z) for z in range(1, 6))]
    assert levels(world, *tunnel) == [(0, 14 - steps) for steps in range(11)]
    world.set_block(3, 22, 0, STONE)
    assert levels(world, *tunnel)[3:] == [(0, 0)] * 8
    world.set_block(0, 22, 0, AIR)
    assert levels(world, *tunnel) == [(0, 0)] * 11


def test_the_sky_falls_through_glass_and_is_dimmed_by_leaves() -> None:
    world = world_at(0, 0)
    world.fill((-3, 4), (90, 100), (-3, 4), STONE)
    world.fill((0, 1), (92, 100), (0, 1), AIR)
    shaft = [(0, y, 0) for y in (99, 98, 95, 92)]
    for roof, expected in (
        (BLOCK_ID["glass"], [15, 15, 15, 15]),
        (TORCH, [15, 15, 15, 15]),
        (LEAVES, [14, 13, 10, 7]),
        (BLOCK_ID["ice"], [14, 13, 10, 7]),
        (SLAB, [15, 0, 0, 0]),
        (block_of(SLAB, {"type": "top"}), [0, 0, 0, 0]),
        (block_of(STAIRS, {"half": "top"}), [0, 0, 0, 0]),
        (STONE, [0, 0, 0, 0]),
    ):
        world.set_block(0, 99, 0, roof)
        assert [sky for sky, _ in levels(world, *shaft)] == expected, roof


def test_stairs_shut_out_light_at_their_back_alone() -> None:
    world = world_at(0, 0)
    world.fill((-9, 10), (20, 29), (-9, 10), STONE)
    world.fill((0, 5), (22, 23), (0, 1), AIR)
    world.set_block(0, 22, 0, TORCH)
    for facing, expected in (("north", 11), ("west", 0), ("east", 0)):
        world.set_block(2, 22, 0, block_of(STAIRS, {"facing": facing}))
        assert levels(world, (3, 22, 0)) == [(0, expected)], facing
    assert levels(world, (2, 22, 0)) == [(0, 12)]  # the front is open


def test_light_of_chunks_that_leave_and_return() -> None:
    world = world_at(8, 8)
    for x in (0, 15, 16, 40):
        world.set_block(x, 90, 8, TORCH)
    before = [light_at(world.light, x, 90, 8) for x in range(-20, 60)]
    for away in (5000, 5128, 8):
        world.load_around(away, 8)
    assert [light_at(world.light, x, 90, 8) for x in range(-20, 60)] == before
    check_light(world)
    check_shade(world)


def test_a_torch_is_read_where_it_stands() -> None:
    world = world_at(0, 0)
    world.set_block(0, 90, 0, TORCH)
    assert world.light[block_index(0, 90, 0)] == 14 << 4 | FULL
    assert light_at(world.light, 0, HEIGHT, 0) == FULL and light_at(world.light, 0, -1, 0) == 0
