"""Sand and gravel fall as in Minecraft Java 1.16.5; dropped items merge."""

import pytest

from rllib_minestudio.env.voxel.entities.records import FALLING_CAPACITY
from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, SAND, STONE
from rllib_minestudio.env.voxel.world.box_field import block_index
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.arena import FLOOR, arena, state, ticks
from tests.env.voxel.caches import check_world

GRAVEL = BLOCK_ID["gravel"]
AWAY = (8, 8)
"""Column out of the player's way."""


def column(engine, height=6, x=AWAY[0], z=AWAY[1]):
    return [state(engine).world.block_at(x, FLOOR + layer, z) for layer in range(height)]


def fall_ticks(distance):
    """Ticks of a fall: gravity of 0.04 and a drag of 0.98, as `FallingBlockEntity.tick`."""
    fallen, speed, count = 0.0, 0.0, 0
    while fallen < distance:
        speed += 0.04
        fallen += speed
        speed *= 0.98
        count += 1
    return count


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.mark.parametrize("height", [1, 2, 5, 20])
@pytest.mark.parametrize("block", ["sand", "gravel"])
def test_a_block_without_ground_falls_after_two_ticks(stage, block, height):
    engine = stage
    state(engine).world.set_block(AWAY[0], FLOOR, AWAY[1], AIR)
    assert engine.execute(f"/setblock {AWAY[0]} {FLOOR + height} {AWAY[1]} {block}").ok
    engine.tick({})
    assert column(engine, 24)[height] == BLOCK_ID[block]
    needed = 1
    while column(engine)[0] != BLOCK_ID[block]:
        engine.tick({})
        needed += 1
        assert column(engine, 24)[height] == AIR
        assert needed < 100
    # let go and moved for the first time in the second tick
    assert needed == 1 + fall_ticks(height)
    assert state(engine).falling.count == 0


def test_a_mined_block_lets_a_pile_down_one_after_the_other():
    engine = arena()
    world = state(engine).world
    world.fill((0, 1), (FLOOR, FLOOR + 2), (2, 3), STONE)
    world.fill((0, 1), (FLOOR + 2, FLOOR + 5), (2, 3), SAND)
    ticks(engine, 5)
    assert column(engine, 6, 0, 2) == [STONE, STONE, SAND, SAND, SAND, AIR]
    engine.execute("/give @p diamond_pickaxe")
    while column(engine, 6, 0, 2)[1] != AIR:
        engine.tick({"attack": 1})
    released = []
    for _ in range(5):
        engine.tick({})
        released.append(column(engine, 6, 0, 2).count(SAND))
    assert released == [2, 2, 1, 1, 0]
    ticks(engine, 20)
    assert column(engine, 6, 0, 2) == [STONE, SAND, SAND, SAND, AIR, AIR]
    assert engine.info()["mine_block"] == {"stone": 1}


def test_sand_that_is_placed_over_nothing_falls():
    engine = arena()
    state(engine).world.set_block(0, FLOOR + 1, 2, STONE)
    engine.execute("/give @p sand")
    engine.tick({"use": 1})
    assert column(engine, 2, 0, 1) == [AIR, SAND]
    ticks(engine, 12)
    assert column(engine, 2, 0, 1) == [SAND, AIR]


def test_what_would_bury_the_player_or_a_mob_lies_there_as_an_item():
    engine = arena()
    engine.execute(f"/summon cow 8.5 {FLOOR} 8.5")
    for x, z in ((0, 0), (8, 8)):
        state(engine).world.set_block(x, FLOOR + 8, z, SAND)
    state(engine).mobs.records["goal_ticks"] = 0
    for _ in range(40):
        state(engine).mobs.position[0] = (8.5, FLOOR, 8.5)
        engine.tick({})
    assert column(engine, 10, 0, 0) == column(engine, 10, 8, 8) == [AIR] * 10
    assert engine.info()["pickup"] == {"sand": 1}
    assert state(engine).items.item.tolist() == [SAND]


def test_sand_over_the_void_is_gone():
    engine = arena()
    world = state(engine).world
    world.fill((8, 9), (0, FLOOR), (8, 9), AIR)
    world.set_block(8, 3, 8, SAND)
    ticks(engine, 40)
    assert not world.blocks[block_index(8, 0, 8) : block_index(8, FLOOR, 8)].any()
    assert state(engine).falling.count == state(engine).items.count == 0


def test_many_blocks_fall_in_turn_and_none_is_lost():
    engine = arena()
    assert engine.execute(f"/fill -12 {FLOOR + 10} 3 12 {FLOOR + 11} 20 gravel").ok
    most = 0
    for _ in range(200):
        engine.tick({})
        most = max(most, state(engine).falling.count)
    assert most == FALLING_CAPACITY
    world = state(engine).world
    placed = [
        world.block_at(x, FLOOR + layer, z)
        for x in range(-12, 13)
        for layer in (0, 1)
        for z in range(3, 21)
    ]
    assert placed.count(GRAVEL) + state(engine).items.count == 25 * 2 * 18
    assert state(engine).items.count == 0


def test_the_caches_agree_with_a_rebuild():
    engine = arena()
    engine.execute(f"/fill 3 {FLOOR + 10} 3 12 {FLOOR + 11} 9 sand")
    ticks(engine, 60)
    check_world(state(engine).world)


def test_far_away_sand_waits():
    engine = arena()
    engine.execute(f"/setblock 8 {FLOOR + 5} 8 sand")
    engine.execute("/tp @p 4000 120 4000")
    ticks(engine, 10)
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5")
    ticks(engine, 40)
    assert column(engine)[0] == SAND


def test_a_new_game_forgets_what_was_falling():
    engine = arena()
    engine.execute(f"/setblock 8 {FLOOR + 20} 8 sand")
    engine.execute(f"/setblock 9 {FLOOR + 1} 8 sand")
    ticks(engine, 5)
    engine.execute(f"/setblock 8 {FLOOR + 1} 8 sand")
    engine.reset(1, "plains")
    ticks(engine, 5)
    assert state(engine).falling.count == 0
    assert World().unsupported == state(engine).world.unsupported == []


def test_falling_blocks_are_seen():
    engine = arena()
    engine.execute(f"/fill -1 {FLOOR + 3} 4 1 {FLOOR + 3} 4 gravel")
    engine.tick({})
    state(engine).player.records["pitch"] = -15.0
    before = engine.render().copy()
    engine.tick({})
    assert state(engine).falling.count == 3
    falling = engine.render().copy()
    state(engine).falling.clear()
    nothing = engine.render()
    assert (falling != nothing).any(axis=2).sum() > 20
    assert (falling != before).any()


def drop(engine, x, z, quantity=1, name="dirt", **fields):
    game = state(engine)
    game.drop_item(ITEM_ID[name], quantity, (x, FLOOR, z), (0.0, 0.0, 0.0), 0)
    for field, value in fields.items():
        game.items.records[game.items.count - 1][field] = value


def heap(engine):
    return sorted(state(engine).items.quantity[state(engine).items.quantity > 0].tolist())


@pytest.mark.parametrize(("gap", "merges"), [(0.0, True), (0.74, True), (0.76, False)])
def test_equal_items_merge_within_half_a_block(gap, merges):
    engine = arena()
    drop(engine, 8.1, 8.5, 3)
    drop(engine, 8.1 + gap, 8.5, 2)
    ticks(engine, 39)
    assert heap(engine) == [2, 3]
    ticks(engine, 3)  # at rest they look for others every 40 ticks
    assert heap(engine) == ([5] if merges else [2, 3])
    assert state(engine).items.count == (1 if merges else 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [(("dirt", 5), ("stone", 1)), (("dirt", 5), ("dirt", 60)), (("shears", 1), ("shears", 1))],
)
def test_what_does_not_merge(one, other):
    engine = arena()
    for name, quantity in (one, other):
        drop(engine, 8.5, 8.5, quantity, name)
    ticks(engine, 90)
    assert heap(engine) == sorted((one[1], other[1]))


def test_a_merged_stack_is_as_young_and_as_shy_as_either():
    engine = arena()
    drop(engine, 8.5, 8.5, 3, age=5000, pickup_delay=7, ticks=39)
    drop(engine, 8.5, 8.5, 8, age=70, pickup_delay=3)
    ticks(engine, 2)
    record = state(engine).items.records[0]
    assert state(engine).items.count == 1
    assert (record["quantity"], record["age"]) == (11, 72)
    assert record["pickup_delay"] == 7 - 3  # once as the first, which then joined the second


def test_a_moving_item_looks_every_other_tick():
    engine = arena()
    drop(engine, 8.5, 8.5, 5)
    drop(engine, 7.5, 8.5, 1, velocity=(0.3, 0.0, 0.0))
    engine.tick({})
    assert heap(engine) == [1, 5]
    engine.tick({})  # it comes from one block into the next
    assert heap(engine) == [6]
