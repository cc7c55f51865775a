"""The replay buffer: how fast it sorts, and how fast fragments pass through it.

    python benchmarks/buffer.py [--fragments N] [--rounds N] [--starts N] [--threads N]
        [--disk FOLDER]

1. `add` and `sample` of a buffer that holds 5,000 fragments: the structure alone, and through its
   actor, as the training loop uses it: an addition is sent, and the answer not waited for. What any
   call of an actor takes on this machine stands beside them.
2. Handing fragments from one process to another, in MB/s: through Ray's object store, and through
   MineStudio's fragment store, which is a disk cache (`online/rollout/replay_buffer`). A fragment
   is that of VPT 2x: 128 steps of 128 x 128 pixels. The object store maps what MineStudio's store
   unpickles, so that the reading side is measured until the arrays can be used, until every byte
   of them has been read, and until they have been copied into a batch. Rounds alternate, and the
   processes start anew every few rounds: whether memory that a process frees goes back to the
   system, and has to be cleared again by the next unpickling, is settled when it starts, and is
   worth a factor of two to MineStudio's store. Medians are printed, and the range of the ratios.

The comparison needs `minestudio` 1.1.6 and `diskcache` (and what MineStudio's module imports); it
is left out where they are missing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import ray
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer
from rllib_minestudio.algorithms.training_loop.replay_buffer_actor import (
    RemoteReplayBuffer,
    StoredFragment,
)

HELD = 5000
BATCH = 32
STEPS, HEIGHT, WIDTH = 128, 128, 128
STATE = {"keys": (4, 128, 2048), "values": (4, 128, 2048), "mask": (4, 128)}
"""VPT 2x: four blocks remember 128 steps each."""


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fragments", type=int, default=16, help="handed over per round")
    parser.add_argument("--rounds", type=int, default=4, help="per start of the processes")
    parser.add_argument("--starts", type=int, default=5, help="of the processes")
    parser.add_argument("--threads", type=int, default=1, help="of the reading process")
    parser.add_argument("--disk", help="folder of the disk cache (default: a temporary one)")
    arguments = parser.parse_args()
    console = Console(width=100)

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=3 * 1024**3,
    )
    console.print(sorting_table())
    if minestudio_store() is None:
        console.print("minestudio or diskcache is not installed: nothing to compare with")
    megabytes = arguments.fragments * nbytes(make_fragment(0)) / 1e6
    starts = []
    for _ in range(arguments.starts):
        with tempfile.TemporaryDirectory(dir=arguments.disk) as folder:
            paths = [ObjectStorePath(arguments.fragments, arguments.threads)]
            if minestudio_store() is not None:
                paths.append(DiskCachePath(arguments.fragments, arguments.threads, folder))
            starts.append(alternate(paths, arguments.rounds))
            for path in paths:
                path.stop()
    console.print(hand_over_table(starts, megabytes))
    ray.shutdown()


# ---------------------------------------------------------------- sorting


def sorting_table() -> Table:
    """Milliseconds per operation of a buffer that is full."""
    table = Table("held", "operation", "structure, ms", "actor, ms")
    limits = {"max_fragments": HELD, "max_reuse": 2, "max_staleness": 3}
    structure: ReplayBuffer[Any] = ReplayBuffer(**limits)
    actor = RemoteReplayBuffer(limits, max_restarts_per_hour=1)
    reference = ray.put(None)
    keys = ((str(i % 64), i) for i in range(10**9))

    def fragments(count: int) -> list[StoredFragment]:
        return [StoredFragment(reference, next(keys), i % 3) for i in range(count)]

    def add(count: int) -> None:
        for _, key, version in fragments(count):
            structure.add(None, key=key, weights_version=version)

    add(HELD)
    actor.add(fragments(HELD))
    rows: tuple[tuple[str, Callable[[], Any], Callable[[], Any]], ...] = (
        ("add 1", lambda: add(1), lambda: actor.add(fragments(1))),
        (f"add {BATCH}", lambda: add(BATCH), lambda: actor.add(fragments(BATCH))),
        (
            f"add {BATCH}, and an answer",
            lambda: add(BATCH),
            lambda: (actor.add(fragments(BATCH)), actor.set_version(0)),
        ),
        ("sample 1", lambda: structure.sample(1), lambda: actor.sample(1)),
        (f"sample {BATCH}", lambda: structure.sample(BATCH), lambda: actor.sample(BATCH)),
    )
    table.add_row("", "a call of an actor", "", f"{median_ms(empty_call()):.3f}")
    for name, on_structure, on_actor in rows:
        cells = (f"{median_ms(call):.3f}" for call in (on_structure, on_actor))
        table.add_row(f"{len(structure)}", name, *cells)
    actor.stop()
    return table


class Nothing:
    """An actor that does nothing."""

    def nothing(self) -> None:
        """Answer."""


def empty_call() -> Callable[[], Any]:
    """What calls an actor that does nothing, and waits for it."""
    actor = ray.remote(num_cpus=0)(Nothing).remote()
    ray.get(actor.nothing.remote())
    return lambda: ray.get(actor.nothing.remote())


def median_ms(call: Callable[[], Any], times: int = 60) -> float:
    """Median wall time of a call, in milliseconds."""
    durations = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        durations.append(time.perf_counter() - started)
    return 1e3 * statistics.median(durations)


# ---------------------------------------------------------------- handing over


def make_fragment(index: int) -> Fragment:
    """A fragment of noise, which nothing compresses."""
    rng = np.random.default_rng(index)
    zeros = np.zeros(STEPS, np.float32)
    no = np.zeros(STEPS, np.bool_)
    return Fragment(
        obs=rng.integers(0, 256, (STEPS, HEIGHT, WIDTH, 3), np.uint8),
        action={name: np.zeros(STEPS, np.int64) for name in ("buttons", "camera")},
        reward=zeros,
        first=no,
        terminated=no,
        truncated=no,
        logp=zeros,
        value=zeros,
        bootstrap_value=zeros,
        state_in={name: rng.random(shape, np.float32) for name, shape in STATE.items()},
        last_obs=np.zeros((HEIGHT, WIDTH, 3), np.uint8),
        last_first=False,
        last_value=0.0,
        weights_version_min=0,
        weights_version_max=0,
        env_id="0-0",
        index=index,
    )


def nbytes(fragment: Fragment) -> int:
    """Bytes of the arrays that are read."""
    return sum(array.nbytes for array in read_arrays(fragment))


def read_arrays(fragment: Fragment) -> list[np.ndarray]:
    """What the learner copies into its batch."""
    return [fragment.obs, *fragment.state_in.values()]


def read_all(fragment: Fragment) -> None:
    """Read every byte, and do as little as possible with it."""
    for array in read_arrays(fragment):
        array.reshape(-1).view(np.int64).max()


def copy_into(batch: list[np.ndarray], fragment: Fragment) -> None:
    """Copy every byte, as stacking a batch does."""
    for target, array in zip(batch, read_arrays(fragment), strict=True):
        np.copyto(target, array)


class Writer:
    """A process that has fragments."""

    def __init__(self, count: int, store: dict[str, Any] | None) -> None:
        """Make the fragments."""
        self._fragments = [make_fragment(i) for i in range(count)]
        self._store = minestudio_store()(**store) if store else None

    def give(self) -> Any:
        """Hand over the fragments, or the names they are stored under."""
        if self._store is None:
            return self._fragments if len(self._fragments) > 1 else self._fragments[0]
        return [self._store.add_fragment(fragment) for fragment in self._fragments]


class Reader:
    """A process that needs fragments, in one batch, and has several threads to get them."""

    def __init__(self, store: dict[str, Any] | None, threads: int, count: int) -> None:
        """Open the store."""
        self._store = minestudio_store()(**store) if store else None
        self._pool = ThreadPoolExecutor(threads)
        shapes = [(array.shape, array.dtype) for array in read_arrays(make_fragment(0))]
        self._batch = [[np.zeros(*shape) for shape in shapes] for _ in range(count)]

    def read(self, names: list[Any], copies: bool) -> tuple[float, float]:
        """Seconds until all fragments can be used, and until all have been read, or copied."""
        started = time.perf_counter()
        if self._store is None:
            fragments = ray.get(names)
        else:
            fragments = list(self._pool.map(self._store.get_fragment, names))
        usable = time.perf_counter() - started
        if copies:
            done = self._pool.map(copy_into, self._batch, fragments)
        else:
            done = self._pool.map(read_all, fragments)
        for _ in done:
            pass
        return usable, time.perf_counter() - started

    def forget(self, names: list[Any]) -> None:
        """Delete from the store."""
        if self._store is not None:
            for name in names:
                self._store.delete_fragment(name)


class ObjectStorePath:
    """Fragments as results of an actor's call, one each, as the training loop gets them."""

    store: dict[str, Any] | None = None

    def __init__(self, count: int, threads: int) -> None:
        """Start the two processes."""
        self._count = count
        self.writer = ray.remote(num_cpus=0)(Writer).remote(count, self.store)
        self.reader = ray.remote(num_cpus=0)(Reader).remote(self.store, threads, count)

    def give(self) -> list[Any]:
        """Write; returns names or references when all is written."""
        references = self.writer.give.options(num_returns=self._count).remote()
        ray.wait(references, num_returns=self._count, fetch_local=False)
        return references

    def stop(self) -> None:
        """End the two processes."""
        ray.kill(self.writer)
        ray.kill(self.reader)

    def round(self) -> tuple[float, ...]:
        """Seconds to write, until usable, until read, until copied, and from beginning to end."""
        _, _, read, _ = self._hand_over(copies=False)
        written, usable, copied, whole = self._hand_over(copies=True)
        return written, usable, read, copied, whole

    def _hand_over(self, copies: bool) -> tuple[float, float, float, float]:
        """Seconds to write, until usable, until all bytes were touched, and of the whole."""
        started = time.perf_counter()
        names = self.give()
        written = time.perf_counter() - started
        usable, touched = ray.get(self.reader.read.remote(names, copies))
        whole = time.perf_counter() - started
        ray.get(self.reader.forget.remote(names))
        return written, usable, touched, whole


class DiskCachePath(ObjectStorePath):
    """Fragments in MineStudio's fragment store; both processes open the same folder."""

    def __init__(self, count: int, threads: int, folder: str) -> None:
        """Start the two processes."""
        self.store = {"path": folder, "num_shards": 8}
        super().__init__(count, threads)

    def give(self) -> list[Any]:
        """Write; returns the names."""
        return ray.get(self.writer.give.remote())


def minestudio_store() -> Any:
    """MineStudio's store for one machine, or None."""
    try:
        from minestudio.online.rollout.replay_buffer.fragment_store import LocalFragmentStoreImpl
    except ImportError:
        return None
    return LocalFragmentStoreImpl


def alternate(paths: list[ObjectStorePath], rounds: int) -> list[list[tuple[float, ...]]]:
    """What the rounds of each path took, after one that warms up."""
    for path in paths:
        path.round()
    timings = [[path.round() for path in paths] for _ in range(rounds)]
    return [list(rows) for rows in zip(*timings, strict=True)]


def hand_over_table(starts: list[list[list[tuple[float, ...]]]], megabytes: float) -> Table:
    """MB/s of each path, and the ratio if there are two: medians, and the range over the starts."""
    columns = ("write", "read: usable", "read: every byte", "read: copied", "write + copied")
    table = Table("MB/s", *columns)
    every_path = zip(*starts, strict=True)
    names = ("object store", "MineStudio's disk cache")
    for name, path in zip(names, every_path, strict=False):
        row = medians([timings for rounds in path for timings in rounds])
        table.add_row(name, *(f"{megabytes / seconds:,.0f}" for seconds in row))
    if len(starts[0]) > 1:
        ratios = [
            [theirs / ours for ours, theirs in zip(*map(medians, start), strict=True)]
            for start in starts
        ]
        table.add_row(
            "ratio, median of the starts", *(f"{ratio:.1f}x" for ratio in medians(ratios))
        )
        for name, choose in (("smallest", min), ("greatest", max)):
            table.add_row(name, *(f"{choose(column):.1f}x" for column in zip(*ratios, strict=True)))
    return table


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """The median of each column."""
    return [statistics.median(column) for column in zip(*rows, strict=True)]


if __name__ == "__main__":
    main()
