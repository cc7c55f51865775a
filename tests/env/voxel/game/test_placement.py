"""Placing oriented blocks from four sides, on floors, walls and ceilings, as Minecraft does.

The expected states are written as the game's rules: f is the direction in which the player looks,
`clicked` the side of the block that was clicked.
"""

import math

import pytest

from rllib_minestudio.env.voxel.game.game import break_block
from rllib_minestudio.env.voxel.game.placement import Click, placed_blocks
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    FAMILIES,
    FAMILY_OF,
    block_of,
    kind_of,
    properties_of,
)
from tests.env.voxel.arena import FLOOR, arena, state

YAWS = {"south": 0.0, "west": 90.0, "north": 180.0, "east": -90.0}
STEPS = {
    **{"down": (0, -1, 0), "up": (0, 1, 0), "north": (0, 0, -1), "south": (0, 0, 1)},
    **{"west": (-1, 0, 0), "east": (1, 0, 0)},
}
OPPOSITE = {
    **{"north": "south", "south": "north", "east": "west", "west": "east"},
    **{"up": "down", "down": "up"},
}
RIGHT_OF = {"south": "west", "west": "north", "north": "east", "east": "south"}
AXIS = {"up": "y", "down": "y", "north": "z", "south": "z", "east": "x", "west": "x"}
WALLS = tuple(YAWS)
HERE = (0, 0, 0)


def block(name, **properties):
    return block_of(BLOCK_ID[name], properties)


def shown(value):
    """A block as a command names it."""
    properties = ",".join(f"{key}={value}" for key, value in sorted(properties_of(value).items()))
    return f"{BLOCKS[kind_of(value)].name}[{properties}]"


def reader(world):
    """How `placed_blocks` reads the blocks of a dictionary by place."""
    return lambda *cell: world.get(cell, AIR)


def beside(cell, side):
    return tuple(a + b for a, b in zip(cell, STEPS[side], strict=True))


def put(name, clicked="up", f="south", *, hit=(0.5, 0.5, 0.5), pitch=0.0, on="stone", **around):
    """What is placed at the origin by a click on a side of a block, by place.

    `on` is the block that is clicked (None: none, which stands for a wall of bodies), `hit` where,
    and `around` has other blocks next to the origin by direction.
    """
    wall = beside(HERE, OPPOSITE[clicked])
    world = {wall: BLOCK_ID[on] if isinstance(on, str) else on}
    for direction, other in around.items():
        world[beside(HERE, direction)] = BLOCK_ID[other] if isinstance(other, str) else other
    axis = "xyz".index(AXIS[clicked])
    point = list(hit)
    point[axis] = 1.0 if sum(STEPS[clicked]) > 0 else 0.0
    click = Click(wall, STEPS[clicked], tuple(point), YAWS[f], pitch)
    return placed_blocks(BLOCK_ID[name], click, reader(world))


def state_at(name, *args, cell=HERE, **keywords):
    placed = put(name, *args, **keywords)
    return properties_of(placed[cell]) if placed else None


# Rules that depend on f and the side alone: kinds, and the state expected.
BY_LOOK = {
    "oak_stairs": lambda f, clicked: {
        "facing": f,
        "half": "top" if clicked == "down" else "bottom",
    },
    "oak_fence_gate": lambda f, clicked: {"facing": f, "open": "false"},
    "campfire": lambda f, clicked: {"facing": f, "lit": "true"},
    "furnace": lambda f, clicked: {"facing": OPPOSITE[f], "lit": "false"},
    "chest": lambda f, clicked: {"facing": OPPOSITE[f]},
    "carved_pumpkin": lambda f, clicked: {"facing": OPPOSITE[f]},
    "white_glazed_terracotta": lambda f, clicked: {"facing": OPPOSITE[f]},
    "anvil": lambda f, clicked: {"facing": RIGHT_OF[f]},
    "oak_log": lambda f, clicked: {"axis": AXIS[clicked]},
    "quartz_pillar": lambda f, clicked: {"axis": AXIS[clicked]},
    "oak_slab": lambda f, clicked: {"type": "top" if clicked == "down" else "bottom"},
    "oak_trapdoor": lambda f, clicked: {
        "facing": clicked if clicked in WALLS else OPPOSITE[f],
        "half": "top" if clicked == "down" else "bottom",
        "open": "false",
    },
    "lever": lambda f, clicked: {
        "face": {"up": "floor", "down": "ceiling"}.get(clicked, "wall"),
        "facing": clicked if clicked in WALLS else f,
        "powered": "false",
    },
    "grindstone": lambda f, clicked: {
        "face": {"up": "floor", "down": "ceiling"}.get(clicked, "wall"),
        "facing": clicked if clicked in WALLS else f,
    },
    "shulker_box": lambda f, clicked: {"facing": clicked},
    "hopper": lambda f, clicked: {"facing": OPPOSITE[clicked] if clicked in WALLS else "down"},
    "bell": lambda f, clicked: {
        "attachment": {"up": "floor", "down": "ceiling"}.get(clicked, "single_wall"),
        "facing": OPPOSITE[clicked] if clicked in WALLS else f,
    },
    "oak_leaves": lambda f, clicked: {"persistent": "true"},
    # A level look: these face the player, or look along.
    "barrel": lambda f, clicked: {"facing": OPPOSITE[f]},
    "dispenser": lambda f, clicked: {"facing": OPPOSITE[f]},
    "observer": lambda f, clicked: {"facing": f},
    "stone": lambda f, clicked: {},
}


@pytest.mark.parametrize("name", BY_LOOK)
def test_state_by_side_and_look(name):
    for f in YAWS:
        for clicked in STEPS:
            # Below the middle, where the half matters.
            found = state_at(name, clicked, f, hit=(0.5, 0.2, 0.5))
            assert found == BY_LOOK[name](f, clicked), (f, clicked)


@pytest.mark.parametrize("name", ["oak_stairs", "oak_slab", "oak_trapdoor"])
def test_upper_half_if_hit_above_the_middle_of_a_side(name):
    half = "type" if name == "oak_slab" else "half"
    for clicked in WALLS:
        assert state_at(name, clicked, hit=(0.5, 0.51, 0.5))[half] == "top"
        assert state_at(name, clicked, hit=(0.5, 0.49, 0.5))[half] == "bottom"


@pytest.mark.parametrize(
    ("name", "pitch", "facing"),
    [("barrel", 60, "up"), ("barrel", -60, "down"), ("piston", 60, "up"), ("observer", 60, "down")],
)
def test_steep_looks_count_for_what_faces_up_and_down(name, pitch, facing):
    assert state_at(name, "up", "east", pitch=pitch) == {"facing": facing}


@pytest.mark.parametrize(
    ("torch", "wall"),
    [
        ("torch", "wall_torch"),
        ("soul_torch", "soul_wall_torch"),
        ("redstone_torch", "redstone_wall_torch"),
    ],
)
def test_torches_stand_on_floors_and_face_away_from_walls(torch, wall):
    for f in YAWS:
        assert put(torch, "up", f) == {HERE: block(torch)}
        for clicked in WALLS:
            assert put(torch, clicked, f) == {HERE: block(wall, facing=clicked)}
    assert put(torch, "down") == {}, "nothing but the ceiling"


def test_what_cannot_hang_where_it_was_clicked_takes_the_first_fit_in_look_order():
    # Under a ceiling, looking south and a little east: the south wall, then the east one, comes
    # before the floor.
    walls = {"south": "stone", "east": "stone"}
    assert put("torch", "down", "south", **walls) == {HERE: block("wall_torch", facing="north")}
    assert put("torch", "down", "east", **walls) == {HERE: block("wall_torch", facing="west")}
    assert put("torch", "down", "north", down="stone") == {HERE: block("torch")}
    assert put("ladder", "down", "south", east="stone") == {HERE: block("ladder", facing="west")}
    assert put("lever", "north", "south", on="oak_leaves", down="stone") == {
        HERE: block("lever", face="floor", facing="south")
    }
    assert put("ladder", "up", "south") == {}, "no wall anywhere"


@pytest.mark.parametrize("name", ["ladder", "tripwire_hook"])
def test_ladders_face_away_from_the_wall(name):
    for clicked in WALLS:
        assert state_at(name, clicked) == {"facing": clicked}
    ladder = block("ladder", facing="east")
    assert put("ladder", "east", on=ladder, north="stone") == {}, "no second one on a ladder"


@pytest.mark.parametrize(
    ("support", "clicked", "holds"),
    [
        (block("stone"), "up", True),
        (block("glass"), "up", True),
        (block("oak_leaves"), "up", False),
        (block("oak_slab"), "up", False),
        (block("oak_slab", type="top"), "up", True),
        (block("oak_slab", type="double"), "north", True),
        (block("oak_slab", type="top"), "north", False),
        (block("oak_stairs", half="top"), "up", True),
        (block("oak_stairs", facing="north"), "up", False),
        (block("oak_stairs", facing="north"), "north", True),
        (block("oak_stairs", facing="north"), "south", False),
        (block("oak_fence"), "up", True),
        (block("oak_fence"), "north", False),
        (block("cobblestone_wall"), "up", True),
        (block("chest"), "up", False),
        (block("carved_pumpkin"), "north", True),
        (block("snow", layers="8"), "up", True),
        (block("snow", layers="7"), "up", False),
    ],
    ids=lambda value: shown(value) if isinstance(value, int) and value > 1 else str(value),
)
def test_what_bears_a_torch(support, clicked, holds):
    # Looking up and away, so that the clicked block alone can bear it.
    assert bool(put("torch", clicked, on=support)) == holds


def test_doors_are_two_blocks_and_need_a_full_floor():
    for f in YAWS:
        door = put("oak_door", "up", f)
        assert set(door) == {HERE, beside(HERE, "up")}
        lower, upper = (properties_of(door[cell]) for cell in (HERE, beside(HERE, "up")))
        assert (lower["facing"], lower["half"], lower["open"]) == (f, "lower", "false")
        assert upper == {**lower, "half": "upper"}
    assert put("oak_door", "up", up="stone") == {}, "no room"
    assert put("oak_door", "north", down="stone"), "a click on a wall will do"
    assert put("oak_door", "north") == {}, "nothing below"
    assert put("oak_door", "up", on="oak_slab") == {}


@pytest.mark.parametrize("f", YAWS)
def test_hinges(f):
    right, left = RIGHT_OF[f], OPPOSITE[RIGHT_OF[f]]

    def hinge(hit=(0.5, 0.5, 0.5), **around):
        return state_at("oak_door", "up", f, hit=hit, **around)["hinge"]

    def in_half(side):
        return tuple(0.5 + 0.3 * step for step in STEPS[side])

    assert hinge(in_half(left)) == "left" and hinge(in_half(right)) == "right"
    assert hinge(in_half(left), **{right: "stone"}) == "right", "on the side of cubes"
    assert hinge(in_half(right), **{left: "stone"}) == "left"
    both = {left: "stone", right: "stone"}
    assert hinge(in_half(left), **both) == "left" and hinge(in_half(right), **both) == "right"
    assert hinge(in_half(left), **{left: "oak_door"}) == "right", "a double door"
    assert hinge(in_half(right), **{right: "oak_door"}) == "left"
    assert hinge(in_half(left), **{left: "spruce_door"}) == "left", "of another kind"


@pytest.mark.parametrize("f", YAWS)
def test_a_beds_head_is_ahead(f):
    bed = put("red_bed", "up", f)
    assert bed == {
        HERE: block("red_bed", facing=f, part="foot"),
        beside(HERE, f): block("red_bed", facing=f, part="head"),
    }
    assert put("red_bed", "up", f, **{f: "stone"}) == {}, "no room for the head"


def test_a_second_slab_doubles_the_first():
    double = {beside(HERE, "down"): block("oak_slab", type="double")}
    assert put("oak_slab", "up", on="oak_slab") == double
    assert put("oak_slab", "up", on=block("oak_slab", type="top")) == {HERE: block("oak_slab")}
    assert put("oak_slab", "up", on="birch_slab") == {HERE: block("oak_slab")}
    # The lower half of a side is the slab itself, the upper half what completes it.
    west = beside(HERE, "west")
    assert put("oak_slab", "east", hit=(0.5, 0.6, 0.5), on="oak_slab") == {
        west: block("oak_slab", type="double")
    }
    assert put("oak_slab", "east", hit=(0.5, 0.4, 0.5), on="oak_slab") == {HERE: block("oak_slab")}
    top = block("oak_slab", type="top")
    above = beside(HERE, "up")
    assert put("oak_slab", "down", on=top) == {above: block("oak_slab", type="double")}
    # In the place in front, too.
    click = Click((0, -1, 0), STEPS["up"], (0.5, 1.0, 0.5), 0.0, 0.0)
    world = {(0, -1, 0): block("stone"), HERE: top}
    found = placed_blocks(BLOCK_ID["oak_slab"], click, reader(world))
    assert found == {HERE: block("oak_slab", type="double")}
    full = block("oak_slab", type="double")
    assert put("oak_slab", "up", on=full) == {HERE: block("oak_slab")}


def test_heaps_grow_and_thin_snow_and_grass_are_replaced():
    below = beside(HERE, "down")
    click = Click(below, STEPS["up"], (0.5, 1.0, 0.5), 0.0, 0.0)
    for layers in range(1, 8):
        world = {below: block("snow", layers=str(layers)), (0, -2, 0): block("dirt")}
        found = placed_blocks(BLOCK_ID["snow"], click, reader(world))
        assert found == {below: block("snow", layers=str(layers + 1))}
    assert put("snow", "up", on="oak_slab") == {}, "it needs a full floor"
    assert put("snow", "up", on=block("snow", layers="8")) == {HERE: block("snow")}
    assert put("stone", "up", on="snow") == {below: block("stone")}
    assert put("stone", "up", on=block("snow", layers="2")) == {HERE: block("stone")}
    assert put("stone", "up", on="grass") == {below: block("stone")}
    assert put("sea_pickle", "up", on="sea_pickle") == {below: block("sea_pickle", pickles="2")}


@pytest.mark.parametrize("yaw", [0.0, 22.0, 100.0, -135.0])
def test_signs_face_the_player_in_sixteen_directions_and_heads_look_along(yaw):
    def rotation(name):
        click = Click((0, -1, 0), STEPS["up"], (0.5, 1.0, 0.5), yaw, 30.0)
        world = {(0, -1, 0): block("stone")}
        placed = placed_blocks(BLOCK_ID[name], click, reader(world))
        return int(properties_of(placed[HERE])["rotation"])

    towards, along = (yaw + 180) % 360 / 22.5, yaw % 360 / 22.5
    for name, turn in (("oak_sign", towards), ("red_banner", towards), ("player_head", along)):
        apart = abs(rotation(name) - turn) % 16
        assert min(apart, 16 - apart) <= 0.5, name
    for clicked in WALLS:
        assert put("oak_sign", clicked) == {HERE: block("oak_wall_sign", facing=clicked)}
        assert put("creeper_head", clicked) == {HERE: block("creeper_wall_head", facing=clicked)}


def test_lanterns_hang_rails_lie_vines_cling_and_tall_plants_are_two():
    assert state_at("lantern", "down") == {"hanging": "true"}
    assert state_at("lantern", "up") == {"hanging": "false"}
    assert put("lantern", "north") == {}
    assert state_at("rail", "up", "east") == {"shape": "east_west"}
    assert state_at("rail", "up", "north") == {"shape": "north_south"}
    for clicked in WALLS:
        vine = {**dict.fromkeys(("up", *WALLS), "false"), OPPOSITE[clicked]: "true"}
        assert state_at("vine", clicked) == vine
    assert put("sunflower", "up") == {}
    assert put("sunflower", "up", on="grass_block") == {
        HERE: block("sunflower"),
        beside(HERE, "up"): block("sunflower", half="upper"),
    }


def test_bells_between_two_walls_hang_on_both():
    assert state_at("bell", "east", east="stone") == {
        "attachment": "double_wall",
        "facing": "west",
    }


def test_every_rule_places_its_family_somewhere():
    """Over floor, ceiling and four walls, whatever has a rule can be placed, in a valid state."""
    walls = dict.fromkeys(("up", "down", "north", "south", "west", "east"), "stone")
    for kind, family in enumerate(FAMILY_OF):
        if kind not in ITEMS or not family.placed:
            continue
        around = walls
        if family.placed in ("door", "tall_plant"):
            around = {**walls, "up": "air"}
        if family.placed == "bed":
            around = {**walls, "south": "air"}
        if family.support == "soil":
            around = {**around, "down": "dirt"}
        placed = put(BLOCKS[kind].name, "up", "south", **around)
        assert placed, family.name
        for value in placed.values():
            its = FAMILY_OF[kind_of(value)]
            assert block_of(kind_of(value), properties_of(value)) == value
            assert its.name == family.name or "wall" in its.name
    assert {family.placed for family in FAMILIES} >= {"", "stairs", "slab", "door", "bed"}


@pytest.mark.parametrize(
    ("name", "grounds", "others"),
    [
        ("poppy", "grass_block dirt podzol farmland", "stone sand oak_planks"),
        ("dead_bush", "sand red_sand dirt white_terracotta", "grass_block white_glazed_terracotta"),
        ("sugar_cane", "grass_block sand sugar_cane", "stone farmland"),
        ("cactus", "sand cactus", "grass_block stone"),
        ("brown_mushroom", "stone dirt mycelium", "glass_pane oak_slab"),
        ("nether_wart", "soul_sand", "farmland soul_soil"),
        ("crimson_roots", "crimson_nylium soul_soil dirt", "netherrack"),
    ],
)
def test_plants_are_placed_on_their_soil_only(name, grounds, others):
    for ground in grounds.split():
        assert put(name, "up", on=ground) == {HERE: block(name)}, ground
    for other in others.split():
        assert put(name, "up", on=other) == {}, other
    assert put("cactus", "up", on="sand", east="stone") == {}


# ------------------------------------------------------------------------------ in the whole engine


def click_at(engine, item, x, y, z):
    """Uses an item with the crosshair on a point."""
    eye_x, feet, eye_z = engine.player.position.tolist()
    dx, dy, dz = x - eye_x, y - feet - engine.player.eye_height, z - eye_z
    engine.player.inventory.set(0, ITEM_ID[item], 5)
    engine.player.selected = 0
    engine.player.yaw = math.degrees(math.atan2(-dx, dz))
    engine.player.pitch = -math.degrees(math.atan2(dy, math.hypot(dx, dz)))
    engine.tick({})
    engine.player.records["use_delay"] = 0
    engine.tick({"use": 1})


@pytest.fixture(scope="module")
def stage():
    return arena()


@pytest.fixture
def engine(stage):
    world = state(stage).world
    world.fill((-6, 7), (FLOOR, FLOOR + 6), (-6, 7), AIR)
    stage.execute(f"/tp @p 0.5 {FLOOR} 0.5 0 0")
    state(stage).items.clear()
    return stage


@pytest.mark.parametrize(("x", "z", "f"), [(0, 2, "south"), (-2, 0, "west"), (2, 0, "east")])
def test_a_furnace_faces_the_player_who_placed_it(engine, x, z, f):
    click_at(engine, "furnace", x + 0.5, FLOOR, z + 0.5)
    world = state(engine).world
    assert world.block_at(x, FLOOR, z) == block("furnace", facing=OPPOSITE[f])
    assert world.kind_at(x, FLOOR, z) == BLOCK_ID["furnace"]
    voxels = engine.info(voxels=(-2, 2, 0, 0, -2, 2))["voxels"]
    assert {"type": "furnace", "x": x, "y": FLOOR, "z": z} in voxels
    engine.tick({})
    engine.tick({"use": 1})
    assert engine.info()["isGuiOpen"]
    engine.tick({})
    engine.tick({"inventory": 1})


def test_the_hit_point_is_where_the_line_of_sight_meets_the_block(engine):
    world = state(engine).world
    world.set_block(0, FLOOR + 1, 3, BLOCK_ID["stone"])
    for height, half in ((0.3, "bottom"), (0.7, "top")):
        click_at(engine, "oak_slab", 0.4, FLOOR + 1 + height, 3.0)
        target = state(engine).target[0]
        assert target["hit"].tolist() == pytest.approx([0.4, height, 0.0], abs=1e-9)
        assert target["hit"][2] == 0.0, "exact across the face"
        assert world.block_at(0, FLOOR + 1, 2) == block("oak_slab", type=half)
        world.set_block(0, FLOOR + 1, 2, AIR)


@pytest.mark.parametrize("broken", [0, 1])
@pytest.mark.parametrize("item", ["oak_door", "red_bed", "sunflower"])
def test_two_blocks_are_placed_and_broken_as_a_whole(engine, item, broken):
    world = state(engine).world
    world.set_block(0, FLOOR - 1, 2, BLOCK_ID["dirt"])
    click_at(engine, item, 0.5, FLOOR, 2.5)
    cells = [(0, FLOOR, 2), (0, FLOOR, 3) if item == "red_bed" else (0, FLOOR + 1, 2)]
    assert [world.kind_at(*cell) for cell in cells] == [BLOCK_ID[item]] * 2
    break_block(state(engine), *cells[broken])
    assert [world.block_at(*cell) for cell in cells] == [AIR, AIR]
    dropped = state(engine).items.item.tolist()
    assert dropped == [ITEM_ID[item]]


def test_a_door_without_room_is_not_placed_and_not_spent(engine):
    world = state(engine).world
    world.set_block(0, FLOOR + 1, 2, BLOCK_ID["stone"])
    click_at(engine, "oak_door", 0.5, FLOOR, 2.1)
    assert world.block_at(0, FLOOR, 2) == AIR
    assert engine.player.inventory[0].quantity == 5


def test_states_are_remembered_when_the_land_is_left(engine):
    world = state(engine).world
    log, door = block("oak_log", axis="x"), block("oak_door", half="upper", hinge="right")
    world.set_block(5, FLOOR, 5, log)
    world.set_block(5, FLOOR + 3, 5, door)
    engine.execute(f"/tp @p 600.5 {FLOOR} 0.5")
    engine.tick({})
    assert world.block_at(5, FLOOR, 5) == AIR, "not loaded"
    engine.execute(f"/tp @p 0.5 {FLOOR} 0.5")
    engine.tick({})
    assert world.block_at(5, FLOOR, 5) == log and world.block_at(5, FLOOR + 3, 5) == door
