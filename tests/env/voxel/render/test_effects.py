"""Effects as they are shown: icons, the inventory's list, night vision, invisibility, sleep."""

import math

import numpy as np
import pytest

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID, enchanted, potion_data
from rllib_minestudio.env.voxel.player.player import EFFECTS
from rllib_minestudio.env.voxel.render import overlays, text
from rllib_minestudio.env.voxel.render.camera import night_vision
from rllib_minestudio.env.voxel.render.light import light_map
from rllib_minestudio.env.voxel.render.overlays import ShownEffect
from rllib_minestudio.env.voxel.render.renderer import darken
from rllib_minestudio.env.voxel.render.textures import textures_of
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS

SIZE = 640, 360


@pytest.fixture
def engine():
    made = VoxelEngine(frame_size=SIZE)
    made.reset(3, "plains")
    made.execute("/time set noon")
    for _ in range(3):
        made.tick({})
    return made


def changed(engine, do):
    """Rows and columns of the frame that differ after `do`, with nothing else happening."""
    before = engine.render().astype(int)
    do()
    return np.nonzero((engine.render() != before).any(-1))


def test_every_effect_has_a_row_and_an_icon():
    textures = textures_of(None)
    assert set(text.EFFECT_LOOKS) == set(EFFECTS)
    for name in EFFECTS:
        assert textures.picture(f"mob_effect/{name}").shape == (18, 18, 4)


def test_icons_are_where_the_game_draws_them(engine):
    """The n-th of a row at x = width - 25 n, good ones at y = 1, others at 27; 24 x 24 pixels."""
    for name, left, top in (("haste", 615, 1), ("resistance", 590, 1), ("hunger", 615, 27)):
        rows, columns = changed(engine, lambda name=name: engine.execute(f"/effect give @p {name}"))
        assert (rows.min(), rows.max()) == (top, top + 23), name
        assert columns.min() == left and columns.max() >= left + 22
    rows, _ = changed(engine, lambda: engine.execute("/effect clear @p"))
    assert rows.max() == 50


def test_an_effect_without_particles_has_no_icon_but_an_entry(engine):
    rows, _ = changed(engine, lambda: engine.execute("/effect give @p haste 100 0 true"))
    assert not rows.size
    rows, columns = changed(engine, lambda: engine.execute("/effect give @p speed 100 0 false"))
    assert columns.min() >= 615, "haste takes no room"
    engine.tick({"inventory": 1})
    both = engine.render()
    shown = engine.snapshot()
    engine.execute("/effect clear @p haste")
    assert (engine.render()[:, :600] != both[:, :600]).any()
    engine.restore(shown)
    assert (engine.render() == both).all()
    rows, columns = changed(engine, lambda: engine.execute("/effect give @p haste 200 1"))
    assert columns.max() >= 615 - 25, "a new one that is shown"
    assert not engine.execute("/effect give @p luck 5 0 yes").ok


@pytest.mark.parametrize(
    ("ticks", "words"),
    [(19, "0:00"), (20, "0:01"), (3600, "3:00"), (32766, "27:18"), (32767, "**:**")],
)
def test_times_are_written_as_in_the_game(ticks, words):
    assert text.time_left(ticks) == words


def test_an_icon_blinks_in_its_last_ten_seconds():
    assert overlays.opacity(201) == 1.0
    assert overlays.opacity(200) == pytest.approx(0.5)
    assert overlays.opacity(100) == pytest.approx(0.5 + 0.125 * math.cos(20 * math.pi))
    assert overlays.opacity(20) == pytest.approx(0.2 + 0.225 * math.cos(4 * math.pi))


def test_the_list_is_ordered_by_time_and_counts_seconds(engine):
    for name, seconds in (("speed", 90), ("haste", 30), ("luck", 60)):
        engine.execute(f"/effect give @p {name} {seconds} 1")
    shown = overlays.effects_of(engine.player)
    assert shown == (
        ShownEffect("haste", 1, 600),
        ShownEffect("luck", 1, 1200),
        ShownEffect("speed", 1, 1800),
    )
    changing = (ShownEffect("haste", 1, 599),)
    assert overlays.seconds_left(changing) == (ShownEffect("haste", 1, 580),)


def test_the_inventory_lists_them_and_forgets_them(engine):
    engine.tick({"inventory": 1})
    bare = engine.render()
    layout = LAYOUTS["inventory"]
    rows, columns = changed(engine, lambda: engine.execute("/effect give @p haste 100"))
    listed = columns < 600  # the icon is changed, too
    assert columns[listed].min() == layout.left - 124
    assert columns[listed].max() == layout.left - 124 + 119
    assert (rows[listed].min(), rows[listed].max()) == (layout.top, layout.top + 31)
    entry = slice(layout.top, layout.top + 32), slice(layout.left - 124, layout.left - 4)
    first = engine.render()[entry]
    engine.tick({})  # 100 seconds are over, and 99 begin
    second = engine.render()[entry]
    assert (second != first).any()
    for _ in range(19):
        engine.tick({})
        assert (engine.render()[entry] == second).all()
    engine.tick({})
    assert (engine.render()[entry] != second).any()
    engine.execute("/effect clear @p")
    assert np.abs(engine.render()[entry].astype(int) - bare[entry]).max() < 20  # but for the clouds


def test_another_screen_has_no_list(engine):
    engine.tick({"inventory": 1})
    engine.execute("/effect give @p haste 100")
    engine.render()
    engine.tick({})
    engine.tick({"inventory": 1})
    x, y, z = (math.floor(v) for v in engine.player.position)
    engine.execute(f"/setblock {x} {y + 1} {z + 2} crafting_table")
    engine.execute(f"/tp @p {x} {y} {z} 0 0")
    for keys in ({}, {}, {"use": 1}, {}):
        engine.tick(keys)
    listed = engine.render()
    engine.execute("/effect clear @p")
    assert (engine.render()[100:, :560] == listed[100:, :560]).all()


# ------------------------------------------------------------------------------ what they do


def test_night_vision_brightens_each_tone_to_its_full():
    dark, seen = light_map(math.pi, 0.0), light_map(math.pi, 0.0, 1.0)
    assert (seen >= dark - 1e-6).all()
    # One more mixing with grey follows, by 4 %: 1 becomes 0.99.
    assert seen.max(-1).min() == pytest.approx(0.99, abs=2 / 255)
    half = light_map(math.pi, 0.0, 0.5)
    assert (half <= seen + 1e-6).all() and (half >= dark - 1e-6).all()


def test_it_lights_a_night_and_flickers_at_the_end(engine):
    engine.execute("/time set midnight")
    night = engine.render().mean()
    engine.execute("/effect give @p night_vision 60")
    assert night_vision(engine.player) == 1.0
    assert engine.render().mean() > 1.5 * night
    engine.player.effects["night_vision"] = (0, 195)
    assert night_vision(engine.player) == pytest.approx(0.7 + 0.3 * math.sin(39 * math.pi))
    engine.execute("/effect clear @p")
    assert engine.render().mean() == night


def test_the_invisible_have_no_empty_hand(engine):
    rows, columns = changed(engine, lambda: engine.execute("/effect give @p invisibility"))
    hand = (rows > 180) & (columns > 320)
    assert hand.sum() > 1000
    engine.execute("/give @p iron_sword")
    for _ in range(10):
        engine.tick({})
    with_sword = engine.render()
    engine.execute("/effect clear @p")
    assert (engine.render()[60:] == with_sword[60:]).all()


def test_a_sleepers_picture_darkens_as_in_the_game():
    """A veil of 0x101020, whose opacity grows to 220 of 255 in a hundred ticks."""
    for ticks, alpha in ((50, 110 / 255), (100, 220 / 255), (105, 220 / 255)):
        drawn = np.array([200, 100, 0], np.uint8)
        darken(drawn, ticks)
        wanted = [200 + (16 - 200) * alpha, 100 + (16 - 100) * alpha, 32 * alpha]
        assert drawn.tolist() == pytest.approx(wanted, abs=0.51)


# ------------------------------------------------------------------------------ in words


@pytest.mark.parametrize(
    ("item", "kind", "title"),
    [
        ("potion", "water", "Water Bottle"),
        ("splash_potion", "water", "Splash Water Bottle"),
        ("potion", "awkward", "Awkward Potion"),
        ("splash_potion", "mundane", "Mundane Splash Potion"),
        ("potion", "strong_harming", "Potion of Harming"),
        ("splash_potion", "long_swiftness", "Splash Potion of Swiftness"),
        ("lingering_potion", "turtle_master", "Lingering Potion of the Turtle Master"),
        ("tipped_arrow", "night_vision", "Arrow of Night Vision"),
        ("tipped_arrow", "water", "Arrow of Splashing"),
    ],
)
def test_potions_have_the_games_names(item, kind, title):
    assert text.title_of(ITEM_ID[item], potion_data(kind)) == title


@pytest.mark.parametrize(
    ("item", "kind", "lines"),
    [
        ("potion", "water", [("No Effects", text.GREY)]),
        ("potion", "strong_harming", [("Instant Damage II", text.RED)]),
        ("potion", "swiftness", [("Speed (3:00)", text.BLUE)]),
        ("splash_potion", "strong_poison", [("Poison II (0:21)", text.RED)]),
        ("lingering_potion", "swiftness", [("Speed (0:45)", text.BLUE)]),
        (
            "potion",
            "turtle_master",
            [("Slowness IV (0:20)", text.RED), ("Resistance III (0:20)", text.BLUE)],
        ),
    ],
)
def test_potions_tell_their_effects_and_durations(item, kind, lines):
    assert text._effects(ITEM_ID[item], potion_data(kind)) == lines


def test_enchanted_items_tell_their_enchantments_and_shine_in_name():
    sword = ITEM_ID["diamond_sword"]
    levels = {"sharpness": 5, "mending": 1, "knockback": 1, "vanishing_curse": 1}
    data = enchanted(sword, 0, levels)
    assert set(text._enchantments(sword, data)) == {
        ("Sharpness V", text.GREY),
        ("Mending", text.GREY),
        ("Knockback I", text.GREY),
        ("Curse of Vanishing", text.RED),
    }
    textures = textures_of(None)
    plain, named = text.name_picture(textures, sword), text.name_picture(textures, sword, data)
    assert plain.shape == named.shape and (plain != named).any()
    aqua = (named[..., :3] == text.RARITIES["rare"]).all(-1)
    assert aqua.any() and not (plain[..., :3] == text.RARITIES["rare"]).all(-1).any()
    heights = [text.tooltip_picture(textures, sword, d).shape[0] for d in (0, data)]
    assert heights[1] - heights[0] == 4 * text.LINE
