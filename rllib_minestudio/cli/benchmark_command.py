"""`rllib benchmark`: its subcommands, of which `list` is implemented here."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

from rllib_minestudio.cli import benchmark_compare, benchmark_run
from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import Flag, broken_rule, option

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


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of `rllib benchmark`."""
    commands = parser.add_subparsers(dest="benchmark_command", required=True, metavar="COMMAND")
    add_flags(
        commands.add_parser(
            "list",
            help="list suites, or the tasks of some",
            description=_LIST_DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        ),
        ListRequest,
        _list,
    )
    for name, line, module in (
        ("run", "play the tasks of a suite and summarise them", benchmark_run),
        ("compare", "compare two runs, paired by task and episode", benchmark_compare),
    ):
        module.add_parser(
            commands.add_parser(
                name,
                help=line,
                description=module.DESCRIPTION,
                epilog=module.EXAMPLES,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )


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
