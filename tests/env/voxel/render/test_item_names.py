"""Names of items: the box at the cursor, the line above the hotbar, and their colours."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.game.game_state import NAME_TICKS
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.render.renderer import Renderer
from rllib_minestudio.env.voxel.render.text import (
    BEHIND,
    GREEN,
    MARGIN,
    RARITIES,
    RIM_BOTTOM,
    RIM_TOP,
    name_picture,
    text_picture,
    tooltip_picture,
    tooltip_place,
)
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from tests.env.voxel.arena import arena, state
from tests.env.voxel.render.render_stage import Stage
from tests.env.voxel.render.test_screens_drawn import draw, new_screen, stack, view_of
from tests.env.voxel.screens.player import Hands


@pytest.mark.parametrize(
    ("name", "title", "rarity"),
    [
        ("oak_planks", "Oak Planks", "common"),
        ("lily_of_the_valley", "Lily of the Valley", "common"),
        ("carrot_on_a_stick", "Carrot on a Stick", "common"),
        ("beef", "Raw Beef", "common"),
        ("iron_block", "Block of Iron", "common"),
        ("redstone", "Redstone Dust", "common"),
        ("tnt", "TNT", "common"),
        ("golden_apple", "Golden Apple", "rare"),
        ("enchanted_golden_apple", "Enchanted Golden Apple", "epic"),
        ("nether_star", "Nether Star", "uncommon"),
    ],
)
def test_items_have_the_games_names_and_rarities(name: str, title: str, rarity: str) -> None:
    item = ITEMS[ITEM_ID[name]]
    assert (item.title, item.rarity) == (title, rarity)


def test_every_name_can_be_written() -> None:
    for item in ITEMS.values():
        assert item.title.isascii() and item.title.isprintable() and item.rarity in RARITIES


def test_the_box_has_the_games_colours_around_its_text() -> None:
    textures = textures_of(None)
    box = tooltip_picture(textures, ITEM_ID["apple"]).astype(int)
    text = name_picture(textures, ITEM_ID["apple"])
    assert box.shape[:2] == (8 + 2 * MARGIN, text.shape[1] + 2 * MARGIN)
    assert (box[[0, 0, -1, -1], [0, -1, 0, -1]] == 0).all(), "its corners are cut off"
    np.testing.assert_array_equal(box[0, 5], BEHIND)
    for rim, colour in ((box[1, 5], RIM_TOP), (box[-2, 5], RIM_BOTTOM)):
        # Alpha 0x50 over alpha 0xF0.
        cover = 0x50 + 0xF0 * (1 - 0x50 / 255)
        blended = np.array(colour[:3]) * 0x50 + np.array(BEHIND[:3]) * 0xF0 * (1 - 0x50 / 255)
        np.testing.assert_allclose(rim, [*(blended / cover), cover], atol=1)
    rim = box[2:-2, 1, 2]
    assert (np.diff(rim) < 0).all(), "its blue fades downwards"
    inked = text[..., 3] > 0
    inside = box[MARGIN : MARGIN + 9, MARGIN : MARGIN + text.shape[1]]
    np.testing.assert_array_equal(inside[inked], text[inked])


def test_the_name_has_the_colour_of_the_rarity() -> None:
    for name in ("apple", "golden_apple", "enchanted_golden_apple", "elytra"):
        picture = name_picture(textures_of(None), ITEM_ID[name])
        colour = RARITIES[ITEMS[ITEM_ID[name]].rarity]
        assert (picture[..., :3] == colour).all(-1).any()


def test_tools_tell_what_they_do_in_the_hand() -> None:
    textures = textures_of(None)
    box = tooltip_picture(textures, ITEM_ID["wooden_pickaxe"])
    assert box.shape[0] == 8 + 2 + 4 * 10 + 2 * MARGIN
    for row, text in ((MARGIN + 32, " 2 Attack Damage"), (MARGIN + 42, " 1.2 Attack Speed")):
        line = text_picture(textures, text, GREEN, shadow=True)
        inked = line[..., 3] > 0
        shown = box[row : row + 9, MARGIN : MARGIN + line.shape[1]]
        np.testing.assert_array_equal(shown[inked], line[inked])


@pytest.mark.parametrize(
    ("cursor", "place"),
    [
        ((300, 200), (308, 184)),  # 12 to the right and 12 up, less the margin
        ((560, 200), (560 + 12 - 28 - 92 - MARGIN, 184)),  # no room on the right
        ((300, 358), (308, 360 - 8 - 6 - MARGIN)),  # no room below
    ],
)
def test_the_box_is_beside_the_cursor_and_within_the_window(cursor, place) -> None:
    size = 92 + 2 * MARGIN, 8 + 2 * MARGIN
    assert tooltip_place(cursor, size, 640) == place
    x, y = place
    assert x >= 0 and y >= 0 and x + size[0] <= 640 + MARGIN and y + size[1] <= 360


def test_a_screen_shows_the_box_of_the_stack_under_an_empty_cursor() -> None:
    slot = LAYOUTS["chest"].slots[3]
    cursor = (slot.x + 5, slot.y + 5)
    with_box = draw(view_of("chest", {3: stack("diamond", 7)}, cursor)).canvas.astype(int)
    box = tooltip_picture(textures_of(None), ITEM_ID["diamond"])
    x, y = tooltip_place(cursor, box.shape[1::-1], 640)
    text = box[MARGIN : MARGIN + 8, MARGIN + 4 : -MARGIN]  # beyond the cursor's picture
    inked = (text[..., :3] == 255).all(-1)
    shown = with_box[y + MARGIN : y + MARGIN + 8, x + MARGIN + 4 : x + box.shape[1] - MARGIN]
    assert inked.sum() > 30 and (shown[inked][:, :3] == 255).all()
    without = draw(view_of("chest", {3: stack("diamond", 7)}, cursor, carried=stack("dirt")))
    assert not (
        without.canvas[y + 1, x + 20 : x + 30, :3] == with_box[y + 1, x + 20 : x + 30, :3]
    ).all()
    nothing = draw(view_of("chest", {}, cursor)).canvas
    assert (nothing[y + 1, x + 1 : x + 10] != with_box[y + 1, x + 1 : x + 10]).any()


def test_a_box_leaves_nothing_behind() -> None:
    used = new_screen()
    slots = LAYOUTS["inventory"].slots
    held = {10: stack("iron_pickaxe"), 40: stack("golden_apple")}
    for number in (10, 40, 12, 10):
        view = view_of("inventory", held, (slots[number].x + 3, slots[number].y + 3))
        np.testing.assert_array_equal(draw(view, used).canvas, draw(view).canvas)


def test_the_name_shows_for_two_seconds_after_another_item_comes_to_hand() -> None:
    hands = Hands(arena())
    game = state(hands.engine)
    hands.engine.execute("/give @p dirt")
    hands.tick()
    assert game.name_ticks == NAME_TICKS
    for left in range(NAME_TICKS - 1, -1, -1):
        hands.tick()
        assert game.name_ticks == left
    hands.tick()
    assert game.name_ticks == 0
    hands.tick(**{"hotbar.2": 1})
    assert game.name_ticks == 0, "an empty hand has no name"
    hands.tick(**{"hotbar.1": 1})
    assert game.name_ticks == NAME_TICKS
    hands.tick(inventory=1)
    assert game.name_ticks == NAME_TICKS - 1, "time goes on while a screen is open"


def test_the_name_is_centred_above_the_hotbar_and_fades() -> None:
    stage, renderer = Stage(), Renderer((640, 360))
    stage.hold("golden_apple")
    stage.stand(pitch=90)

    def drawn(ticks: int) -> np.ndarray:
        frame = renderer.draw(
            stage.world, stage.player, stage.mobs, stage.items, stage.player.inventory, 6000,
            name_ticks=ticks,
        )  # fmt: skip
        return frame.astype(int)

    bare, whole = drawn(0), drawn(10)
    rows, columns = np.nonzero((bare != whole).any(-1))
    assert rows.min() >= 360 - 59 and rows.max() <= 360 - 59 + 8
    width = name_picture(textures_of(None), ITEM_ID["golden_apple"]).shape[1]
    assert columns.min() == (640 - width) // 2 and abs(columns.min() + columns.max() - 640) <= 1
    inked = (whole == RARITIES["rare"]).all(-1)
    assert inked.sum() > 100
    faint = drawn(2)  # alpha 51
    expected = bare[inked] + (np.array(RARITIES["rare"]) - bare[inked]) * 51 / 255
    np.testing.assert_allclose(faint[inked], expected, atol=2)
    np.testing.assert_array_equal(drawn(40), whole)
