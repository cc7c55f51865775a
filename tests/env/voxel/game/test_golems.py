"""Golems: what they are built of, and what snow golems leave and suffer."""

from itertools import permutations

import pytest

from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID, MOB_KINDS
from rllib_minestudio.env.voxel.game import husbandry
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks

SNOW, IRON, PUMPKIN, LANTERN = (
    BLOCK_ID[name] for name in ("snow_block", "iron_block", "carved_pumpkin", "jack_o_lantern")
)
X, Y, Z = 0, FLOOR, 3
IRON_BODY = ((0, 0), (0, 1), (-1, 1), (1, 1))
"""Where an iron golem's blocks are: along an axis, and up."""


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    """The stage without anything on it."""
    return cleared(stage)


def names(engine):
    return [MOB_KINDS[kind].name for kind in state(engine).mobs.kind.tolist()]


def is_empty(engine):
    box = range(-2, 3)
    return not any(
        state(engine).world.block_at(X + i, Y + j, Z + k)
        for i in box
        for j in range(4)
        for k in box
    )


@pytest.mark.parametrize("face", [PUMPKIN, LANTERN])
def test_two_blocks_of_snow_and_a_face_come_to_life(engine, face):
    for up in (0, 1):
        state(engine).world.set_block(X, Y + up, Z, SNOW)
    state(engine).world.set_block(X, Y + 2, Z, face)
    assert husbandry.come_to_life(state(engine), (X, Y + 2, Z))
    assert names(engine) == ["snow_golem"] and is_empty(engine)
    assert state(engine).mobs.position[0].tolist() == [X + 0.5, Y + 0.05, Z + 0.5]
    assert not state(engine).items.count


@pytest.mark.parametrize("axis", ["x", "z"])
def test_a_t_of_iron_comes_to_life_along_either_axis(engine, axis):
    world = state(engine).world
    for along, up in IRON_BODY:
        world.set_block(*at(axis, along, up), IRON)
    world.set_block(*at(axis, 0, 2), PUMPKIN)
    assert husbandry.come_to_life(state(engine), (X, Y + 2, Z))
    assert names(engine) == ["iron_golem"] and is_empty(engine)


def at(axis, along, up):
    return (X + along, Y + up, Z) if axis == "x" else (X, Y + up, Z + along)


@pytest.mark.parametrize("missing", IRON_BODY)
def test_a_t_without_a_block_does_not(engine, missing):
    world = state(engine).world
    for along, up in IRON_BODY:
        if (along, up) != missing:
            world.set_block(*at("x", along, up), IRON)
    world.set_block(X, Y + 2, Z, PUMPKIN)
    assert not husbandry.come_to_life(state(engine), (X, Y + 2, Z)) and not names(engine)


@pytest.mark.parametrize("filled", [(-1, 0), (1, 0), (-1, 2), (1, 2)])
def test_nor_does_one_with_something_beside_its_feet_or_head(engine, filled):
    world = state(engine).world
    for along, up in IRON_BODY:
        world.set_block(*at("x", along, up), IRON)
    world.set_block(*at("x", *filled), BLOCK_ID["dirt"])
    world.set_block(X, Y + 2, Z, PUMPKIN)
    assert not husbandry.come_to_life(state(engine), (X, Y + 2, Z))


def test_the_pumpkin_comes_last(engine):
    """Blocks that are put below a pumpkin which is there already stay what they are."""
    for order in permutations(range(3)):
        state(engine).mobs.clear()
        engine.execute("/fill 0 100 3 0 102 3 air")
        for part in order:
            block = "carved_pumpkin" if part == 2 else "snow_block"
            assert engine.execute(f"/setblock {X} {Y + part} {Z} {block}").ok
        assert bool(names(engine)) == (order[-1] == 2)


def test_players_place_and_carve_them(engine):
    world = state(engine).world
    for item, face in (("carved_pumpkin", None), ("shears", "pumpkin")):
        state(engine).mobs.clear()
        for up in (0, 1):
            world.set_block(X, Y - 1 + up, Z - 1, SNOW)
        if face:
            world.set_block(X, Y + 1, Z - 1, BLOCK_ID[face])
        engine.player.inventory.clear()
        engine.player.inventory.set(0, ITEM_ID[item], 1)
        engine.player.pitch = 10.0 if face else 20.0
        ticks(engine, 6)
        engine.tick({"use": 1})
        assert names(engine) == ["snow_golem"], item
        world.set_block(X, Y - 1, Z - 1, BLOCK_ID["stone"])
        world.fill((-3, 4), (FLOOR, FLOOR + 5), (-3, 4), 0)


@pytest.mark.parametrize(
    ("temperature", "snows", "melts"),
    [(0.79, True, False), (0.8, False, False), (1.01, False, True)],
)
def test_snow_golems_leave_snow_where_it_is_cold_and_melt_where_it_is_hot(
    engine, monkeypatch, temperature, snows, melts
):
    monkeypatch.setattr(
        husbandry, "_TEMPERATURE", dict.fromkeys(husbandry._TEMPERATURE, temperature)
    )
    state(engine).mobs.add(MOB_KIND_ID["snow_golem"], (3.5, float(FLOOR), 3.5), 0.0)
    ticks(engine, 25)
    cells = [state(engine).world.kind_at(x, FLOOR, z) for x in range(1, 7) for z in range(1, 7)]
    assert (BLOCK_ID["snow"] in cells) == snows
    assert (state(engine).mobs.health[0] < 4.0) == melts
    ticks(engine, 60)
    assert (state(engine).mobs.count == 0) == melts


@pytest.mark.parametrize(
    ("mob", "drops"), [("snow_golem", {"snowball"}), ("iron_golem", {"iron_ingot", "poppy"})]
)
def test_they_drop_what_minecrafts_do_and_yield_no_experience(engine, monkeypatch, mob, drops):
    # A climate that neither melts a snow golem nor lets it leave snow.
    monkeypatch.setattr(husbandry, "_TEMPERATURE", dict.fromkeys(husbandry._TEMPERATURE, 0.8))
    found, experience = set(), engine.player.experience
    engine.player.inventory.set(0, ITEM_ID["diamond_sword"], 1)
    for _ in range(12):
        state(engine).mobs.clear()
        state(engine).mobs.add(MOB_KIND_ID[mob], (0.5, float(FLOOR), 2.5), 0.0)
        state(engine).mobs.health[:] = 0.5
        engine.tick({})
        engine.tick({"attack": 1})
        ticks(engine, 14)
        found |= {ITEMS[item].name for item in state(engine).items.item.tolist()}
        state(engine).items.clear()
    assert state(engine).statistics.copy()["kill_entity"][mob] == 12
    assert found == drops and engine.player.experience == experience
