"""Screens in the world: opening, closing, what lies in blocks, and the order within a tick."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID, block_of, properties_of
from tests.env.voxel.arena import FLOOR, arena, state, ticks
from tests.env.voxel.ledger import count_items
from tests.env.voxel.screens.player import Hands

PLACE = 0, FLOOR + 1, 2
"""A block at the height of the eyes."""


def facing(block, *gifts):
    hands = Hands(arena())
    for gift in gifts:
        hands.engine.execute(f"/give @p {gift}")
    state(hands.engine).world.set_block(*PLACE, BLOCK_ID[block])
    hands.tick()
    return hands


def counted(hands):
    return hands.engine.info()["custom"]


def test_the_tick_that_opens_turns_the_head_and_stops_the_feet():
    hands = Hands(arena())
    hands.tick((0.0, 30.0), inventory=1, forward=1)
    assert hands.engine.info()["isGuiOpen"] and hands.engine.info()["is_gui_open"]
    assert hands.engine.player.yaw == 30.0
    assert hands.screen.view().cursor == (320, 180)
    hands.tick((3.0, -9.0), inventory=1, forward=1)
    assert hands.engine.player.yaw == 30.0
    assert hands.screen.view().cursor == (260, 200)
    assert hands.engine.player.position[2] == 0.5


def test_the_cursor_stays_in_the_window_and_begins_anew():
    hands = Hands(arena())
    hands.press(inventory=1)
    hands.tick((-1e300, 1e300))
    assert hands.screen.view().cursor == (640, 0)
    hands.press(inventory=1)
    hands.press(inventory=1)
    assert hands.screen.view().cursor == (320, 180)


def test_the_key_closes_at_once_and_held_keys_wait_for_a_new_press():
    hands = Hands(arena())
    hands.press(inventory=1)
    hands.tick(forward=1)
    hands.tick((0.0, 30.0), inventory=1, forward=1)
    assert hands.screen is None and hands.engine.player.yaw == 30.0
    ticks(hands.engine, 5, forward=1)
    assert hands.engine.player.position[2] == 0.5
    hands.tick()
    ticks(hands.engine, 5, forward=1)
    assert hands.engine.player.position[2] > 0.6


def test_keys_pressed_in_the_tick_that_closes_act():
    hands = Hands(arena())
    hands.press(inventory=1)
    ticks(hands.engine, 5, inventory=1, forward=1)
    assert hands.engine.player.position[2] > 0.6


@pytest.mark.parametrize("together", [True, False])
def test_attack_mines_only_after_it_was_released(together):
    hands = facing("oak_leaves", "shears")
    hands.press(inventory=1)
    if not together:
        hands.tick(attack=1)
    ticks(hands.engine, 10, inventory=1, attack=1)
    world = state(hands.engine).world
    assert world.block_at(*PLACE) == BLOCK_ID["oak_leaves"]
    hands.tick()
    ticks(hands.engine, 10, attack=1)
    assert world.block_at(*PLACE) != BLOCK_ID["oak_leaves"]


@pytest.mark.parametrize(
    ("block", "counter"),
    [
        ("crafting_table", "interact_with_crafting_table"),
        ("furnace", "interact_with_furnace"),
        ("chest", "open_chest"),
    ],
)
def test_using_a_block_opens_its_screen_in_the_same_tick(block, counter):
    hands = facing(block, "dirt 5")
    hands.tick(use=1)
    assert hands.screen.kind == block and counted(hands)[counter] == 1
    ticks(hands.engine, 10, use=1)
    hands.press(inventory=1)
    assert hands.screen is None
    assert hands.engine.info()["inventory"][0]["quantity"] == 5, "the block in hand was placed"


def test_sneaking_uses_what_is_in_the_hand_and_empty_hands_the_block():
    hands = facing("crafting_table", "dirt 1")
    hands.tick(sneak=1)
    hands.tick(sneak=1, use=1)
    assert hands.screen is None and hands.engine.info()["use_item"] == {"dirt": 1}
    state(hands.engine).world.set_block(0, FLOOR + 1, 1, 0)
    ticks(hands.engine, 5, sneak=1)
    hands.tick(sneak=1, use=1)
    assert hands.screen.kind == "crafting_table"


def test_food_in_the_hand_is_not_eaten_at_a_table():
    hands = facing("crafting_table", "apple 3")
    hands.engine.player.records["food"] = 10
    hands.tick(use=1)
    assert hands.screen is not None and not hands.engine.player.records["eating_ticks"][0]


@pytest.mark.parametrize(("above", "opens"), [("stone", False), ("glass", True), ("air", True)])
def test_a_chest_below_a_block_stays_shut(above, opens):
    hands = facing("chest")
    state(hands.engine).world.set_block(0, FLOOR + 2, 2, BLOCK_ID[above])
    hands.press(use=1)
    assert (hands.screen is not None) == opens


def chest_with_dirt():
    hands = facing("chest", "dirt 5")
    hands.press(use=1)
    hands.across("hotbar 0")
    hands.press(inventory=1)
    return hands


def test_contents_stay_in_the_block_also_when_the_land_is_left():
    hands = chest_with_dirt()
    hands.engine.execute("/tp @p 1000 120 0")
    ticks(hands.engine, 3)
    hands.engine.execute(f"/tp @p 0 {FLOOR} 0 0 0")
    ticks(hands.engine, 3)
    hands.press(use=1)
    assert hands.shown("chest 0") == "dirt 5"


def test_a_mined_chest_drops_what_lay_in_it():
    hands = chest_with_dirt()
    hands.engine.execute("/give @p iron_axe")
    before = count_items(state(hands.engine))
    ticks(hands.engine, 40, attack=1)
    assert count_items(state(hands.engine)) == {**before, ITEM_ID["chest"]: 1}
    assert counted(hands)["open_chest"] == 1
    state(hands.engine).world.set_block(*PLACE, BLOCK_ID["chest"])
    hands.tick()
    hands.press(use=1)
    assert not any(stack.item for stack in hands.screen.view().stacks[:27])


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("/setblock 0 101 2 air", 0),
        ("/setblock 0 101 2 stone", 0),
        ("/fill 0 101 2 0 101 2 air", 0),
        ("/setblock 0 101 2 air destroy", 5),
    ],
)
def test_commands_replace_a_chest_with_its_contents(command, left):
    hands = chest_with_dirt()
    assert hands.engine.execute(command).ok
    assert hands.engine.execute("/setblock 0 101 2 chest").ok
    assert count_items(state(hands.engine))[ITEM_ID["dirt"]] == left
    hands.tick()
    hands.press(use=1)
    assert hands.shown("chest 0") == ""


@pytest.mark.parametrize("command", ["/setblock 0 101 2 air", f"/tp @p 0 {FLOOR} -7", "/kill @p"])
def test_a_screen_closes_without_its_block_out_of_reach_and_in_death(command):
    hands = facing("crafting_table", "oak_log 3", "dirt 5")
    hands.press(use=1)
    hands.click("hotbar 0")
    hands.right("craft 0")
    before = count_items(state(hands.engine))
    hands.engine.execute(command)
    assert hands.screen is None
    assert count_items(state(hands.engine)) == before
    thrown = sum(state(hands.engine).items.records["quantity"][: state(hands.engine).items.count])
    assert thrown == (8 if "kill" in command else 2), "what the cursor carried is thrown"
    assert "drop" not in counted(hands)


def test_a_screen_stays_open_within_reach():
    hands = facing("crafting_table")
    hands.press(use=1)
    hands.engine.execute(f"/tp @p 0 {FLOOR} -5")
    assert hands.screen is not None


def test_death_in_a_tick_closes_the_screen_and_drops_everything():
    hands = Hands(arena())
    hands.engine.execute("/give @p oak_log 3")
    hands.engine.execute(f"/tp @p 0 {FLOOR + 60} 0")
    hands.press(inventory=1)
    hands.click("hotbar 0")
    hands.right("craft 0")
    assert hands.screen.view().carried.quantity == 2
    while not hands.engine.player_dead:
        assert hands.screen is not None
        hands.tick()
    assert hands.screen is None
    assert sum(state(hands.engine).items.records["quantity"]) == 3
    ticks(hands.engine, 3, inventory=1)
    assert hands.screen is None


def test_a_furnace_goes_on_while_its_screen_is_shut():
    hands = facing("furnace", "iron_ore 2", "coal 1")
    hands.press(use=1)
    hands.across("hotbar 0")
    hands.across("hotbar 1")
    hands.press(inventory=1)
    ticks(hands.engine, 400)
    hands.press(use=1)
    assert hands.shown("output 0") == "iron_ingot 2"
    hands.press(inventory=1)
    hands.engine.execute("/give @p iron_pickaxe")
    ticks(hands.engine, 60, attack=1)
    assert hands.engine.player.experience in (1, 2)


def test_a_furnace_shows_its_fire_while_it_burns():
    hands = facing("furnace", "iron_ore 1", "stick 1")
    world = state(hands.engine).world
    world.set_block(*PLACE, block_of(BLOCK_ID["furnace"], {"facing": "west"}))
    hands.press(use=1)
    hands.across("hotbar 0")
    assert properties_of(world.block_at(*PLACE)) == {"facing": "west", "lit": "false"}
    hands.across("hotbar 1")
    ticks(hands.engine, 1)
    assert properties_of(world.block_at(*PLACE)) == {"facing": "west", "lit": "true"}
    assert hands.screen is not None and hands.shown("input 0") == "iron_ore 1"
    ticks(hands.engine, 100)
    assert properties_of(world.block_at(*PLACE)) == {"facing": "west", "lit": "false"}
    assert hands.shown("input 0") == "iron_ore 1" and hands.shown("fuel 0") == ""


def test_a_hotbar_key_exchanges_once_and_selects_nothing():
    hands = Hands(arena())
    hands.engine.execute("/give @p dirt 5")
    hands.press(inventory=1)
    hands.go("main 4")
    hands.tick(hotbar_1=1)
    hands.tick(hotbar_1=1)
    assert hands.shown("main 4") == "dirt 5"
    hands.tick(hotbar_5=1)
    assert hands.shown("hotbar 4") == "dirt 5"
    hands.tick(hotbar_5=1, inventory=1)
    hands.tick(hotbar_5=1)
    assert hands.engine.player.selected == 0
    hands.tick(hotbar_3=1)
    assert hands.engine.player.selected == 2


def test_a_key_sees_the_cursor_where_the_last_tick_left_it():
    hands = Hands(arena())
    hands.engine.execute("/give @p dirt 5")
    hands.press(inventory=1)
    hands.go("main 4")
    hands.tick((0.0, 18 / (2400 / 360)), hotbar_1=1, attack=1)
    assert hands.shown("main 4") == "dirt 5", "the button acts after the mouse has moved"
    assert hands.screen.view().carried.item == 0


def test_other_keys_do_nothing_and_the_world_goes_on():
    hands = Hands(arena())
    hands.engine.execute("/give @p dirt 5")
    hands.press(inventory=1)
    daytime = state(hands.engine).daytime
    ticks(hands.engine, 10, jump=1, forward=1, sprint=1, drop=1)
    assert state(hands.engine).daytime == daytime + 10
    assert hands.engine.player.position.tolist() == [0.5, FLOOR, 0.5]
    assert state(hands.engine).items.count == 0 and hands.engine.info()["isGuiOpen"]


def test_clear_empties_the_grid_and_the_cursor_too():
    hands = Hands(arena())
    hands.engine.execute("/give @p dirt 9")
    hands.press(inventory=1)
    hands.right("hotbar 0")
    hands.right("craft 0")
    assert hands.engine.execute("/clear @p dirt 6").message.startswith("Removed 6 items")
    assert hands.engine.execute("/clear").message.startswith("Removed 3 items")
    assert not count_items(state(hands.engine))
