"""The tables of blocks and items: complete, consistent, and those of Minecraft Java 1.16.5.

Where the facts of Minecraft lie beside the repository, in `../shared/data`, every row is compared
with them; the corrections of what is wrong there are written out here.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.voxel.data import read_json
from rllib_minestudio.env.voxel.game.loot import TABLES
from rllib_minestudio.env.voxel.items.items import (
    EMPTY,
    FIRST_PLAIN_ITEM,
    FOODS,
    ITEM_ID,
    ITEMS,
    is_block_item,
)
from rllib_minestudio.env.voxel.player.player import EFFECTS
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    FALLS,
    HARDNESS,
    LARGEST_KIND,
    UNBREAKABLE,
    Shape,
)

FACTS = Path(__file__).parents[5] / "shared" / "data" / "minecraft_1_16_5"
with_facts = pytest.mark.skipif(not FACTS.is_dir(), reason="the facts are not at hand")

UNBREAKABLE_BLOCKS = {
    *("bedrock", "barrier", "end_portal_frame", "end_portal", "end_gateway", "nether_portal"),
    *("moving_piston", "command_block", "chain_command_block", "repeating_command_block"),
    *("structure_block", "jigsaw"),
}
TIERS = {"wooden": 1, "golden": 1, "stone": 2, "iron": 3, "diamond": 4, "netherite": 5}
WOODS = ("oak", "spruce", "birch", "jungle", "acacia", "dark_oak", "crimson", "warped")


def rows(name):
    with (FACTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def facts(name):
    return json.loads((FACTS / name).read_text())


def block(name):
    return BLOCKS[BLOCK_ID[name]]


def test_there_are_all_blocks_and_items_under_ids_of_their_own():
    assert (len(BLOCKS), len(BLOCK_ID), BLOCKS[0].name) == (763, 763, "air")
    assert (len(ITEMS), len(ITEM_ID)) == (975, 975)
    assert len(BLOCKS) <= LARGEST_KIND + 1 == FIRST_PLAIN_ITEM
    assert EMPTY not in ITEMS and max(ITEMS) < 2**16
    for number, item in ITEMS.items():
        assert number >= FIRST_PLAIN_ITEM or BLOCKS[number].name == item.name
    assert {ITEM_ID[name] >= FIRST_PLAIN_ITEM for name in ("wheat", "string", "stick")} == {True}


def test_what_can_be_placed():
    assert all(is_block_item(ITEM_ID[name]) for name in ("stone", "torch", "white_bed"))
    for name in ("wheat", "wheat_seeds", "redstone", "string", "barrier", "jigsaw"):
        assert not is_block_item(ITEM_ID[name]), name
    assert not is_block_item(EMPTY) and not is_block_item(BLOCK_ID["water"])


def test_every_name_in_a_table_is_one_of_minecrafts():
    drops = {entry.item for pools in TABLES.values() for pool in pools for entry in pool.entries}
    drops |= {block.drop for block in BLOCKS if block.drop}
    assert drops <= set(ITEM_ID) and set(TABLES) <= set(BLOCK_ID)
    assert not any(block(name).drop for name in TABLES)
    assert set(FOODS) | {food.leaves for food in FOODS.values()} - {""} <= set(ITEM_ID)
    assert {effect.name for food in FOODS.values() for effect in food.effects} <= set(EFFECTS)
    tags = {tag: names.split() for tag, names in read_json("item_tags.json").items()}
    assert set(tags["planks"]) == {f"{wood}_planks" for wood in WOODS}
    assert all(set(names) <= set(ITEM_ID) for names in tags.values())


def test_the_arrays_by_block_id():
    assert HARDNESS[BLOCK_ID["obsidian"]] == 50.0
    unbreakable = {BLOCKS[i].name for i in np.flatnonzero(HARDNESS == UNBREAKABLE)}
    assert unbreakable == UNBREAKABLE_BLOCKS
    falling = {BLOCKS[i].name for i in np.flatnonzero(FALLS)}
    assert len(falling) == 23 and falling > {"sand", "red_sand", "gravel", "anvil", "dragon_egg"}


@with_facts
def test_names_and_their_order():
    names = facts("names.json")
    assert [block.name for block in BLOCKS] == names["block"]
    assert [item.name for item in ITEMS.values()] == names["item"][1:]  # without air


@with_facts
def test_stacks_and_durability():
    for row in rows("items.csv"):
        item = ITEMS[ITEM_ID[row["item"]]]
        stack = 1 if row["durability"] else int(row["stack"])  # one there is said to stack
        assert (item.max_stack, item.durability) == (stack, int(row["durability"] or 0)), row


@with_facts
def test_foods():
    given = {row["item"]: (int(row["food"]), float(row["saturation"])) for row in rows("foods.csv")}
    del given["cake"]  # a block
    given |= dict.fromkeys(("milk_bucket", "potion"), (0, 0.0))  # drinks
    assert {name: (food.nutrition, food.saturation) for name, food in FOODS.items()} == given


@with_facts
def test_hardness():
    for row in rows("blocks.csv"):
        name = row["block"]
        given = UNBREAKABLE if name in UNBREAKABLE_BLOCKS else float(row["hardness"])
        assert block(name).hardness == given, name


def corrected_tier(name, given):
    """The tier that a block asks for, where the facts are known to be wrong."""
    parts = ("slab", "stairs", "pressure_plate")
    wooden = name in {f"{wood}_{part}" for wood in WOODS for part in parts}
    if name.startswith("infested_") or wooden or name == "peony":
        return 0
    copied = ("_stairs", "_slab", "_wall")  # from a block that asks for a pickaxe
    if name.endswith(copied) or name in ("bell", "stonecutter", "blackstone"):
        return max(given, 1)
    stone = name.endswith(("_glazed_terracotta", "_terracotta", "_concrete"))
    dead = name.startswith("dead_") and "coral" in name
    others = ("chiseled_polished_blackstone",)
    return 1 if stone or dead or name in others else given


@with_facts
def test_tiers_of_tools():
    for row in rows("blocks.csv"):
        tools = [tool.partition("_")[0] for tool in row["harvest_tools"].split()]
        given = min((TIERS.get(material, 1) for material in tools), default=0)
        assert block(row["block"]).harvest_tier == corrected_tier(row["block"], given), row


def corrected_tool(name, material):
    """The tool that mines a block faster, by the material there, or None if that is not known."""
    wrong = ("_leaves", "_slab", "_stairs", "_pressure_plate")
    if name.startswith("infested_") or name.endswith(wrong):
        return None
    if name in ("cactus", "podzol", "coarse_dirt", "peony", "potted_dandelion"):
        return None
    return {"rock": "pickaxe", "wood": "axe", "dirt": "shovel", "plant": "axe"}.get(material)


@with_facts
def test_tools():
    checked = 0
    for row in rows("blocks.csv"):
        tool = corrected_tool(row["block"], row["material"])
        checked += tool is not None
        assert tool is None or block(row["block"]).tool == tool, row
    assert checked > 380
    for name in ("oak_leaves", "hay_block", "sponge", "nether_wart_block"):
        assert block(name).tool == "hoe"
    for name in ("podzol", "coarse_dirt", "soul_soil", "red_concrete_powder"):
        assert block(name).tool == "shovel"
    for name in ("cactus", "glass", "white_wool", "white_bed", "tnt", "bedrock"):
        assert block(name).tool is None
    for name in ("oak_slab", "crimson_stairs", "warped_pressure_plate", "peony", "ladder"):
        assert (block(name).tool, block(name).harvest_tier) == ("axe", 0)


@with_facts
def test_shapes():
    """Full cubes are those whose collision shape is one, but for what is seen on it."""
    shapes = facts("collision_shapes.json")["blocks"]
    full = {name for name, shape in shapes.items() if shape == 1}
    cubes = {block.name for block in BLOCKS if block.shape is Shape.CUBE}
    boxes = {name for name in shapes if name.endswith("shulker_box")}
    assert cubes - full <= {"soul_sand", "piston", "sticky_piston"} | boxes
    assert full - cubes == {"barrier", *full & {"chorus_flower", "scaffolding"}}


def without_silk_touch(entry):
    """Whether something can drop for a tool without enchantments."""
    return not any(
        condition["condition"].endswith("match_tool") and "enchantments" in condition["predicate"]
        for condition in entry["conditions"]
    )


@with_facts
def test_drops():
    unusual = facts("loot_blocks.json")
    by_state = {"wheat", "beetroots", "potatoes", "sweet_berry_bush", "composter", "snow"}
    for name, entries in unusual.items():
        given = {entry["name"] for entry in entries if without_silk_touch(entry)}
        pools = TABLES.get(name, ())
        found = {entry.item for pool in pools for entry in pool.entries}
        found |= {block(name).drop} - {None}
        assert found == given or (name in by_state and found < given), name


@with_facts
def test_tags():
    tags = facts("item_tags.json")

    def members(tag):
        return {
            name
            for entry in tags[tag]
            for name in (members(entry[1:]) if entry.startswith("#") else [entry])
        }

    ours = {tag: set(names.split()) for tag, names in read_json("item_tags.json").items()}
    assert ours == {tag: members(tag) for tag in tags}
