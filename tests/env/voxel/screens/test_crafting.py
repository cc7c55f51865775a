"""Recipes: each of the tables is made once by clicks, and where patterns may lie."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.screens.crafting import REMAINDERS, SHAPED, SHAPELESS, names, rows
from rllib_minestudio.env.voxel.screens.slots import WORN_AT
from tests.env.voxel.screens.table import Table, stack, text


def first(word):
    return next(iter(names(word)))


def ingredients(row):
    """Items of a recipe's row by cell of the 3 x 3 grid."""
    if "pattern" not in row:
        return dict(enumerate(first(word) for word in row["ingredients"].split()))
    words = dict(word.split("=") for word in row["ingredients"].split())
    return {
        3 * line + column: first(words[letter])
        for line, letters in enumerate(row["pattern"].split("/"))
        for column, letter in enumerate(letters)
        if letter != "."
    }


@pytest.mark.parametrize("table", ["shaped_recipes.csv", "shapeless_recipes.csv"])
def test_every_recipe_is_made_through_the_screen(table):
    for row in rows(table):
        grid = ingredients(row)
        screen = Table("crafting_table")
        for number, (cell, item) in enumerate(grid.items()):
            screen.slot(f"main {number}").put(stack(item))
            screen.click(f"main {number}")
            screen.click(f"craft {cell}")
        screen.click("result 0")
        made = f"{row['result']} {row['quantity']}"
        assert screen.carried == made, row["recipe"]
        left = sorted(
            ITEMS[REMAINDERS[ITEM_ID[item]]].name
            for item in grid.values()
            if ITEM_ID[item] in REMAINDERS
        )
        assert sorted(screen.contents().values()) == [f"{item} 1" for item in left], row["recipe"]
        assert screen.player.crafted == {row["result"]: int(row["quantity"])}


def test_tables_have_the_sizes_of_the_game():
    assert (len(SHAPED), len(SHAPELESS), len(WORN_AT)) == (491, 143, 34)
    assert len({row["recipe"] for row in rows("shaped_recipes.csv")}) == 491


def grid(kind, *cells):
    return Table(kind, **{f"craft_{number}": what for number, what in enumerate(cells) if what})


def result(table):
    return text(table.slot("result 0").stack)


@pytest.mark.parametrize(
    ("cells", "made"),
    [
        (["", "", "", "", "oak_planks", "", "", "birch_planks", ""], "stick 4"),
        (["", "oak_planks", "", "", "", "", "", "birch_planks", ""], ""),
        (["oak_planks", "oak_planks"], "oak_pressure_plate 1"),
        (["oak_planks", "birch_planks"], ""),
        (["stick", "iron_ingot", "iron_ingot", "stick", "", "iron_ingot"], ""),
        (
            *(["iron_ingot", "iron_ingot", "", "iron_ingot", "stick", "", "", "stick", ""],),
            "iron_axe 1",
        ),
        (
            *(["", "iron_ingot", "iron_ingot", "", "stick", "iron_ingot", "", "stick", ""],),
            "iron_axe 1",
        ),
        (["gunpowder", "charcoal", "blaze_powder"], "fire_charge 3"),
        (["gunpowder", "charcoal", "blaze_powder", "coal"], ""),
        (["iron_pickaxe 1 100", "", "iron_pickaxe 1 200"], "iron_pickaxe 1 38"),
        (["iron_pickaxe 1 10", "iron_pickaxe 1 20"], "iron_pickaxe 1"),
        (["iron_pickaxe 1 10", "golden_pickaxe 1 20"], ""),
    ],
)
def test_where_and_how_a_pattern_may_lie(cells, made):
    assert result(grid("crafting_table", *cells)) == made


def test_the_inventory_has_room_for_two_by_two():
    assert result(grid("inventory", *["oak_planks"] * 4)) == "crafting_table 1"
    assert result(grid("inventory", "", "oak_planks", "", "oak_planks")) == "stick 4"


def test_a_result_is_taken_whole_and_uses_one_of_each_ingredient():
    table = grid("inventory", "oak_log 3")
    table.right("result 0")
    assert table.carried == "oak_planks 4" and table.contents() == {"craft 0": "oak_log 2"}
    # Minecraft counts the half that the right button would have taken of another slot.
    assert table.player.crafted == {"oak_planks": 2}
    table.click("result 0")
    assert table.carried == "oak_planks 8" and table.player.crafted == {"oak_planks": 6}


def test_a_result_that_does_not_fit_onto_the_carried_stack_stays():
    table = grid("inventory", "oak_log 3")
    table.carry("oak_planks 61")
    table.click("result 0")
    assert table.carried == "oak_planks 61" and table.contents() == {"craft 0": "oak_log 3"}


def test_sneaking_crafts_as_many_as_fit():
    table = grid("crafting_table", "oak_log 40")
    table.across("result 0")
    contents = table.contents()
    assert contents == {"hotbar 8": "oak_planks 64", "hotbar 7": "oak_planks 64"} | {
        "hotbar 6": "oak_planks 32"
    }
    assert table.player.crafted == {"oak_planks": 160}


def test_what_does_not_fit_of_the_last_result_is_thrown():
    full = {f"main_{slot}": "dirt 64" for slot in range(27)}
    full |= {f"hotbar_{slot}": "dirt 64" for slot in range(8)}
    table = Table("inventory", **full, hotbar_8="oak_planks 58", craft_0="oak_log 9")
    table.across("result 0")
    assert table.contents()["craft 0"] == "oak_log 7"
    assert table.contents()["hotbar 8"] == "oak_planks 64"
    assert [text(thrown) for thrown in table.player.thrown] == ["oak_planks 2"]
    assert table.player.crafted == {"oak_planks": 6}


def test_a_hotbar_key_takes_a_result_into_an_empty_slot_only():
    table = grid("inventory", "oak_log 2")
    table.key("result 0", 3)
    assert table.contents() == {"craft 0": "oak_log 1", "hotbar 2": "oak_planks 4"}
    assert table.player.crafted == {"oak_planks": 4}
    table.key("result 0", 3)
    assert table.contents() == {"craft 0": "oak_log 1", "hotbar 2": "oak_planks 4"}


def test_a_double_click_does_not_take_results():
    table = grid("inventory", "oak_log 2")
    table.slot("main 0").put(stack("oak_planks 3"))
    table.twice("main 0")
    assert table.carried == "oak_planks 3" and table.contents() == {"craft 0": "oak_log 2"}


def test_buckets_remain():
    milk, wheat = "milk_bucket", "wheat"
    cells = [milk, milk, milk, "sugar", "egg", "sugar", wheat, wheat, wheat]
    table = grid("crafting_table", *cells)
    table.click("result 0")
    assert table.carried == "cake 1"
    assert table.contents() == {f"craft {cell}": "bucket 1" for cell in range(3)}


@pytest.mark.parametrize("alive", [True, False])
def test_closing_returns_what_lay_in_the_grid_and_throws_what_is_carried(alive):
    table = grid("crafting_table", "oak_log 2", "", "dirt 3")
    table.carry("sand 5")
    table.screen.menu.close(alive)
    thrown = [text(thrown) for thrown in table.player.thrown]
    assert thrown == (["sand 5"] if alive else ["sand 5", "oak_log 2", "dirt 3"])
    assert table.contents() == ({"hotbar 0": "oak_log 2", "hotbar 1": "dirt 3"} if alive else {})
    assert table.carried == "" and table.player.dropped == 0


def test_what_has_no_room_when_closing_is_thrown():
    full = {f"main_{slot}": "dirt 64" for slot in range(27)}
    full |= {f"hotbar_{slot}": "dirt 64" for slot in range(9)}
    table = Table("inventory", **full, craft_0="dirt 5")
    table.screen.menu.close(alive=True)
    assert [text(thrown) for thrown in table.player.thrown] == ["dirt 5"]
