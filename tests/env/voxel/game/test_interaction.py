"""Mining, placing, dropping, picking up, hunger, and the inventory screen."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS, Inventory, is_right_tool
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, state, ticks


def facing_block(block, item=None):
    """An arena where the player looks at a block at eye height, two columns ahead."""
    engine = arena()
    if item:
        engine.execute(f"/give @p {item}")
    state(engine).world.set_block(0, FLOOR + 1, 2, BLOCK_ID[block])
    engine.tick({})
    return engine


@pytest.mark.parametrize(
    ("block", "item", "seconds"),
    [  # minecraft.wiki/w/Breaking, times on the ground
        ("dirt", None, 0.75),
        ("dirt", "iron_shovel", 0.15),
        ("oak_log", None, 3.0),
        ("oak_log", "iron_axe", 0.5),
        ("stone", None, 7.5),
        ("stone", "wooden_pickaxe", 1.15),
        ("stone", "diamond_pickaxe", 0.3),
        ("oak_leaves", "iron_sword", 0.2),
    ],
)
def test_mining_times(block, item, seconds):
    engine = facing_block(block, item)
    needed = 0
    while state(engine).world.block_at(0, FLOOR + 1, 2) != AIR:
        engine.tick({"attack": 1})
        needed += 1
        assert needed < 200
    assert needed == pytest.approx(seconds * 20, abs=1.01)
    # a block that is mined without the tool it asks for does not count, as in Minecraft
    counts = block != "stone" or item is not None
    assert engine.info()["mine_block"] == ({block: 1} if counts else {})


def test_releasing_the_key_loses_the_progress():
    engine = facing_block("dirt")
    for _ in range(4):
        ticks(engine, 10, attack=1)
        engine.tick({})
    assert state(engine).world.block_at(0, FLOOR + 1, 2) == BLOCK_ID["dirt"]


def test_the_right_tool_is_needed_for_the_drop():
    stone = BLOCK_ID["stone"]
    assert not is_right_tool(None, stone)
    assert is_right_tool(ITEMS[ITEM_ID["wooden_pickaxe"]], stone)
    assert not is_right_tool(ITEMS[ITEM_ID["stone_pickaxe"]], BLOCK_ID["diamond_ore"])


def test_mined_block_can_be_picked_up():
    engine = facing_block("dirt")
    ticks(engine, 20, attack=1)
    ticks(engine, 15, forward=1)
    ticks(engine, 10)
    assert engine.info()["pickup"] == {"dirt": 1}
    assert engine.info()["inventory"][0] == {"type": "dirt", "quantity": 1}
    assert state(engine).items.count == 0


def test_placing_a_block_against_another():
    engine = facing_block("stone", "oak_planks")
    engine.tick({"use": 1})
    assert state(engine).world.block_at(0, FLOOR + 1, 1) == BLOCK_ID["oak_planks"]
    assert engine.info()["use_item"] == {"oak_planks": 1}
    assert engine.info()["inventory"][0]["type"] == "none"


def test_no_block_is_placed_into_a_body():
    engine = arena()
    engine.execute("/give @p dirt 5")
    engine.tick({"camera": (90.0, 0.0)})
    engine.tick({"use": 1})
    assert state(engine).world.block_at(0, FLOOR, 0) == AIR
    assert engine.info()["inventory"][0]["quantity"] == 5


def test_dropping_throws_one_item_that_comes_back_after_two_seconds():
    engine = arena()
    engine.execute("/give @p dirt 2")
    engine.player.pitch = 80.0
    ticks(engine, 5, drop=1)
    assert engine.info()["inventory"][0]["quantity"] == 1
    assert state(engine).items.count == 1
    ticks(engine, 30)
    assert engine.info()["inventory"][0]["quantity"] == 1
    ticks(engine, 20)
    assert engine.info()["inventory"][0]["quantity"] == 2


def test_hotbar_keys_select():
    engine = arena()
    engine.execute("/give @p dirt 1")
    engine.execute("/give @p iron_sword")
    engine.tick({"hotbar.2": 1})
    assert engine.info()["equipped_items"]["mainhand"] == {
        "type": "iron_sword",
        "damage": 0,
        "maxDamage": 250,
    }


def test_inventory_screen_stops_the_keys():
    engine = arena()
    engine.tick({"inventory": 1})
    assert engine.info()["is_gui_open"]
    ticks(engine, 10, forward=1)
    assert engine.player.position[2] == pytest.approx(0.5)
    engine.tick({"inventory": 1})
    assert not engine.info()["isGuiOpen"]


def test_sprinting_makes_hungry_and_food_heals():
    engine = arena()
    engine.player.health = 10.0
    ticks(engine, 400)
    assert 10.0 < engine.player.health <= 20.0
    tired = arena()
    for _ in range(10):
        ticks(tired, 120, forward=1, sprint=1)
        tired.execute(f"/tp @p 0 {FLOOR} -30")
    assert tired.info()["food_level"] < 20


def test_inventory_stacks_and_overflows():
    inventory = Inventory()
    assert inventory.add(ITEM_ID["iron_sword"], 36) == 0
    assert inventory.add(ITEM_ID["dirt"], 5) == 5
    inventory.set(4, ITEM_ID["dirt"], 60)
    assert inventory.add(ITEM_ID["dirt"], 10) == 6
    assert inventory.remove(ITEM_ID["dirt"], 3) == 3
    assert inventory[4].quantity == 61
    inventory.clear()
    assert all(slot["type"] == "none" for slot in inventory.describe().values())
