"""The numbers on a progress line."""

import pickle

import pytest

from rllib_minestudio.console import clock
from rllib_minestudio.experiments.outputs.progress import (
    TrainingProgress,
    fraction_done,
    progress_line,
    seconds_left,
)
from rllib_minestudio.experiments.outputs.result_metrics import metric

RESULT = {
    "training_iteration": 5,
    "time_total_s": 60.0,
    "num_env_steps_sampled_lifetime": 12_000,
    "env_runners": {"episode_return_mean": 2.5},
    "learners": {"default_policy": {"entropy": 0.25, "kl_to_prior": float("nan")}},
    "busy_fraction": {"learner": 0.25},
}


def test_metrics_that_are_absent_or_not_a_number_are_none():
    assert metric(RESULT, "env_runners/episode_return_mean") == 2.5
    assert metric(RESULT, "learners/default_policy/kl_to_prior") is None
    assert metric(RESULT, "replay_buffer/staleness_mean") is None


def test_the_nearest_criterion_decides_how_far_a_run_is():
    stop = {"time_total_s": 120, "training_iteration": 20, "env_runners/episode_return_mean": 2.6}
    assert fraction_done(RESULT, stop) == 0.5
    assert seconds_left(RESULT, stop) == pytest.approx(60.0)


def test_without_a_steady_criterion_there_is_no_estimate():
    assert seconds_left(RESULT, {"env_runners/episode_return_mean": 3}) is None


def test_a_line_shows_what_is_known_and_a_dash_for_the_rest():
    line = progress_line(RESULT, {"time_total_s": 600}, steps_per_second=200.0)
    for part in (
        "iteration    5",
        "12,000 steps",
        "200 steps/s",
        "return 2.50",
        "kl -",
        "learner busy 25%",
        "1:00",
    ):
        assert part in line
    assert "9:00 left" in line


def test_a_line_about_cloning_shows_its_losses():
    losses = {"loss": 2.0, "buttons": 1.5, "validation_loss": 2.25}
    result = {**RESULT, "learners": {"default_policy": losses}}
    line = progress_line(result, {}, steps_per_second=None)
    assert "return 2.50  loss 2.000  validation loss 2.250" in line
    assert "staleness" not in line


def test_the_callback_survives_the_pickling_that_resume_relies_on():
    copy = pickle.loads(pickle.dumps(TrainingProgress({"training_iteration": 3}, [("lr",)])))
    assert copy.__getstate__() == {"stop": {"training_iteration": 3}, "searched": [("lr",)]}


@pytest.mark.parametrize(("seconds", "text"), [(5.9, "0:05"), (65, "1:05"), (3661, "1:01:01")])
def test_durations(seconds, text):
    assert clock(seconds) == text
