"""Fire: how it is lit, ages, eats, spreads and harms; portals in frames of all sizes."""

from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID
from rllib_minestudio.env.voxel.game import fire
from rllib_minestudio.env.voxel.game.placement import beside
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    block_of,
    kind_of,
    properties_of,
)
from rllib_minestudio.env.voxel.world.surfaces import FLAMMABLE
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks

AT = (0, FLOOR, 3)
TRIALS = 10_000
STONE, PLANKS, WOOL, NETHERRACK = (
    BLOCK_ID[name] for name in ("stone", "oak_planks", "white_wool", "netherrack")
)


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    """The stage without anything on it, in dry weather, the player far from the fire."""
    game = state(cleared(stage))
    game.world.fill((-25, 26), (FLOOR, FLOOR + 25), (-25, 26), 0)
    game.world.fill((-25, 26), (FLOOR - 1, FLOOR), (-25, 26), STONE)
    game.block_ticks.clear()
    game.raining = False
    game.difficulty = "easy"
    stage.execute(f"/tp @p 0.5 {FLOOR} -8.5 0 0")
    return stage


def name_at(engine, place):
    return BLOCKS[state(engine).world.kind_at(*place)].name


def age_at(engine, place=AT):
    return int(properties_of(state(engine).world.block_at(*place))["age"])


# --------------------------------------------------------------------------------- lighting it


@pytest.mark.parametrize(("item", "left"), [("flint_and_steel", 1), ("fire_charge", 0)])
def test_it_is_lit_before_the_side_that_is_clicked(engine, item, left):
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 40")
    engine.player.inventory.set(0, ITEM_ID[item], 1)
    ticks(engine, 2)
    before = Counter(state(engine).statistics.copy()["use_item"])[item]
    engine.tick({"use": 1})
    lit = [place for place in state(engine).block_ticks.places(fire.BURN)]
    assert len(lit) == 1 and lit[0][1] == FLOOR and name_at(engine, lit[0]) == "fire"
    stack = engine.player.inventory[0]
    assert (stack.quantity, stack.data) == (left, left)
    assert Counter(state(engine).statistics.copy()["use_item"])[item] == before + 1


def test_it_needs_a_full_side_below_or_something_that_burns_beside_it(engine):
    world = state(engine).world
    high = (5, FLOOR + 5, 5)
    assert not fire.ignite(state(engine), high)
    for side in ("down", "up", "north", "east"):
        world.set_block(*beside(high, side), PLANKS)
        assert fire.ignite(state(engine), high), side
        world.set_block(*high, 0)
        world.set_block(*beside(high, side), 0)
    world.set_block(*AT, STONE)
    assert not fire.ignite(state(engine), AT)


def test_a_hand_puts_it_out(engine):
    engine.execute(f"/tp @p 0.5 {FLOOR} 1.0 0 55")
    fire.set_fire(state(engine), (0, FLOOR, 2), 0)
    ticks(engine, 2)
    ticks(engine, 3, attack=1)
    assert name_at(engine, (0, FLOOR, 2)) == "air"


# --------------------------------------------------------------------------------- burning


def tick_fire(engine, place=AT):
    """One scheduled tick of a fire."""
    fire.burn(state(engine), iter([place]))


def test_ticks_come_each_30_to_39(engine):
    fire.set_fire(state(engine), AT, 0)
    waits = Counter()
    for _ in range(400):
        state(engine).block_ticks.clear()
        fire.begin(state(engine), AT)
        ((_, due, _, _),) = state(engine).block_ticks.scheduled()
        waits[due] += 1
    assert set(waits) == set(range(30, 40))


def test_a_third_of_the_ticks_makes_it_older(engine):
    world = state(engine).world
    world.set_block(*beside(AT, "down"), NETHERRACK)
    older = 0
    for _ in range(TRIALS):
        world.set_block(*AT, block_of(fire.FIRE, {"age": "7"}))
        tick_fire(engine)
        older += age_at(engine) == 8
    assert older / TRIALS == pytest.approx(1 / 3, abs=4 * np.sqrt(2 / 9 / TRIALS))


def test_on_bare_stone_it_goes_out_and_on_netherrack_never(engine):
    for below, burns in ((STONE, False), (NETHERRACK, True)):
        state(engine).world.set_block(*beside(AT, "down"), below)
        fire.set_fire(state(engine), AT, 0)
        ticks(engine, 1200)
        assert (name_at(engine, AT) == "fire") == burns
        assert len(state(engine).block_ticks.places(fire.BURN)) == burns
        state(engine).world.set_block(*AT, 0)
        ticks(engine, 45)


def test_the_rule_doFireTick_keeps_it_as_it_is(engine):
    assert engine.execute("/gamerule doFireTick false").lacking == ""
    state(engine).world.set_block(*beside(AT, "east"), PLANKS)
    fire.set_fire(state(engine), AT, 0)
    ticks(engine, 600)
    assert (name_at(engine, AT), age_at(engine)) == ("fire", 0)
    assert name_at(engine, beside(AT, "east")) == "oak_planks"
    engine.execute("/gamerule doFireTick true")
    ticks(engine, 1200)
    assert name_at(engine, AT) == "air"


def test_rain_puts_it_out_the_sooner_the_older_it_is(engine):
    world = state(engine).world
    state(engine).raining = True
    for age in (0, 10):
        out = 0
        for _ in range(TRIALS):
            world.set_block(*beside(AT, "north"), PLANKS)
            world.set_block(*AT, block_of(fire.FIRE, {"age": str(age)}))
            tick_fire(engine)
            out += name_at(engine, AT) == "air"
        wanted = 0.2 + 0.03 * age
        assert out / TRIALS == pytest.approx(wanted, abs=4 * np.sqrt(wanted / TRIALS))
    assert name_at(engine, beside(AT, "north")) == "oak_planks"


@pytest.mark.parametrize(
    ("block", "side", "share"),
    [
        ("oak_planks", "east", 20 / 300),
        ("white_wool", "up", 60 / 250),
        ("oak_log", "down", 5 / 250),
    ],
)
def test_what_it_eats_goes_with_minecrafts_odds(engine, block, side, share):
    world, place = state(engine).world, beside(AT, side)
    eaten = 0
    for _ in range(TRIALS):
        state(engine).block_ticks.clear()
        world.set_block(*place, BLOCK_ID[block])
        fire._eat(state(engine), place, 250 if side in ("up", "down") else 300, 0)
        eaten += kind_of(world.block_at(*place)) != BLOCK_ID[block]
    assert eaten / TRIALS == pytest.approx(share, abs=4 * np.sqrt(share / TRIALS))


@pytest.mark.parametrize(("difficulty", "add"), [("peaceful", 0), ("hard", 21)])
def test_it_spreads_with_minecrafts_odds(engine, difficulty, add):
    """The place above wool, beside the fire: (30 + 40 + 7 difficulty) // (age + 30) of 100."""
    world = state(engine).world
    state(engine).difficulty = difficulty
    there = (AT[0] + 1, AT[1], AT[2] + 1)
    world.set_block(*beside(there, "down"), WOOL)
    age, spread = 5, 0
    for _ in range(TRIALS):
        state(engine).block_ticks.clear()
        world.fill((-2, 4), (FLOOR, FLOOR + 6), (1, 7), 0)
        fire._spread(state(engine), AT, age)
        spread += name_at(engine, there) == "fire"
    odds = (30 + 40 + add) // (age + 30)
    wanted = (odds + 1) / 100
    assert spread / TRIALS == pytest.approx(wanted, abs=4 * np.sqrt(wanted / TRIALS))


def test_a_hut_burns_down_and_the_fire_ends(engine):
    world = state(engine).world
    world.fill((3, 8), (FLOOR, FLOOR + 4), (3, 8), PLANKS)
    world.fill((4, 7), (FLOOR, FLOOR + 3), (4, 7), 0)
    wood = 5 * 5 * 4 - 27
    for x in range(3, 8):
        fire.set_fire(state(engine), (x, FLOOR, 2), 0)
    for _ in range(300):
        ticks(engine, 100)
        if not state(engine).block_ticks.places(fire.BURN):
            break
    cells = [(x, y, z) for x in range(3, 8) for y in range(FLOOR, FLOOR + 4) for z in range(3, 8)]
    assert sum(world.kind_at(*cell) == PLANKS for cell in cells) < wood / 2
    around = [(x, y, z) for x in range(12) for y in range(FLOOR, FLOOR + 10) for z in range(12)]
    assert not any(world.kind_at(*cell) == fire.FIRE for cell in around)


def test_what_burns_is_what_burns_in_the_game():
    names = {BLOCKS[kind].name for kind in FLAMMABLE}
    assert {"oak_log", "birch_leaves", "red_wool", "red_carpet", "grass", "bookshelf"} <= names
    assert not {"crimson_planks", "warped_slab", "oak_door", "stone", "cobweb", "obsidian"} & names
    assert FLAMMABLE[PLANKS] == (5, 20) and FLAMMABLE[WOOL] == (30, 60)


@pytest.mark.parametrize(
    "command", [f"/setblock 0 {FLOOR} 3 fire", f"/fill 0 {FLOOR} 3 1 {FLOOR} 4 fire"]
)
def test_what_commands_set_burns_out_like_any_other(engine, command):
    assert engine.execute(command).ok
    assert name_at(engine, AT) == "fire"
    assert len(state(engine).block_ticks.places(fire.BURN)) == (4 if "fill" in command else 1)
    ticks(engine, 1200)
    assert name_at(engine, AT) == "air"


def test_in_the_air_and_in_a_frame_commands_do_as_the_game(engine):
    engine.execute(f"/setblock 0 {FLOOR + 5} 3 fire")
    assert name_at(engine, (0, FLOOR + 5, 3)) == "air"
    _, inside = frame(engine, "x", 2, 3)
    engine.execute(f"/setblock 0 {FLOOR} 3 fire")
    assert {name_at(engine, cell) for cell in inside} == {"nether_portal"}


# --------------------------------------------------------------------------------- harm


def test_who_stands_in_it_is_hurt_each_half_second_and_burns_on(engine):
    world = state(engine).world
    world.set_block(0, FLOOR - 1, -8, NETHERRACK)
    engine.execute(f"/tp @p 0.5 {FLOOR} -7.5 0 0")
    engine.player.records["food"] = 10  # nothing heals
    fire.set_fire(state(engine), (0, FLOOR, -8), 0)
    ticks(engine, 10)
    assert engine.player.health == 19.0
    ticks(engine, 15)
    assert engine.player.health == 17.0 and engine.player.fire_ticks > 100
    world.set_block(0, FLOOR, -8, 0)
    state(engine).block_ticks.clear()
    before = engine.player.health
    ticks(engine, 200)
    assert engine.player.fire_ticks <= 0
    assert before - engine.player.health == pytest.approx(8.0, abs=1.0)


def test_fire_resistance_and_rain_spare_one(engine):
    engine.execute("/effect give @p fire_resistance 100")
    engine.player.fire_ticks = 100
    ticks(engine, 60)
    assert engine.player.health == 20.0
    engine.execute("/effect clear @p")
    state(engine).raining = True
    engine.tick({})
    assert engine.player.fire_ticks <= 0 and engine.player.health == 20.0


def test_animals_burn_and_what_burnt_is_roasted(engine):
    state(engine).world.set_block(3, FLOOR - 1, 3, NETHERRACK)
    fire.set_fire(state(engine), (3, FLOOR, 3), 0)
    state(engine).mobs.add(MOB_KIND_ID["cow"], (3.5, float(FLOOR), 3.5), 0.0)
    for _ in range(150):
        if state(engine).mobs.count:
            state(engine).mobs.position[0] = (3.5, FLOOR, 3.5)
        engine.tick({})
    names = {ITEMS[item].name for item in state(engine).items.item.tolist()}
    assert state(engine).mobs.count == 0 and "cooked_beef" in names


def test_a_snapshot_goes_on_burning(engine):
    state(engine).world.fill((2, 6), (FLOOR, FLOOR + 3), (2, 6), PLANKS)
    fire.set_fire(state(engine), (1, FLOOR, 3), 0)
    ticks(engine, 50)
    saved = engine.snapshot()
    ticks(engine, 300)
    later = engine.snapshot()
    engine.restore(saved)
    assert state(engine).block_ticks.places(fire.BURN)
    ticks(engine, 300)
    assert engine.snapshot() == later


# --------------------------------------------------------------------------------- portals


def frame(engine, axis, width, height, corners=False):
    """A frame of obsidian with its inner lower corner at AT; returns its cells and the inside."""
    x, y, z = AT

    def cell(along, up):
        return (x + along, y + up, z) if axis == "x" else (x, y + up, z + along)

    border = [cell(along, up) for along in range(-1, width + 1) for up in range(-1, height + 1)]
    inside = [cell(along, up) for along in range(width) for up in range(height)]
    edge = [place for place in border if place not in inside]
    outer = {cell(along, up) for along in (-1, width) for up in (-1, height)}
    cells = [place for place in edge if corners or place not in outer]
    state(engine).world.set_blocks(dict.fromkeys(cells, fire.OBSIDIAN))
    return cells, inside


@pytest.mark.parametrize("axis", ["x", "z"])
@pytest.mark.parametrize(("width", "height"), [(2, 3), (3, 3), (4, 7), (21, 21), (2, 21)])
def test_a_frame_opens_wherever_it_is_lit(engine, axis, width, height):
    _, inside = frame(engine, axis, width, height)
    world = state(engine).world
    for lit in (inside[0], inside[-1], inside[len(inside) // 2]):
        assert fire.ignite(state(engine), lit)
        assert all(
            world.block_at(*cell) == block_of(fire.PORTAL, {"axis": axis}) for cell in inside
        )
        world.set_blocks(dict.fromkeys(inside, 0))


@pytest.mark.parametrize(("width", "height"), [(1, 3), (2, 2), (22, 3), (3, 22)])
def test_frames_that_are_too_small_or_too_large_do_not(engine, width, height):
    _, inside = frame(engine, "x", width, height)
    assert not fire.open_portal(state(engine), inside[0])


def test_a_frame_with_a_gap_does_not(engine):
    cells, inside = frame(engine, "x", 2, 3)
    for missing in cells:
        state(engine).world.set_block(*missing, STONE)
        assert not fire.open_portal(state(engine), inside[0]), missing
        state(engine).world.set_block(*missing, fire.OBSIDIAN)
    assert fire.open_portal(state(engine), inside[0])


def test_it_closes_when_its_frame_breaks(engine):
    cells, inside = frame(engine, "x", 2, 3)
    assert fire.open_portal(state(engine), inside[0])
    ticks(engine, 5)
    assert name_at(engine, inside[0]) == "nether_portal"
    state(engine).world.set_block(*cells[0], 0)
    ticks(engine, 20)
    assert {name_at(engine, cell) for cell in inside} == {"air"}


def test_one_walks_through_it_and_is_told_once(engine, caplog):
    _, inside = frame(engine, "x", 2, 3)
    assert fire.open_portal(state(engine), inside[0])
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 0")
    fire.log_missing_nether.cache_clear()
    engine.tick({})
    assert not caplog.messages
    ticks(engine, 30, forward=1)
    assert engine.player.position[2] > AT[2] + 1.5
    assert caplog.messages == [
        "A player walks into a portal and stays in this world: the embedded engine has no Nether."
    ]
