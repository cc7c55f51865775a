"""How fast fragments pass from one process to another.

    python benchmarks/hand_over.py [--fragments N] [--rounds N] [--starts N] [--threads N]
        [--disk FOLDER]

Through Ray's object store, as here, and through MineStudio's fragment store, which is a disk cache
(`online/rollout/replay_buffer`), in MB/s. A fragment is that of VPT 2x: 128 steps of 128 x 128
pixels. MineStudio's store is read in two ways: by asking the store itself, and as MineStudio's
trainer does (`online/utils/train/data.py`), whose loaders ask the store and pass on what they get
through the object store, from where it is copied. The object store maps what MineStudio's store
unpickles, so that the reading side is measured until the arrays can be used, until every byte of
them has been read, and until they have been copied into a batch.

Rounds alternate, and the processes start anew every few rounds: whether memory that a process frees
goes back to the system, and has to be cleared again by the next unpickling, is settled when it
starts, and is worth a factor of two to MineStudio's store. Medians are printed, and the range of
the ratios.

The comparison needs `minestudio` 1.1.6 and `diskcache` (and what MineStudio's module imports); it
is left out where they are missing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import ray
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms.fragment import Fragment

STEPS, HEIGHT, WIDTH = 128, 128, 128
STATE = {"keys": (4, 128, 2048), "values": (4, 128, 2048), "mask": (4, 128)}
"""VPT 2x: four blocks remember 128 steps each."""

PREFETCHED = 2
"""Fragments that MineStudio's loaders are ahead, its default."""


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fragments", type=int, default=16, help="handed over per round")
    parser.add_argument("--rounds", type=int, default=4, help="per start of the processes")
    parser.add_argument("--starts", type=int, default=5, help="of the processes")
    parser.add_argument("--threads", type=int, default=1, help="of the reading side")
    parser.add_argument("--disk", help="folder of the disk cache (default: a temporary one)")
    arguments = parser.parse_args()
    console = Console(width=100)

    ray.init(
        address="local",
        num_cpus=2,
        resources={"database": 1},  # by which MineStudio knows where its store is
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=3 * 1024**3,
    )
    kinds: list[type[ObjectStorePath]] = [ObjectStorePath]
    if minestudio_store() is None:
        console.print("minestudio or diskcache is not installed: nothing to compare with")
    else:
        kinds += [DiskCachePath, TrainerPath]
    megabytes = arguments.fragments * nbytes(make_fragment(0)) / 1e6
    starts = []
    for _ in range(arguments.starts):
        with tempfile.TemporaryDirectory(dir=arguments.disk) as folder:
            paths = [kind(arguments.fragments, arguments.threads, folder) for kind in kinds]
            starts.append(alternate(paths, arguments.rounds))
            for path in paths:
                path.stop()
    console.print(hand_over_table([kind.name for kind in kinds], starts, megabytes))
    ray.shutdown()


def make_fragment(index: int) -> Fragment:
    """A fragment of noise, which nothing compresses."""
    rng = np.random.default_rng(index)
    zeros = np.zeros(STEPS, np.float32)
    no = np.zeros(STEPS, np.bool_)
    return Fragment(
        obs={"image": rng.integers(0, 256, (STEPS, HEIGHT, WIDTH, 3), np.uint8)},
        action={name: np.zeros(STEPS, np.int64) for name in ("buttons", "camera")},
        reward=zeros,
        first=no,
        terminated=no,
        truncated=no,
        logp=zeros,
        value=zeros,
        bootstrap_value=zeros,
        final_obs={"image": np.empty((0, HEIGHT, WIDTH, 3), np.uint8)},
        state_in={name: rng.random(shape, np.float32) for name, shape in STATE.items()},
        last_obs={"image": np.zeros((HEIGHT, WIDTH, 3), np.uint8)},
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
    return [*fragment.obs.values(), *fragment.state_in.values()]


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

    def forget(self, names: list[str]) -> None:
        """Delete from the store."""
        for name in names:
            self._store.delete_fragment(name)


class Reader:
    """A process that needs fragments, in one batch, and has several threads to read them."""

    def __init__(self, store: dict[str, Any], threads: int, count: int) -> None:
        """Have room for the batch."""
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        shapes = [(array.shape, array.dtype) for array in read_arrays(make_fragment(0))]
        self._batch = [[np.zeros(*shape) for shape in shapes] for _ in range(count)]
        self.open(store)

    def open(self, store: dict[str, Any]) -> None:
        """Nothing to open."""

    def get(self, names: list[Any]) -> list[Fragment]:
        """The fragments of these names, or references."""
        return ray.get(names)

    def read(self, names: list[Any], copies: bool) -> tuple[float, float]:
        """Seconds until all fragments can be used, and until all have been read, or copied."""
        started = time.perf_counter()
        fragments = self.get(names)
        usable = time.perf_counter() - started
        if copies:
            done = self._pool.map(copy_into, self._batch, fragments)
        else:
            done = self._pool.map(read_all, fragments)
        for _ in done:
            pass
        return usable, time.perf_counter() - started


class StoreReader(Reader):
    """Asks MineStudio's store."""

    def open(self, store: dict[str, Any]) -> None:
        """Open the store."""
        self._store = minestudio_store()(**store)

    def get(self, names: list[Any]) -> list[Fragment]:
        """The fragments of these names."""
        return list(self._pool.map(self._store.get_fragment, names))


class TrainerReader(Reader):
    """Asks MineStudio's loaders, as many as there are threads, with what its trainer uses."""

    def open(self, store: dict[str, Any]) -> None:
        """Start MineStudio's replay buffer, which its loaders ask where the store is, and them."""
        from minestudio.online.rollout.replay_buffer import ReplayBufferInterface
        from minestudio.online.utils.train import data

        limits = {"max_chunks": 1, "max_staleness": 0, "max_reuse": 1, "fragments_per_chunk": 1}
        self._buffer = ReplayBufferInterface({**limits, "database_config": store})
        self._loaders = data.create_loader_pool(self._threads, 0)
        self._data_iter = data.data_iter

    def get(self, names: list[Any]) -> list[Fragment]:
        """The fragments of these names, in some order."""
        batches = self._data_iter(self._loaders, [(None, name) for name in names], 1, PREFETCHED)
        return [fragment for batch in batches for fragment in batch["fragment"]]


class ObjectStorePath:
    """Fragments as results of an actor's call, one each, as the training loop gets them."""

    name = "object store"
    reader: type[Reader] = Reader

    def __init__(self, count: int, threads: int, folder: str) -> None:
        """Start the processes."""
        store = {"path": str(Path(folder) / type(self).__name__), "num_shards": 8}
        self._count = count
        # Its own processes end with it, those that MineStudio starts included.
        self.reading = ray.remote(num_cpus=0)(self.reader).remote(store, threads, count)
        ray.get(self.reading.read.remote([], False))  # MineStudio's buffer empties the store
        self.writing = ray.remote(num_cpus=0)(Writer).remote(count, self.writer_store(store))

    def writer_store(self, store: dict[str, Any]) -> dict[str, Any] | None:
        """What the writer opens."""
        return None

    def give(self) -> list[Any]:
        """Write; returns names or references when all is written."""
        references = self.writing.give.options(num_returns=self._count).remote()
        ray.wait(references, num_returns=self._count, fetch_local=False)
        return references

    def forget(self, names: list[Any]) -> None:
        """The references go by themselves."""

    def stop(self) -> None:
        """End the processes."""
        ray.kill(self.writing)
        ray.kill(self.reading)

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
        usable, touched = ray.get(self.reading.read.remote(names, copies))
        whole = time.perf_counter() - started
        self.forget(names)
        return written, usable, touched, whole


class DiskCachePath(ObjectStorePath):
    """Fragments in MineStudio's fragment store; both processes open the same folder."""

    name = "MineStudio's store"
    reader = StoreReader

    def writer_store(self, store: dict[str, Any]) -> dict[str, Any] | None:
        """What the writer opens."""
        return store

    def give(self) -> list[Any]:
        """Write; returns the names."""
        return ray.get(self.writing.give.remote())

    def forget(self, names: list[Any]) -> None:
        """Delete them."""
        ray.get(self.writing.forget.remote(names))


class TrainerPath(DiskCachePath):
    """The same, read as MineStudio's trainer does."""

    name = "MineStudio's, by its loaders"
    reader = TrainerReader


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


def hand_over_table(
    names: list[str], starts: list[list[list[tuple[float, ...]]]], megabytes: float
) -> Table:
    """MB/s of each path, and ratios of the first to the others: medians, and over the starts."""
    columns = ("write", "read: usable", "read: every byte", "read: copied", "write + copied")
    table = Table("MB/s", *columns)
    for name, path in zip(names, zip(*starts, strict=True), strict=True):
        row = medians([timings for rounds in path for timings in rounds])
        table.add_row(name, *(f"{megabytes / seconds:,.0f}" for seconds in row))
    for number, name in list(enumerate(names))[1:]:
        ratios = [
            [theirs / ours for ours, theirs in zip(*map(medians, pair), strict=True)]
            for pair in ((start[0], start[number]) for start in starts)
        ]
        table.add_section()
        table.add_row(f"to {name}", *(f"{ratio:.1f}x" for ratio in medians(ratios)))
        for end, choose in (("smallest", min), ("greatest", max)):
            table.add_row(end, *(f"{choose(column):.1f}x" for column in zip(*ratios, strict=True)))
    return table


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """The median of each column."""
    return [statistics.median(column) for column in zip(*rows, strict=True)]


if __name__ == "__main__":
    main()
