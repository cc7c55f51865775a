"""Mining times of some blocks and every tool against sums of float32 in Minecraft Java 1.16's order.

The table of hardness and tools is written out here; it shares nothing with the engine's.
"""

import numpy as np
import pytest

from rllib_minestudio.env.voxel.items.items import ITEMS
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, STONE
from tests.env.voxel.arena import FLOOR, arena, state

HARDNESS = {
    "stone": 1.5, "grass_block": 0.6, "dirt": 0.5, "cobblestone": 2.0, "oak_planks": 2.0,
    "sand": 0.5, "gravel": 0.6, "coal_ore": 3.0, "iron_ore": 3.0, "diamond_ore": 3.0,
    "oak_log": 2.0, "oak_leaves": 0.2, "birch_log": 2.0, "birch_leaves": 0.2, "sandstone": 0.8,
    "cactus": 0.4, "white_wool": 0.8, "bricks": 2.0, "obsidian": 50.0, "crafting_table": 2.5,
    "furnace": 3.5, "snow_block": 0.2, "hay_block": 0.5,
}  # fmt: skip
FASTER = {
    "pickaxe": "stone cobblestone coal_ore iron_ore diamond_ore sandstone bricks obsidian furnace",
    "shovel": "grass_block dirt sand gravel snow_block",
    "axe": "oak_planks oak_log birch_log crafting_table",
    "hoe": "oak_leaves birch_leaves hay_block",
}
NEEDED = {  # least tier of the pickaxe without which nothing drops
    **dict.fromkeys(("stone", "cobblestone", "coal_ore", "sandstone", "bricks", "furnace"), 0),
    **{"iron_ore": 1, "diamond_ore": 2, "obsidian": 3},
}
SPEED = {
    **{"wooden": 2.0, "stone": 4.0, "iron": 6.0, "diamond": 8.0, "golden": 12.0},
    "netherite": 9.0,
}
TIER = {"wooden": 0, "stone": 1, "iron": 2, "diamond": 3, "golden": 0, "netherite": 4}
KINDS = ("sword", "pickaxe", "axe", "shovel", "hoe")
TOOLS = (None, "shears", "trident", *(f"{name}_{kind}" for name in SPEED for kind in KINDS))
PAIRS = [(block, tool) for block in HARDNESS for tool in TOOLS]


def split(tool):
    material, _, kind = (tool or "").partition("_")
    return material, kind


def speed(block, tool):
    material, kind = split(tool)
    if tool == "shears":
        return 15.0 if block.endswith("leaves") else 5.0 if block == "white_wool" else 1.0
    if kind == "sword":
        return 1.5 if block.endswith("leaves") else 1.0
    return SPEED[material] if block in FASTER.get(kind, "").split() else 1.0


def divisor(block, tool):
    material, kind = split(tool)
    if block in NEEDED:
        return 30 if kind == "pickaxe" and TIER[material] >= NEEDED[block] else 100
    return 30 if block != "snow_block" or kind == "shovel" else 100


def expected_ticks(block, tool, haste=0, fatigue=0, flying=False):
    """Ticks with the key down: Java's `getDestroyProgress`, summed until it reaches 1."""
    f32 = np.float32
    rate = f32(speed(block, tool))
    if haste:
        rate *= f32(1.0) + f32(haste) * f32(0.2)
    if fatigue:
        rate *= f32((0.3, 0.09, 0.0027, 8.1e-4)[min(fatigue, 4) - 1])
    if flying:
        rate /= f32(5.0)
    step = rate / f32(HARDNESS[block]) / f32(divisor(block, tool))
    total, ticks = f32(0.0), 0
    if step >= f32(1.0):
        return 1
    while total < f32(1.0):
        total += step
        ticks += 1
    return ticks


@pytest.fixture(scope="module")
def stage():
    return arena()


def measured_ticks(engine, block, tool, flying=False):
    game, place = state(engine), (0, FLOOR + 1, 2)
    engine.tick({})
    game.world.set_block(0, FLOOR, 2, STONE)  # sand would fall
    game.world.set_block(*place, BLOCK_ID[block])
    game.player.inventory.clear()
    if tool:
        engine.execute(f"/give @p {tool}")
    game.player.records["mining_delay"] = 0
    engine.tick({})
    ticks = 0
    while game.world.block_at(*place) != AIR:
        if flying:  # held above the ground, as on a ladder that is not there
            engine.player.position[1] = FLOOR + 0.25
            game.player.records["on_ground"] = 0
        engine.tick({"attack": 1})
        ticks += 1
        assert ticks < 30_000
    return ticks


def test_the_table_is_of_all_tools():
    tools = {item.name for item in ITEMS.values() if item.mining_wear}
    assert tools == set(TOOLS) - {None}


def test_every_pair_takes_as_many_ticks_as_in_minecraft(stage):
    wrong = {}
    for block, tool in PAIRS:
        found, right = measured_ticks(stage, block, tool), expected_ticks(block, tool)
        state(stage).items.clear()
        if found != right:
            wrong[block, tool] = (found, right)
    assert not wrong


@pytest.mark.parametrize(("haste", "fatigue"), [(1, 0), (2, 0), (5, 0), (0, 1), (0, 2), (3, 1)])
def test_haste_and_mining_fatigue(haste, fatigue):
    engine = arena()
    for name, level in (("haste", haste), ("mining_fatigue", fatigue)):
        if level:
            engine.execute(f"/effect give @p {name} 9999 {level - 1}")
    for block, tool in (("stone", "iron_pickaxe"), ("dirt", None), ("oak_log", "stone_axe")):
        right = expected_ticks(block, tool, haste, fatigue)
        assert measured_ticks(engine, block, tool) == right, (block, tool)


@pytest.mark.parametrize("tool", [None, "iron_pickaxe", "golden_axe"])
def test_without_ground_mining_takes_five_times_as_long(tool):
    engine = arena()
    right = expected_ticks("oak_planks", tool, flying=True)
    assert measured_ticks(engine, "oak_planks", tool, flying=True) == right


def test_bedrock_stays(stage):
    state(stage).world.set_block(0, FLOOR + 1, 2, BLOCK_ID["bedrock"])
    for _ in range(200):
        stage.tick({"attack": 1})
    assert state(stage).world.block_at(0, FLOOR + 1, 2) == BLOCK_ID["bedrock"]
    state(stage).world.set_block(0, FLOOR + 1, 2, AIR)
