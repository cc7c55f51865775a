"""The replay buffer under random interleavings: limits are never broken, nothing is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from weakref import WeakSet

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rllib_minestudio.algorithms.training_loop.replay_buffer import BucketQueue, ReplayBuffer
from rllib_minestudio.errors import ReplayBufferError

MAX_FRAGMENTS, MAX_REUSE, MAX_STALENESS = 6, 2, 2


@dataclass(frozen=True, eq=False)
class Fragment:
    """What the tests store: where it comes from, so that every sample can be judged."""

    env_id: str
    index: int
    version: int

    @property
    def key(self) -> tuple[str, int]:
        return self.env_id, self.index


class BufferMachine(RuleBasedStateMachine):
    """Two environments add, lose pieces, and weights are published, rolled back, in any order."""

    fragments_per_sequence = 1

    def __init__(self) -> None:
        super().__init__()
        self.buffer: ReplayBuffer[Fragment] = ReplayBuffer(
            max_fragments=MAX_FRAGMENTS,
            max_reuse=MAX_REUSE,
            max_staleness=MAX_STALENESS,
            fragments_per_sequence=self.fragments_per_sequence,
            seed=0,
        )
        self.alive: WeakSet[Fragment] = WeakSet()
        self.version = 0
        self.added = 0
        self.next_index = Counter({"a": 0, "b": 0})
        self.uses: Counter[tuple[str, int]] = Counter()
        self.sampled_sequences: list[tuple[str, int]] = []

    @rule(env_id=st.sampled_from("ab"), age=st.integers(0, 3), gap=st.sampled_from([0, 0, 0, 1]))
    def add(self, env_id: str, age: int, gap: int) -> None:
        self.next_index[env_id] += 1 + gap
        fragment = Fragment(env_id, self.next_index[env_id], max(0, self.version - age))
        self.alive.add(fragment)
        self.buffer.add(fragment, key=fragment.key, weights_version=fragment.version)
        self.added += 1

    @rule(step=st.integers(1, 2))
    def publish(self, step: int) -> None:
        self.version += step
        self.buffer.set_version(self.version)

    @rule()
    def roll_back(self) -> None:
        self.version = max(0, self.version - 2)
        self.buffer.clear()
        self.buffer.set_version(self.version)

    @rule(data=st.data(), lead=st.integers(0, 3))
    def sample(self, data: st.DataObject, lead: int) -> None:
        size = self.fragments_per_sequence
        chunks = data.draw(st.integers(0, self.buffer.available(lead) // size))
        samples = self.buffer.sample(chunks * size, lead=lead)
        fragments = [sample.payload for sample in samples]
        assert self.alive.issuperset(fragments)
        assert len(set(fragments)) == len(samples) == chunks * size
        for start in range(0, len(samples), size):
            chunk = fragments[start : start + size]
            assert {f.env_id for f in chunk} == {chunk[0].env_id}
            assert [f.index - chunk[0].index for f in chunk] == list(range(size))
        for sample in samples:
            self.uses[sample.payload.key] += 1
            assert self.version + lead - sample.payload.version <= sample.staleness
            assert sample.staleness <= MAX_STALENESS
            assert sample.sequence[0] == sample.payload.env_id
            assert sample.use == self.uses[sample.payload.key] <= MAX_REUSE
        self.sampled_sequences += [sample.sequence for sample in samples]

    @precondition(lambda self: self.sampled_sequences)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.buffer.discard([data.draw(st.sampled_from(self.sampled_sequences))])

    @invariant()
    def every_fragment_is_accounted_for(self) -> None:
        counts = self.buffer.counts
        assert self.buffer.available(1) <= self.buffer.available() <= len(self.buffer)
        assert len(self.buffer) <= MAX_FRAGMENTS
        assert counts.added == self.added
        assert counts.sampled == sum(self.uses.values())
        assert counts.never_sampled <= counts.added
        gone = sum(vars(counts).values()) - counts.added - counts.sampled - counts.never_sampled
        assert counts.added == len(self.buffer) + gone
        assert len(self.alive) == len(self.buffer), "it keeps what it has let go of"


class SequencesMachine(BufferMachine):
    """The same with sequences of three fragments."""

    fragments_per_sequence = 3


TestBuffer = BufferMachine.TestCase
TestBuffer.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBufferOfSequences = SequencesMachine.TestCase
TestBufferOfSequences.settings = TestBuffer.settings


def add(buffer: ReplayBuffer, *names: str, version: int = 0) -> None:
    for name in names:
        buffer.add(name, key=(name, 0), weights_version=version)


def test_capacity_evicts_the_oldest():
    buffer = ReplayBuffer(max_fragments=2, max_reuse=1, max_staleness=0, seed=0)
    add(buffer, *"abc")
    assert {s.payload for s in buffer.sample(2)} == {"b", "c"}
    assert buffer.counts.evicted == 1


def test_least_used_fragments_come_first():
    buffer = ReplayBuffer(max_fragments=8, max_reuse=3, max_staleness=0, seed=0)
    add(buffer, "old")
    buffer.sample(1)
    add(buffer, "new")
    assert buffer.sample(1)[0].payload == "new"


@given(seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_the_order_follows_from_the_seed_and_the_iteration(seed):
    def order(iteration, sampled_before=False):
        buffer = ReplayBuffer(max_fragments=20, max_reuse=1, max_staleness=0, seed=seed)
        if sampled_before:
            add(buffer, "another")
            buffer.sample(1)
        add(buffer, *map(str, range(20)))
        return [s.payload for s in buffer.sample(20, iteration=iteration)]

    assert order(3) == order(3, sampled_before=True)
    assert order(3) != order(4)


def test_what_nothing_was_ever_trained_on_counts_as_played_never_sampled():
    buffer = ReplayBuffer(max_fragments=3, max_reuse=2, max_staleness=0, seed=0)
    add(buffer, "a", "b")
    buffer.sample(2)
    add(buffer, "c")
    assert (buffer.available(), buffer.unused) == (3, 1)
    add(buffer, "d")  # "a" makes room, which was used
    assert (buffer.counts.evicted, buffer.counts.never_sampled) == (1, 0)
    buffer.set_version(1)
    assert (buffer.counts.dropped_stale, buffer.counts.never_sampled) == (3, 2)
    add(buffer, "e", version=0)
    assert (buffer.counts.dropped_stale, buffer.counts.never_sampled) == (4, 3)
    assert (buffer.available(), buffer.unused) == (0, 0)


def test_asking_for_more_than_there_is_says_so():
    buffer = ReplayBuffer(max_fragments=2, max_reuse=1, max_staleness=0, seed=0)
    with pytest.raises(ReplayBufferError, match=r"1 fragments were requested .* can give 0"):
        buffer.sample(1)


def test_a_lead_leaves_out_what_will_be_too_stale_when_it_is_trained_on():
    buffer = ReplayBuffer(max_fragments=8, max_reuse=1, max_staleness=1, seed=0)
    buffer.set_version(5)
    add(buffer, "older", version=4)
    add(buffer, "newer", version=5)
    assert buffer.available() == 2
    assert [s.payload for s in buffer.sample(buffer.available(1), lead=1)] == ["newer"]


def test_a_fragment_is_not_taken_in_twice():
    buffer = ReplayBuffer(max_fragments=8, max_reuse=2, max_staleness=1, seed=0)
    add(buffer, "a")
    with pytest.raises(ReplayBufferError, match=r"holds a fragment \('a', 0\) already"):
        add(buffer, "a")


def test_parts_of_sequences_that_became_stale_leave_no_gap_in_the_capacity():
    buffer = ReplayBuffer(
        max_fragments=2, max_reuse=1, max_staleness=0, fragments_per_sequence=2, seed=0
    )
    buffer.add("stale", key=("a", 0), weights_version=0)
    buffer.set_version(1)
    for name in "bcd":
        buffer.add(name, key=(name, 0), weights_version=1)
        assert len(buffer) <= 2
    assert (buffer.counts.dropped_stale, buffer.counts.evicted) == (1, 1)


def test_only_the_stale_beginning_of_a_growing_sequence_is_dropped():
    """What is left goes on growing, also if it is newer than the oldest that can be used."""
    buffer = ReplayBuffer(
        max_fragments=8, max_reuse=1, max_staleness=1, fragments_per_sequence=4, seed=0
    )
    for number, version in enumerate((0, 0, 2)):
        buffer.add(number, key=("a", number), weights_version=version)
    buffer.set_version(2)
    assert (len(buffer), buffer.counts.dropped_stale) == (1, 2)
    for number in (3, 4, 5):
        buffer.add(number, key=("a", number), weights_version=2)
    assert [s.payload for s in buffer.sample(4)] == [2, 3, 4, 5]


def test_counts_begin_at_zero_and_staleness_at_the_step_that_is_trained():
    buffer = ReplayBuffer(max_fragments=8, max_reuse=2, max_staleness=3, seed=0)
    assert set(asdict(buffer.counts).values()) == {0}
    buffer.set_version(5)
    add(buffer, "a", version=4)
    assert [s.staleness for s in buffer.sample(1, lead=2)] == [3]
    assert [s.staleness for s in buffer.sample(1)] == [1]
    assert buffer.counts.sampled == 2


def test_what_is_cleared_counts_as_never_sampled_if_it_was_not():
    buffer = ReplayBuffer(
        max_fragments=8, max_reuse=2, max_staleness=0, fragments_per_sequence=2, seed=0
    )
    for number in range(5):
        buffer.add(number, key=("a", number), weights_version=0)
    buffer.sample(2)
    buffer.clear()
    assert (buffer.counts.evicted, buffer.counts.never_sampled) == (5, 3)


def test_parts_of_sequences_are_not_sampled_alone():
    buffer = ReplayBuffer(
        max_fragments=8, max_reuse=1, max_staleness=0, fragments_per_sequence=2, seed=0
    )
    buffer.add("a0", key=("a", 0), weights_version=0)
    buffer.add("b0", key=("b", 0), weights_version=0)
    assert buffer.available() == 0
    assert len(buffer) == 2
    buffer.add("a1", key=("a", 1), weights_version=0)
    assert [s.payload for s in buffer.sample(2)] == ["a0", "a1"]
    buffer.add("b2", key=("b", 2), weights_version=0)  # b1 never came
    assert buffer.counts.dropped_incomplete == 1
    with pytest.raises(ReplayBufferError, match="fragments_per_sequence=2 at a time"):
        buffer.sample(1)


@pytest.mark.parametrize("option", ["max_fragments", "max_reuse"])
def test_impossible_limits_are_named(option):
    limits = {"max_fragments": 2, "max_reuse": 1, "max_staleness": 0, "seed": 0, option: 0}
    with pytest.raises(ReplayBufferError, match=rf"replay_buffer\.{option} must .*; got 0\."):
        ReplayBuffer(**limits)


def test_names_of_older_versions_only_leave_the_queue():
    queue: BucketQueue[str] = BucketQueue()
    for name, uses, version in (("a", 0, 1), ("b", 1, 1), ("c", 0, 2), ("d", 1, 2), ("e", 0, 900)):
        queue.add(name, uses=uses, version=version)
    assert queue.pop_older(2) == ["a", "b"]
    assert queue.count(0) == 3
    assert queue.pop_older(900) == ["c", "d"]
    assert queue.count(0) == 1
