"""Getting fragments to the learner: fetched, stacked, moved to the device, a batch ahead.

While the learner trains on one batch, a thread can do all this for the next (`prefetch`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import ray
import torch
from ray.exceptions import ObjectLostError
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner.batch import FragmentBatch, stack_fragments
from rllib_minestudio.errors import FragmentsLostError


@dataclass(frozen=True, eq=False)
class LoadedBatch:
    """Fragments ready to train on.

    Attributes:
        fragments: In chunk-major order: those of one row are consecutive and contiguous in time.
        batch: The same, stacked into rows.
        lost: For each row, whether Ray lost one of its fragments. Another row stands in for it,
            so that every learner has equally many; it must not be trained on.
        ready: On a GPU, recorded when all tensors have arrived.
        ahead: Whether it was loaded ahead, in the thread.
    """

    fragments: list[Fragment]
    batch: FragmentBatch
    lost: list[bool]
    ready: torch.cuda.Event | None = None
    ahead: bool = False

    def staleness(self, version: int) -> list[list[int]]:
        """For each row, how many versions its fragments lag behind `version`."""
        join = len(self.fragments) // len(self.batch)
        ages = [version - fragment.weights_version_min for fragment in self.fragments]
        return [ages[i : i + join] for i in range(0, len(ages), join)]


class FragmentLoader:
    """Loads batches, the next one in a thread if it is told of it in time.

    Args:
        device: Where batches go.
        join: Contiguous fragments per row.
    """

    def __init__(self, device: torch.device, *, join: int) -> None:
        """Start nothing yet."""
        self._device = device
        self._join = join
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._announced: deque[tuple[list[Any], Future[LoadedBatch]]] = deque(maxlen=2)

    def prefetch(self, training_data: TrainingData) -> None:
        """Begin to load a batch, and return at once.

        It may be announced before the batch in front of it has been asked for, so that up to two
        are kept; the older one makes room for a third.
        """
        payloads = _payloads(training_data)
        self._announced.append((payloads, self._executor.submit(self._load, payloads)))

    def load(self, training_data: TrainingData) -> LoadedBatch:
        """The batch; waits for the thread if it was announced, else loads it now.

        Raises:
            FragmentsLostError: Ray lost every one of its fragments.
            Exception: Whatever went wrong in the thread.
        """
        payloads = _payloads(training_data)
        loaded = self._take_announced(payloads) or self._load(payloads)
        if loaded.ready is not None:
            training_stream = torch.cuda.current_stream(self._device)
            training_stream.wait_event(loaded.ready)
            for tensor in loaded.batch.tensors():
                tensor.record_stream(training_stream)  # not to be overwritten by the next batch
        return loaded

    def close(self) -> None:
        """Let the thread end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _take_announced(self, payloads: list[Any]) -> LoadedBatch | None:
        """The batch if it was announced; what was announced before it will not be asked for."""
        for place, (announced, future) in enumerate(self._announced):
            if _same(announced, payloads):
                for _ in range(place + 1):
                    self._announced.popleft()
                return replace(future.result(), ahead=True)
        return None

    def _load(self, payloads: list[Any]) -> LoadedBatch:
        fragments = _fetch(payloads)
        rows = [fragments[i : i + self._join] for i in range(0, len(fragments), self._join)]
        whole = [[f for f in row if f is not None] for row in rows]
        lost = [len(row) < self._join for row in whole]
        if all(lost):
            raise FragmentsLostError(
                f"Ray lost all {len(payloads)} fragments of a batch: the machines that held them "
                "died. Give the object store more memory, or use machines that last."
            )
        stand_in = whole[lost.index(False)]
        kept = [
            f for row, gone in zip(whole, lost, strict=True) for f in (stand_in if gone else row)
        ]
        if self._stream is None:
            return LoadedBatch(kept, stack_fragments(kept, self._device, join=self._join), lost)
        with torch.cuda.stream(self._stream):
            batch = stack_fragments(kept, self._device, join=self._join)
            return LoadedBatch(kept, batch, lost, self._stream.record_event())


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
