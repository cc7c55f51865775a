"""What is told within an iteration, in one process and across processes."""

import threading
import time

import pytest
import ray

from rllib_minestudio.algorithms import reporting
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
