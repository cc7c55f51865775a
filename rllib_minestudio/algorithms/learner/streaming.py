"""Minibatches on their way to the device: one is trained on, the next is prepared meanwhile.

An iteration's fragments stay in the host's memory. The device holds two minibatches at most,
whatever the size of the iteration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

import torch

from rllib_minestudio.algorithms.learner.batch import Minibatch

Key = TypeVar("Key")
Batch = TypeVar("Batch", bound=Minibatch)


class _Prepared(NamedTuple):
    """A minibatch on the device; `ready` is recorded when a GPU has received it."""

    minibatch: Minibatch
    ready: torch.cuda.Event | None


class MinibatchStream:
    """Stacks minibatches in a thread and sends them to a device, one ahead.

    Args:
        device: Where they go.
    """

    def __init__(self, device: torch.device) -> None:
        """Start nothing yet."""
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="minibatches")

    def stream(self, prepare: Callable[[Key], Batch], keys: Iterable[Key]) -> Iterator[Batch]:
        """Minibatches in the order of their keys.

        The next one is begun when a minibatch is handed out. The caller must let go of one
        before asking for the next: then no more than two exist.

        Args:
            prepare: Makes a minibatch in the host's memory; called in the thread.
            keys: What it is called with.
        """
        rest = iter(keys)
        coming: deque[Future[_Prepared]] = deque()

        def begin_next() -> None:
            coming.extend(
                self._executor.submit(self._prepare, prepare, key) for key in islice(rest, 1)
            )

        begin_next()
        while coming:
            prepared = coming.popleft().result()
            begin_next()
            if prepared.ready is not None:
                here = torch.cuda.current_stream(self._device)
                here.wait_event(prepared.ready)
                for tensor in prepared.minibatch.tensors():
                    tensor.record_stream(here)  # not to be overwritten by the next minibatch
            yield prepared.minibatch  # type: ignore[misc]
            del prepared

    def close(self) -> None:
        """Let the thread end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, prepare: Callable[[Key], Minibatch], key: Key) -> _Prepared:
        minibatch = prepare(key)
        if self._stream is None:
            return _Prepared(minibatch.map(lambda tensor: tensor.to(self._device)), None)
        pinned = minibatch.map(torch.Tensor.pin_memory)
        with torch.cuda.stream(self._stream):
            sent = pinned.map(lambda tensor: tensor.to(self._device, non_blocking=True))
            return _Prepared(sent, self._stream.record_event())
