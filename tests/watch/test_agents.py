"""A run that goes on is followed: its curve, its warnings, its newest checkpoint."""

from __future__ import annotations

import json

import pytest

from rllib_minestudio.experiments.progress import WARNINGS_FILE
from rllib_minestudio.experiments.summary import RESULTS_FILE
from rllib_minestudio.watch.agents import MOST_POINTS, TrialCourse


def line(iteration, mean=None):
    """A line of Tune's file of results."""
    runners = {} if mean is None else {"env_runners": {"episode_return_mean": mean}}
    steps = {"num_env_steps_sampled_lifetime": iteration * 100, "time_total_s": iteration * 2.0}
    return json.dumps({"training_iteration": iteration, **steps, **runners}) + "\n"


def test_the_course_of_a_trial_is_told_as_its_files_grow(tmp_path):
    course = TrialCourse(tmp_path)
    assert course.news()["training"]["curve"] == []
    assert course.news() == {}
    results = tmp_path / RESULTS_FILE
    whole, half = line(1) + line(2, 1.5), line(3, 2.5)
    results.write_text(whole + half[:20])
    told = course.news()["training"]
    assert told["curve"] == [(200.0, 1.5)] and told["steps_per_second"] == 50.0
    assert course.news() == {}
    results.write_text(whole + half)
    (tmp_path / WARNINGS_FILE).write_text("a fragment was lost\n")
    told = course.news()["training"]
    assert told["curve"] == [(200.0, 1.5), (300.0, 2.5)] and told["iteration"] == 3
    assert told["warnings"] == ["a fragment was lost"]


@pytest.mark.parametrize("count", [MOST_POINTS, 10 * MOST_POINTS + 7])
def test_a_long_curve_is_thinned_out_and_keeps_its_end(tmp_path, count):
    (tmp_path / RESULTS_FILE).write_text("".join(line(i, float(i)) for i in range(1, count + 1)))
    curve = TrialCourse(tmp_path).news()["training"]["curve"]
    assert MOST_POINTS // 2 < len(curve) <= MOST_POINTS
    assert curve[-1] == (count * 100.0, float(count))
