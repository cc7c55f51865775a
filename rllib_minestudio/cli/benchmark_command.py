"""`rllib benchmark`: lists suites, plays them, compares results."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_minestudio.benchmark.request import BenchmarkRequest
from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags, warn_if_deterministic
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.foundation.console import counted, print_next, quoted, stderr, stdout
from rllib_minestudio.foundation.names import agents_help
from rllib_minestudio.foundation.options import Flag, broken_rule, option

if TYPE_CHECKING:
    from rllib_minestudio.benchmark.results import TaskResult

DESCRIPTION = """\
Play suites of tasks whose success is decided by a program.

SUITE is the name of a suite that comes with the package, such as minestudio or minestudio-simple,
or a folder of your own task files (docs/benchmark.md describes their format).
"""

EXAMPLES = """\
examples:
  rllib benchmark list
  rllib benchmark list minestudio-simple --tasks "collect_*"
  rllib benchmark run CHECKPOINT --suite minestudio-simple --episodes 20 --out out/
  rllib benchmark compare A B
"""

# --------------------------------------------------------------------------------------------- list

_LIST_DESCRIPTION = """\
List suites with how many of their tasks the engine supports, or the tasks of some suites: the
category, the time limit in steps, the condition of success, what the engine lacks for it, and
whether a scripted solution is shipped.
"""


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """Options of `rllib benchmark list`."""

    suites: tuple[str, ...] = option(
        (),
        "A suite's name or folder. Default: a summary of all suites.",
        Flag("SUITE", is_positional=True),
    )
    tasks: str | None = option(
        None, 'Only tasks whose names fit, such as "collect_*".', Flag("PATTERN")
    )
    engine: str = option(
        "voxel", "The engine for which tasks are listed.", choices=("voxel", "minecraft")
    )
    trust: bool = option(
        False, "Import the classes that the tasks of a suite's folder name, whoever wrote them."
    )
    json: bool = option(False, "Print everything as JSON.")


def _list(request: ListRequest) -> int:
    """Print suites or tasks, and return the exit status."""
    from rllib_minestudio.benchmark import report
    from rllib_minestudio.benchmark.task import find_suites, load_suite

    engine = request.engine
    if request.tasks is not None and not request.suites:
        raise InvalidOptionsError(
            broken_rule("--tasks", request.tasks, "needs the SUITE whose tasks are meant")
        )
    names = request.suites or find_suites()
    suites = [load_suite(name, trust=request.trust) for name in names]
    if not request.json and not request.suites:
        stdout.print(report.suites_table(suites, engine))
        return 0
    listings = [(suite, suite.matching(request.tasks)) for suite in suites]
    if request.json:
        print(json.dumps(report.listing_json(listings, engine), indent=2, ensure_ascii=False))
        return 0
    for suite, tasks in listings:
        stdout.print(report.tasks_table((suite, tasks), engine))
        stdout.print(report.categories_table(tasks, engine))
        if lines := report.reasons(tasks, engine):
            stdout.print("what is missing, in how many of these tasks:")
            for line in lines:
                stdout.print(line)
    return 0


# ---------------------------------------------------------------------------------------------- run

_RUN_DESCRIPTION = f"""\
Play the tasks of a suite and summarise them.

Every player plays a task in the same worlds, which depend only on --seed and the episode's number.
Results are saved after each task, so that the same command continues after an interruption. A task
that the engine does not support is listed with the reason and not counted; one that fails does not
stop the others, and makes the exit status 1. The results are printed, and saved as benchmark.json
and benchmark.html.

PLAYER is a CHECKPOINT, or the name of a script, which needs no network:
  solution         plays each task's scripted solution, where one is shipped
{agents_help()}

{HELP}\
  FILE                        an experiment file: the weights that training would start from, such
                              as those of MineStudio
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, which runs its code
"""

_RUN_EXAMPLES = """\
examples:
  rllib benchmark run CHECKPOINT --suite minestudio-simple --episodes 20 --out out/
  rllib benchmark run random --suite minestudio --smoke
  rllib benchmark run solution --suite minestudio --tasks "collect_*" --episodes 3
  rllib benchmark run tuned_examples/inference_vpt.yaml --suite tech-tree --workers 2
  rllib benchmark run my_module:make_agent --suite minestudio-simple --workers 2
"""


def _run(request: BenchmarkRequest) -> int:
    """Run the benchmark, print its table and return the exit status."""
    from rllib_minestudio.experiments.experiment_file import make_importable

    make_importable(Path.cwd())
    from rllib_minestudio.benchmark.report import items_table, results_table
    from rllib_minestudio.benchmark.results import FAILED, MARKED, PAGE_FILE, PLAYED, RESULTS_FILE
    from rllib_minestudio.benchmark.run import run_benchmark

    warn_if_deterministic(request.deterministic)
    request = request.checked()
    results = run_benchmark(request)
    stdout.print(results_table(results))
    for task in results.with_status(PLAYED):
        if task.items:
            stdout.print(items_table(task))
    _print_marked(results.with_status(MARKED))
    failed = results.with_status(FAILED)
    for task in failed:
        stderr.print(f"error: {task.name} failed: {task.reason}", style="red")
    folder = Path(request.out)
    stdout.print(f"results: {folder / RESULTS_FILE}, {folder / PAGE_FILE}")
    if not failed:
        print_next({f"rllib benchmark compare {quoted(folder)} OTHER": "with another run"})
    return 1 if failed or results.total is None else 0


def _print_marked(marked: Sequence[TaskResult]) -> None:
    """Print why tasks are marked, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for task in marked:
        reasons.setdefault(str(task.reason), []).append(task.name)
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        listed = textwrap.shorten(", ".join(names), 200, placeholder=" ...")
        stdout.print(f"marked, {counted(len(names), 'task')}: {reason} ({listed})")


# ------------------------------------------------------------------------------------------ compare

_COMPARE_DESCRIPTION = """\
Compare two runs of a benchmark, paired by task and episode.

A and B are folders that `rllib benchmark run` has written, with the same seed, tasks and time
limits. The differences are those of B minus A. Pairing removes the variance that comes from some
worlds being easier than others.
"""

_COMPARE_EXAMPLES = """\
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


def _compare(request: ComparisonRequest) -> int:
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


# ---------------------------------------------------------------------------------------- all three


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of `rllib benchmark`."""
    commands = parser.add_subparsers(dest="benchmark_command", required=True, metavar="COMMAND")

    def add(
        name: str, line: str, description: str, examples: str | None
    ) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=line,
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    line = "list suites, or the tasks of some"
    add_flags(add("list", line, _LIST_DESCRIPTION, None), ListRequest, _list)
    line = "play the tasks of a suite and summarise them"
    add_flags(add("run", line, _RUN_DESCRIPTION, _RUN_EXAMPLES), BenchmarkRequest, _run)
    line = "compare two runs, paired by task and episode"
    command = add("compare", line, _COMPARE_DESCRIPTION, _COMPARE_EXAMPLES)
    add_flags(command, ComparisonRequest, _compare)
