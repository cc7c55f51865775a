"""`rllib benchmark run` and its output."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_minestudio.benchmark.request import BenchmarkRequest
from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags, warn_if_deterministic
from rllib_minestudio.foundation.agent_names import agents_help
from rllib_minestudio.foundation.console import counted, print_next, quoted, stderr, stdout

if TYPE_CHECKING:
    from rllib_minestudio.benchmark.results import TaskResult

DESCRIPTION = f"""\
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

EXAMPLES = """\
examples:
  rllib benchmark run CHECKPOINT --suite minestudio-simple --episodes 20 --out out/
  rllib benchmark run random --suite minestudio --smoke
  rllib benchmark run solution --suite minestudio --tasks "collect_*" --episodes 3
  rllib benchmark run tuned_examples/inference_vpt.yaml --suite tech-tree --workers 2
  rllib benchmark run my_module:make_agent --suite minestudio-simple --workers 2
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib benchmark run`."""
    add_flags(parser, BenchmarkRequest, _run)


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
