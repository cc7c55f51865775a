"""What enchantments and potions do, from the command that gives them on."""

from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.entities.records import MOB_KIND_ID
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS, enchantments_of, wear_of
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, cleared, state, ticks


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    """The stage without anything on it."""
    return cleared(stage, pitch=10.0)


def give(engine, item, *enchantments, **tags):
    levels = ",".join(f'{{id:"minecraft:{name}",lvl:{level}}}' for name, level in enchantments)
    data = [f"Enchantments:[{levels}]"] if levels else []
    data += [f"{tag}:{value}" for tag, value in tags.items()]
    return engine.execute(f"/give @p minecraft:{item}{{{','.join(data)}}}")


def mine(engine, block):
    """Ticks until a block ahead is mined, and what it drops."""
    state(engine).items.clear()
    state(engine).world.set_block(0, FLOOR + 1, 2, BLOCK_ID[block])
    ticks(engine, 8)
    count = 0
    while state(engine).world.block_at(0, FLOOR + 1, 2):
        engine.tick({"attack": 1})
        count += 1
        assert count < 2000
    ticks(engine, 3)
    return count, {ITEMS[item].name for item in state(engine).items.item.tolist()}


@pytest.mark.parametrize(
    ("tool", "block", "plain", "silk"),
    [
        ("diamond_shovel", "grass_block", "dirt", "grass_block"),
        ("diamond_pickaxe", "stone", "cobblestone", "stone"),
        ("diamond_pickaxe", "coal_ore", "coal", "coal_ore"),
        ("diamond_pickaxe", "glass", None, "glass"),
        ("diamond_pickaxe", "iron_ore", "iron_ore", "iron_ore"),
    ],
)
def test_silk_touch_takes_blocks_as_they_are(engine, tool, block, plain, silk):
    assert give(engine, tool).ok
    assert mine(engine, block)[1] == ({plain} if plain else set())
    engine.player.inventory.clear()
    assert give(engine, tool, ("silk_touch", 1)).ok
    assert mine(engine, block)[1] == {silk}


def test_efficiency_adds_its_square_and_one_to_the_speed(engine):
    """Ticks per block are 30 hardness / speed, rounded up; a diamond pickaxe's speed is 8."""
    for level in range(6):
        engine.player.inventory.clear()
        give(engine, "diamond_pickaxe", *((("efficiency", level),) if level else ()))
        speed = 8.0 + (level**2 + 1 if level else 0)
        took, _ = mine(engine, "obsidian")
        assert took == pytest.approx(50.0 * 30.0 / speed, abs=7.0)
    engine.player.inventory.clear()
    give(engine, "diamond_pickaxe", ("efficiency", 5))
    slow, _ = mine(engine, "dirt")  # not what it is for
    assert slow == pytest.approx(15, abs=7)


@pytest.mark.parametrize(("level", "bonus"), [(0, 0.0), (1, 1.0), (3, 2.0), (5, 3.0)])
def test_sharpness_adds_half_a_point_a_level_and_half_a_point(engine, level, bonus):
    give(engine, "iron_sword", *((("sharpness", level),) if level else ()))
    state(engine).mobs.add(MOB_KIND_ID["iron_golem"], (0.5, float(FLOOR), 2.5), 0.0)
    ticks(engine, 40)
    state(engine).mobs.position[0] = (0.5, FLOOR, 2.5)
    engine.tick({})
    engine.tick({"attack": 1})
    assert 100.0 - state(engine).mobs.health[0] == pytest.approx(6.0 + bonus)


def test_unbreaking_spares_all_but_one_use_in_so_many(engine):
    for level in (1, 3):
        worn = 0
        for _ in range(10):
            engine.player.inventory.clear()
            give(engine, "diamond_pickaxe", ("unbreaking", level))
            for _ in range(1000):
                state(engine).wear_tool(1)
            worn += wear_of(engine.player.inventory[0].data)
        assert worn / 10_000 == pytest.approx(1 / (level + 1), abs=0.02)


def test_an_enchanted_item_stays_itself_through_hands_and_chests(engine):
    give(engine, "diamond_sword", ("sharpness", 4), Damage=7)
    before = engine.player.inventory[0]
    engine.player.pitch = -20.0
    engine.tick({"drop": 1})
    assert engine.player.inventory[0].quantity == 0
    engine.player.pitch = 60.0
    ticks(engine, 45)
    for _ in range(80):
        engine.tick({"forward": 1})
    assert before in engine.player.inventory.stacks()
    saved = engine.snapshot()
    engine.player.inventory.clear()
    engine.restore(saved)
    assert before in engine.player.inventory.stacks()


def test_commands_say_what_they_cannot_give(engine):
    said = give(engine, "diamond_sword", ("efficiency", 3), ("sharpness", 9))
    assert said.ok and "efficiency is ignored" in str(said)
    assert engine.player.inventory[0].data
    assert "mending has no effect here" in str(give(engine, "diamond_sword", ("mending", 1)))
    assert "Did you mean" in str(give(engine, "diamond_sword", ("sharpnes", 1)))
    assert "whole number from 1; got 0" in str(give(engine, "diamond_sword", ("sharpness", 0)))
    broken = engine.execute("/give @p diamond_sword{Enchantments:[}")
    assert not broken.ok and "NBT" in str(broken)


# ------------------------------------------------------------------------------------------ potions


def drink(engine, kind, health=20.0):
    engine.player.inventory.clear()
    assert give(engine, "potion", Potion=f'"minecraft:{kind}"').ok
    engine.player.health = health
    ticks(engine, 3)
    ticks(engine, 33, use=1)
    assert ITEMS[engine.player.held_item].name == "glass_bottle"


def test_potions_are_drunk_in_a_second_and_a_half(engine):
    before = Counter(state(engine).statistics.copy()["use_item"])["potion"]
    give(engine, "potion", Potion='"swiftness"')
    ticks(engine, 31, use=1)
    assert not engine.player.effects
    ticks(engine, 2, use=1)
    amplifier, left = engine.player.effects["speed"]
    assert amplifier == 0 and 3590 <= left <= 3600
    assert Counter(state(engine).statistics.copy()["use_item"])["potion"] == before + 1


def test_harming_hurts_and_healing_heals(engine):
    taken = Counter(state(engine).statistics.copy()["custom"])["damage_taken"]
    drink(engine, "harming")
    assert engine.player.health == pytest.approx(14.0)
    now = Counter(state(engine).statistics.copy()["custom"])["damage_taken"]
    assert now == taken + 60 and engine.player.hurt_ticks
    drink(engine, "healing", health=10.0)
    assert engine.player.health >= 14.0
    give(engine, "potion", Potion='"strong_harming"')
    engine.player.selected = 1
    engine.player.health = 8.0
    ticks(engine, 36, use=1)
    assert engine.player_dead
    state(engine).player_dead = False


@pytest.mark.parametrize(("kind", "period"), [("poison", 25), ("strong_poison", 12)])
def test_poison_takes_a_point_now_and_then_and_never_the_last(engine, kind, period):
    drink(engine, kind)
    engine.player.records["food"] = 10  # nothing heals
    before, lost = engine.player.health, []
    for tick in range(130):
        engine.tick({})
        if engine.player.health < before:
            lost.append(tick)
            before = engine.player.health
    assert set(np.diff(lost).tolist()) == {period}
    engine.player.health = 1.0
    ticks(engine, 60)
    assert engine.player.health == 1.0


@pytest.mark.parametrize(
    ("kind", "effect", "amplifier", "duration"),
    [
        ("strength", "strength", 0, 3600),
        ("long_regeneration", "regeneration", 0, 1800),
        ("strong_leaping", "jump_boost", 1, 1800),
        ("slowness", "slowness", 0, 1800),
        ("weakness", "weakness", 0, 1800),
        ("night_vision", "night_vision", 0, 3600),
        ("fire_resistance", "fire_resistance", 0, 3600),
        ("invisibility", "invisibility", 0, 3600),
    ],
)
def test_lasting_potions_have_minecrafts_durations(engine, kind, effect, amplifier, duration):
    drink(engine, kind)
    level, left = engine.player.effects[effect]
    assert level == amplifier and duration - 8 <= left <= duration


def test_a_command_that_harms_counts_at_once(engine):
    taken = Counter(state(engine).statistics.copy()["custom"])["damage_taken"]
    engine.execute("/effect give @p instant_damage 1")
    now = Counter(state(engine).statistics.copy()["custom"])["damage_taken"]
    assert now == taken + 60 and state(engine).event_count[0] == 0


def test_a_bottle_of_water_does_nothing(engine):
    engine.execute("/give @p potion")
    ticks(engine, 33, use=1)
    assert not engine.player.effects and engine.player.held_item == ITEM_ID["glass_bottle"]


def test_the_command_enchants_what_is_held_within_the_games_rules(engine):
    def enchant(words):
        return engine.execute(f"/enchant @p {words}")

    engine.player.inventory.clear()
    assert enchant("sharpness 2").message == "Player is not holding any item"
    give(engine, "diamond_sword", Damage=7)
    assert enchant("sharpness 5") == (
        True,
        "Applied enchantment Sharpness of level 5 to Player's item",
        "",
    )
    assert enchant("mending").lacking == "mending has no effect here"
    stack = engine.player.inventory[0]
    assert enchantments_of(stack.item, stack.data) == {"sharpness": 5, "mending": 1}
    assert wear_of(stack.data) == 7
    for words in (
        "smite",
        "sharpness 3",
        "efficiency",
        "fire_aspect 3",
        "fire_aspect -1",
        "swiftness",
    ):
        assert not enchant(words).ok, words
    assert engine.player.inventory[0] == stack
