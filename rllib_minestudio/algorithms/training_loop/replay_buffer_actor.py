"""The replay buffer in an actor of its own, and the driver's handle on it.

The fragments themselves stay in Ray's object store on the node they were played on, owned by the
driver as results of its rollout calls, so that neither the death of the runner that made them nor
that of this actor takes data away that someone still needs. The driver, which has the references
anyway, numbers them. The actor holds the numbers with their metadata, and says which are gone: Ray
takes longer to pass a reference on than the buffer to decide everything about it.

If the actor is lost, an empty one with the right weights version takes its place; what it held is
counted as lost, and the env runners' next fragments fill it again.
"""

from __future__ import annotations

import itertools
from array import array
from dataclasses import asdict
from typing import NamedTuple

import ray

from rllib_minestudio.algorithms.training_loop.failures import FailureBudget
from rllib_minestudio.algorithms.training_loop.replay_buffer import (
    BufferCounts,
    FragmentKey,
    ReplayBuffer,
    Sample,
)
from rllib_minestudio.algorithms.training_loop.service import Service


class StoredFragment(NamedTuple):
    """A fragment on its way into the buffer.

    Attributes:
        reference: To the fragment.
        key: Its environment and number.
        weights_version: The oldest version of the weights that acted in it.
    """

    reference: ray.ObjectRef
    key: FragmentKey
    weights_version: int


class _Stock(NamedTuple):
    """How the buffer stands after a call."""

    occupancy: int
    counts: BufferCounts


class _Keeper:
    """The actor.

    Every method answers with columns of numbers: those that are gone since the last answer, and the
    stock, so that the handle need not ask for it; a sample's columns follow.
    """

    def __init__(self, **limits: int) -> None:
        self._gone: list[int] = []
        self._buffer: ReplayBuffer[int] = ReplayBuffer(**limits)
        self._buffer.on_gone = self._gone.append
        self._count = self._lead = 0

    def add(self, numbers: list[int], keys: list[FragmentKey], versions: list[int]) -> None:
        for number, key, version in zip(numbers, keys, versions, strict=True):
            self._buffer.add(number, key=key, weights_version=version)

    def expect(self, count: int, lead: int) -> None:
        """Tell what `take` takes from now on."""
        self._count, self._lead = count, lead

    def take(self) -> bytes:
        """Numbers, staleness and uses of a sample, or of nothing if there are too few."""
        enough = self._buffer.available(self._lead) >= self._count
        samples = self._buffer.sample(self._count, self._lead) if enough else []
        return self._answer(
            [sample.payload for sample in samples],
            [sample.staleness for sample in samples],
            [sample.use for sample in samples],
        )

    def set_version(self, version: int) -> bytes:
        self._buffer.set_version(version)
        return self._answer()

    def discard(self, chunks: set[FragmentKey]) -> bytes:
        self._buffer.discard(chunks)
        return self._answer()

    def clear(self) -> bytes:
        self._buffer.clear()
        return self._answer()

    def _answer(self, *columns: list[int]) -> bytes:
        stock = [len(self._buffer), *vars(self._buffer.counts).values()]
        answer = _packed(self._gone, stock, *columns)
        self._gone.clear()
        return answer


def _packed(*columns: list[int]) -> bytes:
    """Columns of numbers on their way: Ray pickles everything but bytes, which takes longer."""
    return array("q", [len(columns), *map(len, columns), *itertools.chain(*columns)]).tobytes()


def _unpacked(answer: bytes) -> list[array[int]]:
    numbers = array("q", answer)
    ends = list(itertools.accumulate(numbers[1 : numbers[0] + 1], initial=numbers[0] + 1))
    return [numbers[start:end] for start, end in itertools.pairwise(ends)]


class RemoteReplayBuffer:
    """The driver's handle; the methods are those of `ReplayBuffer`, for references.

    Args:
        limits: What `ReplayBuffer` takes.
        max_restarts_per_hour: How often the actor may fail.
    """

    def __init__(self, limits: dict[str, int], max_restarts_per_hour: int) -> None:
        """Start the actor."""
        self.max_fragments = limits["max_fragments"]
        self._version = 0
        self._expected = (0, 0)
        self._past = BufferCounts()
        self._stock = _Stock(0, BufferCounts())
        self._added_since = 0
        self._fragments_per_chunk = limits.get("fragments_per_chunk", 1)
        self._held: dict[int, StoredFragment] = {}
        self._numbers = itertools.count()
        failures = FailureBudget("replay buffer", max_restarts_per_hour)
        self.service = Service(failures, _Keeper, limits, on_replaced=self._begin_anew)

    def __len__(self) -> int:
        """Fragments held when the actor last answered, and those added since."""
        return self._stock.occupancy + self._added_since

    def add(self, fragments: list[StoredFragment]) -> None:
        """Store fragments, evicting the oldest if the buffer is full; does not wait for it."""
        _, keys, versions = zip(*fragments, strict=True)
        numbers = [next(self._numbers) for _ in fragments]
        self._held.update(zip(numbers, fragments, strict=True))
        self.service.send("add", numbers, list(keys), list(versions))
        self._added_since += len(fragments)

    def sample(self, count: int, lead: int = 0) -> list[Sample[ray.ObjectRef]]:
        """Take `count` fragments as `ReplayBuffer.sample` does, or none if there are too few."""
        # A training loop asks for the same all the time, and every argument of a call takes Ray
        # time that someone waits for: they are told only when they change.
        if (count, lead) != self._expected:
            self._expected = (count, lead)
            self.service.send("expect", count, lead)
        gone, stock, numbers, staleness, uses = _unpacked(self.service.call("take"))
        fragments = [self._held[number] for number in numbers]
        self._note(gone, stock)
        size = self._fragments_per_chunk
        references = [fragment.reference for fragment in fragments]
        chunks = [fragments[i - i % size].key for i in range(len(fragments))]
        return list(map(Sample, references, staleness, uses, chunks))

    def set_version(self, version: int) -> None:
        """Tell the version of the newest published weights."""
        self._version = version
        self._note(*_unpacked(self.service.call("set_version", version)))

    def discard(self, chunks: set[FragmentKey]) -> None:
        """Forget chunks whose data are gone."""
        self._note(*_unpacked(self.service.call("discard", chunks)))

    def clear(self) -> None:
        """Forget all fragments; they count as evicted."""
        self._note(*_unpacked(self.service.call("clear")))

    def metrics(self) -> dict[str, int]:
        """Occupancy and the counts since the start, those of lost actors included."""
        counts = _sum(self._past, self._stock.counts)
        counts.added += self._added_since
        return {"occupancy": len(self), **asdict(counts)}

    def stop(self) -> None:
        """End the actor."""
        self.service.stop()

    def _note(self, gone: array[int], stock: array[int]) -> None:
        """Take over how the buffer stands after all calls so far."""
        occupancy, *counts = stock
        for number in gone:
            del self._held[number]
        self._stock = _Stock(occupancy, BufferCounts(*counts))
        self._added_since = 0

    def _begin_anew(self) -> None:
        """What the actor held is lost; the new one is told what the old one had been told."""
        self._past = _sum(self._past, self._stock.counts)
        self._past.added += self._added_since
        self._past.lost += len(self)
        self._stock = _Stock(0, BufferCounts())
        self._added_since = 0
        self._held.clear()
        self.service.actor.set_version.remote(self._version)
        self.service.actor.expect.remote(*self._expected)


def _sum(first: BufferCounts, second: BufferCounts) -> BufferCounts:
    return BufferCounts(
        **{name: value + asdict(second)[name] for name, value in asdict(first).items()}
    )
