"""Veins and caves: as many, where and how the game's rules have them; the same in any order."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.world import caves, climate, tunnels
from rllib_minestudio.env.voxel.world.blocks import AIR, BEDROCK, BLOCK_ID, LAVA, kind_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT
from rllib_minestudio.env.voxel.world.climate import ground_height
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.caches import check_world
from tests.env.voxel.window import Window
from tests.env.voxel.world import underground
from tests.env.voxel.world.underground import VEINS, Row

LOGS = [BLOCK_ID[name] for name in ("oak_log", "birch_log", "cactus")]


def check(rows: list[Row]) -> None:
    wrong = [row for row in rows if not row.found.agrees(row.wanted)]
    assert not wrong, "\n".join(map(str, wrong))


def test_as_much_starts_as_in_the_game():
    check(underground.count_spheres(6))


def test_spheres_carve_what_the_rules_say():
    side = 3
    for seed in underground.seeds(4):
        burrows, carved = (
            tunnels.new_burrows(),
            np.zeros((side * CHUNK, side * CHUNK, HEIGHT), bool),
        )
        for x, z in np.ndindex(side, side):
            tunnels.spheres_near(burrows, x, z, seed)
        for slot in np.flatnonzero(burrows.counts):
            x, z, _ = burrows.start[slot] * CHUNK
            for row in burrows.spheres[burrows.firsts[slot] :][: burrows.counts[slot]]:
                salt = int(row[5])
                narrow = [caves._narrowness(salt, y) for y in range(HEIGHT)] if salt else None
                place = row[0] + x, row[1], row[2] + z
                underground.open_sphere(carved, underground.Sphere(*place, row[3], row[4], narrow))
        land = underground.made_land(side, seed)[:, :, :50]
        differ = np.isin(land, (AIR, LAVA)) != carved[:, :, :50]
        assert carved[:, :, :50].sum() > 500 and differ.sum() <= 2  # by rounding


@pytest.mark.slow
def test_caves_are_as_large_and_as_often_open_as_in_the_game():
    check(underground.count_caves(32, 5, 4))


@pytest.mark.slow
def test_veins_are_as_many_at_each_height_as_in_the_game():
    check(underground.count_veins(4, 10))


def test_the_table_of_veins_is_the_games():
    ours = [(row["block"], *(int(row[name]) for name in ("size", "count", "layers", "dice")))
            for row in read_csv("veins.csv")]  # fmt: skip
    assert ours == [tuple(vein) for vein in VEINS]


def test_a_chunk_is_the_same_in_any_order_and_beside_anything():
    rng, chunks = np.random.default_rng(1), [(x, z) for x in range(-4, 4) for z in range(-4, 4)]
    made = []
    for order in (np.arange(64), rng.permutation(64)):
        window = Window()
        window.make(300, -300, 9)
        for number in order:
            window.make(*chunks[number], 9)
        made.append([window.chunk(*chunk) for chunk in chunks])
    assert np.array_equal(*made)
    assert {AIR, LAVA} < set(np.unique(np.array(made)[..., :20]).tolist())


def test_spheres_are_the_same_after_others_took_their_place():
    burrows = tunnels.new_burrows()
    first = tunnels.spheres_near(burrows, 5, 5, 1).copy()
    for number in range(40):  # the ring goes round
        tunnels.spheres_near(burrows, 1000 * number, -1000 * number, 1)
    assert burrows.walked[0] > 2 * len(burrows.spheres)
    assert np.array_equal(tunnels.spheres_near(burrows, 5, 5, 1), first)
    assert not np.array_equal(tunnels.spheres_near(burrows, 5, 5, 2), first)


def opened(seed_count: int) -> list[tuple[int, int, int]]:
    """Seeds and chunks with an opening."""
    found, window = [], Window()
    for seed in range(seed_count):
        for x in range(8):
            for z in range(8):
                low, _ = window.make(x, z, seed)
                if low < 60:
                    found.append((seed, x, z))
    return found


@pytest.fixture(scope="module")
def mouths() -> list[tuple[int, int, int]]:
    """Seeds and chunks where the ground is carved away far down."""
    return opened(12)


def test_what_is_carved_is_known_from_the_chunks_around(mouths):
    compared = 0
    for seed, x, z in mouths[:6]:
        window, burrows = Window(), tunnels.new_burrows()
        window.make(x, z, seed, has_plants=False)
        for near_x, near_z in ((x, z), (x + 1, z), (x, z - 1), (x - 1, z + 1)):
            near = tunnels.spheres_near(burrows, near_x, near_z, seed)
            for i in range(CHUNK):
                for k in range(CHUNK):
                    column = x * CHUNK + i, z * CHUNK + k
                    at = column[0] - near_x * CHUNK, column[1] - near_z * CHUNK
                    if not all(-tunnels.NEAR <= place < CHUNK + tunnels.NEAR for place in at):
                        continue
                    y = ground_height(*column, seed)
                    is_open = kind_of(int(window.chunk(x, z)[i, k, y])) in (AIR, LAVA)
                    assert caves.is_carved(near, at[0], y, at[1]) == is_open
                    compared += is_open
    assert compared > 100


def test_nothing_floats_above_an_opening(mouths):
    for seed, x, z in mouths[:8]:
        window = Window()
        for dx in (-1, 0, 1):
            for dz in (-1, 0, 1):
                window.make(x + dx, z + dz, seed)
        chunk, tops = window.chunk(x, z), window.tops(x, z)
        for i, k in np.ndindex(CHUNK, CHUNK):
            column = chunk[i, k]
            highest = np.flatnonzero(column)
            assert tops[i, k] <= highest[-1]
            ground = ground_height(x * CHUNK + i, z * CHUNK + k, seed)
            if column[ground] == AIR:
                assert not np.isin(kind_of(column), LOGS).any()


def test_lava_lies_below_layer_11_and_nothing_is_carved_at_the_bottom():
    window = Window()
    for x in range(6):
        for z in range(6):
            window.make(x, z, 4)
    land = np.array([window.chunk(x, z) for x in range(6) for z in range(6)])
    assert (land[..., 0] == BEDROCK).all() and not np.isin(land[..., 1], (AIR, LAVA)).any()
    assert not (land[..., : caves.LAVA_LAYERS] == AIR).any()
    assert not (land[..., caves.LAVA_LAYERS :] == LAVA).any()
    assert (land == LAVA).any() and (land[..., 11:50] == AIR).any()


def test_ores_are_bare_in_caves():
    window, ores = Window(), [BLOCK_ID[name] for name in underground.ORES]
    for x in range(8):
        for z in range(8):
            window.make(x, z, 4)
    land = window.blocks.reshape(256, 256, HEIGHT)[:128, :128, 2:58]
    is_ore, is_open = np.isin(land, ores), np.isin(land, (AIR, LAVA))
    bare = is_ore[1:-1, 1:-1, 1:-1] & (
        is_open[:-2, 1:-1, 1:-1] | is_open[2:, 1:-1, 1:-1] | is_open[1:-1, :-2, 1:-1]
        | is_open[1:-1, 2:, 1:-1] | is_open[1:-1, 1:-1, :-2] | is_open[1:-1, 1:-1, 2:]
    )  # fmt: skip
    assert bare.sum() > 64


def test_a_world_with_openings_keeps_its_fields(mouths):
    seed, x, z = mouths[0]
    world = World()
    world.reset(seed)
    world.load_around(x * CHUNK + 8, z * CHUNK + 8)
    check_world(world)
    y = world.surface(x * CHUNK + 8, z * CHUNK + 8)
    assert world.set_block(x * CHUNK + 8, y, z * CHUNK + 8, BLOCK_ID["torch"])
    world.fill((x * CHUNK, x * CHUNK + 9), (5, 30), (z * CHUNK, z * CHUNK + 9), LAVA)
    world.fill((x * CHUNK + 2, x * CHUNK + 7), (9, 25), (z * CHUNK + 1, z * CHUNK + 5), AIR)
    check_world(world)


def test_emeralds_lie_below_mountains_alone():
    window, place, found = Window(), np.zeros(2, np.int64), {}
    for biome in ("mountains", "plains"):
        assert climate.find_biome(climate.BIOMES.index(biome), 0, 0, 3, place)
        layers: list[int] = []
        for x in range(8):
            chunk = place[0] // CHUNK + x % 3 - 1, place[1] // CHUNK + x // 3 - 1
            window.make(*chunk, 3)
            is_emerald = window.chunk(*chunk) == BLOCK_ID["emerald_ore"]
            layers += np.nonzero(is_emerald)[2].tolist()
        found[biome] = layers
    assert 8 <= len(found["mountains"]) <= 8 * 8 and not found["plains"]
    assert min(found["mountains"]) >= 4 and max(found["mountains"]) <= 31
