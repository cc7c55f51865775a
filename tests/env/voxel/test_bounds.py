"""Out of the world: below it, above it, at its end; and what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.entities.records import ITEM_CAPACITY
from rllib_minestudio.env.voxel.player.raycast import BLOCK
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, STONE
from rllib_minestudio.env.voxel.world.world import World
from rllib_minestudio.errors import InvalidActionError
from tests.env.voxel.arena import FLOOR, arena, state, ticks
from tests.env.voxel.caches import check_tops, check_world


@pytest.fixture
def engine():
    return arena()


@pytest.mark.parametrize("protection", ["", "/effect give @p resistance 9999 255"])
def test_the_void_takes_four_points_twice_a_second_until_death(engine, protection):
    engine.execute(protection or "/time set noon")
    engine.player.records["food"] = 10  # no healing
    engine.execute("/tp @p ~ -63.9 ~")
    lost = []
    for tick in range(60):
        before = engine.player.health
        engine.tick({"jump": 1})
        if engine.player.health < before:
            lost.append((tick, before - engine.player.health))
    first = lost[0][0]
    assert engine.player.position[1] < -64.0
    assert lost == [(first + 10 * hit, 4.0) for hit in range(5)]
    assert engine.player_dead
    info = engine.info()
    assert info["health"] == 0.0
    assert info["custom"]["damage_taken"] == 200 and info["custom"]["deaths"] == 1


def test_digging_through_the_floor_ends_in_the_void(engine):
    state(engine).world.fill((-1, 2), (0, FLOOR - 1), (-1, 2), 0)
    engine.execute("/tp @p ~ ~ ~ 0 90")
    engine.execute("/give @p diamond_pickaxe")
    for _ in range(400):
        engine.tick({"attack": 1})
        engine.render()
        engine.info(voxels=(-1, 1, -1, 1, -1, 1))
    assert engine.info()["mine_block"] == {"stone": 1}
    assert engine.player_dead and engine.player.position[1] < -64.0


def test_mobs_die_in_the_void_and_items_are_lost(engine):
    for place in ("~ -60 ~", "~3 -1000000 ~"):
        assert engine.execute(f"/summon cow {place}").ok
    state(engine).scatter_item(STONE, 1, (0.5, -60.0, 5.5), 10)
    state(engine).scatter_item(STONE, 1, (0.5, float(FLOOR), 5.5), 10)
    ticks(engine, 120)
    assert engine.mobs_near(2e6) == []
    assert state(engine).mobs.count == 0
    assert [item["position"][1] for item in state(engine).items.records[:1]] == [FLOOR]
    assert state(engine).items.count == 1
    assert "kill_entity" not in engine.info() or not engine.info()["kill_entity"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/setblock ~ -1 ~ stone", "out of this world! There are blocks from y = 0 to 127"),
        ("/setblock ~ 128 ~ stone", "out of this world"),
        ("/setblock ~ 1e300 ~ stone", "out of this world"),
        ("/setblock 1e300 64 ~ stone", "not loaded"),
        ("/fill ~ -9 ~ ~3 -2 ~ stone", "out of this world"),
        ("/fill ~ 120 ~ ~3 128 ~ stone", "out of this world"),
        ("/fill ~ 1e9 ~ ~3 1e9 ~ air", "out of this world"),
        ("/fill ~ 64 ~ ~500 64 ~ stone", "not loaded"),
        ("/tp @p 30000000 64 0", "Invalid position for teleport"),
        ("/tp @p 0 -20000001 0", "Invalid position for teleport"),
        ("/tp @p nan 64 0", "Expected number, found 'nan'"),
        ("/tp @p 0 -inf 0", "Expected number, found '-inf'"),
        ("/tp @p 0 64 0 nan 0", "Expected number, found 'nan'"),
        ("/execute positioned ~1e308 ~ ~ run tp @p ~1e308 ~ ~", "out of this world"),
        ("/summon cow ~ 20000000 ~", "Invalid position for summon"),
        ("/summon cow 1000 64 0", "not loaded"),
        ("/teleportbiome @p plains 3e7 0", "Invalid position for teleport"),
    ],
)
def test_commands_out_of_the_world_change_nothing_and_say_so(engine, command, message):
    place, blocks = engine.player.position.copy(), state(engine).world.blocks.copy()
    result = engine.execute(command)
    assert not result.ok and message in result.message
    assert np.array_equal(engine.player.position, place)
    assert np.array_equal(state(engine).world.blocks, blocks)
    assert state(engine).mobs.count == 0


def test_a_fill_that_misses_all_layers_writes_nothing():
    world = World()
    world.load_around(0, 0)
    for layers in ((-9, -2), (128, 140), (-5, 0), (70, 70), (80, 70)):
        assert world.fill((0, 3), layers, (0, 3), STONE) == 0
    assert world.num_edits == 0
    check_world(world)


@pytest.mark.parametrize(("seed", "x"), [(18, 2888), (20, 1128)])
def test_a_cactus_leaves_the_top_of_the_tree_beside_it(seed, x):
    world = World()
    world.reset(seed)
    world.load_around(x, 8)
    check_tops(world)


@pytest.mark.parametrize("camera", [(np.nan, 0.0), (0.0, np.inf), (-np.inf, np.nan)])
def test_a_camera_that_is_no_number_is_refused_before_anything_happens(engine, camera):
    before = engine.player.records.copy()
    with pytest.raises(InvalidActionError, match="two finite numbers"):
        engine.tick({"forward": 1, "sneak": 1, "camera": camera})
    for name in before.dtype.names:  # not the bytes between the fields, which no copy keeps
        assert before[name].tobytes() == engine.player.records[name].tobytes()
    assert state(engine).held_keys == 0


@pytest.mark.parametrize("turn", [1e3, -1e9, 1.7e308])
def test_any_turn_ends_at_an_angle(engine, turn):
    engine.player.yaw = 30.0
    for _ in range(3):
        engine.tick({"camera": (turn, turn)})
        assert engine.player.yaw == pytest.approx(
            (np.fmod(30.0 + turn, 360.0) + 180.0) % 360.0 - 180.0
        )
        assert engine.player.pitch == (90.0 if turn > 0 else -90.0)
        engine.player.yaw = 30.0
    engine.render()


def test_the_world_ends_where_minecrafts_does(engine):
    for sign in (-1, 1):
        engine.execute(f"/tp @p {sign * 29_999_998} 120 {sign * 29_999_998} {45 - 90 * sign} 0")
        engine.execute("/effect give @p speed 99 255")
        for _ in range(20):
            engine.tick({"forward": 1, "jump": 1, "sprint": 1})
            engine.render()
        x, _, z = engine.player.position.tolist()
        assert (x, z) == (sign * 29_999_999.0,) * 2


def test_the_crosshair_goes_straight_along_the_border_between_blocks(engine):
    """Looking exactly along an axis with the eyes on a border, a ray stays in one column."""
    engine.execute(f"/tp @p 0.0 {FLOOR} 0.0 0 0")
    assert engine.execute(f"/setblock 0 {FLOOR + 1} 3 obsidian").ok
    engine.tick({})
    target = state(engine).target[0]
    assert target["kind"] == BLOCK
    assert (target["x"], target["y"], target["z"]) == (0, FLOOR + 1, 3)
    assert target["face"].tolist() == [0, 0, -1]


def test_what_is_touched_is_picked_up_though_a_full_list_of_items_moves_up(engine):
    engine.execute("/give @p diamond_shovel")
    engine.execute(f"/setblock 0 {FLOOR} 2 dirt")
    engine.execute("/tp @p ~ ~ ~ 0 45")
    ticks(engine, 2)
    engine.tick({"attack": 1})
    items = state(engine).items
    for _ in range(ITEM_CAPACITY - 1):
        state(engine).drop_item(STONE, 1, (0.5, FLOOR, 30.5), (0.0, 0.0, 0.0), delay=100)
    wool = BLOCK_ID["white_wool"]
    state(engine).drop_item(wool, 1, engine.player.position.tolist(), (0.0, 0.0, 0.0), delay=0)
    engine.tick({"attack": 1})
    assert engine.info()["mine_block"] == {"dirt": 1}
    assert engine.info()["pickup"] == {"white_wool": 1}
    assert items.item[-1] == BLOCK_ID["dirt"]
    assert items.item.tolist().count(STONE) == ITEM_CAPACITY - 2


@pytest.mark.parametrize("aspect", [0.2, 0.7])
def test_a_narrow_view_shows_the_middle_of_the_display(aspect):
    narrow = VoxelEngine(frame_size=(64, 120), aspect=aspect)
    narrow.execute("/replaceitem entity @p hotbar.4 diamond")
    shown = narrow.render()
    narrow.execute("/clear")
    assert (shown != narrow.render()).any()
