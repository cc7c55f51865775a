"""Eating against Minecraft Java 1.16.5's table of foods and its rules of the use key."""

import pytest

from rllib_minestudio.env.voxel.items.items import FOOD, ITEM_ID, ITEMS
from tests.env.voxel.arena import FLOOR, arena, state, ticks

TABLE = {  # points, saturation (minecraft.wiki/w/Food)
    "apple": (4, 2.4), "beef": (3, 1.8), "bread": (5, 6.0), "carrot": (3, 3.6),
    "cooked_beef": (8, 12.8), "cooked_mutton": (6, 9.6), "cooked_porkchop": (8, 12.8),
    "dried_kelp": (1, 0.6), "enchanted_golden_apple": (4, 9.6), "golden_apple": (4, 9.6),
    "mutton": (2, 1.2), "porkchop": (3, 1.8),
    "baked_potato": (5, 6.0), "beetroot": (1, 1.2), "beetroot_soup": (6, 7.2),
    "chicken": (2, 1.2), "chorus_fruit": (4, 2.4), "cod": (2, 0.4), "cooked_chicken": (6, 7.2),
    "cooked_cod": (5, 6.0), "cooked_rabbit": (5, 6.0), "cooked_salmon": (6, 9.6),
    "cookie": (2, 0.4), "golden_carrot": (6, 14.4), "honey_bottle": (6, 1.2),
    "melon_slice": (2, 1.2), "mushroom_stew": (6, 7.2), "poisonous_potato": (2, 1.2),
    "potato": (1, 0.6), "pufferfish": (1, 0.2), "pumpkin_pie": (8, 4.8), "rabbit": (3, 1.8),
    "rabbit_stew": (10, 12.0), "rotten_flesh": (4, 0.8), "salmon": (2, 0.4),
    "spider_eye": (2, 3.2), "suspicious_stew": (6, 7.2), "sweet_berries": (2, 0.4),
    "tropical_fish": (1, 0.2),
}  # fmt: skip


def hungry(item, food=6, saturation=0.0, engine=None):
    engine = engine or arena()
    engine.player.inventory.clear()
    engine.execute("/effect clear @p")  # what a food before it may have brought: hunger
    engine.execute(f"/give @p {item} 3")
    engine.tick({})
    record = state(engine).player.records
    record["food"], record["saturation"], record["exhaustion"] = food, saturation, 0.0
    return engine, record


def test_every_food_is_in_the_table():
    drinks = {"milk_bucket", "potion"}
    assert {ITEMS[item].name for item in FOOD} - drinks == set(TABLE)


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.mark.parametrize("item", TABLE)
def test_nutrition_saturation_and_time(stage, item):
    engine, record = hungry(item, engine=stage)
    points, saturation = TABLE[item]
    for _ in range({"dried_kelp": 16, "honey_bottle": 40}.get(item, 32) - 1):
        engine.tick({"use": 1})
        assert engine.player.food == 6
    engine.tick({"use": 1})
    assert engine.player.food == 6 + points
    assert record["saturation"][0] == pytest.approx(min(saturation, 6 + points))
    assert engine.info()["use_item"][item] == 1
    stacked = ITEMS[ITEM_ID[item]].max_stack > 1
    assert engine.player.inventory[0].quantity == (2 if stacked else 1)
    assert state(engine).items.count == 0


def test_food_and_saturation_have_their_bounds():
    engine, record = hungry("cooked_beef", food=15)
    ticks(engine, 32, use=1)
    assert engine.player.food == 20
    assert record["saturation"][0] == pytest.approx(12.8)
    record["food"], record["saturation"] = 19, 18.0
    ticks(engine, 32, use=1)
    assert (engine.player.food, record["saturation"][0]) == (20, 20.0)


def test_with_full_hunger_only_golden_apples_are_eaten():
    for item, eaten in (("bread", False), ("golden_apple", True)):
        engine, _ = hungry(item, food=20, saturation=5.0)
        ticks(engine, 40, use=1)
        assert engine.info()["use_item"] == ({item: 1} if eaten else {})


def test_the_held_key_eats_one_after_the_other():
    engine, _ = hungry("dried_kelp")
    ticks(engine, 16 * 3, use=1)
    assert engine.player.food == 9
    assert engine.info()["inventory"][0]["type"] == "none"


def test_letting_go_or_changing_the_item_ends_the_meal():
    engine, _ = hungry("bread")
    engine.player.inventory.set(1, ITEM_ID["apple"], 1)
    engine.player.inventory.set(2, ITEM_ID["apple"], 1)
    ticks(engine, 31, use=1)
    engine.tick({})
    ticks(engine, 31, use=1)
    engine.tick({"use": 1, "hotbar.2": 1})
    assert engine.player.food == 6
    ticks(engine, 20, use=1)
    engine.tick({"use": 1, "hotbar.3": 1})  # an apple again: the meal goes on
    ticks(engine, 9, use=1)
    assert engine.player.food == 6
    ticks(engine, 2, use=1)
    assert engine.player.food == 10


def test_eating_slows_down_and_starts_no_sprint():
    engine, _ = hungry("bread")
    start = engine.player.position[2]
    ticks(engine, 32, use=1, forward=1, sprint=1)
    assert not engine.player.sprinting
    walked = engine.player.position[2] - start
    engine, _ = hungry("bread")
    start = engine.player.position[2]
    ticks(engine, 32, forward=1)
    assert walked == pytest.approx(0.2 * (engine.player.position[2] - start), rel=0.02)


def test_while_eating_the_attack_key_does_nothing():
    engine, _ = hungry("bread")
    engine.execute(f"/summon cow 0.5 {FLOOR} 2.5")
    engine.player.pitch = 20.0
    engine.tick({"use": 1})
    for _ in range(10):
        state(engine).mobs.position[0] = (0.5, FLOOR, 2.5)
        engine.tick({"use": 1, "attack": 1})
        engine.tick({"use": 1})
    assert state(engine).mobs.health[0] == 10.0
    ticks(engine, 11, use=1)
    assert engine.player.food == 11


def test_nothing_is_eaten_while_mining():
    engine, _ = hungry("bread")
    state(engine).world.set_block(0, FLOOR + 1, 2, 1)
    ticks(engine, 60, use=1, attack=1)
    assert engine.player.food == 6
    assert state(engine).player.records["mining_progress"][0] > 0.3


def test_golden_apples_give_what_acts_and_name_what_does_not():
    engine, _ = hungry("golden_apple")
    ticks(engine, 32, use=1)
    assert engine.player.effects == {"regeneration": (1, 100), "absorption": (0, 2400)}
    engine, _ = hungry("enchanted_golden_apple")
    ticks(engine, 32, use=1)
    assert engine.player.effects["resistance"] == (0, 6000)
    for name in ("golden_apple", "enchanted_golden_apple"):
        given = engine.execute(f"/give @p {name}")
        assert given.lacking == f"{name} cannot be eaten for absorption here"
    assert not engine.execute("/give @p bread").lacking


def test_eating_makes_regeneration_possible():
    engine, _ = hungry("cooked_beef", food=12)
    engine.player.health = 10.0
    ticks(engine, 300)
    assert engine.player.health == 10.0
    ticks(engine, 32, use=1)
    ticks(engine, 300)
    assert engine.player.health > 12.0
