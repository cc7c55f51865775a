"""The replay buffer: the fragments that may still be trained on, and the choice of the next ones.

It is a plain data structure that holds payloads (fragments, or references to fragments in Ray's
object store) with their metadata, without looking into them, and needs neither Ray nor torch.

Fragments are sampled in *sequences* of `fragments_per_sequence` consecutive fragments of one
environment. A sequence grows fragment by fragment, and can be sampled once it is complete.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Generic, NamedTuple, TypeVar

from rllib_minestudio.errors import ReplayBufferError
from rllib_minestudio.foundation.options import broken_rule

Payload = TypeVar("Payload")

FragmentKey = tuple[str, int]
"""Name of an environment, and number of the fragment; consecutive numbers are contiguous."""


@dataclass
class BufferCounts:
    """Counts of what happened to all fragments ever added.

    At all times, added == occupancy + evicted + used_up + dropped_stale + dropped_unreadable
    + dropped_incomplete.

    Attributes:
        added: Fragments passed to `add`.
        sampled: Fragments returned by `sample`, including reuses.
        evicted: Removed although still usable, because the buffer was full or cleared.
        used_up: Removed because they had been sampled `max_reuse` times.
        dropped_stale: Removed because they became too stale.
        dropped_unreadable: Removed because their data were lost.
        dropped_incomplete: Removed because the rest of their sequence never arrived.
        never_sampled: Those evicted, stale or incomplete that had never been sampled.
    """

    added: int = 0
    sampled: int = 0
    evicted: int = 0
    used_up: int = 0
    dropped_stale: int = 0
    dropped_unreadable: int = 0
    dropped_incomplete: int = 0
    never_sampled: int = 0


class SampledFragment(NamedTuple, Generic[Payload]):
    """A sampled fragment.

    Attributes:
        payload: The fragment, or a reference to it.
        staleness: Its staleness when it will be trained on.
        use: Number of this use, from 1.
        sequence: Key of the first fragment of its sequence, for `discard`.
    """

    payload: Payload
    staleness: int
    use: int
    sequence: FragmentKey


class _Held(NamedTuple, Generic[Payload]):
    """A fragment in the buffer."""

    payload: Payload
    key: FragmentKey
    weights_version: int


@dataclass(slots=True)
class _Sequence(Generic[Payload]):
    """Contiguous fragments that are sampled together.

    Attributes:
        fragments: In playing order.
        weights_version: Oldest version of the weights that acted in them.
        uses: How often they were sampled.
    """

    fragments: list[_Held[Payload]]
    weights_version: int
    uses: int = 0


class ReplayBuffer(Generic[Payload]):
    """A bounded store that never returns a fragment that is too stale or used too often.

    Staleness is the number of weight versions between the oldest weights that acted in a
    sequence and the newest published ones (MineStudio's `max_staleness`, `max_reuse`; its
    `online/rollout/replay_buffer`).

    Every operation takes time proportional to the fragments it touches, not to those it holds.

    Args:
        max_fragments: Capacity; adding more evicts the oldest.
        max_reuse: How many times a fragment may be sampled, at least 1.
        max_staleness: The greatest staleness of a sampled fragment, at least 0.
        fragments_per_sequence: Contiguous fragments that are sampled together.
        seed: Determines the choice among equally used fragments, together with the iteration.

    Raises:
        ReplayBufferError: If a limit is out of its range.
    """

    def __init__(
        self,
        *,
        max_fragments: int,
        max_reuse: int,
        max_staleness: int,
        seed: int,
        fragments_per_sequence: int = 1,
    ) -> None:
        for name, limit, least in (
            ("max_fragments", max_fragments, 1),
            ("max_reuse", max_reuse, 1),
            ("max_staleness", max_staleness, 0),
            ("fragments_per_sequence", fragments_per_sequence, 1),
        ):
            if limit < least:
                rule = f"must be at least {least}"
                raise ReplayBufferError(broken_rule(f"replay_buffer.{name}", limit, rule))
        if max_fragments < fragments_per_sequence:
            rule = f"must hold one sequence of fragments_per_sequence={fragments_per_sequence}"
            raise ReplayBufferError(broken_rule("replay_buffer.max_fragments", max_fragments, rule))
        self.max_fragments = max_fragments
        self.max_reuse = max_reuse
        self.max_staleness = max_staleness
        self.fragments_per_sequence = fragments_per_sequence
        self.counts = BufferCounts()
        self._sequences: OrderedDict[FragmentKey, _Sequence[Payload]] = OrderedDict()
        self._queue: BucketQueue[FragmentKey] = BucketQueue()
        self._growing: OrderedDict[str, list[_Held[Payload]]] = OrderedDict()
        self._num_growing = 0
        self._version = 0
        self._seed = seed

    def __len__(self) -> int:
        # Including those of incomplete sequences.
        return len(self._sequences) * self.fragments_per_sequence + self._num_growing

    def available(self, lead: int = 0) -> int:
        """Return the number of fragments that `sample` could return now."""
        return self._queue.count(self._oldest_version(lead)) * self.fragments_per_sequence

    @property
    def unused(self) -> int:
        """The number of fragments that `sample` could return for the first time."""
        oldest = self._oldest_version()
        return self._queue.count(oldest, unused=True) * self.fragments_per_sequence

    # ---------------------------------------------------------------- in

    def add(self, payload: Payload, *, key: FragmentKey, weights_version: int) -> None:
        """Store a fragment, evicting the oldest if the buffer is full.

        Args:
            payload: The fragment, or a reference to it.
            key: Its environment and number, unique.
            weights_version: The oldest version of the weights that acted in it.

        Raises:
            ReplayBufferError: If the buffer already holds a fragment with this key.
        """
        if key in self._sequences:
            raise ReplayBufferError(f"the replay buffer holds a fragment {key} already")
        self.counts.added += 1
        held = _Held(payload, key, weights_version)
        fragments = self._growing.pop(key[0], [])
        is_stale = weights_version < self._oldest_version()
        if fragments and (is_stale or fragments[-1].key[1] + 1 != key[1]):
            self._num_growing -= len(fragments)
            self.counts.dropped_incomplete += len(fragments)
            self.counts.never_sampled += len(fragments)
            fragments = []
        if is_stale:
            self.counts.dropped_stale += 1
            self.counts.never_sampled += 1
            return
        if len(self) >= self.max_fragments:
            self._evict()
        fragments.append(held)
        self._num_growing += 1
        if len(fragments) == self.fragments_per_sequence:
            self._num_growing -= len(fragments)
            oldest = min(held.weights_version for held in fragments)
            self._sequences[fragments[0].key] = _Sequence(fragments, oldest)
            self._queue.add(fragments[0].key, uses=0, version=oldest)
        else:
            self._growing[key[0]] = fragments

    def set_version(self, version: int) -> None:
        """Set the version of the newest published weights, and drop what is now too stale."""
        self._version = version
        oldest = self._oldest_version()
        for name in self._queue.pop_older(oldest):
            sequence = self._sequences.pop(name)
            self.counts.dropped_stale += len(sequence.fragments)
            self._note_unless_used(sequence)
        for env_id, fragments in list(self._growing.items()):
            stale = [i for i, held in enumerate(fragments) if held.weights_version < oldest]
            if stale:
                dropped = stale[-1] + 1
                self._num_growing -= dropped
                del fragments[:dropped]
                if not fragments:
                    del self._growing[env_id]
                self.counts.dropped_stale += len(stale)
                self.counts.dropped_incomplete += dropped - len(stale)
                self.counts.never_sampled += dropped

    # ---------------------------------------------------------------- out

    def sample(
        self, count: int, *, iteration: int = 0, lead: int = 0
    ) -> list[SampledFragment[Payload]]:
        """Sample `count` different fragments, least used first, at random among equally used ones.

        Args:
            count: Number of fragments, a multiple of `fragments_per_sequence`.
            iteration: The iteration that they are for. The random choice depends only on it and the
                seed, so that a resumed run does not repeat the choices of its first iterations.
            lead: By how many versions the weights will have advanced when the fragments are trained
                on; staleness is relative to that version.

        Returns:
            Sequence after sequence, the fragments of each in playing order.

        Raises:
            ReplayBufferError: If fewer than `count` fragments can be sampled, or `count` is not a
                multiple of `fragments_per_sequence`.
        """
        size = self.fragments_per_sequence
        if count % size:
            raise ReplayBufferError(
                f"{count} fragments were requested from a replay buffer that hands out "
                f"fragments_per_sequence={size} at a time"
            )
        if count > self.available(lead):
            raise ReplayBufferError(
                f"{count} fragments were requested from a replay buffer that can give "
                f"{self.available(lead)}"
            )
        oldest = self._oldest_version(lead)
        rng = random.Random(f"{self._seed} {iteration}")
        names = self._queue.pop_least_used(count // size, oldest=oldest, rng=rng)
        self.counts.sampled += count
        return self._use(names, trained_at=self._version + lead)

    def discard(self, sequences: Iterable[FragmentKey]) -> None:
        """Remove sequences whose data were lost, if the buffer still holds them."""
        for name in sequences:
            if name in self._sequences:
                self.counts.dropped_unreadable += self._remove(name)

    def clear(self) -> None:
        """Remove all fragments; they count as evicted."""
        self.counts.evicted += len(self)
        for sequence in self._sequences.values():
            self._note_unless_used(sequence)
        self.counts.never_sampled += self._num_growing
        self._sequences.clear()
        self._queue.clear()
        self._growing.clear()
        self._num_growing = 0

    def metrics(self) -> dict[str, int]:
        """Return the occupancy, and the counts since the start."""
        return {"occupancy": len(self), **asdict(self.counts)}

    # ---------------------------------------------------------------- inside

    def _oldest_version(self, lead: int = 0) -> int:
        """Return the oldest version that is not too stale."""
        return self._version + lead - self.max_staleness

    def _use(self, names: list[FragmentKey], trained_at: int) -> list[SampledFragment[Payload]]:
        """Return the fragments of sequences taken from the queue, and requeue reusable ones."""
        samples: list[SampledFragment[Payload]] = []
        for name in names:
            sequence = self._sequences[name]
            version = sequence.weights_version
            sequence.uses = uses = sequence.uses + 1
            if uses < self.max_reuse:
                self._queue.add(name, uses=uses, version=version)
            else:
                del self._sequences[name]
                self.counts.used_up += len(sequence.fragments)
            for held in sequence.fragments:
                samples.append(SampledFragment(held.payload, trained_at - version, uses, name))
        return samples

    def _evict(self) -> None:
        """Evict the oldest sequence, or else the oldest incomplete one."""
        if self._sequences:
            name, sequence = next(iter(self._sequences.items()))
            self._note_unless_used(sequence)
            self.counts.evicted += self._remove(name)
        elif self._growing:
            _, fragments = self._growing.popitem(last=False)
            self._num_growing -= len(fragments)
            self.counts.evicted += len(fragments)
            self.counts.never_sampled += len(fragments)

    def _note_unless_used(self, sequence: _Sequence[Payload]) -> None:
        if not sequence.uses:
            self.counts.never_sampled += len(sequence.fragments)

    def _remove(self, name: FragmentKey) -> int:
        """Remove a sequence, and return how many fragments it had."""
        self._queue.remove(name)
        return len(self._sequences.pop(name).fragments)


# ------------------------------------- names in buckets, one per number of uses and weights version
# The replay buffer requests the least used names that are fresh enough, and drops those that are
# too old. Both operate on whole buckets, so that neither scans everything that is stored.

Name = TypeVar("Name")

_Bucket = tuple[int, int]
"""(uses, version) of interchangeable names. An empty bucket is removed with its version."""


class BucketQueue(Generic[Name]):
    """A queue whose operations take time proportional to the buckets and the names returned."""

    def __init__(self) -> None:
        self._buckets: dict[_Bucket, list[Name]] = {}
        self._places: dict[Name, tuple[list[Name], int]] = {}

    def add(self, name: Name, *, uses: int, version: int) -> None:
        """Add a name that is in no bucket."""
        names = self._buckets.get((uses, version))
        if names is None:
            names = self._buckets[uses, version] = []
        self._places[name] = names, len(names)
        names.append(name)

    def remove(self, name: Name) -> None:
        """Remove a name."""
        self._remove_from(*self._places[name])

    def pop_older(self, version: int) -> list[Name]:
        """Remove and return all names of versions before `version`."""
        removed = []
        for bucket in [bucket for bucket in self._buckets if bucket[1] < version]:
            removed += self._buckets.pop(bucket)
        for name in removed:
            del self._places[name]
        return removed

    def count(self, oldest: int, *, unused: bool = False) -> int:
        """Return the number of (unused) names of version `oldest` or later."""
        return sum(
            len(names)
            for (uses, version), names in self._buckets.items()
            if version >= oldest and not (unused and uses)
        )

    def pop_least_used(self, count: int, *, oldest: int, rng: random.Random) -> list[Name]:
        """Remove and return names of version `oldest` or later, the least used first.

        Args:
            count: How many; all if there are fewer.
            oldest: The oldest version that counts.
            rng: Chooses among equally used names.
        """
        removed: list[Name] = []
        for uses in sorted({uses for uses, version in self._buckets if version >= oldest}):
            equals = [
                self._buckets[bucket]
                for bucket in self._buckets
                if bucket[0] == uses and bucket[1] >= oldest
            ]
            held = sum(map(len, equals))
            for left in range(held, max(held - (count - len(removed)), 0), -1):
                slot = int(rng.random() * left)
                for names in equals:
                    if slot < len(names):
                        break
                    slot -= len(names)
                removed.append(self._remove_from(names, slot))
        return removed

    def clear(self) -> None:
        """Remove everything."""
        self._buckets.clear()
        self._places.clear()

    def _remove_from(self, names: list[Name], slot: int) -> Name:
        """Remove one name; the bucket's last name fills its slot, so that no others move."""
        name, last = names[slot], names.pop()
        if slot < len(names):
            names[slot] = last
            self._places[last] = names, slot
        del self._places[name]
        return name
