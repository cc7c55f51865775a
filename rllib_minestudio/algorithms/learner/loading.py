"""Getting fragments to the learner: fetched from Ray's object store, an iteration ahead.

While the learner trains on the fragments of one iteration, a thread can fetch those of the next
from the nodes where they were played (`prefetch`). They stay in the host's memory; minibatches of
them go to the device one by one (`streaming.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import ObjectLostError
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner.batch import SequenceBatch, sequences_of
from rllib_minestudio.errors import FragmentsLostError


@dataclass(frozen=True, eq=False)
class LoadedFragments:
    """An iteration's fragments, in this process.

    Attributes:
        sequences: What is trained on.
        lost: For each sequence, whether Ray lost one of its fragments. Another one stands in for
            it, so that every learner has equally many; it must not be trained on.
        prefetched: Whether they were fetched before they were asked for, in the thread.
    """

    sequences: SequenceBatch
    lost: list[bool]
    prefetched: bool = False


class FragmentLoader:
    """Fetches fragments, the next iteration's in a thread if it is told of them in time.

    Args:
        join: Contiguous fragments per sequence.
    """

    def __init__(self, *, join: int) -> None:
        self._join = join
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._announced: deque[tuple[list[Any], Future[LoadedFragments]]] = deque(maxlen=2)

    def prefetch(self, training_data: TrainingData) -> None:
        """Begin to fetch an iteration's fragments, and return at once.

        They may be announced before those in front of them have been asked for, so that up to two
        iterations are kept; the older one makes room for a third.
        """
        payloads = _payloads(training_data)
        self._announced.append((payloads, self._executor.submit(self._load, payloads)))

    def load(self, training_data: TrainingData) -> LoadedFragments:
        """The fragments; waits for the thread if they were announced, else fetches them now.

        Raises:
            FragmentsLostError: Ray lost every one of them.
            Exception: Whatever went wrong in the thread.
        """
        reporting.detail("fetching fragments")
        payloads = _payloads(training_data)
        return self._take_announced(payloads) or self._load(payloads)

    def close(self) -> None:
        """Let the thread end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _take_announced(self, payloads: list[Any]) -> LoadedFragments | None:
        """The fragments if they were announced; those announced before will not be asked for."""
        for place, (announced, future) in enumerate(self._announced):
            if _same(announced, payloads):
                for _ in range(place + 1):
                    self._announced.popleft()
                return replace(future.result(), prefetched=True)
        return None

    def _load(self, payloads: list[Any]) -> LoadedFragments:
        fragments = _fetch(payloads)
        groups = [fragments[i : i + self._join] for i in range(0, len(fragments), self._join)]
        found = [[f for f in group if f is not None] for group in groups]
        lost = [len(group) < self._join for group in found]
        if all(lost):
            raise FragmentsLostError(
                f"Ray lost all {len(payloads)} fragments of a batch: the machines that held them "
                "died. Give the object store more memory, or use machines that last."
            )
        stand_in = found[lost.index(False)]
        complete = [
            fragment
            for group, is_lost in zip(found, lost, strict=True)
            for fragment in (stand_in if is_lost else group)
        ]
        return LoadedFragments(sequences_of(complete, self._join), lost)


def _payloads(training_data: TrainingData) -> list[Any]:
    """The fragments or references that were given."""
    references = training_data.episodes_refs
    return list(training_data.episodes if references is None else references)


def _same(announced: Sequence[Any], payloads: Sequence[Any]) -> bool:
    """Whether two lists hold the same fragments or references."""
    return len(announced) == len(payloads) and all(
        a is b or a == b for a, b in zip(announced, payloads, strict=True)
    )


def _fetch(payloads: list[Any]) -> list[Fragment | None]:
    """The fragments, None for those that Ray has lost."""
    if isinstance(payloads[0], Fragment):
        return payloads
    try:
        return ray.get(payloads)  # all at once, so that Ray fetches them side by side
    except ObjectLostError:
        return [_fetch_one(reference) for reference in payloads]


def _fetch_one(reference: ray.ObjectRef) -> Fragment | None:
    try:
        return ray.get(reference)
    except ObjectLostError:
        return None
