"""The numbers on a progress line."""

import copy
import pickle
from types import SimpleNamespace

import pytest
from ray.tune.experiment import Trial

from rllib_minestudio.experiments import progress
from rllib_minestudio.experiments.progress import (
    Lines,
    TrainingProgress,
    evaluation_line,
    fraction_done,
    seconds_left,
)
from rllib_minestudio.experiments.result_metrics import metric
from rllib_minestudio.foundation.console import clock, counted

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


def cells(result, stop, pace=None, random_return=None):
    """What a line has below each label."""
    lines = Lines(stop, random_return)
    header, line = lines.header(result), lines.line(result, pace)
    assert len(header) == len(line) <= 80
    return dict(zip(header.split(), line.split(), strict=True))


def test_a_line_shows_counts_first_and_the_return_beside_the_random_policys():
    found = cells(RESULT, {"time_total_s": 600}, 1234.0, random_return=1.31)
    labels = ["iter", "steps", "steps/s", "return", "random", "entropy", "time", "left"]
    assert list(found) == labels
    assert list(found.values()) == ["5", "12,000", "1,234", "2.50", "1.31", "0.25", "1:00", "9:00"]


def test_a_column_is_there_if_the_first_result_has_it_and_a_dash_for_what_is_missing_later():
    lines = Lines({}, None)
    with_kl = copy.deepcopy(RESULT)
    with_kl["learners"]["default_policy"]["kl_to_prior"] = 0.5
    assert "kl" in lines.header(with_kl).split()
    assert lines.line(RESULT, None).split() == [
        "5",
        "12,000",
        "-",
        "2.50",
        "-",
        "0.25",
        "1:00",
        "-",
    ]


def test_a_line_about_cloning_shows_its_losses():
    losses = {"loss": 2.0, "buttons": 1.5, "validation_loss": 2.25}
    found = cells({**RESULT, "learners": {"default_policy": losses}}, {})
    assert (found["loss"], found["held-out"]) == ("2.000", "2.250")


def test_the_callback_survives_the_pickling_that_resume_relies_on():
    state = {"stop": {"training_iteration": 3}, "searched": [("lr",)], "random_return": 1.5}
    copy = pickle.loads(pickle.dumps(TrainingProgress(**state)))
    assert copy.__getstate__() == state


@pytest.mark.parametrize(("seconds", "text"), [(5.9, "0:05"), (65, "1:05"), (3661, "1:01:01")])
def test_durations(seconds, text):
    assert clock(seconds) == text


class Trials:
    """Two trials as Tune has them, and what they tell of themselves."""

    def __init__(self, monkeypatch):
        names = {"a": Trial.RUNNING, "b": Trial.PENDING}
        self.all = [
            SimpleNamespace(
                trial_id=name,
                storage=SimpleNamespace(trial_dir_name=name),
                status=status,
                last_result={},
                config={"lr": name},
            )
            for name, status in names.items()
        ]
        self.doing = {"a": "collecting: fragment 5 of 32", "b": ""}
        self.now = 0.0
        monkeypatch.setattr(progress, "activity_of", self.doing.get)
        monkeypatch.setattr(progress, "warnings_of", lambda key: [])
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.callback = TrainingProgress({"training_iteration": 9}, [("lr",)])

    def look(self, seconds):
        self.now += seconds
        self.callback.on_step_begin(iteration=0, trials=self.all)


def test_an_iteration_that_takes_long_says_what_it_is_doing(monkeypatch, capsys):
    trials = Trials(monkeypatch)
    trials.look(0)
    assert capsys.readouterr().out == ""
    trials.look(6)
    assert capsys.readouterr().out == "    1  collecting: fragment 5 of 32, for 0:06  [lr=a]\n"
    trials.look(2)
    assert capsys.readouterr().out == ""  # not so soon after the last line


def test_a_result_begins_the_next_iteration_and_its_line_is_not_held_back(monkeypatch, capsys):
    trials = Trials(monkeypatch)
    trials.look(0)
    trials.look(6)
    result = {"training_iteration": 1, "time_total_s": 7.0}
    trials.all[0].last_result = result
    trials.callback.on_trial_result(
        iteration=0, trials=trials.all, trial=trials.all[0], result=result
    )
    within, header, of_result = capsys.readouterr().out.splitlines()
    assert "collecting" in within and "steps/s" in header and "[lr=a]" in of_result
    trials.doing["a"] = "learning (minibatch 3 of 8)"
    trials.look(4)
    assert capsys.readouterr().out == ""
    trials.look(2)
    assert "    2  learning (minibatch 3 of 8), for 0:06" in capsys.readouterr().out


def test_a_trial_whose_process_starts_is_told_about_and_one_that_waits_is_not(monkeypatch, capsys):
    trials = Trials(monkeypatch)
    trials.all[0].status, trials.doing["a"] = Trial.PENDING, ""
    trials.look(0)
    trials.look(6)
    assert capsys.readouterr().out == "    1  starting its process, for 0:06  [lr=a]\n"
    trials.doing["a"] = "starting env runners and learners"
    trials.look(6)
    assert "    1  starting env runners" in capsys.readouterr().out


EVALUATED = {
    **RESULT,
    "evaluation": {
        "env_runners": {
            "num_episodes": 20.0,
            "episode_return_mean": 7.1,
            "success_rate": 0.85,
            "success_rate_low": 0.64,
            "success_rate_high": 0.95,
            "seconds": 12.5,
        }
    },
}


def test_an_evaluation_is_told_once_however_soon_it_comes(monkeypatch, capsys):
    trials = Trials(monkeypatch)
    for result in (RESULT, EVALUATED, EVALUATED):
        trials.callback.on_trial_result(0, trials.all, trials.all[0], result)
    header, _, evaluated = capsys.readouterr().out.splitlines()
    assert "steps/s" in header
    expected = "    5  evaluated 20 episodes: return 7.10, success 85% (64% to 95%)"
    assert evaluated == f"{expected}  [lr=a]"
    without = copy.deepcopy(EVALUATED)
    del without["evaluation"]["env_runners"]["success_rate"]
    assert evaluation_line(without) == expected.partition(", success")[0]
    assert evaluation_line(RESULT) is None


@pytest.mark.parametrize(("kl", "shown"), [(-1e-5, "0.000"), (-0.02, "-0.020")])
def test_what_rounds_to_zero_has_no_sign(kl, shown):
    result = {**RESULT, "learners": {"default_policy": {"kl_to_prior": kl}}}
    assert cells(result, {})["kl"] == shown


def test_numbers_agree_with_their_nouns():
    assert [counted(n, "success") for n in (0, 1, 2)] == ["0 successes", "1 success", "2 successes"]
    assert counted(1200, "episode") == "1,200 episodes"
