"""The section `evaluation` says what the config's options say, and is judged like them."""

from __future__ import annotations

import pytest

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.experiments.experiment_file import Experiment
from rllib_minestudio.experiments.plan import make_plan


def plan(config=None, **evaluation):
    small = {"model": {"preset": "nano"}, "env_config": {"obs_size": [64, 64]}}
    return make_plan(Experiment("cow", config={**small, **(config or {})}, evaluation=evaluation))


def test_it_reaches_the_config():
    config = plan(
        interval=5, episodes=7, deterministic=True, filter="success", record=True, only="best_2"
    ).example
    assert config.evaluation_interval == 5 and config.evaluation_duration == 7
    assert config.evaluation_options == {"filter": "success", "record": True, "only": "best_2"}
    assert config.evaluation_config == {"explore": False, "env_runner_cls": EvaluationEnvRunner}


def test_without_it_nothing_is_evaluated():
    assert not plan().example.evaluation_interval


@pytest.mark.parametrize(
    "config, evaluation, problem",
    [
        ({}, {"intervall": 5}, "Did you mean 'interval'"),
        ({}, {"episodes": 5}, "give the number of iterations between"),
        ({}, {"interval": 5, "filter": "sucess"}, "Did you mean 'success'"),
        ({"evaluation_interval": 3}, {"interval": 5}, "is the same option; give one"),
        ({}, {"interval": 5, "parallel": True, "workers": 1}, "weights would be read while"),
    ],
)
def test_mistakes_are_told_before_anything_starts(config, evaluation, problem):
    with pytest.raises(InvalidOptionsError, match=problem):
        plan({"num_learners": 0, **config}, **evaluation)
