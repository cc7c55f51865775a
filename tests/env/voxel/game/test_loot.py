"""Mining every block once, and giving every item; touches, wear and meals that leave something."""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.game.game import break_block
from rllib_minestudio.env.voxel.game.loot import TABLES, drop_loot
from rllib_minestudio.env.voxel.game.placement import other_half
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS, MAIN_SLOTS
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, default_shape
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    STONE,
    UNBREAKABLE,
    Shape,
    block_of,
)
from tests.env.voxel.arena import FLOOR, arena, state, ticks

CELL = (0, FLOOR + 1, 2)
MATERIALS = ("", "wooden", "stone", "iron", "diamond")


@pytest.fixture(scope="module")
def stage():
    return arena()


def hold(engine, item):
    engine.player.inventory.clear()
    if item:
        engine.player.inventory.set(0, ITEM_ID[item], 1)


def dropped(engine):
    """What lies about, by name."""
    items, found = state(engine).items, {}
    for item, quantity in zip(items.item.tolist(), items.quantity.tolist(), strict=True):
        found[ITEMS[item].name] = found.get(ITEMS[item].name, 0) + quantity
    items.clear()
    return found


def mined(engine, name, item, **properties):
    """What block `name` in a state drops to `item`, which has mined it."""
    hold(engine, item)
    assert state(engine).world.set_block(*CELL, block_of(BLOCK_ID[name], properties)), name
    break_block(state(engine), *CELL)
    assert state(engine).world.block_at(*CELL) == AIR
    return dropped(engine)


def right_tool(block):
    if not block.harvest_tier:
        return None
    return f"{MATERIALS[block.harvest_tier]}_{block.tool}"


def may_drop(name):
    """Largest quantity of each item that a table yields."""
    largest = {}
    for pool in TABLES[name]:
        for entry in pool.entries:
            most = entry.quantity[1] + entry.trials
            largest[entry.item] = max(most, largest.get(entry.item, 0))
    return largest


def test_every_block_drops_what_its_table_says(stage):
    solid = [block for block in BLOCKS if block.shape in (Shape.CUBE, Shape.OTHER)]
    breakable = [block for block in solid if block.hardness != UNBREAKABLE]
    assert len(breakable) > 730
    state(stage).statistics.clear()
    for block in breakable:
        found = mined(stage, block.name, right_tool(block))
        if block.name in TABLES:
            largest = may_drop(block.name)
            assert all(0 < quantity <= largest[name] for name, quantity in found.items()), block
        else:
            assert found == ({block.drop: 1} if block.drop else {}), block
        if block.harvest_tier:
            weaker = f"{MATERIALS[block.harvest_tier - 1]}_{block.tool}"
            assert mined(stage, block.name, weaker if weaker in ITEM_ID else None) == {}, block
    assert state(stage).statistics.copy()["mine_block"] == {block.name: 1 for block in breakable}


@pytest.mark.parametrize(
    ("block", "low", "high"),
    [("redstone_ore", 4, 5), ("lapis_ore", 4, 9), ("melon", 3, 7), ("glowstone", 2, 4)],
)
def test_quantities_are_equally_likely(stage, block, low, high):
    found, tries = [], 10_000
    for _ in range(tries):
        drop_loot(state(stage), BLOCK_ID[block], None, CELL)
        found += dropped(stage).values()
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == list(range(low, high + 1))
    share = 1 / len(values)
    assert np.abs(counts - tries * share).max() < 4 * np.sqrt(tries * share * (1 - share))


def test_trials_add_up(stage):
    totals, tries = [], 10_000
    for _ in range(tries):
        drop_loot(state(stage), BLOCK_ID["attached_melon_stem"], None, CELL)
        totals.append(sum(dropped(stage).values()))
    chance, trials = 0.5333, 3
    deviation = 4 * np.sqrt(trials * chance * (1 - chance) / tries)
    assert abs(np.mean(totals) - trials * chance) < deviation and set(totals) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("name", "properties", "tool", "expected"),
    [
        ("oak_slab", {"type": "double"}, None, {"oak_slab": 2}),
        ("oak_slab", {"type": "top"}, None, {"oak_slab": 1}),
        ("snow", {"layers": "5"}, "iron_shovel", {"snowball": 5}),
        ("sea_pickle", {"pickles": "3"}, None, {"sea_pickle": 3}),
        ("cocoa", {"age": "2"}, None, {"cocoa_beans": 3}),
        ("composter", {"level": "8"}, None, {"composter": 1, "bone_meal": 1}),
        ("beetroots", {"age": "2"}, None, {"beetroot_seeds": 1}),
        ("sweet_berry_bush", {"age": "1"}, None, {}),
    ],
)
def test_the_state_of_a_block_counts(stage, name, properties, tool, expected):
    assert mined(stage, name, tool, **properties) == expected


def test_ripe_crops_yield_more(stage):
    least, most = {"wheat": 1}, {"wheat": 1, "wheat_seeds": 3}
    totals = []
    for _ in range(500):
        found = mined(stage, "wheat", None, age="7")
        assert found.items() >= least.items() and set(found) <= set(most)
        totals.append(found.get("wheat_seeds", 0))
    assert set(totals) == {0, 1, 2, 3} and abs(np.mean(totals) - 3 * 0.5714) < 0.2
    berries = [mined(stage, "sweet_berry_bush", None, age="3") for _ in range(50)]
    assert {found["sweet_berries"] for found in berries} == {2, 3}


def test_two_halves_drop_once(stage):
    x, y, z = CELL
    for name, first, place in (
        ("oak_door", {"half": "lower"}, (x, y + 1, z)),
        ("white_bed", {"facing": "east"}, (x + 1, y, z)),
        ("sunflower", {"half": "lower"}, (x, y + 1, z)),
    ):
        _, half = other_half(CELL, block_of(BLOCK_ID[name], first))
        state(stage).world.set_block(*place, half)
        assert mined(stage, name, None, **first) == {name: 1}
        assert state(stage).world.block_at(*place) == AIR


def test_every_item_can_be_given(stage):
    inventory = stage.player.inventory
    for name in ITEM_ID:
        inventory.clear()
        given = stage.execute(f"/give @p minecraft:{name} 65")
        assert given.ok, name
        held = [inventory[slot] for slot in range(MAIN_SLOTS) if inventory[slot].quantity]
        assert {stack.item for stack in held} == {ITEM_ID[name]}
        assert held[0].quantity == ITEMS[ITEM_ID[name]].max_stack
        laid = dropped(stage)
        assert sum(stack.quantity for stack in held) + laid.pop(name, 0) == 65 and not laid
    inventory.clear()


def attack_until_gone(engine, name, item):
    """Ticks that mining takes with the key held."""
    hold(engine, item)
    state(engine).world.set_block(CELL[0], CELL[1] - 1, CELL[2], STONE)
    state(engine).world.set_block(*CELL, BLOCK_ID[name])
    state(engine).player.records["mining_delay"] = 0
    (west, *_), *_ = SHAPES[default_shape(BLOCK_ID[name])].outline
    engine.execute(f"/tp @p {west + 0.05} {FLOOR} 0.5 0 0")
    ticks(engine, 3)
    count = 0
    while state(engine).world.block_at(*CELL) != AIR:
        engine.tick({"attack": 1})
        count += 1
        assert count < 400
    return count


@pytest.mark.parametrize(
    ("block", "item", "count"),
    [
        ("torch", None, 1),  # no hardness
        ("slime_block", "iron_pickaxe", 1),
        ("bamboo", "wooden_sword", 1),
        ("cobweb", "iron_sword", 8),  # 4 * 30 / 15
        ("cobweb", "shears", 8),
        ("pumpkin", "stone_axe", 8),  # 30 / 4, rounded up
        ("pumpkin", "iron_sword", 20),
        ("netherite_block", "netherite_pickaxe", 167),  # 50 * 30 / 9
    ],
)
def test_ticks_of_what_tools_do_besides(stage, block, item, count):
    assert attack_until_gone(stage, block, item) == count
    dropped(stage)


def test_what_breaks_at_a_touch_wears_shears_only(stage):
    for item, damage in (("iron_pickaxe", 0), ("iron_sword", 0), ("shears", 1)):
        attack_until_gone(stage, "poppy", item)
        assert stage.player.inventory[0].data == damage, item
    dropped(stage)


def test_bowls_and_bottles_stay(stage):
    for meal, rest in (("mushroom_stew", "bowl"), ("honey_bottle", "glass_bottle")):
        hold(stage, meal)
        state(stage).player.records["food"] = 5
        stage.tick({})
        ticks(stage, 41, use=1)
        assert stage.player.inventory[0] == (ITEM_ID[rest], 1, 0)
    stage.player.inventory.set(0, ITEM_ID["honey_bottle"], 2)
    stage.tick({})
    ticks(stage, 41, use=1)
    assert stage.player.inventory[0] == (ITEM_ID["honey_bottle"], 1, 0)
    assert stage.player.inventory[1] == (ITEM_ID["glass_bottle"], 1, 0)


def test_what_no_cube_can_stand_for_is_refused(stage):
    refused = [block.name for block in BLOCKS if block.shape is Shape.REFUSED]
    assert {"water", "soul_fire", "end_portal", "cave_air"} <= set(refused)
    for name in refused:
        for command in (f"/setblock 0 {FLOOR} 3 {name}", f"/fill 0 {FLOOR} 3 1 {FLOOR} 4 {name}"):
            result = stage.execute(command)
            assert not result.ok
            refusal = "water, soul fire, the End's portals and technical blocks are not simulated"
            assert result.message == f"Unable to put {name}: {refusal}"
    assert state(stage).world.block_at(0, FLOOR, 3) == AIR


def test_the_highest_block_id_survives_leaving(stage):
    world, highest = state(stage).world, len(BLOCKS) - 1
    assert highest > 255
    world.set_block(4, FLOOR, 4, highest)
    stage.execute(f"/tp @p 2000 {FLOOR} 2000")
    world.set_block(2000, FLOOR - 1, 2000, STONE)
    stage.execute(f"/tp @p 0 {FLOOR} 0")
    assert world.block_at(4, FLOOR, 4) == highest
