"""The replay buffer: which fragments may still be trained on, and which are next.

It holds payloads (fragments, or references to fragments in Ray's object store) together with
their metadata, and knows nothing of either: a plain data structure that Ray, torch and the
network need not be imported for.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Generic, NamedTuple, TypeVar

from rllib_minestudio.errors import ReplayBufferError

Payload = TypeVar("Payload")


@dataclass
class BufferCounts:
    """What became of every fragment that was ever added.

    added == occupancy + evicted + dropped_stale + used_up at all times.

    Attributes:
        added: Fragments handed to `add`.
        sampled: Fragments handed out by `sample`, reuses counted.
        evicted: Removed unused-up because the buffer was full.
        dropped_stale: Removed because the weights had moved on too far.
        used_up: Removed because they had been sampled `max_reuse` times.
    """

    added: int = 0
    sampled: int = 0
    evicted: int = 0
    dropped_stale: int = 0
    used_up: int = 0


class Sample(NamedTuple, Generic[Payload]):
    """A sampled payload, how stale it is (in weight versions) and which use of it this is."""

    payload: Payload
    staleness: int
    use: int


@dataclass
class _Entry(Generic[Payload]):
    payload: Payload
    weights_version: int
    uses: int = 0


class ReplayBuffer(Generic[Payload]):
    """A bounded store that never hands out a fragment too stale or used too often.

    Staleness is the number of published weight versions between the oldest weights that acted in
    a fragment and the newest published ones (MineStudio's `max_staleness`, `max_reuse`; its
    `online/rollout/replay_buffer`).

    Args:
        max_fragments: Capacity; adding beyond it evicts the oldest.
        max_reuse: How many times a fragment may be sampled, at least 1.
        max_staleness: The greatest staleness a sampled fragment may have, at least 0.
        seed: Of the order in which equally used fragments are sampled.

    Raises:
        ReplayBufferError: If a limit is out of its range.
    """

    def __init__(
        self, *, max_fragments: int, max_reuse: int, max_staleness: int, seed: int = 0
    ) -> None:
        """Create an empty buffer at weights version 0."""
        for name, limit, least in (
            ("max_fragments", max_fragments, 1),
            ("max_reuse", max_reuse, 1),
            ("max_staleness", max_staleness, 0),
        ):
            if limit < least:
                raise ReplayBufferError(f"replay_buffer.{name} is {limit}: it must be >= {least}")
        self.max_fragments = max_fragments
        self.max_reuse = max_reuse
        self.max_staleness = max_staleness
        self.counts = BufferCounts()
        self._entries: OrderedDict[int, _Entry[Payload]] = OrderedDict()
        self._version = 0
        self._next_key = 0
        self._random = random.Random(seed)

    def __len__(self) -> int:
        """The number of fragments that can be sampled now."""
        return len(self._entries)

    def add(self, payload: Payload, *, weights_version: int) -> None:
        """Store a fragment, evicting the oldest if the buffer is full.

        Args:
            payload: The fragment or a reference to it.
            weights_version: The oldest version of the weights that acted in it.
        """
        self.counts.added += 1
        if self._version - weights_version > self.max_staleness:
            self.counts.dropped_stale += 1
            return
        if len(self._entries) >= self.max_fragments:
            self._entries.popitem(last=False)
            self.counts.evicted += 1
        self._entries[self._next_key] = _Entry(payload, weights_version)
        self._next_key += 1

    def set_version(self, version: int) -> None:
        """Tell the version of the newest published weights, and drop what is now too stale."""
        self._version = version
        self._drop(
            key
            for key, entry in self._entries.items()
            if version - entry.weights_version > self.max_staleness
        )

    def sample(self, count: int) -> list[Sample[Payload]]:
        """Take `count` different fragments, least used first, at random among equals.

        Raises:
            ReplayBufferError: If fewer than `count` fragments can be sampled.
        """
        if count > len(self._entries):
            raise ReplayBufferError(
                f"{count} fragments were asked of a replay buffer that holds {len(self._entries)}"
            )
        keys = list(self._entries)
        self._random.shuffle(keys)
        keys.sort(key=lambda key: self._entries[key].uses)
        samples = [self._use(key) for key in keys[:count]]
        self.counts.sampled += count
        return samples

    def clear(self) -> None:
        """Forget all fragments; they count as evicted."""
        self.counts.evicted += len(self._entries)
        self._entries.clear()

    def metrics(self) -> dict[str, int]:
        """Occupancy and the counts since the start."""
        return {"occupancy": len(self._entries), **asdict(self.counts)}

    def _use(self, key: int) -> Sample[Payload]:
        entry = self._entries[key]
        entry.uses += 1
        if entry.uses >= self.max_reuse:
            del self._entries[key]
            self.counts.used_up += 1
        return Sample(entry.payload, self._version - entry.weights_version, entry.uses)

    def _drop(self, keys: Iterable[int]) -> None:
        for key in list(keys):
            del self._entries[key]
            self.counts.dropped_stale += 1
