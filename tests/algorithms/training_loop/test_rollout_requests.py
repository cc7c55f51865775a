"""Calls to env runners: how many are sent, and what becomes of runners that die, hang, or are late.

The runners are actors that play nothing: files in a folder tell them to wait or to end.
"""

from __future__ import annotations

import logging
import os
import time
from types import SimpleNamespace

import pytest
import ray

from rllib_minestudio.algorithms.fragment import RunnerProgress
from rllib_minestudio.algorithms.options import ReplayBufferOptions
from rllib_minestudio.algorithms.training_loop.fragment_source import RemoteExperience
from rllib_minestudio.algorithms.training_loop.rollout_requests import (
    RolloutRequests,
    RolloutStarts,
)
from rllib_minestudio.errors import EnvRunnersLostError
from tests.algorithms.actors import kill, wait_until

NUM_ENVS = 4


class Runner:
    """Answers a rollout call at once, unless a file says otherwise.

    Args:
        folder: While it holds a file `start`, runners wait in their start; `end in start` ends one.
            While it holds a file with a runner's index, the runner's rollouts wait.
        index: The runner's.
    """

    def __init__(self, folder, index):
        self.folder, self.index = folder, index
        self.instance_id, self.number = os.urandom(8).hex(), 0
        (folder / f"started {self.instance_id}").touch()
        if (folder / "end in start").exists():
            (folder / "end in start").unlink()
            os._exit(1)
        self._wait(folder / "start")

    def ping(self):
        """Tells that it is there."""

    def rollout(self, weights, aligned, start):
        self._wait(self.folder / str(self.index))
        keys = [((self.instance_id, env), self.number) for env in range(NUM_ENVS)]
        self.number += 1
        report = SimpleNamespace(
            instance_id=self.instance_id,
            worker_index=self.index,
            restores=0,
            progress=RunnerProgress(),
            weights_reachable=True,
            fragments=[(key, 0) for key in keys],
        )
        return report, *keys

    def stop(self):
        """Has nothing to close."""

    def _wait(self, file):
        while file.exists():
            (self.folder / f"{self.index} waits").touch()
            time.sleep(0.01)


@pytest.fixture
def make_requests(local_ray, tmp_path):
    """Makes requests to so many runners; they are stopped in the end."""
    made = []

    def make(num_runners=1, *, max_in_flight=1, timeout_s=60.0, restore_timeout_s=60.0):
        remote = ray.remote(num_cpus=0, max_restarts=-1)(Runner)
        requests = RolloutRequests(
            {i: remote.remote(tmp_path, i) for i in range(1, num_runners + 1)},
            num_envs=NUM_ENVS,
            max_in_flight=max_in_flight,
            timeout_s=timeout_s,
            restore_timeout_s=restore_timeout_s,
            max_restarts_per_hour=10,
        )
        made.append(requests)
        return requests

    yield make
    for file in tmp_path.iterdir():
        file.unlink()
    for requests in made:
        requests.stop()


def send(requests, room=1000):
    requests.send(None, RolloutStarts(0), room=room, aligned=False)


def harvest(requests):
    """The next call that is finished; one that is lost is sent again."""
    found = []
    assert wait_until(lambda: send(requests) or found.extend(requests.harvest(0.05)) or found, 60)
    return found[0]


def wait_for_return(requests):
    """Wait until no runner is lost."""
    assert wait_until(lambda: requests.harvest(0.02) or requests.num_well == 1, seconds=60)


def test_a_runner_that_does_not_answer_in_time_is_restarted(make_requests, tmp_path, caplog):
    requests = make_requests(timeout_s=1)
    harvest(requests)  # its start took however long it takes
    hung = requests.lost_calls
    (tmp_path / "1").touch()
    send(requests)
    with caplog.at_level(logging.WARNING):
        assert wait_until(lambda: requests.harvest(0.02) or not requests.num_well, seconds=60)
    assert "Env runner 1 hung (1 s for a rollout) and is restarted; 1 rollouts" in caplog.text
    (tmp_path / "1").unlink()
    wait_for_return(requests)
    assert (requests.failures.counts, requests.lost_calls) == ({"hung": hung + 1}, hung + 1)
    assert requests.restored[-1] == 1
    assert len(harvest(requests).fragments) == NUM_ENVS


def test_deaths_in_a_start_and_between_calls_are_counted_once_each(make_requests, tmp_path, caplog):
    requests = make_requests()
    harvest(requests)
    (tmp_path / "1").touch()
    (tmp_path / "end in start").touch()
    send(requests)
    kill(process_of_runner(requests))
    assert wait_until(lambda: requests.harvest(0.02) or not requests.num_well, seconds=60)
    (tmp_path / "1").unlink()
    wait_for_return(requests)
    assert requests.failures.counts == {"died": 1}, "what nobody saw is not yet known"
    with caplog.at_level(logging.WARNING):
        harvest(requests)
    assert requests.failures.counts == {"died": 2}
    assert "Env runner 1 died while it was being started or had nothing to do" in caplog.text
    harvest(requests)
    assert (requests.failures.counts, requests.lost_calls) == ({"died": 2}, 1)


def process_of_runner(requests):
    """The process of the only runner, which is not asked, as it may be busy."""
    (actor,) = requests.actors()
    return ray._private.state.actors(actor._actor_id.hex())["Pid"]


def test_a_report_that_cannot_be_read_costs_its_rollout_only(make_requests, tmp_path):
    requests = make_requests(max_in_flight=2)
    harvest(requests)
    assert wait_until(lambda: requests.harvest(0.02) or not requests.fragments_under_way, 60)
    (tmp_path / "1").touch()
    send(requests)
    assert requests.fragments_under_way == 2 * NUM_ENVS
    assert wait_until((tmp_path / "1 waits").exists, seconds=60)
    ray.cancel(requests._runners[0].calls[1].report)
    (tmp_path / "1").unlink()
    found = []

    def is_over():
        found.extend(requests.harvest(0.02))
        return not requests.fragments_under_way

    assert wait_until(is_over, seconds=60)
    assert len(found) == 1
    assert (requests.lost_calls, requests.num_well, requests.failures.counts) == (1, 1, {})


@pytest.mark.slow
def test_a_runner_that_is_late_in_its_start_is_started_again(make_requests, tmp_path, caplog):
    requests = make_requests(restore_timeout_s=14)  # Ray itself takes two, on a busy machine eight
    harvest(requests)
    (tmp_path / "start").touch()
    kill(process_of_runner(requests))
    send(requests)
    hung = "hung (14 s to start)"  # where Ray has begun the start; where not, it is no failure
    unstarted = "was not started within 14 s"
    with caplog.at_level(logging.WARNING):
        assert wait_until(
            lambda: requests.harvest(0.02) or hung in caplog.text or unstarted in caplog.text,
            seconds=90,
        )
    (tmp_path / "start").unlink()
    assert requests.failures.counts == {"died": 1} | ({"hung": 1} if hung in caplog.text else {})
    harvest(requests)


def test_a_runner_that_starts_in_time_is_left_alone(make_requests, tmp_path, caplog):
    requests = make_requests()
    harvest(requests)
    (tmp_path / "start").touch()
    before = set(tmp_path.glob("started *"))
    kill(process_of_runner(requests))
    send(requests)
    assert wait_until(lambda: requests.harvest(0.02) or not requests.num_well, seconds=60)
    assert wait_until(lambda: set(tmp_path.glob("started *")) - before, seconds=60)
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            requests.harvest(0.02)
        (tmp_path / "start").unlink()
        wait_for_return(requests)
    assert len(set(tmp_path.glob("started *")) - before) == 1
    assert "started again" not in caplog.text


def test_a_run_ends_when_no_runner_comes_back(make_requests, tmp_path):
    requests = make_requests(restore_timeout_s=0.4)
    harvest(requests)
    time.sleep(1.3)  # a runner that plays is enough, however long ago it was heard of
    requests.harvest(0)
    (tmp_path / "start").touch()
    kill(process_of_runner(requests))
    send(requests)
    with pytest.raises(EnvRunnersLostError, match="None of the 1 env runners came back within 3"):
        assert wait_until(lambda: requests.harvest(0.02), seconds=20)


# ------------------------------------------------------------------------------ how many are sent


@pytest.fixture
def make_experience(make_requests):
    """Makes experience of so many runners."""
    made = []

    def make(num_runners, *, max_staleness, max_in_flight):
        made.append(
            RemoteExperience(
                make_requests(num_runners, max_in_flight=max_in_flight),
                ReplayBufferOptions(max_reuse=1, max_staleness=max_staleness),
                lambda report: None,
                capacity=64,
                starts=RolloutStarts(0),
                fragments_per_iteration=3 * NUM_ENVS,
                max_restarts_per_hour=0,
                seed=0,
            )
        )
        made[-1].publish(0, {})
        return made[-1]

    yield make
    for experience in made:
        experience.weights.stop()


def test_without_staleness_an_iteration_is_asked_for_and_no_more(make_experience, tmp_path):
    experience = make_experience(2, max_staleness=0, max_in_flight=1)
    assert len(experience.players) == 2
    for index in (1, 2):
        (tmp_path / str(index)).touch()
    experience.meanwhile(0)
    assert experience.requests.fragments_under_way == 0, "nobody waits for any"
    experience._play()
    assert experience.requests.fragments_under_way == 2 * NUM_ENVS
    (tmp_path / "2").unlink()
    assert wait_until(lambda: experience._play() or len(experience.replay_buffer) > 4, seconds=60)
    assert len(experience.replay_buffer) == 2 * NUM_ENVS
    assert experience.requests.fragments_under_way == NUM_ENVS


def test_with_staleness_runners_are_an_iteration_ahead(make_experience, tmp_path):
    experience = make_experience(3, max_staleness=2, max_in_flight=2)
    (tmp_path / "1").touch()

    def has_played():
        experience.meanwhile(0.02)
        return len(experience.replay_buffer) == 2 * NUM_ENVS

    assert wait_until(has_played, seconds=60)
    experience.meanwhile(0)
    assert experience.requests.fragments_under_way == NUM_ENVS
    for index in (2, 3):
        (tmp_path / str(index)).touch()
    experience.sample(NUM_ENVS, iteration=0)
    experience.meanwhile(0)
    assert experience.requests.fragments_under_way == 2 * NUM_ENVS, "for those that were used"
