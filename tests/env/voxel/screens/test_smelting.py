"""The furnace by ticks: fire, fuel, progress, and what is made."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.screens.crafting import BURN_TICKS, SMELTING, rows
from tests.env.voxel.screens.table import Table


def furnace(source, fuel, output=""):
    return Table("furnace", input_0=source, fuel_0=fuel, output_0=output)


def ticks(table, count):
    for _ in range(count):
        table.container.tick()


@pytest.mark.parametrize(
    ("fuel", "ticks"),
    [  # minecraft.wiki/w/Smelting, Java Edition 1.16
        *(("lava_bucket", 20000), ("coal_block", 16000), ("dried_kelp_block", 4001)),
        *(("coal", 1600), ("charcoal", 1600), ("oak_boat", 1200), ("oak_log", 300)),
        *(("birch_planks", 300), ("oak_slab", 150), ("wooden_pickaxe", 200), ("stick", 100)),
        *(("white_wool", 100), ("red_carpet", 67), ("bamboo", 50), ("oak_sapling", 100)),
    ],
)
def test_how_long_fuels_burn(fuel, ticks):
    assert BURN_TICKS[ITEM_ID[fuel]] == ticks


def test_wood_from_the_nether_does_not_burn():
    for item in ("crimson_planks", "warped_stem", "crimson_sign", "warped_slab", "dirt", "bucket"):
        assert ITEM_ID[item] not in BURN_TICKS


def test_an_item_takes_ten_seconds_and_coal_smelts_eight():
    table = furnace("iron_ore 9", "coal")
    ticks(table, 199)
    assert table.contents() == {"input 0": "iron_ore 9"}
    ticks(table, 1)
    assert table.contents() == {"input 0": "iron_ore 8", "output 0": "iron_ingot 1"}
    ticks(table, 1400)
    assert table.contents() == {"input 0": "iron_ore 1", "output 0": "iron_ingot 8"}
    assert table.container.burning == 1
    ticks(table, 400)
    assert table.contents() == {"input 0": "iron_ore 1", "output 0": "iron_ingot 8"}


def test_progress_falls_twice_as_fast_without_fire():
    table = furnace("iron_ore 1", "stick 1")
    ticks(table, 101)
    assert table.container.progress == 98 and table.screen.view().burn == 0.0
    ticks(table, 20)
    assert table.container.progress == 58
    table.slot("fuel 0").put(table.slot("input 0").stack._replace(item=ITEM_ID["coal"]))
    ticks(table, 142)
    assert table.contents() == {"output 0": "iron_ingot 1"}


def test_another_input_begins_anew_and_more_of_it_does_not():
    table = furnace("iron_ore 1", "coal")
    ticks(table, 150)
    table.carry("iron_ore 3")
    table.click("input 0")
    assert table.container.progress == 150
    table.carry("sand 3")
    table.click("input 0")
    assert table.container.progress == 0 and table.carried == "iron_ore 4"


def test_a_full_or_foreign_output_stops_it_and_burns_no_fuel():
    for output in ("iron_ingot 64", "stone 1"):
        table = furnace("iron_ore 2", "coal 2", output)
        ticks(table, 300)
        assert table.contents()["fuel 0"] == "coal 2"
        assert table.contents()["input 0"] == "iron_ore 2"


def test_nothing_burns_without_something_to_smelt():
    for source in ("", "dirt 3"):
        table = furnace(source, "coal 2")
        ticks(table, 300)
        assert table.contents()["fuel 0"] == "coal 2"


def test_the_bucket_of_lava_remains_and_a_wet_sponge_fills_it():
    table = furnace("wet_sponge 1", "lava_bucket")
    ticks(table, 1)
    assert table.contents()["fuel 0"] == "bucket 1"
    ticks(table, 199)
    assert table.contents() == {"fuel 0": "water_bucket 1", "output 0": "sponge 1"}


def test_what_is_shown_of_fire_and_progress():
    table = furnace("iron_ore 1", "coal")
    ticks(table, 100)
    view = table.screen.view()
    assert view.burn == (1600 - 99) / 1600 and view.progress == 0.5


def test_taking_counts_what_is_taken_and_gives_experience():
    table = furnace("iron_ore 20", "coal 3")
    ticks(table, 4000)
    table.right("output 0")
    assert table.carried == "iron_ingot 10"
    assert table.player.crafted == {"iron_ingot": 10}
    assert table.player.experience == 14  # 20 of 0.7 each, with the first that is taken
    table.screen.menu.carried = table.screen.menu.carried._replace(item=0, quantity=0)
    table.across("output 0")
    assert table.player.crafted == {"iron_ingot": 20} and table.player.experience == 14
    assert table.contents()["hotbar 8"] == "iron_ingot 10"


def test_a_hotbar_key_takes_the_output_without_counting_it():
    table = furnace("iron_ore 1", "coal")
    ticks(table, 200)
    table.key("output 0", 1)
    assert table.contents()["hotbar 0"] == "iron_ingot 1" and not table.player.crafted


def test_every_row_of_the_table_smelts():
    for row in rows("smelting.csv"):
        assert int(row["ticks"]) == 200
    for source, smelting in SMELTING.items():
        table = furnace("dirt 1", "coal")
        table.slot("input 0").put(table.slot("input 0").stack._replace(item=source))
        ticks(table, 200)
        assert table.slot("output 0").stack[:2] == (smelting.result, 1)
