"""Enchanting: levels, what a table offers and takes, and all of it through the screen."""

from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.env.voxel.items.items import ENCHANTMENTS, ITEM_ID, ItemStack, enchantments_of
from rllib_minestudio.env.voxel.player.player import points_of, progress_at, without_levels
from rllib_minestudio.env.voxel.screens.enchanting import (
    EnchantingTable,
    Offer,
    enchant,
    enchantability,
    offers,
)
from rllib_minestudio.env.voxel.screens.geometry import LAYOUTS
from rllib_minestudio.env.voxel.screens.menu import BUTTON_HEIGHT, BUTTON_LEFT, BUTTON_TOP
from rllib_minestudio.env.voxel.world.blocks import BLOCK_ID
from tests.env.voxel.arena import FLOOR, arena, state, ticks

SWORD, PICKAXE, BOOTS = (ITEM_ID[f"diamond_{kind}"] for kind in ("sword", "pickaxe", "boots"))
TABLE = (0, FLOOR, 3)


def stack(item, quantity=1, data=0):
    return ItemStack(item, quantity, data)


@pytest.mark.parametrize(
    ("level", "points"),
    [(0, 0), (1, 7), (2, 16), (16, 352), (17, 394), (30, 1395), (31, 1507), (32, 1628)],
)
def test_levels_begin_with_minecrafts_points(level, points):
    assert points_of(level) == points
    assert progress_at(points) == (level, 0.0)
    assert progress_at(points + 1)[0] == level
    assert not points or progress_at(points - 1)[0] == level - 1


def test_any_number_of_points_has_a_level():
    level = progress_at(10**18)[0]
    assert points_of(level) <= 10**18 < points_of(level + 1)


def test_paying_levels_keeps_the_share_of_the_next():
    assert without_levels(points_of(30), 3) == points_of(27)
    half = (points_of(10) + points_of(11)) // 2
    assert without_levels(half, 2) == (points_of(8) + points_of(9)) // 2
    assert without_levels(3, 1) == 3


def test_without_shelves_offers_are_cheap_and_with_fifteen_the_last_costs_thirty():
    found = [{offer.level for offer in slot} for slot in zip(*all_offers(SWORD, 0), strict=True)]
    assert found == [{1, 2}, {0, 2, 3, 4, 5, 6}, {0, 3, 4, 5, 6, 7, 8}]
    last = {slots[2].level for slots in all_offers(SWORD, 15)}
    assert last == {30} == {slots[2].level for slots in all_offers(SWORD, 40)}
    assert {slots[0].level for slots in all_offers(SWORD, 15)} == set(range(2, 11))


def all_offers(item, shelves, seeds=3000):
    return [offers(seed, stack(item), shelves) for seed in range(seeds)]


@pytest.mark.parametrize("item", [SWORD, PICKAXE, BOOTS, ITEM_ID["bow"], ITEM_ID["golden_axe"]])
def test_what_an_offer_gives_is_within_the_rules(item):
    exclusive = (
        {"sharpness", "smite", "bane_of_arthropods"},
        {"silk_touch", "fortune"},
        {"protection", "fire_protection", "blast_protection", "projectile_protection"},
    )
    for seed in range(4000):
        level = 1 + seed % 30
        given = enchant(seed, 2, item, level)
        assert all(len(names & given.keys()) <= 1 for names in exclusive)
        for name, number in given.items():
            enchantment = ENCHANTMENTS[name]
            assert 1 <= number <= enchantment.levels and not enchantment.is_treasure
            # The power is at most the level, one, twice a quarter of the ease and one, and 15 %.
            most = 1.15 * (level + 1 + 2 * (enchantability(item) // 4)) + 0.5
            assert enchantment.least + number * enchantment.least_by_level <= most


def power_from(level, quarter):
    """The probability of each power that an offer of a level has: independent of the engine's."""
    shares = (np.arange(20001) + 0.5) / 20001  # the sum of two uniform numbers is triangular
    triangle = np.where(shares < 0.5, np.sqrt(2 * shares), 2 - np.sqrt(2 - 2 * shares)) - 1
    found = Counter()
    for one in range(quarter + 1):
        for other in range(quarter + 1):
            base = level + 1 + one + other
            for power in np.rint(base * (1 + 0.15 * triangle)).astype(int).tolist():
                found[max(power, 1)] += 1 / len(triangle) / (quarter + 1) ** 2
    return found


def test_weights_decide_how_often_each_is_given_first():
    """At level 3 a diamond pickaxe can have efficiency (weight 10) and, from a power of 5 on,
    unbreaking (5); silk touch and fortune need 15."""
    first = Counter()
    for seed in range(10_000):
        first[next(iter(enchant(seed, 0, PICKAXE, 3)))] += 1
    wanted = sum(
        share * (1.0 if power < 5 else 10 / 15) for power, share in power_from(3, 10 // 4).items()
    )
    assert set(first) == {"efficiency", "unbreaking"}
    share = first["efficiency"] / first.total()
    assert share == pytest.approx(wanted, abs=4 * np.sqrt(wanted * (1 - wanted) / 10_000))


def test_the_clue_is_true_and_enchanted_or_foreign_things_get_no_offer():
    for seed in range(300):
        for slot, offer in enumerate(offers(seed, stack(SWORD), 15)):
            assert enchant(seed, slot, SWORD, offer.level)[offer.clue] == offer.clue_level
    table = EnchantingTable(15)
    table.set(0, SWORD, 1)
    table.set(1, ITEM_ID["lapis_lazuli"], 3)
    table.take(2, 1)
    assert table.offers(2) == (Offer(),) * 3 and table.stacks[1].quantity == 0
    for item in ("dirt", "lapis_lazuli", "shears"):
        assert offers(1, stack(ITEM_ID[item]), 15) == (Offer(),) * 3


# ----------------------------------------------------------------------------- through the screen


@pytest.fixture
def engine():
    """A player before a table with fifteen shelves, with a sword, lapis lazuli and 30 levels."""
    engine = arena()
    world = state(engine).world
    x, y, z = TABLE
    world.set_block(*TABLE, BLOCK_ID["enchanting_table"])
    shelves = [(i, k) for i in range(-2, 3) for k in range(-2, 3) if max(abs(i), abs(k)) == 2]
    for i, k in [place for place in shelves if place[1] > -2]:
        for up in (0, 1):
            world.set_block(x + i, y + up, z + k, BLOCK_ID["bookshelf"])
    engine.player.inventory.set(0, SWORD, 1)
    engine.player.inventory.set(1, ITEM_ID["lapis_lazuli"], 10)
    engine.player.experience = points_of(30)
    engine.player.pitch = 30.0
    ticks(engine, 2)
    engine.tick({"use": 1})
    engine.tick({})
    assert state(engine).screen.kind == "enchanting_table"
    return engine


def point(engine, x, y, **keys):
    """Move the cursor to a pixel of the window, and press."""
    cursor = state(engine).screen.cursor
    camera = np.array([y - cursor.y, x - cursor.x]) * 360.0 / 2400.0
    engine.tick({"camera": camera})
    for held in (1, 0):
        engine.tick({name: held for name in keys})


def slot(engine, group, number=0):
    layout = LAYOUTS["enchanting_table"]
    place = layout.slots[layout.group(group)[number]]
    return place.x + 8, place.y + 8


def button(number):
    layout = LAYOUTS["enchanting_table"]
    return (
        layout.left + BUTTON_LEFT + 50,
        layout.top + BUTTON_TOP + BUTTON_HEIGHT * number + 9,
    )


def test_a_sword_is_enchanted_with_the_cursor(engine):
    for number in (0, 1):
        point(engine, *slot(engine, "hotbar", number), attack=1, sneak=1)
    screen = state(engine).screen
    assert [entry.stack.item for entry in screen.menu.slots[:2]] == [SWORD, ITEM_ID["lapis_lazuli"]]
    shown = screen.view().offers
    assert shown[2].level == 30 and all(offer.can_be_taken for offer in shown)
    before = engine.player.enchanting_seed
    point(engine, *button(2), attack=1)
    made = screen.menu.slots[0].stack
    assert enchantments_of(SWORD, made.data)[shown[2].clue] == shown[2].clue_level
    assert screen.menu.slots[1].stack.quantity == 7
    assert engine.player.level == 27 and engine.player.enchanting_seed != before
    assert state(engine).statistics.copy()["custom"]["enchant_item"] == 1
    point(engine, *button(1), attack=1)
    assert engine.player.level == 27
    engine.tick({"inventory": 1})
    assert made in engine.player.inventory.stacks()
    assert state(engine).screen is None


def test_without_levels_or_lapis_nothing_happens(engine):
    point(engine, *slot(engine, "hotbar", 0), attack=1, sneak=1)
    point(engine, *button(2), attack=1)
    assert not state(engine).screen.menu.slots[0].stack.data
    point(engine, *slot(engine, "hotbar", 1), attack=1, sneak=1)
    engine.player.experience = points_of(29)
    shown = state(engine).screen.view().offers
    assert not shown[2].can_be_taken and shown[0].can_be_taken
    point(engine, *button(2), attack=1)
    assert not state(engine).screen.menu.slots[0].stack.data and engine.player.level == 29


def test_the_lapis_slot_takes_nothing_else_and_the_other_one_item(engine):
    point(engine, *slot(engine, "hotbar", 0), attack=1)
    point(engine, *slot(engine, "lapis"), attack=1)
    menu = state(engine).screen.menu
    assert menu.slots[1].stack.item == 0 and menu.carried.item == SWORD
    point(engine, *slot(engine, "item"), attack=1)
    assert menu.slots[0].stack.item == SWORD and menu.carried.item == 0


def test_shelves_count_through_air_alone(engine):
    x, y, z = TABLE
    engine.tick({"inventory": 1})

    def last_cost():
        ticks(engine, 8)
        engine.tick({"use": 1})
        engine.tick({})
        screen = state(engine).screen
        screen.menu.slots[0].put(stack(SWORD))
        cost = screen.view().offers[2].level
        screen.menu.slots[0].put(stack(0, 0))
        engine.tick({"inventory": 1})
        engine.tick({})
        return cost

    assert last_cost() == 30
    for i in (-1, 0, 1):
        for k in (-1, 0, 1):
            if (i, k) not in ((0, 0), (0, -1)):
                state(engine).world.set_block(x + i, y, z + k, BLOCK_ID["torch"])
    assert last_cost() < 30


def test_a_snapshot_keeps_the_table_and_the_seed(engine):
    for number in (0, 1):
        point(engine, *slot(engine, "hotbar", number), attack=1, sneak=1)
    shown = state(engine).screen.view().offers
    saved = engine.snapshot()
    point(engine, *button(0), attack=1)
    engine.restore(saved)
    assert state(engine).screen.view().offers == shown
