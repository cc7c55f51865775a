"""What blocks do to light: reference points of the game, and that the table names real blocks."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.world.blocks import (
    BLOCK_ID,
    BLOCKS,
    DOWN,
    SIDES,
    UP,
    block_of,
    closes,
    covers,
    dims_sky,
    emission,
    is_opaque,
    optics_of,
    states_of,
)


def optics(name: str, **properties: str) -> int:
    return int(optics_of(block_of(BLOCK_ID[name], properties)))


@pytest.mark.parametrize(
    ("name", "properties", "light"),
    [
        ("torch", {}, 14),
        ("wall_torch", {"facing": "east"}, 14),
        ("soul_torch", {}, 10),
        ("glowstone", {}, 15),
        ("lantern", {"hanging": "true"}, 15),
        ("soul_lantern", {}, 10),
        ("furnace", {}, 0),
        ("furnace", {"facing": "west", "lit": "true"}, 13),
        ("redstone_ore", {}, 0),
        ("redstone_ore", {"lit": "true"}, 9),
        ("redstone_lamp", {}, 0),
        ("redstone_lamp", {"lit": "true"}, 15),
        ("redstone_torch", {"lit": "true"}, 7),
        ("redstone_torch", {"lit": "false"}, 0),
        ("campfire", {"lit": "true"}, 15),
        ("campfire", {"lit": "false"}, 0),
        ("soul_campfire", {"lit": "true"}, 10),
        ("respawn_anchor", {}, 0),
        ("respawn_anchor", {"charges": "3"}, 11),
        ("ender_chest", {"facing": "south"}, 7),
        ("magma_block", {}, 3),
        ("crying_obsidian", {}, 10),
        ("shroomlight", {}, 15),
        ("brown_mushroom", {}, 1),
        ("red_mushroom", {}, 0),
        ("sea_pickle", {"pickles": "4"}, 0),  # it shines under water only, and there is none
        ("stone", {}, 0),
        ("air", {}, 0),
    ],
)
def test_emission(name: str, properties: dict[str, str], light: int) -> None:
    assert emission(optics(name, **properties)) == light


@pytest.mark.parametrize(
    ("opacity", "names"),
    [
        (0, "air glass red_stained_glass torch oak_fence farmland grass_path chest grass"),
        (1, "oak_leaves birch_leaves ice slime_block cobweb water honey_block"),
        (15, "stone glowstone furnace packed_ice oak_log tnt sea_lantern"),
    ],
)
def test_opacity(opacity: int, names: str) -> None:
    for name in names.split():
        word = optics(name)
        assert (bool(dims_sky(word)), bool(is_opaque(word))) == (opacity > 0, opacity == 15), name


@pytest.mark.parametrize(
    ("name", "properties", "sides"),
    [
        ("oak_slab", {"type": "bottom"}, "down"),
        ("stone_slab", {"type": "top"}, "up"),
        ("oak_stairs", {"facing": "east", "half": "bottom"}, "down east"),
        ("oak_stairs", {"facing": "north", "half": "top"}, "up north"),
        ("farmland", {"moisture": "7"}, "down"),
        ("grass_path", {}, "down"),
        ("snow", {"layers": "2"}, "down"),
        ("glass", {}, ""),
        ("oak_fence", {}, ""),
    ],
)
def test_full_sides(name: str, properties: dict[str, str], sides: str) -> None:
    word = optics(name, **properties)
    assert {side for number, side in enumerate(SIDES) if closes(word, number)} == {*sides.split()}
    assert not is_opaque(word)


def test_full_in_one_state_only() -> None:
    assert is_opaque(optics("oak_slab", type="double")) and not is_opaque(optics("oak_slab"))
    assert is_opaque(optics("snow", layers="8")) and not is_opaque(optics("snow", layers="7"))


def test_what_dims_the_sky_counts_as_the_highest_block_of_its_column() -> None:
    """The search for a column's floor begins there."""
    for kind in range(len(BLOCKS)):
        for block in states_of(kind):
            word = optics_of(block)
            assert covers(block) or not (dims_sky(word) or closes(word, UP) or closes(word, DOWN))


def test_arrays_are_answered_as_blocks_are() -> None:
    blocks = np.array([block for kind in range(len(BLOCKS)) for block in states_of(kind)])
    for ask in (emission, is_opaque, dims_sky, lambda word: closes(word, UP)):
        assert ask(optics_of(blocks)).tolist() == [ask(optics_of(block)) for block in blocks]


def test_the_table_names_kinds_that_exist() -> None:
    for row in read_csv("block_light.csv"):
        for word in row["kinds"].split():
            assert word in BLOCK_ID or any(name.endswith(word[1:]) for name in BLOCK_ID), word
            assert word in BLOCK_ID or word[0] == "*", word
