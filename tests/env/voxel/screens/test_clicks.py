"""What each kind of click does, row by row, as Minecraft 1.16.5 does it."""

import pytest

from tests.env.voxel.screens.table import OUTSIDE, RIGHT, Table

CLICKS = [
    # what happens, kind, contents, carried, clicks, contents after, carried after
    ("left takes all", "chest", {"chest 0": "dirt 7"}, "", [("click", "chest 0")], {}, "dirt 7"),
    (
        *("right takes the larger half", "chest", {"chest 0": "dirt 7"}, ""),
        *([("right", "chest 0")], {"chest 0": "dirt 3"}, "dirt 4"),
    ),
    ("one has no half", "chest", {"chest 0": "dirt 1"}, "", [("right", "chest 0")], {}, "dirt 1"),
    ("left puts all", "chest", {}, "dirt 7", [("click", "main 0")], {"main 0": "dirt 7"}, ""),
    (
        *("right puts one", "chest", {}, "dirt 7", [("right", "main 0")]),
        *({"main 0": "dirt 1"}, "dirt 6"),
    ),
    (
        *("left adds what fits", "chest", {"chest 26": "dirt 60"}, "dirt 7"),
        *([("click", "chest 26")], {"chest 26": "dirt 64"}, "dirt 3"),
    ),
    (
        *("right adds one", "chest", {"chest 26": "dirt 60"}, "dirt 7"),
        *([("right", "chest 26")], {"chest 26": "dirt 61"}, "dirt 6"),
    ),
    (
        *("nothing is added to a full stack", "chest", {"chest 0": "egg 16"}, "egg 2"),
        *([("right", "chest 0")], {"chest 0": "egg 16"}, "egg 2"),
    ),
    (
        *("another item is exchanged", "chest", {"chest 0": "sand 3"}, "dirt 7"),
        *([("click", "chest 0")], {"chest 0": "dirt 7"}, "sand 3"),
    ),
    (
        *("right exchanges, too", "chest", {"chest 0": "sand 3"}, "dirt 7"),
        *([("right", "chest 0")], {"chest 0": "dirt 7"}, "sand 3"),
    ),
    (
        *("unequal wear is exchanged", "chest", {"chest 0": "bow 1 9"}, "bow 1"),
        *([("click", "chest 0")], {"chest 0": "bow 1"}, "bow 1 9"),
    ),
    ("beside the panel throws all", "chest", {}, "dirt 7", [("click", OUTSIDE)], {}, ""),
    ("right throws one", "chest", {}, "dirt 7", [("right", OUTSIDE)], {}, "dirt 6"),
    ("the panel between the slots", "chest", {}, "dirt 7", [("click", (236, 100))], {}, "dirt 7"),
    (
        *("a drag shares equally", "chest", {}, "dirt 8", [("drag", "chest 0 chest 1 chest 2")]),
        *({"chest 0": "dirt 2", "chest 1": "dirt 2", "chest 2": "dirt 2"}, "dirt 2"),
    ),
    (
        *("a right drag puts one each", "chest", {"chest 1": "dirt 5"}, "dirt 8"),
        *([("drag_right", "chest 0 chest 1")], {"chest 0": "dirt 1", "chest 1": "dirt 6"}),
        "dirt 6",
    ),
    (
        *("a drag fills up and keeps the rest", "chest", {"chest 0": "dirt 60"}, "dirt 20"),
        *([("drag", "chest 0 chest 1")], {"chest 0": "dirt 64", "chest 1": "dirt 10"}, "dirt 6"),
    ),
    (
        *("a drag passes over other items", "chest", {"chest 1": "sand 1"}, "dirt 4"),
        *([("drag", "chest 0 chest 1 chest 2")],),
        *({"chest 0": "dirt 2", "chest 1": "sand 1", "chest 2": "dirt 2"}, ""),
    ),
    (
        *("a drag takes in no more slots than items", "chest", {}, "dirt 2"),
        *([("drag", "chest 0 chest 1 chest 2")], {"chest 0": "dirt 1", "chest 1": "dirt 1"}, ""),
    ),
    (
        *("a double click gathers, full stacks last", "chest"),
        {"chest 0": "dirt 9", "chest 3": "dirt 64", "main 5": "dirt 30", "hotbar 8": "dirt 1"},
        *("", [("twice", "chest 0")], {"chest 3": "dirt 40"}, "dirt 64"),
    ),
    (
        *("a double click leaves other wear", "chest", {"chest 0": "egg 2", "chest 1": "bow 1"}),
        *("", [("twice", "chest 0")], {"chest 1": "bow 1"}, "egg 2"),
    ),
    (
        *("sneaking moves from the chest, last slots first", "chest"),
        *({"chest 4": "dirt 9", "main 3": "dirt 60", "hotbar 8": "sand 1"}, ""),
        [("across", "chest 4")],
        *({"main 3": "dirt 64", "hotbar 7": "dirt 5", "hotbar 8": "sand 1"}, ""),
    ),
    (
        *("sneaking moves into the chest, first slots first", "chest"),
        *({"chest 0": "sand 1", "hotbar 2": "dirt 9"}, "", [("across", "hotbar 2")]),
        *({"chest 0": "sand 1", "chest 1": "dirt 9"}, ""),
    ),
    (
        *("sneaking in the inventory: rows to hotbar", "inventory", {"main 4": "dirt 9"}, ""),
        *([("across", "main 4")], {"hotbar 0": "dirt 9"}, ""),
    ),
    (
        *("and hotbar to rows", "inventory", {"hotbar 4": "dirt 9"}, ""),
        *([("across", "hotbar 4")], {"main 0": "dirt 9"}, ""),
    ),
    (
        *("armour is put on", "inventory", {"hotbar 4": "iron_boots"}, ""),
        *([("across", "hotbar 4")], {"armour 3": "iron_boots 1"}, ""),
    ),
    (
        *("unless there is some", "inventory", {"main 0": "elytra", "armour 1": "elytra"}, ""),
        *([("across", "main 0")], {"hotbar 0": "elytra 1", "armour 1": "elytra 1"}, ""),
    ),
    (
        *("a shield goes to the off hand", "inventory", {"main 0": "shield"}, ""),
        *([("across", "main 0")], {"offhand 0": "shield 1"}, ""),
    ),
    (
        *("from the off hand to the rows", "inventory", {"offhand 0": "dirt 2"}, ""),
        *([("across", "offhand 0")], {"main 0": "dirt 2"}, ""),
    ),
    (
        *("armour is taken off", "inventory", {"armour 0": "iron_helmet"}, ""),
        *([("across", "armour 0")], {"main 0": "iron_helmet 1"}, ""),
    ),
    (
        *("a slot for armour refuses the rest", "inventory", {}, "iron_boots"),
        *([("click", "armour 0")], {}, "iron_boots 1"),
    ),
    (
        *("and takes one piece", "inventory", {}, "carved_pumpkin 3"),
        *([("click", "armour 0")], {"armour 0": "carved_pumpkin 1"}, "carved_pumpkin 2"),
    ),
    (
        *("at the table: into the grid", "crafting_table", {"main 4": "dirt 9"}, ""),
        *([("across", "main 4")], {"craft 0": "dirt 9"}, ""),
    ),
    (
        *("and back", "crafting_table", {"craft 4": "dirt 9"}, ""),
        *([("across", "craft 4")], {"main 0": "dirt 9"}, ""),
    ),
    (
        *("at the furnace: what smelts", "furnace", {"main 0": "iron_ore 9"}, ""),
        *([("across", "main 0")], {"input 0": "iron_ore 9"}, ""),
    ),
    (
        *("what smelts and burns is smelted", "furnace", {"main 0": "oak_log 9"}, ""),
        *([("across", "main 0")], {"input 0": "oak_log 9"}, ""),
    ),
    (
        *("what burns", "furnace", {"main 0": "oak_planks 9"}, ""),
        *([("across", "main 0")], {"fuel 0": "oak_planks 9"}, ""),
    ),
    (
        *("what does neither", "furnace", {"main 0": "dirt 9"}, ""),
        *([("across", "main 0")], {"hotbar 0": "dirt 9"}, ""),
    ),
    (
        *("the fuel slot refuses what does not burn", "furnace", {}, "dirt 9"),
        *([("click", "fuel 0")], {}, "dirt 9"),
    ),
    (
        *("but takes one bucket", "furnace", {}, "bucket 3"),
        *([("click", "fuel 0")], {"fuel 0": "bucket 1"}, "bucket 2"),
    ),
    ("nothing goes to the output", "furnace", {}, "dirt 9", [("click", "output 0")], {}, "dirt 9"),
    (
        *("output onto what is carried", "furnace", {"output 0": "stone 9"}, "stone 9"),
        *([("click", "output 0")], {}, "stone 18"),
    ),
    (
        *("output that does not fit stays", "furnace", {"output 0": "stone 9"}, "stone 60"),
        *([("click", "output 0")], {"output 0": "stone 9"}, "stone 60"),
    ),
    (
        *("half of the output", "furnace", {"output 0": "stone 9"}, ""),
        *([("right", "output 0")], {"output 0": "stone 4"}, "stone 5"),
    ),
    (
        *("a hotbar key exchanges", "chest", {"chest 0": "sand 3", "hotbar 1": "dirt 7"}, ""),
        *([("key", "chest 0", 2)], {"chest 0": "dirt 7", "hotbar 1": "sand 3"}, ""),
    ),
    (
        *("fetches", "chest", {"chest 0": "sand 3"}, "", [("key", "chest 0", 9)]),
        *({"hotbar 8": "sand 3"}, ""),
    ),
    (
        *("and puts", "chest", {"hotbar 8": "sand 3"}, "", [("key", "chest 5", 9)]),
        *({"chest 5": "sand 3"}, ""),
    ),
    (
        *("not while something is carried", "chest", {"hotbar 8": "sand 3"}, "dirt 1"),
        *([("key", "chest 5", 9)], {"hotbar 8": "sand 3"}, "dirt 1"),
    ),
    (
        *("nor into a slot that refuses it", "furnace", {"hotbar 8": "sand 3"}, ""),
        *([("key", "fuel 0", 9)], {"hotbar 8": "sand 3"}, ""),
    ),
    (
        *("what is too much for the slot stays", "furnace", {"hotbar 0": "bucket 3"}, ""),
        *([("key", "fuel 0", 1)], {"fuel 0": "bucket 1", "hotbar 0": "bucket 2"}, ""),
    ),
    (
        *("and what lay there finds a place", "furnace"),
        *({"hotbar 0": "bucket 3", "fuel 0": "coal 2"}, "", [("key", "fuel 0", 1)]),
        *({"fuel 0": "bucket 1", "hotbar 0": "bucket 2", "hotbar 1": "coal 2"}, ""),
    ),
]


def perform(table, action, where, *more):
    if action in ("drag", "drag_right"):
        words = where.split()
        slots = [f"{group} {number}" for group, number in zip(words[::2], words[1::2], strict=True)]
        button = {"button": RIGHT} if action == "drag_right" else {}
        table.drag(OUTSIDE, *slots, **button)
    else:
        getattr(table, action)(where, *more)


@pytest.mark.parametrize("row", CLICKS, ids=[row[0] for row in CLICKS])
def test_a_click(row):
    _, kind, before, carried, clicks, after, carried_after = row
    table = Table(kind, **{slot.replace(" ", "_"): what for slot, what in before.items()})
    table.carry(carried)
    for click in clicks:
        perform(table, *click)
    assert table.contents() == after
    assert table.carried == carried_after


def test_what_is_thrown_beside_the_panel_counts_and_is_in_the_world():
    table = Table("inventory")
    table.carry("dirt 7")
    table.right(OUTSIDE)
    table.click(OUTSIDE)
    assert [stack.quantity for stack in table.player.thrown] == [1, 6]
    assert table.player.dropped == 2


def test_two_clicks_that_are_not_quick_are_no_double_click():
    for ticks, gathered in ((3, "dirt 12"), (4, "")):
        table = Table("chest", chest_0="dirt 9", chest_3="dirt 3")
        table.click("chest 0")
        table.wait(ticks - 1)
        table.press(0)
        table.release(0)
        assert table.carried == gathered
        assert table.contents() == ({} if gathered else {"chest 0": "dirt 9", "chest 3": "dirt 3"})


def test_the_other_button_ends_a_drag_without_result():
    table = Table("chest")
    table.carry("dirt 8")
    table.go(OUTSIDE)
    table.press(0)
    table.go("chest 0")
    table.go("chest 1")
    table.press(RIGHT)
    table.release(RIGHT)
    table.release(0)
    assert table.contents() == {} and table.carried == "dirt 8"


def test_sneaking_twice_with_something_in_hand_moves_all_equal_stacks():
    table = Table("chest", main_0="dirt 9", main_7="dirt 64", main_3="sand 1", hotbar_2="dirt 1")
    table.carry("stick 1")
    table.go("main 0")
    for _ in range(2):
        table.press(0, sneak=True)
        table.release(0, sneak=True)
    assert table.contents() == {"chest 0": "dirt 64", "chest 1": "dirt 10", "main 3": "sand 1"}
    assert table.carried == "stick 1"


def test_the_whole_cell_of_a_slot_is_its_own():
    table = Table("inventory", main_0="dirt 1", main_1="sand 1")
    place = table.layout.slots[table.index("main 0")]
    for x, what in ((-2, ""), (-1, "dirt 1"), (16.9, "dirt 1"), (17.01, "sand 1")):
        table.click((place.x + x, place.y + 5))
        assert table.carried == what
        if what:
            table.click("main 0" if what == "dirt 1" else "main 1")
