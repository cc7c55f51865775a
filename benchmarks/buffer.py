"""The replay buffer: how fast it sorts.

    python benchmarks/buffer.py [--times N]

`add` and `sample` of a buffer that holds references to 5,000 fragments, in the process that uses
it, as in the training loop. How fast the fragments themselves pass from one process to another is
measured by `hand_over.py`.
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
    buffer: ReplayBuffer[Any] = ReplayBuffer(
        max_fragments=HELD, max_reuse=2, max_staleness=3, seed=0
    )
    numbers = iter(range(10**9))

    def add(references: list[ray.ObjectRef]) -> None:
        for reference in references:
            i = next(numbers)
            buffer.add(reference, key=(str(i % 64), i), weights_version=i % 3)

    def adding(count: int) -> float:
        batches = [[ray.put(None) for _ in range(count)] for _ in range(times)]
        return median_ms(lambda: add(batches.pop()), times)

    def sampling(count: int) -> float:
        return median_ms(lambda: buffer.sample(count), times)

    add([ray.put(None) for _ in range(HELD)])
    table = Table("held", "operation", "ms")
    for name, measure in (("add", adding), ("sample", sampling)):
        for count in (1, BATCH):
            table.add_row(f"{len(buffer)}", f"{name} {count}", f"{measure(count):.3f}")
    return table


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
