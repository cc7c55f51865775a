"""Kinds and states in 16 bits: the numbers, the families' table, what blocks stop and bear."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from rllib_minestudio.env.voxel.world.blocks import (
    AIR,
    BLOCK_ID,
    BLOCKS,
    FAMILIES,
    FAMILY_OF,
    KIND_MASK,
    MOST_STATES,
    PLANTS,
    STATE_SHIFT,
    THIN_KINDS,
    BlockFilter,
    Shape,
    bears,
    block_of,
    covers,
    is_opaque,
    is_replaceable,
    is_thin,
    kind_of,
    lands,
    needs_others,
    optics_of,
    properties_of,
    states_of,
    stops_rays,
    turned_to,
)

FACTS = Path(__file__).parents[5] / "shared" / "data" / "minecraft_1_16_5"
ALL = [block for kind in range(len(BLOCKS)) for block in states_of(kind)]


def test_every_combination_of_properties_has_a_number_of_its_own():
    for kind, family in enumerate(FAMILY_OF):
        found = set()
        for values in product(*family.stored.values()):
            properties = dict(zip(family.stored, values, strict=True))
            block = block_of(kind, properties)
            assert kind_of(block) == kind and properties_of(block) == properties
            found.add(block)
        assert found == set(states_of(kind)) and max(found) < 1 << 16
        assert family.size <= MOST_STATES


def test_a_kind_is_also_the_block_in_its_default_state():
    assert AIR == 0
    furnace = BLOCK_ID["furnace"]
    assert properties_of(furnace) == {"facing": "north", "lit": "false"}
    assert block_of(furnace, {}) == furnace
    east = turned_to(furnace, facing="east")
    assert east == furnace | 3 << STATE_SHIFT and east & KIND_MASK == furnace
    assert turned_to(turned_to(east, lit="true"), facing="north", lit="false") == furnace


def test_what_a_family_does_not_store_is_an_error():
    with pytest.raises(KeyError, match="does not store shape"):
        block_of(BLOCK_ID["oak_stairs"], {"shape": "straight"})
    with pytest.raises(ValueError, match="up"):
        block_of(BLOCK_ID["oak_stairs"], {"facing": "up"})


def test_every_family_has_kinds_and_every_block_a_number_of_its_own():
    assert set(FAMILIES) == {family for family in FAMILY_OF if family.name}
    assert len(set(ALL)) == len(ALL)


def test_predicates_by_kind_and_state():
    snow = BLOCK_ID["snow"]
    assert is_replaceable(snow) and not is_replaceable(turned_to(snow, layers="2"))
    for block in ALL:
        assert covers(block) or not stops_rays(block)  # box_field._mark relies on it
        something, thin = kind_of(block) != AIR, kind_of(block) in THIN_KINDS
        assert is_thin(block) == thin
        has_body = something and not thin
        assert stops_rays(block) == (has_body and block != snow)
        assert covers(block) == (has_body or kind_of(block) == BLOCK_ID["cobweb"])
        assert not thin or not is_opaque(optics_of(block))
    for predicate in (covers, is_replaceable, is_thin):
        of_all = predicate(np.array(ALL, np.uint16))
        assert of_all.tolist() == [bool(predicate(block)) for block in ALL]
    assert is_replaceable(AIR) and not bears(AIR)
    assert bears(BLOCK_ID["stone"]) and not bears(BLOCK_ID["tall_grass"])
    assert bears(BLOCK_ID["poppy"]) and not lands(BLOCK_ID["poppy"])
    for name in ("torch", "oak_door", "red_bed", "poppy", "rail", "tall_grass", "cactus"):
        assert needs_others(BLOCK_ID[name])
    assert not needs_others(BLOCK_ID["cobweb"]) and not needs_others(BLOCK_ID["oak_stairs"])


def test_plants_grow_on_something_and_break_at_a_touch():
    of_soil = {kind for kind, family in enumerate(FAMILY_OF) if family.support.startswith("soil")}
    assert of_soil <= set(PLANTS)
    for kind, plant in PLANTS.items():
        assert (kind in of_soil) <= bool(plant.soils or plant.on_full_sides), BLOCKS[kind].name
    hard = {BLOCKS[kind].name for kind in THIN_KINDS if BLOCKS[kind].hardness}
    assert hard == {"cobweb", "bamboo_sapling"}


def test_a_filter_fits_the_states_with_the_given_properties():
    kind = BLOCK_ID["oak_door"]
    wanted = {"half": "upper", "open": "true"}
    states = BlockFilter.of(kind, wanted).states
    for block in states_of(kind):
        fits = wanted.items() <= properties_of(block).items()
        assert (states >> (block >> STATE_SHIFT) & 1) == fits
    assert BlockFilter.of(kind, {}).states == (1 << FAMILY_OF[kind].size) - 1


@pytest.mark.skipif(not FACTS.is_dir(), reason="the facts do not lie beside the repository")
def test_properties_are_those_of_the_game():
    facts = json.loads((FACTS / "block_states.json").read_text())
    assert set(facts) == set(BLOCK_ID)
    for name, fact in facts.items():
        family = FAMILY_OF[BLOCK_ID[name]]
        known = {**family.stored, **family.derived, **family.refused}
        if BLOCKS[BLOCK_ID[name]].shape in (Shape.REFUSED, Shape.NONE):
            assert not known, name
            continue
        assert {key: set(values) for key, values in known.items()} == {
            key: set(values) for key, values in fact["properties"].items()
        }, name
        # Nothing is under water here.
        defaults = {**fact["default"], **dict.fromkeys({"waterlogged"} & set(known), "false")}
        assert {key: values[0] for key, values in known.items()} == defaults, name
