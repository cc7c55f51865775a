"""/setblock and /fill with block states, and their errors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    Shape,
    block_of,
    states_of,
)
from tests.env.voxel.arena import FLOOR, arena, state

CELL = (5, FLOOR, 5)
PLACE = f"5 {FLOOR} 5"
WITH_STATES = [
    kind
    for kind, family in enumerate(FAMILY_OF)
    if family.name and BLOCKS[kind].shape is not Shape.REFUSED
]


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    state(stage).world.fill((5, 9), (FLOOR, FLOOR + 2), (5, 9), AIR)
    return stage


def block(name, **properties):
    return block_of(BLOCK_ID[name], properties)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("furnace", block("furnace")),
        ("minecraft:furnace[facing=east]", block("furnace", facing="east")),
        ("furnace[ facing = west , lit = true ]", block("furnace", facing="west", lit="true")),
        ('oak_log[axis="x"]', block("oak_log", axis="x")),
        ("oak_log[]", block("oak_log")),
        ("OAK_STAIRS[Half=Top]", block("oak_stairs", half="top")),
        ("oak_slab[type=double,waterlogged=false]", block("oak_slab", type="double")),
        ("chest[facing=south]{Items:[{Slot:0b}]}", block("chest", facing="south")),
        ("chest{Lock:[facing]}", block("chest")),
    ],
)
def test_setblock_takes_states(engine, word, expected):
    assert engine.execute(f"/setblock {PLACE} {word}").ok
    assert state(engine).world.block_at(*CELL) == expected


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "furnace[half=top]",
            "Block minecraft:furnace does not have property 'half' (only facing, lit)",
        ),
        ("stone[facing=east]", "Block minecraft:stone does not have property 'facing' (none)"),
        (
            "furnace[facing=up]",
            "Block minecraft:furnace does not accept 'up' for facing property"
            " (only north, south, west, east)",
        ),
        (
            "snow[layers=9]",
            "Block minecraft:snow does not accept '9' for layers property (only 1 to 8)",
        ),
        (
            "furnace[facing=east,facing=west]",
            "Property 'facing' can only be set once for block minecraft:furnace",
        ),
        ("furnace[facing]", "Expected value for property 'facing' on block minecraft:furnace"),
        ("furnace[facing=east", "Expected closing ] for block state properties"),
        (
            "oak_slab[waterlogged=true]",
            "Unable to put minecraft:oak_slab with waterlogged=true: here it is always false",
        ),
        (
            "oak_door[half=top,hinge=middle]",
            "Block minecraft:oak_door does not accept 'top' for half property (only lower, upper);"
            " Block minecraft:oak_door does not accept 'middle' for hinge property"
            " (only left, right)",
        ),
    ],
)
def test_states_that_do_not_exist_are_refused_in_one_message(engine, word, message):
    assert engine.execute(f"/setblock {PLACE} {word}") == (False, message, "")
    assert state(engine).world.block_at(*CELL) == AIR


def test_what_follows_from_the_blocks_around_is_accepted_and_said(engine):
    result = engine.execute(f"/setblock {PLACE} oak_fence[north=true]")
    assert result.ok
    assert result.lacking == "north follows from the blocks around it"
    result = engine.execute(f"/fill {PLACE} {PLACE} stone replace oak_fence[north=true]")
    assert not result.ok and "Unable to look for north of oak_fence" in result.message


def test_fill_replaces_a_kind_or_some_of_its_states(engine):
    world = state(engine).world
    logs = {(5, axis): i for i, axis in enumerate("xyz")}
    for (x, axis), z in logs.items():
        world.set_block(x, FLOOR, 5 + z, block("oak_log", axis=axis))
    box = f"5 {FLOOR} 5 5 {FLOOR} 8"
    result = engine.execute(f"/fill {box} stone replace oak_log[axis=y]")
    assert result.message == "Successfully filled 1 blocks"
    assert world.kind_at(5, FLOOR, 6) == BLOCK_ID["stone"]
    result = engine.execute(f"/fill {box} oak_log[axis=z] replace oak_log")
    assert result.message == "Successfully filled 2 blocks"
    assert world.block_at(5, FLOOR, 5) == block("oak_log", axis="z")
    assert engine.execute(f"/fill {box} stone replace oak_log[axis=x]").message == (
        "No blocks were filled"
    )
    # Putting a block in another state is a change, putting it in the same is none.
    assert engine.execute(f"/setblock 5 {FLOOR} 5 oak_log[axis=y]").ok
    assert not engine.execute(f"/setblock 5 {FLOOR} 5 oak_log[axis=y]").ok


def test_names_have_no_states(engine):
    engine.execute(f"/setblock {PLACE} oak_door[half=upper,open=true]")
    assert engine.survey.block_name(*CELL) == "oak_door"
    assert engine.survey.box(CELL, CELL).block_ids() == BLOCK_ID["oak_door"]
    x, y, z = (int(v // 1) for v in engine.player.position.tolist())
    box = (5 - x, 5 - x, FLOOR - y, FLOOR - y, 5 - z, 5 - z)
    assert engine.blocks_within(box) == [{"type": "oak_door", "x": 5, "y": FLOOR, "z": 5}]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_state_can_be_put_and_looked_for(stage, data):
    kind = data.draw(st.sampled_from(WITH_STATES))
    value = data.draw(st.sampled_from(list(states_of(kind))))
    family = FAMILY_OF[kind]
    properties = family.properties(value >> 10)
    pairs = data.draw(st.permutations(list(properties.items())))
    words = [f"{key}={found}" for key, found in pairs]
    word = f"{BLOCKS[kind].name}[{','.join(words)}]"
    world = state(stage).world
    world.set_block(*CELL, AIR)
    result = stage.execute(f"/setblock {PLACE} {word}")
    assert result.ok and world.block_at(*CELL) == value, word
    assert stage.execute(f"/fill {PLACE} {PLACE} bedrock replace {word}").ok
    assert world.block_at(*CELL) == BLOCK_ID["bedrock"]


@settings(max_examples=60, deadline=None)
@given(states=st.text('[]{}=," abfcing12:#', max_size=20))
def test_no_text_after_a_name_breaks_the_command(stage, states):
    result = stage.execute(f"/setblock {PLACE} furnace{states}")
    assert isinstance(result.message, str) and len(result.message) <= 300
