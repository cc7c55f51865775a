"""Aggregates over tasks: rliable's numbers, closed forms, and what a comparison prints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.aggregates import (
    Aggregates,
    export_to_rliable,
    improvement_interval,
    interquartile_mean,
    interquartile_mean_interval,
    performance_profile,
    probability_of_improvement,
)

# What rliable 1.2.0 computes from these matrices, runs by tasks: get_interval_estimates of
# aggregate_iqm (20,000 resamples) and probability_of_improvement(y, x) (5,000), and
# create_performance_profile at 0.25, 0.5 and 0.75.
MATRICES = {
    "x": [
        [0.38, 0.77, 0.74, 0.55, 0.52],
        [0.41, 0.31, 0.23, 0.51, 0.35],
        [0.24, 0.55, 0.54, 0.23, 0.7],
        [0.2, 0.43, 0.45, 0.85, 0.82],
        [0.82, 0.25, 0.6, 0.16, 0.56],
        [0.51, 0.32, 0.3, 0.36, 0.19],
        [0.76, 0.61, 0.48, 0.48, 0.69],
    ],
    "y": [
        [0.67, 1.0, 0.84, 0.21, 1.0],
        [0.84, 0.09, 0.74, 0.62, 0.0],
        [0.21, 0.5, 1.0, 0.09, 0.72],
        [0.22, 0.42, 0.28, 1.0, 1.0],
        [1.0, 0.07, 0.36, 0.3, 0.45],
        [0.42, 0.0, 0.99, 0.73, 0.0],
    ],
}
IQM = {"x": 0.4694736842105262, "y": 0.52}
IQM_INTERVAL = {"x": [0.391053, 0.554211], "y": [0.35125, 0.71125]}
IMPROVEMENT, IMPROVEMENT_INTERVAL = 0.5404761904761904, [0.385714, 0.695238]
PROFILE = {"x": [0.8, 0.4857142857142857, 0.14285714285714285], "y": [0.7, 0.4666666666666667, 0.3]}

SCORES = {name: list(np.array(matrix).T) for name, matrix in MATRICES.items()}
LEVELS = (0.25, 0.5, 0.75)


@pytest.mark.parametrize("name", SCORES)
def test_interquartile_means_and_profiles_are_rliables(name):
    assert interquartile_mean(SCORES[name]) == pytest.approx(IQM[name], abs=1e-12)
    assert performance_profile(SCORES[name], LEVELS) == pytest.approx(PROFILE[name])
    # Two bootstraps of the same distribution differ by their resamples.
    assert interquartile_mean_interval(SCORES[name]) == pytest.approx(IQM_INTERVAL[name], abs=0.02)


def test_the_probability_of_improvement_is_rliables():
    x, y = SCORES["x"], SCORES["y"]
    assert probability_of_improvement(y, x) == pytest.approx(IMPROVEMENT, abs=1e-12)
    assert improvement_interval(y, x) == pytest.approx(IMPROVEMENT_INTERVAL, abs=0.02)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=4))
def test_nobody_improves_on_themselves_and_both_directions_add_up_to_one(found):
    scores = [np.array(one, float) for one in found]
    others = [one[::-1] + 0.5 for one in scores]
    assert probability_of_improvement(scores, scores) == pytest.approx(0.5)
    both = probability_of_improvement(scores, others) + probability_of_improvement(others, scores)
    assert both == pytest.approx(1.0)


def test_tasks_may_have_different_numbers_of_episodes():
    few, many = [np.array([1.0]), np.arange(9.0)], [np.array([0.0]), np.arange(9.0)]
    assert probability_of_improvement(few, many) == 0.75
    assert improvement_interval(few, many)[0] > 0.5
    low, high = interquartile_mean_interval(few)
    assert low < interquartile_mean(few) < high


def test_a_table_has_a_row_per_player_and_levels_between_the_extremes():
    found = Aggregates.of("progress", ("old", "new"), [np.zeros(8)], [np.ones(8)])
    assert found.levels == LEVELS
    assert found.profiles == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    assert (found.improvement, found.improvement_interval) == (1.0, (1.0, 1.0))
    table = found.table()
    assert [row[:2] for row in table.rows] == [("old", "0.00"), ("new", "1.00")]
    assert "new improves on old with probability 1.00" in table.notes


def test_the_export_is_a_matrix_of_runs_by_tasks(tmp_path):
    export_to_rliable(tmp_path / "rliable.npz", SCORES)
    with np.load(tmp_path / "rliable.npz") as loaded:
        for name, matrix in MATRICES.items():
            np.testing.assert_array_equal(loaded[name], np.array(matrix))
    with pytest.raises(MineStudioError, match="different numbers of episodes"):
        export_to_rliable(tmp_path / "r.npz", {"x": [np.zeros(2), np.zeros(3)]})
    assert not (tmp_path / "r.npz").exists()
