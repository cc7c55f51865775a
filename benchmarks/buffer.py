"""The replay buffer: how fast it sorts.

    python benchmarks/buffer.py [--times N]

`add` and `sample` of a buffer that holds 5,000 fragments: the structure alone, and through its
actor, as the training loop uses it: an addition is sent, and the answer not waited for. What any
call of an actor takes on this machine stands beside them. How fast the fragments themselves pass
from one process to another is measured by `hand_over.py`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import ray
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer
from rllib_minestudio.algorithms.training_loop.replay_buffer_actor import (
    RemoteReplayBuffer,
    StoredFragment,
)

HELD = 5000
BATCH = 32


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=60, help="that each operation is timed")
    arguments = parser.parse_args()
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    Console(width=100).print(sorting_table(arguments.times))
    ray.shutdown()


def sorting_table(times: int) -> Table:
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
    table.add_row("", "a call of an actor", "", f"{median_ms(empty_call(), times):.3f}")
    for name, on_structure, on_actor in rows:
        cells = (f"{median_ms(call, times):.3f}" for call in (on_structure, on_actor))
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


def median_ms(call: Callable[[], Any], times: int) -> float:
    """Median wall time of a call, in milliseconds."""
    durations = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        durations.append(time.perf_counter() - started)
    return 1e3 * statistics.median(durations)


if __name__ == "__main__":
    main()
