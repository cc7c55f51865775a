"""The survey's boxes against single blocks, in and beyond the loaded world."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.world.blocks import KIND_MASK
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS

CORNERS = st.tuples(st.integers(-40, 40), st.integers(-4, 131), st.integers(-40, 40))
SIZES = st.tuples(*(st.integers(1, 4),) * 3)


@pytest.fixture(scope="module")
def engine():
    """One for all boxes: nothing changes its world."""
    engine = VoxelEngine(frame_size=(16, 16))
    engine.reset(7)
    return engine


@given(CORNERS, SIZES)
def test_a_box_holds_its_blocks(engine, corner, size):
    x, _, z = (int(c // 1) for c in engine.player.position.tolist())
    low = (x + corner[0], corner[1], z + corner[2])
    high = tuple(start + length - 1 for start, length in zip(low, size, strict=True))
    found = engine.survey.box(low, high).block_ids()
    assert found.shape == size and found.dtype == np.uint16
    for place in np.ndindex(*size):
        at = [start + step for start, step in zip(low, place, strict=True)]
        assert found[place] == engine._game.state.world.block_at(*at) & KIND_MASK


def test_a_box_that_is_not_loaded_has_no_blocks(engine):
    x = int(engine.player.position[0] // 16) * 16
    z = int(engine.player.position[2] // 1)
    last = x + 16 * (LOAD_RADIUS + 1) - 1
    assert engine.survey.box((last - 2, 60, z), (last, 60, z)).block_ids() is not None
    assert engine.survey.box((last - 2, 60, z), (last + 1, 60, z)).block_ids() is None


def test_changes_tell_whether_a_block_has_changed():
    engine = VoxelEngine(frame_size=(16, 16))
    before = engine.survey.changes
    engine.execute("/give @s dirt")
    assert engine.survey.changes == before
    engine.execute("/setblock ~ ~5 ~ dirt")
    assert engine.survey.changes > before


def test_blocks_are_found_by_name_where_they_are():
    engine = VoxelEngine(frame_size=(16, 16))
    engine.execute("/setblock ~3 ~2 ~-4 gold_block")
    engine.execute("/setblock ~-1 ~ ~ emerald_block")
    engine.execute("/setblock ~9 ~ ~ gold_block")  # too far away
    x, y, z = (int(c // 1) for c in engine.player.position.tolist())
    survey = engine.survey
    found = survey.places_of(("gold_block", "emerald_block", "no_such_block"), 5)
    assert found == [(x - 1, y, z), (x + 3, y + 2, z - 4)]
    assert [survey.block_name(*place) for place in found] == ["emerald_block", "gold_block"]
    assert survey.block_name(x, 10_000, z) == "air"


def test_dropped_items_are_told_by_name_and_place():
    engine = VoxelEngine(frame_size=(16, 16))
    engine.execute("/give @s minecraft:stick 3")
    assert engine.survey.items_near(9.0) == []
    engine.tick({"drop": 1})
    (item,) = engine.survey.items_near(9.0)
    place = item["x"], item["y"], item["z"]
    assert item["name"] == "stick"
    assert math.dist(place, engine.player.position.tolist()) < 3.0
    assert engine.survey.items_near(0.1) == []


def test_the_nearest_biome_is_one_to_stand_in():
    engine = VoxelEngine(frame_size=(16, 16))
    engine.reset(3, "plains")
    x, z = engine.survey.nearest_biome("forest", 400)
    engine.execute(f"/tp @s {x} 90 {z}")
    assert engine.biome() == "forest"
    assert engine.survey.nearest_biome("forest", 0) == (x, z)
    engine.reset(3, "plains")
    assert engine.survey.nearest_biome("desert", 8) is None
