"""What is told within an iteration, in one process and across processes."""

import logging
import math
import threading
import time
from types import SimpleNamespace

import pytest
import ray
from ray.tune.experiment import Trial

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.experiments.progress import TrainingProgress
from tests.algorithms.toy_envs import AttackOnRed


@pytest.fixture
def told(local_ray, monkeypatch):
    """The id under which this process tells; afterwards it tells nothing."""
    monkeypatch.setattr(reporting, "SECONDS_BETWEEN_DETAILS", 0.0)
    reporting.publish_as("of this test")
    yield "of this test"
    reporting.publish_as(None)


class Unhurried(AttackOnRed):
    """Takes long enough for its first fragment to be seen at it."""

    def step(self, action):
        if self._steps < 32:
            time.sleep(0.01)
        return super().step(action)


@ray.remote(num_cpus=0)
class Player:
    def play(self):
        reporting.publish_as_actor()
        reporting.detail("playing: step", 1_200, 2_048)


def test_a_stage_shows_the_details_of_the_actor_that_is_waited_for(told):
    player = Player.remote()
    reporting.stage("collecting: fragment", 5, 32, [player])
    assert reporting.activity_of(told) == "collecting: fragment 5 of 32"
    ray.get(player.play.remote())
    shown = "collecting: fragment 5 of 32 (playing: step 1,200 of 2,048)"
    assert reporting.activity_of(told) == shown
    reporting.stage("learning")
    reporting.detail("minibatch", 1, 8)
    assert reporting.activity_of(told) == "learning (minibatch 1 of 8)"
    reporting.stage("evaluating")
    assert reporting.activity_of(told) == "evaluating"


@ray.remote(num_cpus=0)
class Warner:
    def warn(self, number):
        reporting.publish_as_actor()
        log = logging.getLogger("rllib_minestudio.algorithms.env_pool.base")
        log.warning("An error %s:\nand its traceback", number)
        log.info("not this")


def test_warnings_of_all_processes_are_printed_once_and_the_first_few_of_a_kind(
    told, capsys, tmp_path
):
    warner, shown = Warner.remote(), TrainingProgress({}, [])
    trial = SimpleNamespace(
        storage=SimpleNamespace(trial_dir_name=told),
        path=tmp_path,
        status=Trial.RUNNING,
        trial_id="x",
        last_result={},
        config={},
    )
    reporting.stage("collecting: fragment", 5, 32, [warner])
    logging.getLogger("rllib_minestudio.algorithms.learner").warning("This process warns")
    for number in range(9):
        ray.get(warner.warn.remote(number))
        shown._last_look = -math.inf
        shown.on_step_begin(0, [trial])
    printed = [line for line in capsys.readouterr().out.splitlines() if "warning" in line]
    assert printed == [
        "warning: This process warns",
        "warning: An error 0:",
        "warning: An error 1:",
        "warning: An error 2: Further ones are only counted and logged.",
    ]


def test_a_warning_that_cannot_be_published_ends_nothing(told, monkeypatch):
    def unreachable(*_, **__):
        raise RuntimeError("GCS is gone")

    monkeypatch.setattr(reporting.internal_kv, "_internal_kv_put", unreachable)
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("rllib_minestudio.algorithms.learner").warning("This process warns")


def test_nothing_is_told_where_nobody_asked(local_ray):
    reporting.publish_as_trial(None)
    reporting.stage("learning")
    assert reporting.activity_of("None") == ""


def test_an_iteration_in_one_process_tells_its_stages_in_order(told, make_config, monkeypatch):
    written = []
    monkeypatch.setattr(reporting, "_write", lambda kind, name, *counts: written.append(name))
    config = make_config(num_epochs=1).env_runners(rollout_fragment_length=16)
    config.decorrelation_steps = 4
    algorithm = config.build_algo()
    reporting.publish_as(told)  # outside of Tune nobody would ask
    algorithm.train()
    algorithm.stop()
    assert list(dict.fromkeys(written)) == [
        "collecting: fragment",
        "resetting environments",
        "playing before recording: step",
        "playing: step",
        "learning",
        "fetching fragments",
        "minibatch",
    ]


@pytest.mark.slow
def test_remote_runners_and_learners_tell_theirs(told, make_config):
    config = make_config(num_epochs=20).environment(Unhurried)  # learns long enough to be seen
    config = config.env_runners(num_env_runners=1).learners(num_learners=1)
    algorithm = config.build_algo()
    reporting.publish_as(told)
    seen, over = [], threading.Event()

    def watch():
        while not over.is_set():
            seen.append(reporting.activity_of(told))
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(3):
        algorithm.train()
    over.set()
    thread.join()
    algorithm.stop()
    assert any(text.startswith("collecting: fragment 0 of 8 (playing: step") for text in seen), seen
    assert any(text.startswith("learning (minibatch") for text in seen), seen
