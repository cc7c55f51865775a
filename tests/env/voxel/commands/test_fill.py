"""/fill and /setblock with every mode of Minecraft Java 1.16.5, and their errors."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, DIRT, STONE
from tests.env.voxel.arena import FLOOR, arena, state

BOX = f"5 {FLOOR} 5 8 {FLOOR + 3} 9"
SIZE = (4, 4, 5)
VOLUME, INSIDE = 4 * 4 * 5, 2 * 2 * 3


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    world = state(stage).world
    world.fill((5, 9), (FLOOR, FLOOR + 4), (5, 10), AIR)
    world.fill((6, 8), (FLOOR, FLOOR + 2), (6, 9), DIRT)  # 2 x 2 x 3 in it
    state(stage).items.clear()
    return stage


def counts(engine):
    world = state(engine).world
    found = {}
    for x in range(5, 9):
        for y in range(FLOOR, FLOOR + 4):
            for z in range(5, 10):
                block = world.block_at(x, y, z)
                found[block] = found.get(block, 0) + 1
    return found


@pytest.mark.parametrize(
    ("mode", "changed", "after"),
    [
        ("", VOLUME, {STONE: VOLUME}),
        (" replace", VOLUME, {STONE: VOLUME}),
        (" replace dirt", 12, {STONE: 12, AIR: VOLUME - 12}),
        (" replace minecraft:air", VOLUME - 12, {STONE: VOLUME - 12, DIRT: 12}),
        (" keep", VOLUME - 12, {STONE: VOLUME - 12, DIRT: 12}),
        # the dirt's lower half is part of the shell, the upper half lies inside
        (" outline", VOLUME - INSIDE, {STONE: VOLUME - INSIDE, DIRT: 6, AIR: INSIDE - 6}),
        (" hollow", VOLUME - INSIDE + 6, {STONE: VOLUME - INSIDE, AIR: INSIDE}),
        (" destroy", VOLUME, {STONE: VOLUME}),
    ],
)
def test_modes(engine, mode, changed, after):
    result = engine.execute(f"/fill {BOX} stone{mode}")
    assert result == (True, f"Successfully filled {changed} blocks", "")
    assert counts(engine) == after
    items = state(engine).items
    dropped = [ITEMS[item].name for item in items.item.tolist()]
    assert dropped == (["dirt"] * 12 if mode == " destroy" else [])


def test_destroy_drops_what_no_tool_is_needed_for_or_any(engine):
    state(engine).world.fill((6, 8), (FLOOR, FLOOR + 2), (6, 9), STONE)
    assert engine.execute(f"/fill {BOX} air destroy").message == "Successfully filled 12 blocks"
    assert counts(engine) == {AIR: VOLUME}
    assert {ITEMS[item].name for item in state(engine).items.item.tolist()} == {"cobblestone"}


def test_thin_boxes_are_all_shell(engine):
    for mode in ("outline", "hollow"):
        state(engine).world.fill((20, 25), (FLOOR, FLOOR + 5), (20, 25), AIR)
        result = engine.execute(f"/fill 20 {FLOOR} 20 24 {FLOOR + 1} 20 stone {mode}")
        assert result.message == "Successfully filled 10 blocks"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"/fill {BOX} dirt 0", "Incorrect argument for command: '0'"),
        (f"/fill {BOX} dirt 0 replace air", "Incorrect argument for command: '0'"),
        (f"/fill {BOX} stone keep air", "Incorrect argument for command: 'air'"),
        (f"/fill {BOX} stone replace air 0", "Incorrect argument for command: '0'"),
        (f"/fill {BOX} stone replace no_block", "Unknown block type 'no_block'"),
        (f"/fill {BOX} stone replace #leaves", "Block tags ('#leaves') are not supported"),
        (f"/fill {BOX} air replace stone", "No blocks were filled"),
        (f"/setblock 6 {FLOOR} 6 stone keep", "Could not set the block"),
        (f"/setblock 6 {FLOOR} 6 stone hollow", "Incorrect argument for command: 'hollow'"),
        (f"/setblock 6 {FLOOR} 6 stone replace air", "Incorrect argument for command: 'air'"),
    ],
)
def test_errors_change_nothing(engine, command, message):
    before = counts(engine)
    result = engine.execute(command)
    assert not result.ok and result.message.startswith(message)
    assert counts(engine) == before


def test_setblock_destroys_and_keeps(engine):
    assert engine.execute(f"/setblock 6 {FLOOR} 6 stone destroy").ok
    assert engine.execute(f"/setblock 7 {FLOOR} 6 air destroy").ok
    assert engine.execute(f"/setblock 5 {FLOOR} 5 stone keep").ok
    world = state(engine).world
    assert [world.block_at(x, FLOOR, z) for x, z in ((6, 6), (7, 6), (5, 5))] == [STONE, AIR, STONE]
    assert state(engine).items.item.tolist() == [BLOCK_ID["dirt"]] * 2
