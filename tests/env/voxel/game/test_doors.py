"""Doors, gates and trapdoors by hand; levers and buttons; bodies beside shapes."""

import pytest

from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, kind_of, properties_of
from tests.env.voxel.arena import FLOOR, arena, state, ticks


@pytest.fixture(scope="module")
def engine():
    return arena()


@pytest.fixture
def stage(engine):
    """The arena without what the last test built; the player looks straight ahead, to the south."""
    state(engine).world.fill((-8, 9), (FLOOR, FLOOR + 5), (-8, 9), 0)
    engine.player.inventory.clear()
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 0")
    ticks(engine, 6)
    return engine


def put(engine, text):
    assert engine.execute(f"/setblock {text}").ok


def open_at(engine, *place):
    return properties_of(state(engine).world.block_at(*place))["open"] == "true"


def use(engine):
    engine.tick({"use": 1})
    ticks(engine, 4)


def test_both_halves_of_a_door_open_and_close(stage):
    for half, y in (("lower", FLOOR), ("upper", FLOOR + 1)):
        put(stage, f"0 {y} 2 oak_door[facing=south,half={half}]")
    use(stage)
    assert open_at(stage, 0, FLOOR, 2) and open_at(stage, 0, FLOOR + 1, 2)
    ticks(stage, 30, forward=1)
    assert stage.player.position[2] > 3.0  # the way is free
    stage.execute(f"/tp @p 0.1 {FLOOR} 1.3 -30 0")
    ticks(stage, 2)
    use(stage)  # the open door stands along the side of its cell
    assert not open_at(stage, 0, FLOOR, 2) and not open_at(stage, 0, FLOOR + 1, 2)


def test_an_iron_door_is_opened_by_a_lever_and_closed_by_it(stage):
    for half, y in (("lower", FLOOR), ("upper", FLOOR + 1)):
        put(stage, f"0 {y} 2 iron_door[facing=south,half={half}]")
    use(stage)
    assert not open_at(stage, 0, FLOOR, 2)
    put(stage, f"1 {FLOOR + 1} 2 stone")
    put(stage, f"1 {FLOOR + 1} 1 lever[face=wall,facing=north]")
    stage.execute(f"/tp @p 1.5 {FLOOR} -0.5 0 0")
    ticks(stage, 2)
    use(stage)
    assert open_at(stage, 0, FLOOR, 2) and open_at(stage, 0, FLOOR + 1, 2)
    use(stage)
    assert not open_at(stage, 0, FLOOR, 2)


@pytest.mark.parametrize(("button", "pressed"), [("stone_button", 20), ("oak_button", 30)])
def test_a_button_opens_for_its_time(stage, button, pressed):
    put(stage, f"0 {FLOOR + 1} 3 iron_trapdoor")
    put(stage, f"1 {FLOOR + 1} 3 stone")
    put(stage, f"1 {FLOOR + 1} 2 {button}[face=wall,facing=north]")
    stage.execute(f"/tp @p 1.5 {FLOOR} 0.5 0 0")
    ticks(stage, 2)
    stage.tick({"use": 1})
    for _ in range(pressed - 1):
        assert open_at(stage, 0, FLOOR + 1, 3)
        stage.tick({})
    ticks(stage, 2)
    assert not open_at(stage, 0, FLOOR + 1, 3)
    assert properties_of(state(stage).world.block_at(1, FLOOR + 1, 2))["powered"] == "false"


def test_a_gate_swings_away_from_the_player(stage):
    put(stage, f"0 {FLOOR + 1} 2 oak_fence_gate[facing=north]")
    use(stage)
    block = properties_of(state(stage).world.block_at(0, FLOOR + 1, 2))
    assert (block["open"], block["facing"]) == ("true", "south")


def test_food_is_not_eaten_in_front_of_a_button(stage):
    put(stage, f"0 {FLOOR + 1} 3 stone")
    put(stage, f"0 {FLOOR + 1} 2 stone_button[face=wall,facing=north]")
    stage.execute("/give @p cooked_beef")
    stage.player.records["food"] = 10
    ticks(stage, 40, use=1)
    assert stage.player.food == 10


@pytest.mark.parametrize(("item", "placed"), [("torch", True), ("stone", False), ("ladder", False)])
def test_what_has_no_body_is_put_where_the_player_stands(stage, item, placed):
    stage.execute(f"/give @p {item}")
    stage.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 90")
    ticks(stage, 2)
    use(stage)
    found = kind_of(state(stage).world.block_at(0, FLOOR, 0))
    assert found == (BLOCK_ID[item] if placed else 0)
