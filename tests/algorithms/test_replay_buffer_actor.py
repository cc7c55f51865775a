"""The replay buffer's actor does what the structure does, and lets go of what that lets go of."""

from __future__ import annotations

import random

import pytest
import ray

from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer
from rllib_minestudio.algorithms.training_loop.replay_buffer_actor import (
    RemoteReplayBuffer,
    StoredFragment,
)
from tests.algorithms.actors import kill, process_of

LIMITS = {"max_fragments": 12, "max_reuse": 2, "max_staleness": 2, "fragments_per_chunk": 2}


@pytest.fixture
def remote(local_ray):
    buffer = RemoteReplayBuffer(LIMITS, max_restarts_per_hour=3)
    yield buffer
    buffer.stop()


class Held:
    """Payloads that a structure holds; its own report of what is gone is what is tested here."""

    def __init__(self, structure):
        self.references = []
        structure.on_gone = self.references.remove


def num_references(remote):
    return len(remote._held)


def test_it_equals_the_structure_whatever_happens(remote):
    twin = ReplayBuffer(**LIMITS)
    held = Held(twin)
    rng = random.Random(0)
    next_index, version = {"a": 0, "b": 0}, 0
    for _ in range(150):
        action = rng.choice(["add", "add", "add", "sample", "publish", "discard", "clear"])
        if action == "add":
            fragments = []
            for _ in range(rng.randint(1, 4)):
                env_id = rng.choice("ab")
                next_index[env_id] += rng.choice([1, 1, 1, 2])
                key = (env_id, next_index[env_id])
                fragments.append(StoredFragment(ray.put(key), key, max(0, version - 1)))
            remote.add(fragments)
            for reference, key, weights_version in fragments:
                held.references.append(reference)
                twin.add(reference, key=key, weights_version=weights_version)
            continue
        if action == "sample":
            lead = rng.randint(0, 1)
            count = twin.available(lead)
            assert remote.sample(count + 2, lead) == []
            assert remote.sample(count, lead) == twin.sample(count, lead)
        elif action == "publish":
            version += 1
            remote.set_version(version)
            twin.set_version(version)
        elif action == "discard":
            chunks = {(rng.choice("ab"), rng.randint(1, 1 + max(next_index.values())))}
            remote.discard(chunks)
            twin.discard(chunks)
        elif rng.random() < 0.3:
            remote.clear()
            twin.clear()
        else:
            continue
        assert remote.metrics() == twin.metrics()
        assert len(held.references) == len(twin) == num_references(remote)
    assert all(twin.metrics().values()), "something never happened"


def test_what_a_lost_actor_held_is_let_go(remote):
    fragments = [StoredFragment(ray.put(i), ("a", i), 0) for i in range(4)]
    remote.add(fragments)
    assert len(remote.sample(2)) == 2
    assert num_references(remote) == 4
    kill(process_of(remote.service.actor))
    assert remote.sample(2) == []
    assert num_references(remote) == 0
    assert remote.metrics()["lost"] == 4
    remote.add(fragments)
    assert {sample.payload for sample in remote.sample(4)} == {f.reference for f in fragments}
