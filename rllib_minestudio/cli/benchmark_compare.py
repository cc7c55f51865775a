"""`rllib benchmark compare`: its arguments."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.console import stdout
from rllib_minestudio.errors import MineStudioError

DESCRIPTION = """\
Compare two runs of a benchmark, paired by task and episode.

A and B are folders that `rllib benchmark run` has written, with the same seed, tasks and time
limits. The differences are those of B minus A. Pairing removes the variance that comes from some
worlds being easier than others.
"""

EXAMPLES = """\
examples:
  rllib benchmark compare out/random out/hunter_nano
  rllib benchmark compare OLD NEW --out comparison.json
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib benchmark compare`."""
    parser.add_argument("first", metavar="A", help="folder of the first run's results")
    parser.add_argument("second", metavar="B", help="folder of the second run's results")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="also write the comparison, as JSON"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    """Print the comparison; returns the exit status."""
    from rllib_minestudio.benchmark.compare import compare_benchmarks
    from rllib_minestudio.benchmark.results import BenchmarkResults
    from rllib_minestudio.benchmark.tables import comparison_table

    first, second = map(BenchmarkResults.load, (arguments.first, arguments.second))
    comparison = compare_benchmarks(first, second)
    stdout.print(comparison_table(comparison))
    if arguments.out is not None:
        try:
            comparison.save(arguments.out)
        except OSError as error:
            raise MineStudioError(
                f"{str(arguments.out)!r} cannot be written: {error.strerror or error}. Choose "
                "another file with --out."
            ) from error
        stdout.print(f"comparison: {arguments.out}")
    return 0
