"""The replay buffer under random interleavings: limits are never broken, nothing is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rllib_minestudio.algorithms.replay_buffer import ReplayBuffer
from rllib_minestudio.errors import ReplayBufferError

MAX_FRAGMENTS, MAX_REUSE, MAX_STALENESS = 6, 2, 1


class BufferMachine(RuleBasedStateMachine):
    """Adds, samples and publishes in any order; payloads remember the version they came from."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer: ReplayBuffer[tuple[int, int]] = ReplayBuffer(
            max_fragments=MAX_FRAGMENTS, max_reuse=MAX_REUSE, max_staleness=MAX_STALENESS
        )
        self.version = 0
        self.added = 0
        self.uses: Counter[tuple[int, int]] = Counter()

    @rule(age=st.integers(0, 3))
    def add(self, age: int) -> None:
        version = max(0, self.version - age)
        self.buffer.add((self.added, version), weights_version=version)
        self.added += 1

    @rule()
    def publish(self) -> None:
        self.version += 1
        self.buffer.set_version(self.version)

    @precondition(lambda self: len(self.buffer) > 0)
    @rule(data=st.data())
    def sample(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, len(self.buffer)))
        samples = self.buffer.sample(count)
        assert len({s.payload for s in samples}) == count
        for sample in samples:
            self.uses[sample.payload] += 1
            assert sample.staleness == self.version - sample.payload[1] <= MAX_STALENESS
            assert sample.use == self.uses[sample.payload] <= MAX_REUSE

    @invariant()
    def every_fragment_is_accounted_for(self) -> None:
        counts = self.buffer.counts
        assert len(self.buffer) <= MAX_FRAGMENTS
        assert counts.added == self.added
        assert counts.sampled == sum(self.uses.values())
        gone = counts.evicted + counts.dropped_stale + counts.used_up
        assert counts.added == len(self.buffer) + gone


TestBuffer = BufferMachine.TestCase
TestBuffer.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_capacity_evicts_the_oldest():
    buffer = ReplayBuffer(max_fragments=2, max_reuse=1, max_staleness=0)
    for name in "abc":
        buffer.add(name, weights_version=0)
    assert {s.payload for s in buffer.sample(2)} == {"b", "c"}
    assert buffer.counts.evicted == 1


def test_least_used_fragments_come_first():
    buffer = ReplayBuffer(max_fragments=8, max_reuse=3, max_staleness=0)
    buffer.add("old", weights_version=0)
    buffer.sample(1)
    buffer.add("new", weights_version=0)
    assert buffer.sample(1)[0].payload == "new"


@given(seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_the_order_follows_from_the_seed(seed):
    def order():
        buffer = ReplayBuffer(max_fragments=20, max_reuse=1, max_staleness=0, seed=seed)
        for i in range(20):
            buffer.add(i, weights_version=0)
        return [s.payload for s in buffer.sample(20)]

    assert order() == order()


def test_asking_for_more_than_there_is_says_so():
    buffer = ReplayBuffer(max_fragments=2, max_reuse=1, max_staleness=0)
    with pytest.raises(ReplayBufferError, match=r"1 fragments were asked .* holds 0"):
        buffer.sample(1)


@pytest.mark.parametrize("option", ["max_fragments", "max_reuse"])
def test_impossible_limits_are_named(option):
    limits = {"max_fragments": 2, "max_reuse": 1, "max_staleness": 0, option: 0}
    with pytest.raises(ReplayBufferError, match=rf"replay_buffer\.{option} is 0"):
        ReplayBuffer(**limits)
