"""From logs to an iron pickaxe, by actions alone."""

from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, state
from tests.env.voxel.screens.player import Hands

AHEAD = 0, FLOOR, 1
NICHE = [(x, y, z) for x, z in ((-1, 1), (1, 1), (0, 2)) for y in (FLOOR, FLOOR + 1)]
"""Blocks around what is mined, which keep its drops within reach."""


def mine(hands, block, times):
    world = state(hands.engine).world
    hands.look(0.0, 60.0)
    for _ in range(times):
        world.set_block(*AHEAD, BLOCK_ID[block])
        for _ in range(60):
            hands.tick(attack=1)
            if world.block_at(*AHEAD) == AIR:
                break
        assert world.block_at(*AHEAD) == AIR
        for _ in range(15):
            hands.tick()


def hold(hands, item):
    inventory = hands.engine.info()["inventory"]
    slot = next(slot for slot, stack in inventory.items() if stack["type"] == item)
    hands.press(**{f"hotbar_{slot + 1}": 1})


def place(hands, item, yaw):
    hold(hands, item)
    hands.look(yaw, 42.0)
    hands.press(use=1)


def test_from_logs_to_an_iron_pickaxe():
    hands = Hands(arena())
    engine = hands.engine
    for cell in NICHE:
        state(engine).world.set_block(*cell, BLOCK_ID["obsidian"])
    engine.execute("/give @p oak_log 4")
    hands.press(inventory=1)
    hands.click("hotbar 0")
    hands.click("craft 0")
    hands.across("result 0")
    hands.put("oak_planks", "0 2")
    hands.across("result 0")
    hands.put("oak_planks", "0 2")
    hands.across("result 0")
    hands.put("oak_planks", "0 1 2 3")
    hands.click("result 0")
    hands.click("hotbar 0")
    hands.press(inventory=1)
    assert engine.info()["craft_item"] == {"oak_planks": 16, "stick": 8, "crafting_table": 1}

    place(hands, "crafting_table", 90.0)
    hands.press(use=1)
    assert hands.screen.kind == "crafting_table"
    hands.put("oak_planks", "0 1 2")
    hands.put("stick", "4 7")
    hands.click("result 0")
    hands.click("hotbar 0")
    hands.press(inventory=1)
    hold(hands, "wooden_pickaxe")
    mine(hands, "stone", 11)
    assert engine.info()["mine_block"] == {"stone": 11}
    assert engine.info()["pickup"] == {"cobblestone": 11}

    hands.look(90.0, 42.0)
    hands.press(use=1)
    hands.put("cobblestone", "0 1 2")
    hands.put("stick", "4 7")
    hands.click("result 0")
    hands.click("hotbar 1")
    hands.put("cobblestone", "0 1 2 3 5 6 7 8")
    hands.click("result 0")
    hands.click("hotbar 2")
    hands.press(inventory=1)
    hold(hands, "stone_pickaxe")
    mine(hands, "iron_ore", 3)

    place(hands, "furnace", -90.0)
    hands.press(use=1)
    assert hands.screen.kind == "furnace"
    hands.across(hands.find("iron_ore"))
    hands.across(hands.find("oak_planks"))
    for _ in range(610):
        hands.tick()
    assert hands.shown("output 0") == "iron_ingot 3"
    hands.across("output 0")
    hands.press(inventory=1)

    hands.look(90.0, 42.0)
    hands.press(use=1)
    hands.put("iron_ingot", "0 1 2")
    hands.put("stick", "4 7")
    hands.click("result 0")
    hands.click("hotbar 2")
    hands.press(inventory=1)
    hold(hands, "iron_pickaxe")
    info = engine.info()
    assert info["equipped_items"]["mainhand"]["type"] == "iron_pickaxe"
    assert info["craft_item"] == {
        **{"oak_planks": 16, "stick": 8, "crafting_table": 1, "wooden_pickaxe": 1},
        **{"stone_pickaxe": 1, "furnace": 1, "iron_ingot": 3, "iron_pickaxe": 1},
    }
    assert info["use_item"] == {
        **{"crafting_table": 1, "wooden_pickaxe": 11, "stone_pickaxe": 3, "furnace": 1}
    }
    assert info["custom"]["interact_with_crafting_table"] == 3
    assert info["custom"]["interact_with_furnace"] == 1
    assert engine.player.experience in (2, 3)  # three times 0.7
