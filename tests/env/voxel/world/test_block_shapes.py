"""The shapes of blocks: bodies against Minecraft's, arms and corners against its rules."""

import json
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.voxel.world import block_shapes
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, shape_at
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    FAMILY_OF,
    Shape,
    block_of,
    states_of,
)
from rllib_minestudio.env.voxel.world.box_field import HEIGHT, WINDOW, block_index

GAME = json.loads(Path(__file__).with_name("collision_shapes.json").read_text())
"""Boxes in pixels, and their numbers by kind and state: from `minecraft-data` for 1.16.5."""


def volume(boxes, unit):
    """Which of 32 x 48 x 32 cells of a block, half as large as a pixel, are in boxes."""
    cells = np.zeros((32, 48, 32), bool)
    for box in boxes:
        x0, y0, z0, x1, y1, z1 = np.rint(np.array(box) * 32 / unit).astype(int)
        cells[x0:x1, y0:y1, z0:z1] = True
    return cells


NONE = 0
"""The number of the shape without boxes."""
WITHOUT_ROW = ("fire", "nether_portal")
"""Kinds through which one walks, and which the game's table leaves out."""


def games_boxes(kind, properties):
    """The body of a kind in the game, with these properties and others' first values."""
    name = BLOCKS[kind].name
    found = NONE if name in WITHOUT_ROW else GAME["blocks"][name]
    if isinstance(found, str):
        found = GAME["blocks"][found]
    if isinstance(found, int):
        return GAME["shapes"][str(found)]
    number = 0
    for name, values in found["properties"].items():
        value = properties.get(name, "false" if "false" in values else values[0])
        number = number * len(values) + values.index(value)
    return GAME["shapes"][str(found["shapes"][number])]


def test_bodies_are_the_games_in_all_states():
    compared = set()
    for kind, family in enumerate(FAMILY_OF):
        if BLOCKS[kind].shape is Shape.REFUSED:
            continue
        first = int(block_shapes._FIRST[kind])
        refused = {name: values[0] for name, values in family.refused.items()}
        for number, properties in enumerate(block_shapes._variants(kind, family)):
            ours = int(block_shapes._OF_VARIANT[first + number])
            wanted = games_boxes(kind, refused | properties)
            if (ours, str(wanted)) not in compared:
                compared.add((ours, str(wanted)))
                equal = np.array_equal(volume(SHAPES[ours].body, 1), volume(wanted, 16))
                assert equal, (BLOCKS[kind].name, properties)
    assert len(compared) > 400


VARIED = ("", "lever", "stalk", "long stalk", "front", "crop", "short crop", "plant")
"""Families whose kinds have shapes of their own."""


def test_kinds_of_a_family_share_their_shapes():
    firsts = {}
    for kind, family in enumerate(FAMILY_OF):
        if family.name not in VARIED:
            firsts.setdefault(family.name, set()).add(int(block_shapes._FIRST[kind]))
    assert [name for name, first in firsts.items() if len(first) > 1] == []


def test_what_can_be_put_can_be_aimed_at():
    for kind, block in enumerate(BLOCKS):
        can_be_put = block.shape not in (Shape.NONE, Shape.REFUSED)
        for state in states_of(kind):
            outline = SHAPES[block_shapes.default_shape(state)].outline
            assert bool(outline) == can_be_put or block.name in ("vine", "lava")
            assert all(0 <= box[i] < box[i + 3] <= 1 for box in outline for i in range(3))


# ------------------------------------------------------------------------------- among neighbours


@pytest.fixture(scope="module")
def blocks():
    return np.zeros(WINDOW * WINDOW * HEIGHT, np.uint16)


@pytest.fixture
def put(blocks):
    """Puts a block; all are gone after the test."""
    places = []

    def do(x, y, z, name, **properties):
        places.append(block_index(x, y, z))
        blocks[places[-1]] = block_of(BLOCK_ID[name], properties)

    yield do
    blocks[places] = 0


def outline(blocks, x, y, z):
    return {tuple(round(n * 16) for n in box) for box in SHAPES[shape_at(blocks, x, y, z)].outline}


NORTH_ARM, EAST_ARM = (6, 0, 0, 10, 16, 6), (10, 0, 6, 16, 16, 10)


@pytest.mark.parametrize(
    ("neighbour", "properties", "linked"),
    [
        ("oak_fence", {}, True),
        ("birch_fence", {}, True),
        ("nether_brick_fence", {}, False),
        ("stone", {}, True),
        ("oak_leaves", {}, False),
        ("pumpkin", {}, False),
        ("glass", {}, True),
        ("oak_slab", {}, False),
        ("oak_slab", {"type": "double"}, True),
        ("oak_stairs", {"facing": "west"}, True),  # its back is towards the fence
        ("oak_stairs", {"facing": "east"}, False),
        ("oak_fence_gate", {"facing": "north"}, True),
        ("oak_fence_gate", {"facing": "east"}, False),
        ("cobblestone_wall", {}, False),
        ("torch", {}, False),
    ],
)
def test_what_a_fence_reaches_out_to(blocks, put, neighbour, properties, linked):
    put(8, 9, 8, "oak_fence")
    put(9, 9, 8, neighbour, **properties)
    assert (EAST_ARM in outline(blocks, 8, 9, 8)) == linked


def test_panes_reach_walls_and_the_window_wraps(blocks, put):
    put(0, 9, 0, "glass_pane")
    put(-1, 9, 0, "cobblestone_wall")
    put(0, 9, -1, "iron_bars")
    assert outline(blocks, 0, 9, 0) == {
        (7, 0, 7, 9, 16, 9),
        (0, 0, 7, 7, 16, 9),
        (7, 0, 0, 9, 16, 7),
    }


def corner(blocks, put, ahead=None, behind=None, side=None, **of_side):
    put(8, 9, 8, "oak_stairs", facing="north")
    if ahead:
        put(8, 9, 7, "stone_stairs", facing=ahead)
    if behind:
        put(8, 9, 9, "stone_stairs", facing=behind)
    if side:
        put(*side, "oak_stairs", **of_side)
    number = shape_at(blocks, 8, 9, 8)
    names = [p["shape"] for p in block_shapes._variants(BLOCK_ID["oak_stairs"], STAIRS)]
    facings = [p["facing"] for p in block_shapes._variants(BLOCK_ID["oak_stairs"], STAIRS)]
    first = block_shapes._FIRST[BLOCK_ID["oak_stairs"]]
    return {
        name
        for i, (name, facing) in enumerate(zip(names, facings, strict=True))
        if block_shapes._OF_VARIANT[first + i] == number and facing == "north"
    }


STAIRS = FAMILY_OF[BLOCK_ID["oak_stairs"]]


@pytest.mark.parametrize(
    ("around", "shape"),
    [
        ({}, "straight"),
        ({"ahead": "west"}, "outer_left"),
        ({"ahead": "east"}, "outer_right"),
        ({"ahead": "north"}, "straight"),
        ({"behind": "west"}, "inner_left"),
        ({"behind": "east"}, "inner_right"),
        ({"behind": "south"}, "straight"),
        # equal stairs at the side keep it straight: east of it for a turn to the west ahead
        ({"ahead": "west", "side": (9, 9, 8), "facing": "north"}, "straight"),
        ({"behind": "west", "side": (7, 9, 8), "facing": "north"}, "straight"),
        ({"ahead": "west", "side": (9, 9, 8), "facing": "south"}, "outer_left"),
    ],
)
def test_the_corners_of_stairs(blocks, put, around, shape):
    assert corner(blocks, put, **around) == {shape}


POST = (4, 0, 4, 12, 16, 12)


def wall_row(put, above=None):
    for x in (7, 8, 9):
        put(x, 9, 8, "cobblestone_wall")
        if above:
            put(x, 10, 8, above)


@pytest.mark.parametrize(
    ("above", "has_post", "height"),
    [
        (None, False, 14),
        ("stone", False, 16),
        ("torch", True, 14),
        ("oak_fence", False, 16),
        ("oak_slab", False, 16),
        ("cobblestone_wall", False, 16),
    ],
)
def test_the_post_of_a_wall_in_a_row(blocks, put, above, has_post, height):
    wall_row(put, above)
    found = outline(blocks, 8, 9, 8)
    assert (POST in found) == has_post
    assert (5, 0, 5, 16, height, 11) in found


def test_posts_stand_at_ends_corners_and_below_posts(blocks, put):
    wall_row(put)
    assert POST in outline(blocks, 7, 9, 8)
    put(8, 9, 7, "cobblestone_wall")
    assert POST in outline(blocks, 8, 9, 8)
    put(8, 9, 9, "cobblestone_wall")  # a cross needs none
    assert POST not in outline(blocks, 8, 9, 8)
    for layer in range(10, HEIGHT):  # the highest has a post, and so have all below
        put(8, layer, 8, "cobblestone_wall")
    assert POST in outline(blocks, 8, 9, 8)


def test_shapes_at_the_borders_of_the_world(blocks, put):
    for y in (0, HEIGHT - 1):
        for name in ("cobblestone_wall", "oak_stairs", "oak_fence", "chorus_plant"):
            put(3, y, 3, name)
            assert SHAPES[shape_at(blocks, 3, y, 3)].body
