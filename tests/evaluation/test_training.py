"""Evaluation within training: RLlib asks for it, our env runners do it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import ray
from ray.train._internal.storage import StorageContext

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.during_training import FOLDER, _results_of, install
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.recordings import find_recordings


@pytest.fixture
def small(make_config):
    """Trains in a moment on few and short episodes."""

    def make(**evaluation):
        return (
            make_config(failure_length=12)
            .env_runners(num_env_runners=0, rollout_fragment_length=8)
            .training(fragments_per_iteration=4, fragments_per_minibatch=4, gradient_accumulation=1)
            .evaluation(evaluation_interval=2, evaluation_duration=6, **evaluation)
        )

    return make


def test_a_config_prepares_for_evaluation_wherever_it_is_unpickled(small, local_ray):
    @ray.remote(num_cpus=0)
    def prepare(config):
        config.install_evaluation(always=True)
        return config.custom_evaluation_function.__module__

    assert ray.get(prepare.remote(small())) == install.__module__


def test_every_second_iteration_reports_a_rate_and_leaves_a_page(small, local_ray):
    config = small(evaluation_options={"filter": "length<10", "record": True, "only": "success"})
    algorithm = config.build_algo()
    try:
        assert "success_rate" not in algorithm.train().get("evaluation", {}).get("env_runners", {})
        found = algorithm.train()["evaluation"]["env_runners"]
        folder = f"{algorithm.logdir}/{FOLDER}/iteration_000002"
    finally:
        algorithm.stop()
    summary = Summary.load(folder)
    assert found["num_episodes"] == 6 == len(summary.episodes)
    assert found["success_rate"] == summary.rate.yes_rate
    assert found["success_rate_low"] < found["success_rate"] < found["success_rate_high"]
    assert found["weights_version"] == 2
    recorded = list(find_recordings(folder))
    assert len(recorded) == summary.rate.num_yes > 0
    assert all(len(recording) == 3 for recording in recorded)


def test_under_tune_they_lie_among_the_results(tmp_path):
    storage = StorageContext(tmp_path, "run", trial_dir_name="trial")
    trial = SimpleNamespace(logdir="/tmp/ray/session", _storage=storage)
    assert _results_of(trial) == tmp_path / "run" / "trial"
    assert _results_of(SimpleNamespace(logdir="/there")) == Path("/there")


@pytest.mark.slow
def test_it_goes_on_beside_training(small, local_ray):
    config = small(evaluation_num_env_runners=1, evaluation_parallel_to_training=True)
    algorithm = config.learners(num_learners=1).build_algo()
    try:
        algorithm.train()
        result = algorithm.train()
    finally:
        algorithm.stop()
    assert result["evaluation"]["env_runners"]["num_episodes"] == 6
    assert result["learners"]["default_policy"]


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"evaluation_duration_unit": "timesteps"}, "must be a number of episodes"),
        ({"evaluation_options": {"filter": "lenth<3"}}, "Did you mean 'length'"),
        ({"evaluation_options": {"fliter": "length<3"}}, "Did you mean 'filter'"),
        (
            {"evaluation_parallel_to_training": True, "evaluation_num_env_runners": 1},
            "weights would be read while they are trained",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_starts(small, options, problem):
    config = small(**options)
    config.learners(num_learners=0)
    with pytest.raises(InvalidOptionsError, match=problem):
        config.validate()
