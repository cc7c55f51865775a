"""Whatever dies or hangs, training goes on: every part is really killed and really stopped."""

from __future__ import annotations

import logging
import time

import pytest

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from tests.algorithms import leaks
from tests.algorithms.actors import freeze, is_running, kill, process_of, wait_until
from tests.algorithms.conftest import quick_config
from tests.algorithms.training_loop.test_remote import accounted_for


def find_runner(algorithm):
    return algorithm.env_runner_group._worker_manager.actors()[1]


def find_learner(algorithm):
    return algorithm.learner_group._workers[0]


def find_weights(algorithm):
    return algorithm.experience.weights.actor


PARTS = {
    "env runner": find_runner,
    "learner": find_learner,
    "weights": find_weights,
}


class UnhurriedMineStudioEnvRunner(MineStudioEnvRunner):
    """Takes long enough to start to be seen at it."""

    def __init__(self, *args, **kwargs):
        time.sleep(1.0)
        super().__init__(*args, **kwargs)


@pytest.fixture(scope="module")
def trained(local_ray):
    """One training run that all tests of this file torment in turn."""
    config = quick_config(replay_buffer={"max_fragments": 64, "max_staleness": 4})
    config = config.env_runners(env_runner_cls=UnhurriedMineStudioEnvRunner)
    config = config.env_runners(
        num_env_runners=2, num_envs_per_env_runner=4, sample_timeout_s=6
    ).training(learner_timeout_s=6)
    algorithm = config.learners(num_learners=1, num_cpus_per_learner=1).build_algo()
    algorithm.experience.weights.answer_within_s = 3
    algorithm.train()
    yield algorithm
    algorithm.stop()


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("stop", "cause"), [(kill, "died"), (freeze, "hung")])
def test_training_goes_on_without(trained, caplog, part, stop, cause):
    counter = f"{part} {cause}".replace(" ", "_")
    before = trained.train()
    while trained.experience.requests.num_well < 2:  # since the test before
        before = trained.train()
    lost = process_of(PARTS[part](trained))
    with caplog.at_level(logging.WARNING):
        stop(lost)
        result = before
        while result["restarts"][counter] == before["restarts"][counter]:
            result = trained.train()
    assert result["restarts"][counter] == before["restarts"][counter] + 1
    assert part.replace("_", " ") in caplog.text.lower()
    for _ in range(2):
        result = trained.train()
    assert accounted_for(result["replay_buffer"])
    learner = result["learners"]["default_policy"]
    iterations = result["training_iteration"] - before["training_iteration"]
    assert learner["weights_version"] >= trained.iteration - iterations
    assert wait_until(lambda: not is_running(lost), seconds=60)
    assert trained.experience.requests.num_well == 2 or part == "env runner"


@pytest.mark.slow
def test_an_env_runner_that_dies_again_while_it_starts_is_counted_each_time(trained, caplog):
    result = trained.train()
    while trained.experience.requests.num_well < 2:
        result = trained.train()
    before = result["restarts"]["env_runner_died"]
    with caplog.at_level(logging.WARNING):
        kill(process_of(find_runner(trained)))
        starting = wait_for_start("MineStudioEnvRunner.__init__")
        kill(starting)
        assert wait_until(lambda: not is_running(starting), seconds=60)
        while result["restarts"]["env_runner_died"] < before + 2:
            result = trained.train()
        for _ in range(3):
            result = trained.train()
    assert result["restarts"]["env_runner_died"] == before + 2
    assert "died while it was being started" in caplog.text


def wait_for_start(command):
    """The process id of an actor that is being started; its command line says so."""
    found = []

    def appears():
        found[:] = [p.pid for p in leaks.relatives() if command in leaks.command_line(p)]
        return bool(found)

    assert wait_until(appears, seconds=60)
    return found[0]
