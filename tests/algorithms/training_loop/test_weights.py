"""Weights reach whoever pulls them, whatever happens to the actor in between."""

from __future__ import annotations

import logging
import sys
import time

import numpy as np
import pytest
import ray
from ray.exceptions import RayError

from rllib_minestudio.algorithms.training_loop import weights
from rllib_minestudio.algorithms.training_loop.learners import CopiesHere
from rllib_minestudio.algorithms.training_loop.weights import WeightsPublisher
from rllib_minestudio.errors import PartLostError
from tests.algorithms.actors import freeze, is_running, kill, process_of, wait_until


@pytest.fixture(scope="module")
def publisher(local_ray):
    publisher = WeightsPublisher(max_restarts_per_hour=5)
    yield publisher
    publisher.stop()


def state(number):
    return {"rl_module": np.full(3, number, np.float32)}


def test_a_source_made_earlier_brings_what_was_published_later(publisher):
    publisher.publish(1, state(1))
    source = publisher.source()
    publisher.publish(2, state(2))
    pulled = source.pull(after_number=0)
    assert pulled.version == 2
    np.testing.assert_array_equal(pulled.state["rl_module"], state(2)["rl_module"])
    assert source.pull(after_number=pulled.number) is None


def test_copies_that_come_late_hold_no_publications_but_the_newest(local_ray, tmp_path):
    """What waits for its turn would stay in the learner's object store, gigabytes at a time."""

    @ray.remote(num_cpus=0)
    def late(opened):
        assert wait_until(opened.exists, 60)

    def holders():
        return [sys.getrefcount(published[number]) for number in range(3)]

    copies = CopiesHere()
    copies.fetch(late.remote(tmp_path / "opened"))
    assert wait_until(lambda: not copies._next, 30)  # the thread waits for it
    published = [ray.put(state(number)) for number in range(3)]
    before = holders()
    for number in range(3):
        copies.fetch(published[number])
    assert [now - then for now, then in zip(holders(), before, strict=True)] == [0, 0, 1]
    (tmp_path / "opened").touch()
    assert wait_until(lambda: not copies._next, 30)
    copies.stop()


def test_a_rollback_is_newer_though_its_version_is_lower(publisher):
    publisher.publish(7, state(7))
    first = publisher.source().pull(after_number=0)
    publisher.publish(3, state(3))
    second = publisher.source().pull(after_number=first.number)
    assert second.number == first.number + 1
    assert second.version == 3


def test_this_process_takes_what_it_does_not_have_yet(publisher):
    publisher.publish(5, state(5))
    newest = publisher.newest(after_number=0)
    assert newest.version == 5
    assert publisher.newest(after_number=newest.number) is None
    publisher.publish(6, state(6))
    assert publisher.newest(after_number=newest.number).version == 6


def test_another_process_pulls(publisher):
    publisher.publish(4, state(4))
    pull = ray.remote(num_cpus=0)(lambda source: source.pull(after_number=0))
    assert ray.get(pull.remote(publisher.source()), timeout=60).version == 4


@pytest.mark.parametrize(
    ("stop", "cause"), [(kill, "died"), pytest.param(freeze, "hung", marks=pytest.mark.slow)]
)
def test_the_actor_is_replaced_and_knows_the_newest_weights(local_ray, caplog, stop, cause):
    publisher = WeightsPublisher(max_restarts_per_hour=5)
    publisher.answer_within_s = 3.0
    publisher.publish(1, state(1))
    source = publisher.source()
    old = process_of(publisher.actor)
    stop(old)
    assert source.pull(after_number=0).version == 1  # what the call carried
    assert not source.reachable
    with caplog.at_level(logging.WARNING):
        publisher.publish(2, state(2))
    assert f"The weights actor {cause}" in caplog.text
    assert publisher.failures.counts == {cause: 1}
    source = publisher.source()
    assert source.pull(after_number=0).version == 2
    assert source.reachable
    assert wait_until(lambda: not is_running(old), seconds=60)
    publisher.stop()


def test_a_reference_is_published_as_it_is_and_weights_that_were_lost_leave_a_runner_its_own(
    publisher,
):
    publisher.publish(4, state(4))
    first = publisher.source().pull(after_number=0)
    reference = ray.put(state(5))
    publisher.publish(5, reference)
    assert publisher._newest.reference == reference
    source = publisher.source()
    assert source.pull(first.number).state["rl_module"].tolist() == [5, 5, 5]
    lost = ray.remote(num_cpus=0)(fail).remote()  # reads as what was lost with its node does
    publisher.publish(6, lost)
    source = publisher.source()
    assert source.pull(first.number) is None and not source.reachable
    with pytest.raises(RayError):  # it could not play at all
        source.pull(after_number=0)
    publisher.publish(7, state(7))
    assert publisher.source().pull(first.number).version == 7


def fail():
    raise OSError("lost")


class Slow(weights.WeightsBoard):
    def __init__(self) -> None:
        super().__init__()
        time.sleep(1.0)


def test_an_actor_may_take_longer_to_start_than_to_answer(local_ray, monkeypatch):
    monkeypatch.setattr(weights, "WeightsBoard", Slow)
    publisher = WeightsPublisher(max_restarts_per_hour=0)
    publisher.answer_within_s = 0.5
    publisher.publish(1, state(1))
    assert publisher.failures.counts == {}
    publisher.stop()


class Unwilling:
    def __init__(self) -> None:
        raise SystemExit(1)

    def announce(self, announcement) -> None:
        """Never gets so far."""


@pytest.mark.slow
def test_an_actor_that_never_lives_ends_the_run_with_a_clear_error(local_ray, monkeypatch):
    monkeypatch.setattr(weights, "WeightsBoard", Unwilling)
    publisher = WeightsPublisher(max_restarts_per_hour=1)
    with pytest.raises(PartLostError, match=r"failed 2 times .*max_restarts_per_hour=1"):
        publisher.publish(1, state(1))
