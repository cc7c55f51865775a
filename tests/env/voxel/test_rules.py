"""Rules of combat, hunger, effects and loot against Minecraft Java 1.16.5's numbers."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.game.loot import drop_loot
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.player import combat
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, STONE
from tests.env.voxel.arena import FLOOR, arena, state, ticks


def charge_of(engine):
    return engine.player.attack_charge


def looking_at(block, item=None):
    """An arena with a block at eye height two columns ahead."""
    engine = arena()
    state(engine).world.set_block(0, FLOOR, 2, STONE)
    state(engine).world.set_block(0, FLOOR + 1, 2, BLOCK_ID[block])
    if item:
        engine.execute(f"/give @p {item}")
    ticks(engine, 40)
    assert charge_of(engine) == 1.0
    return engine


def test_hitting_a_block_empties_the_charge_every_tick():
    engine = looking_at("obsidian", "iron_sword")
    for _ in range(5):
        engine.tick({"attack": 1})
        assert charge_of(engine) == pytest.approx(1.5 * 1.6 / 20)
    ticks(engine, 3)
    assert charge_of(engine) == pytest.approx(4.5 * 1.6 / 20)


def test_placing_and_dropping_empty_the_charge():
    for key in ("use", "drop"):
        engine = looking_at("stone", "dirt 2")
        engine.tick({key: 1})
        assert charge_of(engine) < 0.5, key


def test_the_charge_begins_anew_with_another_item_not_with_another_slot():
    engine = arena()
    engine.player.inventory.set(3, ITEM_ID["dirt"], 5)
    engine.player.inventory.set(4, ITEM_ID["dirt"], 9)
    ticks(engine, 40)
    for slot, starts_anew in ((2, False), (9, False), (4, True), (5, False), (1, True)):
        before = int(state(engine).player.records["attack_ticks"][0])
        engine.tick({f"hotbar.{slot}": 1})
        after = int(state(engine).player.records["attack_ticks"][0])
        assert after == (1 if starts_anew else before + 1), slot
        ticks(engine, 10)


def test_another_item_in_hand_starts_the_mining_anew():
    engine = looking_at("stone", "dirt")
    engine.player.inventory.set(1, ITEM_ID["cobblestone"], 1)
    ticks(engine, 100, attack=1)
    engine.tick({"attack": 1, "hotbar.2": 1})
    ticks(engine, 148, attack=1)
    assert state(engine).world.block_at(0, FLOOR + 1, 2) == STONE
    ticks(engine, 3, attack=1)
    assert state(engine).world.block_at(0, FLOOR + 1, 2) == AIR


def test_no_block_is_placed_while_one_is_mined():
    engine = looking_at("stone", "dirt 5")
    ticks(engine, 10, attack=1, use=1)
    assert engine.player.inventory[0].quantity == 5
    engine.tick({"use": 1})
    assert engine.player.inventory[0].quantity == 4


@pytest.mark.parametrize(
    ("weapon", "damage", "speed", "wear"),
    [("trident", 9.0, 1.1, 1), ("shears", 1.0, 4.0, 0), ("golden_axe", 7.0, 1.0, 2)],
)
def test_weapons(weapon, damage, speed, wear):
    engine = arena()
    engine.execute(f"/give @p {weapon}")
    ticks(engine, 40)
    engine.execute(f"/summon cow 0.5 {FLOOR} 2.5")
    engine.player.pitch = 20.0
    engine.tick({"attack": 1})
    assert state(engine).mobs.health[0] == 10.0 - damage
    assert charge_of(engine) == pytest.approx(1.5 * speed / 20)
    assert engine.info()["equipped_items"]["mainhand"]["damage"] == wear
    assert engine.info()["use_item"] == ({weapon: 1} if wear else {})


def test_haste_and_fatigue_change_the_attack_speed():
    engine = arena()
    engine.execute("/give @p iron_sword")
    for command, factor in (
        ("/effect give @p haste 100 1", 1.2),
        ("/effect give @p mining_fatigue 100 2", 1.2 * 0.7),
        ("/effect clear @p haste", 0.7),
        ("/effect clear @p", 1.0),
    ):
        assert engine.execute(command).ok
        speed = state(engine).player.records["attack_speed"][0]
        assert speed == pytest.approx(1.6 * factor)


def test_effects_that_do_nothing_here_say_so():
    engine = arena()
    assert not engine.execute("/effect give @p haste").lacking
    assert not engine.execute("/effect give @p fire_resistance").lacking
    found = engine.execute("/effect give @p blindness")
    assert found.ok and found.lacking == "the effect blindness changes nothing here"


def test_a_sweep_knocks_back_twice_and_wears_once():
    engine = arena()
    engine.execute("/give @p iron_sword")
    ticks(engine, 40)
    engine.execute(f"/summon cow 0.5 {FLOOR} 2.5")
    engine.execute(f"/summon cow 1.6 {FLOOR} 2.5")
    engine.player.pitch = 20.0
    mobs = state(engine).mobs
    mobs.velocity[:] = 0.0
    mobs.records["on_ground"][:2] = 1
    events, count = state(engine).events, np.zeros(1, np.int64)
    combat.attack(state(engine).player.records[0], mobs.records, 2, 0, events, count)
    # 0.4 along the view (+z), halved by 0.4 away from the player; upwards 0.4 at most
    away = np.array([1.1, 2.0]) / np.hypot(1.1, 2.0) * 0.4
    assert mobs.velocity[1, [0, 2]] == pytest.approx([away[0], 0.2 + away[1]])
    assert mobs.velocity[1, 1] == pytest.approx(0.4)
    assert mobs.velocity[0, [0, 2]] == pytest.approx([0.0, 0.4])
    mobs.velocity[:] = 0.0
    mobs.hurt_ticks[:] = 0
    state(engine).player.records["attack_ticks"] = 100
    engine.tick({"attack": 1})
    assert mobs.health.tolist() == [0.0, 8.0]
    assert engine.info()["equipped_items"]["mainhand"]["damage"] == 1
    assert engine.info()["use_item"] == {"iron_sword": 1}


def test_a_sweep_pushes_what_it_cannot_hurt():
    engine = arena()
    engine.execute("/give @p iron_sword")
    ticks(engine, 40)
    engine.execute(f"/summon cow 0.5 {FLOOR} 2.5")
    engine.execute(f"/summon cow 1.6 {FLOOR} 2.5")
    engine.player.pitch = 20.0
    mobs = state(engine).mobs
    mobs.hurt_ticks[1], mobs.records["last_damage"][1] = 10, 5.0
    engine.tick({"attack": 1})
    assert mobs.health[1] == 10.0
    assert mobs.velocity[1, 2] > 0.1


def test_only_a_hit_that_hurts_exhausts():
    engine = arena()
    engine.execute(f"/summon cow 0.5 {FLOOR} 2.5")
    engine.player.pitch = 20.0
    record = state(engine).player.records
    ticks(engine, 20)
    state(engine).mobs.position[0] = (0.5, FLOOR, 2.5)
    state(engine).mobs.health[0], before = 10.0, float(record["exhaustion"][0])
    engine.tick({"attack": 1})
    once = float(record["exhaustion"][0])
    assert once - before == pytest.approx(0.1)
    engine.tick({})
    state(engine).mobs.position[0] = (0.5, FLOOR, 2.5)
    engine.tick({"attack": 1})  # shielded
    assert record["exhaustion"][0] == once


def test_a_fall_does_not_exhaust():
    engine = arena()
    engine.execute(f"/tp @p 0.5 {FLOOR + 10} 0.5")
    while engine.player.health == 20.0:
        engine.tick({})
    assert engine.player.health == 13.0
    assert state(engine).player.records["exhaustion"][0] == 0.0


def mined(engine, block, item):
    """What one block drops to `item`, by name, and the info after it was mined."""
    engine.player.inventory.clear()
    state(engine).items.clear()
    if item:
        engine.execute(f"/give @p {item}")
    state(engine).world.set_block(0, FLOOR, 2, STONE)
    state(engine).world.set_block(0, FLOOR + 1, 2, BLOCK_ID[block])
    state(engine).player.records["mining_delay"] = 0
    engine.tick({})
    while state(engine).world.block_at(0, FLOOR + 1, 2) != AIR:
        engine.tick({"attack": 1})
    items = state(engine).items
    pairs = zip(items.item.tolist(), items.quantity.tolist(), strict=True)
    return {ITEMS[item].name: quantity for item, quantity in pairs}


def test_only_the_right_tool_makes_a_block_count():
    engine = arena()
    assert mined(engine, "stone", None) == {}
    assert engine.info()["mine_block"] == {}
    assert state(engine).player.records["exhaustion"][0] == 0.0
    assert mined(engine, "stone", "iron_pickaxe") == {"cobblestone": 1}
    assert engine.info()["mine_block"] == {"stone": 1}
    assert engine.info()["use_item"] == {"iron_pickaxe": 1}
    assert state(engine).player.records["exhaustion"][0] == pytest.approx(0.005)


def test_snow_and_shears():
    engine = arena()
    assert mined(engine, "snow_block", "iron_pickaxe") == {}
    assert mined(engine, "snow_block", "iron_shovel") == {"snowball": 4}
    for block in ("oak_leaves", "birch_leaves", "white_wool", "dirt"):
        assert mined(engine, block, "shears") == {block: 1}
    assert engine.info()["equipped_items"]["mainhand"]["damage"] == 1
    assert engine.info()["use_item"] == {"iron_pickaxe": 1, "iron_shovel": 1, "shears": 3}


@pytest.mark.parametrize(
    ("block", "expected", "sticks"),
    [
        ("oak_leaves", {"oak_sapling": 0.05, "apple": 0.005}, 0.02),
        ("birch_leaves", {"birch_sapling": 0.05}, 0.02),
        ("gravel", {"flint": 0.1, "gravel": 0.9}, 0.0),
    ],
)
def test_random_drops_have_their_frequency(block, expected, sticks):
    engine, tries = arena(), 4000
    found, items = {}, state(engine).items
    for _ in range(tries):
        items.clear()
        drop_loot(state(engine), BLOCK_ID[block], None, (0, FLOOR, 0))
        for item, quantity in zip(items.item.tolist(), items.quantity.tolist(), strict=True):
            found.setdefault(ITEMS[item].name, []).append(quantity)
    chances = expected | ({"stick": sticks} if sticks else {})
    assert set(found) <= set(chances)
    for name, chance in chances.items():
        deviation = 4.0 * np.sqrt(tries * chance * (1.0 - chance))
        assert abs(len(found.get(name, [])) - tries * chance) < deviation, name
    assert {*found.get("stick", [1, 2])} == {1, 2}
    assert all(set(found[name]) == {1} for name in found if name != "stick")


def test_the_same_seed_drops_the_same():
    runs = [[mined(engine, "oak_leaves", None) for _ in range(30)] for engine in (arena(), arena())]
    assert runs[0] == runs[1]
    assert any(runs[0])


def test_a_weaker_effect_and_an_equal_one_that_ends_sooner_are_refused():
    engine = arena()
    assert engine.execute("/effect give @p speed 100 1").ok
    for weaker in ("/effect give @p speed 1000 0", "/effect give @p speed 50 1"):
        refused = engine.execute(weaker)
        assert not refused.ok and "something stronger" in refused.message
        assert engine.player.effects["speed"] == (1, 2000)
    assert engine.execute("/effect give @p speed 10 2").ok
    assert engine.player.effects["speed"] == (2, 200)
