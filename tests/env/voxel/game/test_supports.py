"""Blocks that lose what they need break and drop, whatever took it away; and what plants yield."""

from __future__ import annotations

import pytest

from rllib_minestudio.env.voxel.game.game import MOST_LOOKS, break_block
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    SAND,
    STONE,
    block_of,
    kind_of,
)
from rllib_minestudio.env.voxel.world.world import World
from tests.env.voxel.arena import FLOOR, arena, state, ticks
from tests.env.voxel.caches import check_world

CELL = (0, FLOOR + 1, 3)
DOWN, UP, NORTH, SOUTH = (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def world(stage) -> World:
    """The world of the stage, as it was in the beginning."""
    world = state(stage).world
    world.fill((-12, 13), (FLOOR, FLOOR + 12), (-12, 13), AIR)
    ticks(stage, 3)
    state(stage).items.clear()
    return world


def beside(cell, step):
    return tuple(place + off for place, off in zip(cell, step, strict=True))


def put(world, cell, name, **properties):
    world.set_blocks({cell: block_of(BLOCK_ID[name], properties)})


def name_at(world, cell):
    return BLOCKS[world.kind_at(*cell)].name


def dropped(engine):
    """What lies about, by name; it is gone then."""
    items, found = state(engine).items, {}
    for item, quantity in zip(items.item.tolist(), items.quantity.tolist(), strict=True):
        found[ITEMS[item].name] = found.get(ITEMS[item].name, 0) + quantity
    items.clear()
    return found


HANGING = [
    ("torch", {}, DOWN, "stone", {"torch": 1}),
    ("wall_torch", {"facing": "south"}, NORTH, "stone", {"torch": 1}),
    ("redstone_wall_torch", {"facing": "north"}, SOUTH, "stone", {"redstone_torch": 1}),
    ("ladder", {"facing": "south"}, NORTH, "oak_planks", {"ladder": 1}),
    ("rail", {}, DOWN, "stone", {"rail": 1}),
    ("oak_sign", {}, DOWN, "stone", {"oak_sign": 1}),
    ("oak_wall_sign", {"facing": "south"}, NORTH, "stone", {"oak_sign": 1}),
    ("lantern", {"hanging": "true"}, UP, "stone", {"lantern": 1}),
    ("stone_button", {"face": "ceiling"}, UP, "stone", {"stone_button": 1}),
    ("stone_pressure_plate", {}, DOWN, "stone", {"stone_pressure_plate": 1}),
    ("poppy", {}, DOWN, "grass_block", {"poppy": 1}),
    ("oak_sapling", {}, DOWN, "dirt", {"oak_sapling": 1}),
    ("red_mushroom", {}, DOWN, "stone", {"red_mushroom": 1}),
    ("carrots", {"age": "2"}, DOWN, "farmland", {"carrot": 1}),
    ("nether_wart", {}, DOWN, "soul_sand", {"nether_wart": 1}),
    ("sugar_cane", {}, DOWN, "sand", {"sugar_cane": 1}),
    ("cactus", {}, DOWN, "red_sand", {"cactus": 1}),
]


@pytest.mark.parametrize(("name", "properties", "step", "ground", "drops"), HANGING)
def test_a_block_without_its_support_breaks_and_drops(
    stage, world, name, properties, step, ground, drops
):
    support = beside(CELL, step)
    put(world, beside(support, DOWN), "stone")  # sand falls otherwise
    put(world, support, ground)
    put(world, CELL, name, **properties)
    ticks(stage, 3)
    assert name_at(world, CELL) == name
    put(world, beside(CELL, (1, 0, 0)), "glass" if name != "cactus" else "poppy")
    ticks(stage, 3)
    assert name_at(world, CELL) == name, "something else than its support changed"
    world.set_block(*support, AIR)
    ticks(stage, 1)
    assert name_at(world, CELL) == "air"
    assert dropped(stage).items() >= drops.items()


def test_whatever_takes_the_support_away(stage, world):
    support = beside(CELL, DOWN)

    def plant():
        put(world, beside(support, DOWN), "stone")
        put(world, support, "grass_block")
        put(world, CELL, "poppy")

    plant()
    break_block(state(stage), *support)  # the player
    ticks(stage, 1)
    assert name_at(world, CELL) == "air"
    plant()
    assert stage.execute(f"/setblock {support[0]} {support[1]} {support[2]} stone").ok
    ticks(stage, 1)
    assert name_at(world, CELL) == "air", "another ground"
    put(world, support, "sand")
    put(world, CELL, "dead_bush")
    world.set_block(*beside(support, DOWN), AIR)  # the sand falls
    ticks(stage, 5)
    assert name_at(world, CELL) == "air"
    check_world(world)


def test_what_a_command_leaves_in_mid_air_stays_until_something_changes(stage, world):
    cell = (5, FLOOR + 5, 5)
    assert stage.execute(f"/setblock 5 {FLOOR + 5} 5 torch").ok
    ticks(stage, 3)
    assert name_at(world, cell) == "torch"
    world.set_block(6, FLOOR + 5, 5, STONE)
    ticks(stage, 1)
    assert name_at(world, cell) == "air" and dropped(stage) == {"torch": 1}


def test_a_cane_breaks_from_the_bottom_up(stage, world):
    cells = [(0, FLOOR + layer, 3) for layer in range(4)]
    world.set_blocks(
        {cells[0]: BLOCK_ID["dirt"], **dict.fromkeys(cells[1:], BLOCK_ID["sugar_cane"])}
    )
    ticks(stage, 2)
    world.set_block(*cells[0], AIR)
    standing = []
    for _ in range(4):
        ticks(stage, 1)
        standing.append(sum(name_at(world, cell) == "sugar_cane" for cell in cells))
    assert standing == [2, 1, 0, 0]
    assert dropped(stage) == {"sugar_cane": 3}


@pytest.mark.parametrize("half", ["lower", "upper"])
def test_half_a_plant_or_door_vanishes_with_the_other(stage, world, half):
    above = beside(CELL, UP)
    for name, ground in (("rose_bush", "grass_block"), ("oak_door", "stone")):
        put(world, beside(CELL, DOWN), ground)
        lower, upper = (block_of(BLOCK_ID[name], {"half": part}) for part in ("lower", "upper"))
        world.set_blocks({CELL: lower, above: upper})
        ticks(stage, 2)
        assert name_at(world, CELL) == name_at(world, above) == name
        world.set_block(*(CELL if half == "lower" else above), AIR)
        ticks(stage, 2)
        assert name_at(world, CELL) == name_at(world, above) == "air"
        assert not dropped(stage)
        world.set_blocks({CELL: lower, above: upper})
        world.set_block(*beside(CELL, DOWN), AIR)
        ticks(stage, 2)
        assert name_at(world, CELL) == name_at(world, above) == "air"
        assert dropped(stage) == {name: 1}


def test_a_cactus_needs_room(stage, world):
    put(world, beside(CELL, DOWN), "sand")
    put(world, CELL, "cactus")
    put(world, beside(CELL, (1, 0, 0)), "poppy")
    ticks(stage, 2)
    assert name_at(world, CELL) == "cactus"
    put(world, beside(CELL, (-1, 0, 0)), "stone")
    ticks(stage, 1)
    assert dropped(stage).items() >= {"cactus": 1}.items()


def test_many_blocks_break_a_limited_number_a_tick(stage, world):
    world.fill((-20, 20), (FLOOR + 8, FLOOR + 9), (-20, 20), BLOCK_ID["grass_block"])
    world.fill((-20, 20), (FLOOR + 9, FLOOR + 10), (-20, 20), BLOCK_ID["poppy"])
    ticks(stage, 3)
    world.fill((-20, 20), (FLOOR + 8, FLOOR + 9), (-20, 20), STONE)
    layer = FLOOR + 9, FLOOR + 10

    def standing():
        return sum(
            kind_of(world.block_at(x, layer[0], z)) == BLOCK_ID["poppy"]
            for x in range(-20, 20)
            for z in range(-20, 20)
        )

    ticks(stage, 1)
    assert standing() == 1600 - MOST_LOOKS
    ticks(stage, 1)
    assert standing() == 0
    world.fill((-20, 20), (FLOOR + 8, FLOOR + 9), (-20, 20), AIR)


def test_beside_the_loaded_land_blocks_keep_their_support():
    world = World()
    world.reset(1)
    world.load_around(8, 8)
    x = 16 * 6 - 1  # the last loaded column
    assert not world.is_loaded(x + 1, 8)
    y = world.surface(x + 1, 8)
    assert world.block_at(x + 1, y - 1, 8) == AIR != world.block_next_to(x + 1, y - 1, 8)


# ----------------------------------------------------------------------------- breaking plants


@pytest.mark.parametrize("item", ["", "diamond_pickaxe", "iron_sword", "shears"])
@pytest.mark.parametrize("name", ["poppy", "grass", "dead_bush", "brown_mushroom", "wheat"])
def test_a_plant_breaks_at_a_touch(stage, world, name, item):
    stage.player.inventory.clear()
    if item:
        stage.player.inventory.set(0, ITEM_ID[item], 1)
    cell = (0, FLOOR + 1, 2)
    world.set_block(*cell, BLOCK_ID[name])
    stage.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 16")  # at the foot of the plant
    ticks(stage, 1)
    ticks(stage, 1, attack=1)
    assert name_at(world, cell) == "air"
    ticks(stage, 2)


def yields(stage, world, name, item, times=1):
    """What breaking a plant so many times drops."""
    stage.player.inventory.clear()
    if item:
        stage.player.inventory.set(0, ITEM_ID[item], 1)
    found: dict[str, int] = {}
    for _ in range(times):
        put(world, CELL, name)
        break_block(state(stage), *CELL)
        for drop, number in dropped(stage).items():
            found[drop] = found.get(drop, 0) + number
    return found


def test_what_plants_drop(stage, world):
    put(world, beside(CELL, DOWN), "grass_block")
    assert yields(stage, world, "cornflower", "") == {"cornflower": 1}
    for name in ("grass", "fern"):
        assert yields(stage, world, name, "shears") == {name: 1}
        seeds = yields(stage, world, name, "", 800)
        assert seeds.keys() == {"wheat_seeds"} and 65 < seeds["wheat_seeds"] < 140  # one in eight
    sticks = yields(stage, world, "dead_bush", "", 300)["stick"]
    assert 240 < sticks < 360  # none to two
    assert yields(stage, world, "dead_bush", "shears") == {"dead_bush": 1}
    lower, upper = (block_of(BLOCK_ID["tall_grass"], {"half": half}) for half in ("lower", "upper"))
    above = beside(CELL, UP)
    for broken in (CELL, above):
        stage.player.inventory.set(0, ITEM_ID["shears"], 1)
        world.set_blocks({CELL: lower, above: upper})
        break_block(state(stage), *broken)
        ticks(stage, 2)
        assert dropped(stage) == {"grass": 2}
        assert name_at(world, CELL) == name_at(world, above) == "air"


def test_sand_falls_into_a_flower_and_becomes_an_item_there(stage, world):
    put(world, (8, FLOOR, 8), "grass_block")
    for plant, layer, drops in (("poppy", "poppy", {"sand": 1}), ("grass", "sand", {})):
        put(world, (8, FLOOR + 1, 8), plant)
        world.set_block(8, FLOOR + 4, 8, SAND)
        ticks(stage, 25)
        assert name_at(world, (8, FLOOR + 1, 8)) == layer
        assert dropped(stage) == drops
        world.set_block(8, FLOOR + 1, 8, AIR)
