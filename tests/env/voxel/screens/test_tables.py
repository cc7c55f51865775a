"""The tables: where slots are, and what the words of recipes mean."""

import pytest

from rllib_minestudio.env.voxel.items.items import ITEM_ID
from rllib_minestudio.env.voxel.screens.crafting import items, names
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.screen import Screen, ScreenCursor
from tests.env.voxel.screens.table import Player, Table


@pytest.mark.parametrize(
    ("kind", "slot", "x", "y"),
    [  # Minecraft's container coordinates (a panel of 176 pixels, centred), written out by hand
        *(("inventory", "result 0", 232 + 154, 97 + 28), ("inventory", "craft 3", 348, 133)),
        *(("inventory", "armour 3", 232 + 8, 97 + 62), ("inventory", "offhand 0", 309, 159)),
        *(("inventory", "main 0", 232 + 8, 97 + 84), ("inventory", "hotbar 8", 384, 97 + 142)),
        *(
            ("crafting_table", "result 0", 232 + 124, 97 + 35),
            ("crafting_table", "craft 8", 298, 150),
        ),
        *(("furnace", "input 0", 232 + 56, 97 + 17), ("furnace", "fuel 0", 232 + 56, 97 + 53)),
        *(("furnace", "output 0", 232 + 116, 97 + 35), ("chest", "chest 0", 232 + 8, 96 + 18)),
        *(("chest", "chest 26", 384, 150), ("chest", "main 0", 240, 96 + 85)),
    ],
)
def test_where_slots_are(kind, slot, x, y):
    table = Table(kind)
    assert table.layout.slots[table.index(slot)][1:] == (x, y)


@pytest.mark.parametrize(
    ("kind", "count"), [("inventory", 46), ("crafting_table", 46), ("furnace", 39), ("chest", 63)]
)
def test_a_screen_shows_every_slot(kind, count):
    view = Table(kind).screen.view()
    assert view.kind == kind and len(view.stacks) == len(LAYOUTS[kind].slots) == count
    assert view.cursor == (320, 180)


def test_a_camera_bin_of_vpt_in_pixels():
    cursor = ScreenCursor()
    cursor.turn(-10.0, 1.6095)
    assert (cursor.x, cursor.y) == pytest.approx((320 + 10.73, 180 - 66.667), abs=1e-2)
    assert cursor.pixel == (330, 113)


def test_words_of_the_tables():
    assert list(names("#coals")) == ["coal", "charcoal"]
    assert items("stick|#coals") == {ITEM_ID[name] for name in ("stick", "coal", "charcoal")}
    assert ITEM_ID["stripped_spruce_wood"] in items("#logs")
    for word in ("oak_plank", "#plank"):
        with pytest.raises(KeyError, match="plank"):
            items(word)


def test_a_chest_needs_its_container():
    with pytest.raises(ValueError, match="'chest' needs the container"):
        Screen("chest", Player())
