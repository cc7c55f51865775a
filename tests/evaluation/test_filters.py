"""Filters label what they should, combine, and complain where the mistake is."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.filters import EpisodeFilter, Every, InfoBaseFilter, parse_filter


def episode(**facts) -> EvaluatedEpisode:
    defaults = {"index": 0, "seed": 0, "task": "hunt_cow", "length": 200, "undiscounted_return": 4}
    return EvaluatedEpisode(**{**defaults, **facts})


HUNT = episode(
    success=True,
    truncated=True,
    first_info={"kill_entity": {"cow": 2}},
    info={
        "kill_entity": {"cow": 5, "sheep": 1},
        "mine_block": {"minecraft:diamond_ore": 1, "coal_ore": 2, "dirt": 9},
        "player_pos": {"x": -3.5, "y": 11.0, "z": 0.0},
        "equipped_items": {"mainhand": {"type": "minecraft:iron_sword"}},
        "health": 20.0,
        "inventory": {0: {"quantity": 3}},
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


CONDITIONS = st.sampled_from(
    ["success", "length>150", "kill_entity:cow>=3", "held:*_sword", "y<12", "return<=-0.5"]
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
    one = episode(length=length, success=success, info=HUNT.info)
    assert parse_filter(str(found)).accepts(one) == found.accepts(one)
