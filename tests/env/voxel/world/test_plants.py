"""What grows on new land: how much, on what, whatever was made before; and where plants are."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.game.placement import stands
from rllib_minestudio.env.voxel.world import climate
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    OAK_LOG,
    SHIFT_XYZ,
    SHIFT_XZ,
    is_thin,
    kind_of,
    shift_of,
)
from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.climate import BIOMES, HIGHEST_PEAK
from rllib_minestudio.env.voxel.world.column_bits import lowest_bit
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.caches import check_thin, check_world
from tests.env.voxel.window import Window

POPPY = BLOCK_ID["poppy"]
SIDE = 5
"""Chunks along each side of the land that is counted, for each seed."""
SEEDS = range(1, 9)


def amid(biome, seed):
    """A chunk well inside a biome."""
    place = np.zeros(2, np.int64)
    assert climate.find_biome(BIOMES.index(biome), 0, 0, seed, place)
    return (place // CHUNK).tolist()


@pytest.fixture(scope="module")
def counts():
    """Mean number of blocks of each kind in a chunk, by biome."""
    window, found = Window(), {}
    for biome in BIOMES:
        total = np.zeros(len(BLOCKS))
        for seed in SEEDS:
            x, z = amid(biome, seed)
            for i in range(SIDE * SIDE):
                chunk = x + i // SIDE - 2, z + i % SIDE - 2
                window.make(*chunk, seed)
                total += np.bincount(kind_of(window.chunk(*chunk)).ravel(), minlength=len(BLOCKS))
        means = total / (len(SEEDS) * SIDE * SIDE)
        found[biome] = {block.name: means[kind] for kind, block in enumerate(BLOCKS)}
    return found


# By the reference's counts. A try of a patch on the ground succeeds in one of four cases, others in
# one of about a hundred: at any height up to that. Grass is less by what grows twice in a column.
FLOWERS = ("dandelion", "poppy", "azure_bluet", "oxeye_daisy", "cornflower")
TULIPS = ("red_tulip", "orange_tulip", "white_tulip", "pink_tulip")
BUSHES = ("lilac", "rose_bush", "peony")


@pytest.mark.parametrize(
    ("biome", "names", "low", "high"),
    [
        ("plains", ("grass",), 55, 75),  # 10 patches * 32 tries / 4 = 80, on 256 columns
        ("plains", ("tall_grass",), 4, 13),  # 7 * 64 / 99 = 4.5 of two halves
        ("plains", (*FLOWERS, *TULIPS), 1.4, 5.5),  # 4 * 64 / 99 = 2.6
        ("forest", ("grass",), 12, 16),  # 2 * 32 / 4 = 16
        ("forest", FLOWERS, 0.7, 2.0),  # 2 * 64 / 99 = 1.3
        ("forest", (*BUSHES, "lily_of_the_valley"), 0.4, 2.0),  # 64 / 99, three kinds of two halves
        ("birch_forest", ("grass",), 12, 16),  # as in the forest
        ("taiga", ("grass", "fern"), 6, 8),  # 32 / 4
        ("taiga", ("large_fern",), 4, 13),  # as tall grass in plains
        ("savanna", ("grass",), 95, 125),  # 20 patches * 32 tries / 4 = 160, on 256 columns
        ("savanna", ("tall_grass",), 4, 13),
        ("snowy_tundra", ("grass",), 6, 8),  # 32 / 4
        ("mountains", ("grass",), 3, 8),  # as much, but not on bare stone
        ("desert", ("dead_bush",), 1.6, 2.2),  # 2 * 4 / 4
        ("desert", ("cactus",), 1.1, 2.1),  # 100 / 130 of one to three blocks
    ],
)
def test_as_much_grows_as_in_the_game(counts, biome, names, low, high):
    assert low < sum(counts[biome][name] for name in names) < high


def test_what_grows_nowhere_else(counts):
    assert not any(counts["forest"][name] + counts["desert"][name] for name in TULIPS)
    assert counts["desert"]["grass"] < 0.5 and counts["plains"]["dead_bush"] == 0
    assert counts["plains"]["sugar_cane"] == 0


@pytest.mark.parametrize("biome", BIOMES)
def test_a_chunk_is_the_same_whatever_was_made_before(biome):
    rng, seed = np.random.default_rng(4), 3
    x, z = amid(biome, seed)
    chunks = [(x + i, z + k) for i in range(4) for k in range(4)]
    made = []
    for order in (range(16), rng.permutation(16)):
        window = Window()
        for i in order:
            window.make(*chunks[i], seed)
        made.append({chunk: window.chunk(*chunk) for chunk in chunks})
    assert all(np.array_equal(made[0][chunk], made[1][chunk]) for chunk in chunks)
    assert any(is_thin(blocks).any() for blocks in made[0].values())


@pytest.mark.parametrize("biome", BIOMES)
def test_all_that_grows_has_what_it_needs(biome):
    world = World()
    world.reset(11)
    x, z = amid(biome, world.seed)
    world.load_around(x * CHUNK, z * CHUNK)
    found = 0
    for dx in range(-40, 40):
        for dz in range(-40, 40):
            i, k = x * CHUNK + dx, z * CHUNK + dz
            y = world.surface(i, k)
            assert not is_thin(world.block_at(i, y - 1, k))
            for layer in range(60, HIGHEST_PEAK + 4):
                block = world.block_at(i, layer, k)
                if is_thin(block):
                    assert stands(block, (i, layer, k), world.block_at)
                    found += 1
                if kind_of(block) == OAK_LOG:
                    assert not is_thin(world.block_at(i, layer - 1, k))
    assert found > 40


def test_a_world_without_plants_is_the_same_otherwise():
    bare, usual = World(), World()
    for world, has_plants in ((bare, False), (usual, True)):
        world.reset(5, has_plants)
        world.load_around(0, 0)
    assert not bare.thin.any() and usual.thin.any()
    grows = is_thin(usual.blocks) | (kind_of(usual.blocks) == BLOCK_ID["pumpkin"])
    assert np.array_equal(np.where(grows, AIR, usual.blocks), bare.blocks)
    bare.begin_with(6, False, {}, (0, 0))
    assert not bare.thin.any()


def test_where_thin_blocks_are_is_known_after_edits_and_a_return():
    world = World()
    world.reset(5)
    world.load_around(0, 0)
    y = world.surface(3, 4)
    for place, block in (((3, y, 4), POPPY), ((3, 127, 4), POPPY), ((0, 0, 0), POPPY)):
        assert world.set_block(*place, block)
    assert world.surface(3, 4) == y  # nobody stands on a poppy
    world.fill((-9, 9), (y, y + 2), (-9, 9), BLOCK_ID["tall_grass"])
    world.fill((-4, 4), (y + 1, y + 2), (-4, 4), AIR)
    world.set_blocks({(8, y + 9, 8): POPPY, (9, y + 3, 7): BLOCK_ID["stone"]})
    check_world(world)
    for x in (5000, 0):
        world.load_around(x, 0)
        check_thin(world)
    assert world.block_at(3, 127, 4) == POPPY


def test_the_lowest_bit_of_a_word():
    for number in range(64):
        for above in (0, 1 << 63, (1 << 64) - (1 << number)):
            assert lowest_bit(np.uint64(1 << number | above)) == number


def test_shifts_stay_within_bounds_and_differ():
    shifts = np.array([shift_of(x, z, SHIFT_XYZ) for x in range(-20, 20) for z in range(-20, 20)])
    assert (abs(shifts[:, [0, 2]]) <= 0.25).all() and abs(shifts[:, [0, 2]]).max() == 0.25
    assert shifts[:, 1].min() == -0.2 and shifts[:, 1].max() == 0
    assert len(np.unique(shifts, axis=0)) > 500
    assert shift_of(3, 4, SHIFT_XZ)[1] == 0 and shift_of(3, 4, 0) == (0, 0, 0)
    assert shift_of(29_999_999, -29_999_999, SHIFT_XZ) != shift_of(
        29_999_998, -29_999_999, SHIFT_XZ
    )
