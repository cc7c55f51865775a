"""Fetching the learner's fragments from Ray's object store, one iteration ahead.

While the learner trains on one iteration, a thread can fetch the fragments of the next from the
nodes where they were played (`prefetch`). They stay in host memory; `MinibatchStream` moves
minibatches of them to the device one by one.
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
        sequences: The fragments, joined into sequences.
        lost: For each sequence, whether Ray lost one of its fragments. A lost sequence is replaced
            by a copy of another, so that every learner has equally many, and must not be trained
            on.
        prefetched: Whether the fragments were fetched ahead, in the thread.
    """

    sequences: SequenceBatch
    lost: list[bool]
    prefetched: bool = False


class FragmentLoader:
    """Fetches fragments, those of the next iteration in a thread.

    Args:
        join: Contiguous fragments per sequence.
    """

    def __init__(self, *, join: int) -> None:
        self._join = join
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._announced: deque[tuple[list[Any], Future[LoadedFragments]]] = deque(maxlen=2)

    def prefetch(self, training_data: TrainingData) -> None:
        """Start fetching an iteration's fragments, and return immediately.

        An iteration may be announced before the previous one is loaded, so up to two are kept; a
        third replaces the older one.
        """
        payloads = _payloads(training_data)
        self._announced.append((payloads, self._executor.submit(self._load, payloads)))

    def load(self, training_data: TrainingData) -> LoadedFragments:
        """Return the fragments: wait for the thread if they were announced, else fetch them now.

        Raises:
            FragmentsLostError: If Ray lost all of them.
            Exception: Any error of the thread.
        """
        reporting.detail("fetching fragments")
        payloads = _payloads(training_data)
        return self._take_announced(payloads) or self._load(payloads)

    def close(self) -> None:
        """End the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _take_announced(self, payloads: list[Any]) -> LoadedFragments | None:
        """Return the fragments if they were announced, and drop those announced before them."""
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
                "died. Give the object store more memory, or use machines that stay up."
            )
        stand_in = found[lost.index(False)]
        complete = [
            fragment
            for group, is_lost in zip(found, lost, strict=True)
            for fragment in (stand_in if is_lost else group)
        ]
        return LoadedFragments(sequences_of(complete, self._join), lost)


def _payloads(training_data: TrainingData) -> list[Any]:
    references = training_data.episodes_refs
    return list(training_data.episodes if references is None else references)


def _same(announced: Sequence[Any], payloads: Sequence[Any]) -> bool:
    """Whether two lists hold the same fragments or references."""
    return len(announced) == len(payloads) and all(
        a is b or a == b for a, b in zip(announced, payloads, strict=True)
    )


def _fetch(payloads: list[Any]) -> list[Fragment | None]:
    """Fetch fragments; None stands for those that Ray has lost."""
    if isinstance(payloads[0], Fragment):
        return payloads
    try:
        return ray.get(payloads)  # all at once, so that Ray fetches them in parallel
    except ObjectLostError:
        return [_fetch_one(reference) for reference in payloads]


def _fetch_one(reference: ray.ObjectRef) -> Fragment | None:
    try:
        return ray.get(reference)
    except ObjectLostError:
        return None
