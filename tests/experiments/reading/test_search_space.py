"""Search spaces written in YAML."""

import pytest

from rllib_minestudio.experiments.experiment_file import value_at
from rllib_minestudio.experiments.plan import parse_search_space, searched_paths, variants


def parse(value):
    problems = []
    return parse_search_space(value, "cow.config", problems), problems


def test_a_grid_expands_at_any_depth():
    space, problems = parse(
        {
            "lr": {"grid_search": [1e-4, 3e-4]},
            "env_config": {"callbacks": [{"JudgeReset": {"time_limit": {"grid_search": [5, 6]}}}]},
            "gamma": 0.9,
        }
    )
    limit_path = ("env_config", "callbacks", 0, "JudgeReset", "time_limit")
    assert problems == []
    assert searched_paths(space) == [("lr",), limit_path]
    members = [(v["lr"], value_at(v, limit_path), v["gamma"]) for v in variants(space)]
    assert sorted(members) == [
        (1e-4, 5, 0.9),
        (1e-4, 6, 0.9),
        (3e-4, 5, 0.9),
        (3e-4, 6, 0.9),
    ]


@pytest.mark.parametrize(
    ("search", "low", "high"),
    [({"loguniform": [1e-5, 1e-4]}, 1e-5, 1e-4), ({"uniform": [2, 3]}, 2, 3)],
)
def test_samplers_draw_from_their_range(search, low, high):
    space, problems = parse({"lr": search})
    assert problems == []
    (variant,) = variants(space)
    assert low <= variant["lr"] <= high


def test_a_mapping_that_only_looks_like_a_search_is_left_alone():
    value = {"model": {"choice": "a", "uniform": [0, 1]}, "other": {"grid": [1]}}
    assert parse(value) == (value, [])


@pytest.mark.parametrize(
    "search",
    [
        {"grid_search": 3},
        {"grid_search": []},
        {"loguniform": [0, 1]},
        {"uniform": [1]},
        {"uniform": ["a", 2]},
        {"randint": [5, 1]},
    ],
)
def test_impossible_searches_name_their_path(search):
    _, problems = parse({"model": {"hidsize": search}})
    assert len(problems) == 1
    assert problems[0].startswith("cow.config.model.hidsize: ")
