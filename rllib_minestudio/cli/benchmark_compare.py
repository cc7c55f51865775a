"""`rllib benchmark compare`."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, dataclass
from pathlib import Path

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import Flag, broken_rule, option

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


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """Options of `rllib benchmark compare`."""

    first: str = option(
        MISSING, "Folder of the first run's results.", Flag("A", is_positional=True)
    )
    second: str = option(
        MISSING, "Folder of the second run's results.", Flag("B", is_positional=True)
    )
    out: Path | None = option(None, "Also write the comparison, as JSON.", Flag("FILE"))
    export: str | None = option(
        None,
        "Also write the progress of all paired episodes next to --out, as `rliable.npz`: for each "
        "player the matrix, episodes by tasks, that the library takes.",
        choices=("rliable",),
    )


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib benchmark compare`."""
    add_flags(parser, ComparisonRequest, _run)


def _run(request: ComparisonRequest) -> int:
    """Print the comparison, and return the exit status."""
    from rllib_minestudio.benchmark.report import comparison_table
    from rllib_minestudio.benchmark.results import BenchmarkResults, compare_benchmarks
    from rllib_minestudio.evaluation.aggregates import export_to_rliable

    if request.export is not None and request.out is None:
        raise InvalidOptionsError(
            broken_rule("--export", request.export, "needs --out, next to which it is written")
        )
    first, second = map(BenchmarkResults.load, (request.first, request.second))
    comparison = compare_benchmarks(first, second)
    stdout.print(comparison_table(comparison))
    stdout.print()
    stdout.print(comparison.aggregates.table())
    if request.out is not None:
        try:
            comparison.save(request.out)
            if request.export is not None:
                names = comparison.aggregates.names
                scores = dict(zip(names, comparison.scores, strict=True))
                export_to_rliable(request.out.with_name("rliable.npz"), scores)
        except OSError as error:
            raise MineStudioError(
                f"{str(request.out)!r} cannot be written: {error.strerror or error}. Choose "
                "another file with --out."
            ) from error
        stdout.print(f"comparison: {request.out}")
    return 0
