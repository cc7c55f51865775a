"""The `scheduler` section: judged before anything starts, and obeyed."""

import copy
import json

import pytest
import yaml

from rllib_minestudio.experiments.experiment_file import Experiment
from rllib_minestudio.experiments.sections import (
    SCHEDULERS,
    make_scheduler,
    scheduled_end,
    scheduler_options,
)
from rllib_minestudio.foundation.processes import machine_cpus
from tests.cli.tiny import TINY
from tests.processes import run_rllib

TRAIN = ("train", "file", "tiny.yaml")


def judge(section):
    problems = []
    return scheduler_options(Experiment("cow", scheduler=section), problems), problems


def test_none_is_none():
    assert judge({}) == ({}, [])
    assert make_scheduler({}) is None


def test_trials_are_compared_by_return_after_equal_steps_unless_said_otherwise():
    options, problems = judge({"asha": {"grace_period": 20_000, "max_t": 100_000}})
    assert problems == []
    scheduler = make_scheduler(options)
    assert scheduler._time_attr == "num_env_steps_sampled_lifetime"
    assert (scheduler.metric, scheduler._metric_op) == ("env_runners/episode_return_mean", 1.0)
    assert scheduled_end(options) == {"num_env_steps_sampled_lifetime": 100_000}
    options, _ = judge({"asha": {"metric": "learners/default_policy/loss", "mode": "min"}})
    assert make_scheduler(options)._metric_op == -1.0


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"ahsa": {}}, "cow.scheduler: unknown scheduler 'ahsa'"),
        ({"asha": {}, "median": {}}, "cow.scheduler must be one of asha, median_stopping_rule"),
        ({"asha": 3}, "cow.scheduler.asha must be a mapping of its arguments; got 3"),
        ({"asha": {"grace": 1}}, "cow.scheduler.asha: unknown argument 'grace'"),
        ({"asha": {"max_t": -1}}, "cow.scheduler.asha: "),
        ({"asha": {"mode": "most"}}, "cow.scheduler.asha: "),
        ({"asha": {"metric": "return"}}, "cow.scheduler.asha.metric: unknown metric 'return'."),
        ({"asha": {"time_attr": "steps"}}, "cow.scheduler.asha.time_attr: unknown metric 'steps'."),
    ],
)
def test_what_tune_would_refuse_is_refused_by_name(section, message):
    options, problems = judge(section)
    assert options == {}
    assert len(problems) == 1
    assert problems[0].startswith(message), problems


class Controller:
    """What schedulers ask of Tune's."""

    @staticmethod
    def get_live_trials():
        return []


class RunningTrial:
    """What schedulers ask of a trial."""

    status = "RUNNING"

    def __init__(self, trial_id):
        self.trial_id = trial_id


@pytest.mark.parametrize("name", SCHEDULERS)
def test_trials_without_a_finished_episode_train_on_and_do_not_disturb_the_others(name):
    scheduler = make_scheduler({name: {"grace_period": 1}})
    fast, slow, worse = map(RunningTrial, ("fast", "slow", "worse"))
    for trial in (fast, slow, worse):
        scheduler.on_trial_add(Controller, trial)

    def judged(trial, steps, **measured):
        result = {"num_env_steps_sampled_lifetime": steps, **measured}
        return scheduler.on_trial_result(Controller, trial, result)

    episode_return = "env_runners/episode_return_mean"
    assert judged(slow, 10) == "CONTINUE"
    assert judged(slow, 20, **{episode_return: float("nan")}) == "CONTINUE"
    assert judged(fast, 20, **{episode_return: 5.0}) == "CONTINUE"
    scheduler.on_trial_complete(Controller, slow, {"num_env_steps_sampled_lifetime": 30})
    if name == "asha":  # the other wants three trials to compare with
        assert judged(worse, 20, **{episode_return: 1.0}) == "STOP"


@pytest.mark.slow
def test_a_search_survives_trials_without_a_finished_episode(tmp_path):
    experiment = copy.deepcopy(TINY)
    tiny = experiment["tiny"]
    tiny["stop"] = {"training_iteration": 2}
    tiny["summary"] = {"random_policy_episodes": 0, "video_episodes": 0}
    tiny["config"]["env_config"]["callbacks"] = []  # episodes without an end
    tiny["config"]["gamma"] = {"grid_search": [0.5, 0.9]}
    tiny["scheduler"] = {"asha": {"grace_period": 1, "max_t": 10_000}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(experiment))
    status, output = run_rllib(tmp_path, *TRAIN)
    assert status == 0, output
    assert "Traceback" not in output and "failed" not in output
    assert iterations(tmp_path) == {0.5: 2, 0.9: 2}


def iterations(folder):
    (run,) = folder.glob("results/tiny/*/summary.json")
    trials = json.loads(run.read_text())["trials"]
    return {trial["settings"]["gamma"]: trial["iterations"] for trial in trials}


@pytest.mark.slow
def test_a_trial_that_is_behind_is_stopped_and_stays_stopped_on_resume(tmp_path):
    experiment = copy.deepcopy(TINY)
    tiny = experiment["tiny"]
    tiny["stop"] = {"training_iteration": 4}
    tiny["summary"] = {"random_policy_episodes": 0, "video_episodes": 0}
    tiny["config"]["gamma"] = {"grid_search": [0.5, 0.9]}
    # One trial at a time, which takes all CPUs there are: the second meets the first one's results,
    # and is behind in what is compared, its discount.
    tiny["config"]["num_cpus_for_main_process"] = machine_cpus()
    tiny["scheduler"] = {
        "asha": {
            "metric": "config/gamma",
            "mode": "min",
            "time_attr": "training_iteration",
            "grace_period": 1,
            "reduction_factor": 2,
            "max_t": 4,
        }
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(experiment))
    status, output = run_rllib(tmp_path, *TRAIN)
    assert status == 0, output
    trained = iterations(tmp_path)
    assert "  [gamma=0.9]\n" in output
    assert trained[0.5] == 4, output
    assert trained[0.9] == 1, output
    status, output = run_rllib(tmp_path, *TRAIN, "--resume")
    assert status == 0, output
    assert "reached its end already" in output
    assert iterations(tmp_path) == trained
