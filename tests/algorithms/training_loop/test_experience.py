"""References to fragments: dropped with the fragments, and forgotten when their data are lost."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import ray

from rllib_minestudio.algorithms.fragment import RunnerProgress
from rllib_minestudio.algorithms.options import ReplayBufferOptions
from rllib_minestudio.algorithms.training_loop.fragment_source import LocalExperience
from rllib_minestudio.algorithms.training_loop.rollout_requests import RolloutStarts
from tests.algorithms.learner.test_loading import Owner, make_fragment, wait_until_lost

LIMITS = ReplayBufferOptions(max_reuse=1, max_staleness=0)


class Runner:
    """Plays two fragments at a time, of weights version 0."""

    def __init__(self):
        self.played = 0

    def begin_from(self, start):
        """Plays on wherever it is."""

    def sample(self):
        numbers = range(self.played, self.played + 2)
        self.played += 2
        return SimpleNamespace(restores=0, worker_index=0, progress=RunnerProgress()), [
            SimpleNamespace(key=("a", i), weights_version_min=0) for i in numbers
        ]

    def set_state(self, state):
        """Takes any weights."""


@pytest.fixture
def experience(local_ray):
    return LocalExperience(
        Runner(),
        LIMITS,
        lambda report: None,
        capacity=8,
        starts=RolloutStarts(0),
        has_local_learner=False,
        seed=0,
    )


def num_references():
    """Objects that this process refers to."""
    return len(ray._private.worker.global_worker.core_worker.get_all_reference_counts())


def test_an_object_is_let_go_with_its_fragment(experience):
    before = num_references()
    samples = experience.sample(3, iteration=0)
    assert num_references() == before + 4
    assert [ray.get(sample.payload).key[0] for sample in samples] == ["a"] * 3
    del samples
    assert num_references() == before + 1, "those that were used up are still referred to"
    experience.publish(1, None)  # the last one is too stale now
    assert num_references() == before


@pytest.mark.slow
def test_what_was_lost_is_forgotten_and_the_rest_kept(experience):
    buffer = experience.replay_buffer
    buffer.max_reuse = 2
    owner = ray.remote(num_cpus=0)(Owner).remote()
    (lost,) = ray.get(owner.put.remote(1))
    kept = ray.put(make_fragment(0))
    for reference, env_id in ((lost, "a"), (kept, "b")):
        buffer.add(reference, key=(env_id, 0), weights_version=0)
    ray.kill(owner)
    wait_until_lost(lost)
    experience.discard_unreadable(experience.sample(2, iteration=0))
    assert buffer.counts.dropped_unreadable == 1
    assert [sample.payload for sample in experience.sample(1, iteration=1)] == [kept]
