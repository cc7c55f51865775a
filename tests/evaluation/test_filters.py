"""Filters label what they should, combine, and complain where the mistake is."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_options import EvaluationOptions
from rllib_minestudio.evaluation.filters import (
    WORLD_FACTS,
    EpisodeFilter,
    Every,
    InfoBaseFilter,
    WorldFact,
    parse_filter,
    parse_quantity,
)


def episode(**facts) -> EvaluatedEpisode:
    defaults = {"index": 0, "seed": 0, "task": "hunt_cow", "length": 200, "undiscounted_return": 4}
    return EvaluatedEpisode(**{**defaults, **facts})


HUNT = episode(
    success=True,
    truncated=True,
    first_info={
        "kill_entity": {"cow": 2},
        "player_pos": {"x": -6.5, "y": 13.0, "z": 4.0},
    },
    info={
        "kill_entity": {"cow": 5, "sheep": 1},
        "mine_block": {"minecraft:diamond_ore": 1, "coal_ore": 2, "dirt": 9},
        "player_pos": {"x": -3.5, "y": 11.0, "z": 0.0},
        "equipped_items": {
            "mainhand": {"type": "minecraft:iron_sword"},
            "offhand": {"type": "shield"},
            "head": {"type": "iron_helmet"},
            "chest": {"type": "air"},
        },
        "health": 20.0,
        "inventory": {
            0: {"type": "oak_planks", "quantity": 3},
            1: {"type": "none", "quantity": 0},
            5: {"type": "minecraft:birch_planks", "quantity": 4},
        },
        WORLD_FACTS: {"placed:*_planks@near": 2, "inside:cobweb": 1, "block:dirt@0,-1,0": 0},
    },
)


def is_long(candidate: EvaluatedEpisode) -> bool:
    return candidate.length >= 200


@pytest.mark.parametrize(
    "text, expected",
    [
        ("kill_entity:cow>=3", True),
        ("kill_entity:cow>=4", False),
        ("kill_entity:*==4", True),
        ("kill_entity:pig<1", True),
        ("mine_block:*_ore==3", True),
        ("mine_block:minecraft:diamond_ore>0", True),
        ("mine_block:diamond_ore>0", True),
        ("pickup:beef>=1", False),
        ("return>3.5 and length<=200", True),
        ("return > 4 or success", True),
        ("not success", False),
        ("not terminated and truncated", True),
        ("held:*_sword", True),
        ("held:iron_axe", False),
        ("y<12 and x>-4 and z==0", True),
        ("y<1e1", False),
        ("health>=20", True),
        ("info:inventory.0.quantity==3", True),
        ("info:no.such.path!=3", False),
        ("distance==5", True),  # 3 along x, 4 along z
        ("height==-2", True),
        ("alive==200", True),
        ("has:*_planks==7", True),
        ("has:oak_planks>3", False),
        ("has:iron_helmet==1 and has:shield==1", True),
        ("has:*==9", True),
        ("worn:iron_*", True),
        ("worn:iron_sword", False),
        ("placed:*_planks@near>=2 and inside:cobweb", True),
        ("block:dirt@0,-1,0==0", True),
        ("placed:stone@near<1", False),  # nobody has asked the game
        ("not inside:water", True),
        ("task:hunt_*", True),
        ("function:tests.evaluation.test_filters.is_long", True),
        ("not (success or length<100)", False),
        ("not success or length>=200", True),
        ("success or success and terminated", True),
    ],
)
def test_conditions(text, expected):
    assert parse_filter(text).accepts(HUNT) is expected


def test_counts_from_before_the_reset_do_not_count():
    assert InfoBaseFilter("kill_entity", "cow", 3).accepts(HUNT)
    assert not InfoBaseFilter("kill_entity", "cow", 4).accepts(HUNT)


def test_minestudios_filter_matches_from_the_beginning_or_exactly():
    assert InfoBaseFilter(key="mine_block", regex=".*diamond_ore.*", num=1).accepts(HUNT)
    assert not InfoBaseFilter(key="mine_block", regex="ore", num=1).accepts(HUNT)
    assert InfoBaseFilter(key="mine_block", val="dirt", num=9).accepts(HUNT)
    assert not InfoBaseFilter(key="mine_block", val="dir", num=1).accepts(HUNT)
    with pytest.raises(InvalidOptionsError, match="either regex or val"):
        InfoBaseFilter(key="mine_block")
    with pytest.raises(InvalidOptionsError, match="no regular expression"):
        InfoBaseFilter(key="mine_block", regex="*(")


def test_filtering_streams_labels_and_drops_nothing():
    pulled = []

    def stream():
        for length in (100, 300):
            pulled.append(length)
            yield episode(length=length)

    labelled = InfoBaseFilter("kill_entity", "cow", 1, label="hunted").filter(
        parse_filter("length>200").filter(stream())
    )
    first = next(labelled)
    assert pulled == [100]
    assert first.labels == {"status": "no", "hunted": "no"}
    assert next(labelled).labels == {"status": "yes", "hunted": "no"}


def test_a_failed_episode_is_no_success_whatever_the_filter():
    (labelled,) = Every().filter([episode(error="the engine died", success=True)])
    assert labelled.labels == {"status": "no"} and not labelled.counts_as_success


@pytest.mark.parametrize(
    "text, column, message",
    [
        ("return>1 and kil_entity:cow>=3", 14, "unknown quantity 'kil_entity'. Did you mean 'kill"),
        ("kill_entity>=3", 12, "expected ':' after 'kill_entity', as in kill_entity:cow"),
        ("kill_entity:>=3", 13, "expected a name or a pattern after 'kill_entity:'"),
        ("kill_entity:cow", 16, "expected one of >= <= == != > < after 'cow', found the end."),
        ("length>=", 9, "expected a number after '>=', found the end."),
        ("length>=many", 9, "expected a number"),
        ("length=3", 7, "'=' is no comparison. Did you mean '=='?"),
        ("(success or length>3", 21, r"expected '\)', found the end."),
        ("success length>3", 9, "expected 'and', 'or', or the end"),
        ("success and", 12, "expected a condition"),
        ("", 1, "expected a condition"),
        ("success & truncated", 9, "unexpected character"),
        ("placed:dirt>=1", 8, "the box '@' must be @near, or @x0..x1,y0..y1,z0..z1"),
        ("placed:dirt@0..1,2>=1", 8, "the box '@0..1,2' must be @near"),
        ("placed:dirt@3..1,0,0>=1", 8, "lowest first"),
        ("block:dirt@0,0,49>=1", 7, "at most 48 away"),
        ("block:dirt@-20..20,-20..20,-20..20>=1", 7, "32768 blocks in all"),
        ("block:@near>=1", 7, "expected a name or a pattern after 'block:'"),
        ("placed>=1", 7, r"as in placed:\*_planks@near>=3"),
        ("structure:pillar@near>=1", 11, "only placed and block are followed by a box"),
        ("inside:cobweb>=1", 14, "expected 'and', 'or', or the end"),
        ("function:no.such.module", 10, "cannot be imported"),
        ("function:tests.evaluation.test_filters.HUNT", 10, "is no function"),
    ],
)
def test_mistakes_are_pointed_at(text, column, message):
    with pytest.raises(InvalidOptionsError, match=message) as caught:
        parse_filter(text)
    first, shown, arrow = str(caught.value).rsplit("\n", 2)
    assert first.startswith(f"filter, column {column}: ")
    assert shown == f"  {text}" and arrow.index("^") == column + 1


def test_a_dead_player_has_lived_for_no_step():
    dead = episode(info={"health": 0.0}, terminated=True)
    assert not parse_filter("alive>=1").accepts(dead)
    assert parse_filter("alive==0").accepts(dead)


def test_what_an_info_does_not_tell_meets_no_comparison():
    for text in ("distance", "height", "alive"):
        assert parse_quantity(text).measured(episode()) is None
        assert not parse_filter(f"{text}>=0 or {text}<0").accepts(episode())


def test_a_quantity_alone():
    assert parse_quantity("kill_entity:cow").measured(HUNT) == 3
    assert str(parse_quantity("info:player_pos.y")) == "y"
    with pytest.raises(InvalidOptionsError, match="quantity, column 7: expected the end"):
        parse_quantity("return>1")
    with pytest.raises(InvalidOptionsError, match=r"one of .* Did you mean 'h"):
        parse_quantity("heigth")
    with pytest.raises(InvalidOptionsError, match="expected a quantity"):
        parse_quantity("success")


def test_facts_are_gathered_from_all_parts():
    text = "placed:dirt@near>=1 and (not inside:cobweb or chest:stick>=1) and return>1"
    box = ((-8, 8), (-8, 8), (-8, 8))
    expected = {
        WorldFact("placed", "dirt", box),
        WorldFact("inside", "cobweb"),
        WorldFact("chest", "stick"),
    }
    assert parse_filter(text).needed_facts() == expected
    assert parse_quantity("structure:pillar").needed_facts() == {WorldFact("structure", "pillar")}
    assert not parse_filter("return>1 or not has:dirt>=1").needed_facts()


def test_an_evaluation_refuses_what_only_a_judge_is_told():
    with pytest.raises(InvalidOptionsError, match="'inside:cobweb' is a fact of the world"):
        EvaluationOptions.from_mapping({"filter": "return>1 and not inside:cobweb"})


SPANS = st.tuples(st.integers(-48, 48), st.integers(0, 20)).map(
    lambda span: (span[0], min(span[0] + span[1], 48))
)


@given(SPANS, SPANS, SPANS)
def test_a_box_reads_as_it_is_written(x, y, z):
    fact = WorldFact("placed", "minecraft:*_planks", (x, y, z))
    assert parse_quantity(fact.key).needed_facts() == {fact}


@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4), st.floats(-200, 200), st.floats(-7, 7))
def test_distance_is_horizontal_and_the_same_in_every_direction(x, z, climbed, angle):
    def place(right, up, ahead):
        return {"player_pos": {"x": x + right, "y": 64.0 + up, "z": z + ahead}}

    walked = (3.0 * math.cos(angle), 3.0 * math.sin(angle))
    moved = episode(first_info=place(0.0, 0.0, 0.0), info=place(walked[0], climbed, walked[1]))
    assert parse_quantity("distance").measured(moved) == pytest.approx(3.0, abs=1e-6)
    assert parse_quantity("height").measured(moved) == pytest.approx(climbed, abs=1e-6)


CONDITIONS = st.sampled_from(
    [
        *("success", "length>150", "kill_entity:cow>=3", "held:*_sword", "y<12", "return<=-0.5"),
        *("distance>3", "has:*_planks>=2", "placed:*_planks@near>=2", "inside:cobweb", "worn:a*"),
    ]
).map(parse_filter)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: (
        st.builds(operator.and_, inner, inner)
        | st.builds(operator.or_, inner, inner)
        | st.builds(operator.invert, inner)
    ),
    max_leaves=8,
)


@given(FILTERS, st.integers(100, 200), st.booleans())
def test_what_is_printed_means_the_same(found: EpisodeFilter, length, success):
    one = episode(length=length, success=success, info=HUNT.info, first_info=HUNT.first_info)
    assert parse_filter(str(found)).accepts(one) == found.accepts(one)
    assert parse_filter(str(found)).needed_facts() == found.needed_facts()
