"""`rllib benchmark run`: its arguments, and what it prints."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_minestudio.agent_names import agents_help
from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.argument_types import (
    LARGEST_SEED,
    MOST_EPISODES,
    add_agent_timeout,
    whole_number,
)
from rllib_minestudio.cli.deterministic import add_deterministic, warn_if_deterministic
from rllib_minestudio.console import counted, stderr, stdout

if TYPE_CHECKING:
    from rllib_minestudio.benchmark.task_result import TaskResult

DESCRIPTION = f"""\
Play the tasks of a suite and sum them up.

Every task is played in the same worlds by every player: they derive from --seed and the episode's
number alone. Each task is kept as it ends, so that the same command goes on after an interruption.
A task that the engine does not have is listed with the reason and counts nowhere; one that cannot
be played does not stop the others, and makes the exit status 1. The results are printed, and saved
as benchmark.json and benchmark.html.

PLAYER is a CHECKPOINT, or the name of a script, which needs no network:
  solution         plays each task's scripted solution, where one is shipped
{agents_help()}

{HELP}\
  FILE                        an experiment file: the weights that training would start from, such
                              as those of MineStudio
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, and so is run
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
    """Declare the options of `rllib benchmark run`."""
    parser.add_argument("player", metavar="PLAYER", help="who plays, see above")
    parser.add_argument(
        "--suite", metavar="SUITE", required=True, help="a suite's name, or a folder of task files"
    )
    parser.add_argument(
        "--tasks", metavar="PATTERN", help='only tasks whose names fit, such as "collect_*"'
    )
    parser.add_argument(
        "--episodes",
        metavar="N",
        type=whole_number(1, MOST_EPISODES),
        default=10,
        help="per task (default: 10)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number(0, LARGEST_SEED),
        default=0,
        help="of the worlds and the player (default: 0)",
    )
    parser.add_argument(
        "--steps",
        metavar="N",
        type=whole_number(1, 10**9),
        help="cap of the tasks' time limits (default: none)",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="one episode of 60 steps per task, to see that everything runs",
    )
    parser.add_argument("--out", metavar="DIR", help="where the results go (default: a new folder)")
    parser.add_argument(
        "--no-videos",
        action="store_true",
        help="do not film a success and a failure of each task, which takes an eighth of the time",
    )
    add_deterministic(parser)
    _add_machinery(parser)
    parser.set_defaults(run=_run)


def _add_machinery(parser: argparse.ArgumentParser) -> None:
    """Declare what decides how fast it goes, and by what environment."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=whole_number(0, 10_000),
        default=0,
        help="processes that play; 0 plays in this one (default), and changes no result",
    )
    parser.add_argument(
        "--envs",
        metavar="N",
        type=whole_number(1, 10_000),
        default=10,
        help="environments per process (default: 10); another number changes about one of a "
        "policy's actions in ten thousand",
    )
    parser.add_argument("--gpus", metavar="X", type=float, help="GPUs per process")
    add_agent_timeout(parser)
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change how the player sees the game, by its dotted path: env_config.engine=minecraft",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show what Ray and its workers print"
    )


def _run(arguments: argparse.Namespace) -> int:
    """Run the benchmark, print its table and return the exit status."""
    from rllib_minestudio.experiments.reading.named_objects import make_importable

    make_importable(Path.cwd())
    from rllib_minestudio.benchmark.request import BenchmarkRequest
    from rllib_minestudio.benchmark.results import PAGE_FILE, RESULTS_FILE
    from rllib_minestudio.benchmark.run import run_benchmark
    from rllib_minestudio.benchmark.tables import items_table, results_table
    from rllib_minestudio.benchmark.task_result import FAILED, MARKED, PLAYED

    warn_if_deterministic(arguments)
    now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    folder = Path(arguments.out or Path("evaluations") / f"benchmark_{now}")
    results = run_benchmark(
        BenchmarkRequest(
            player=arguments.player,
            suite=arguments.suite,
            out=str(folder),
            episodes=arguments.episodes,
            seed=arguments.seed,
            steps=arguments.steps,
            tasks=arguments.tasks,
            overrides=tuple(arguments.set),
            deterministic=arguments.deterministic,
            smoke=arguments.smoke,
            videos=not arguments.no_videos,
            workers=arguments.workers,
            envs=arguments.envs,
            gpus=arguments.gpus,
            agent_timeout_s=arguments.agent_timeout,
            verbose=arguments.verbose,
        )
    )
    stdout.print(results_table(results))
    for task in results.with_status(PLAYED):
        if task.items:
            stdout.print(items_table(task))
    _print_marked(results.with_status(MARKED))
    failed = results.with_status(FAILED)
    for task in failed:
        stderr.print(f"error: {task.name} failed: {task.reason}", style="red")
    stdout.print(f"results: {folder / RESULTS_FILE}, {folder / PAGE_FILE}")
    return 1 if failed or results.total is None else 0


def _print_marked(marked: Sequence[TaskResult]) -> None:
    """Say why tasks are marked, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for task in marked:
        reasons.setdefault(str(task.reason), []).append(task.name)
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        listed = textwrap.shorten(", ".join(names), 200, placeholder=" ...")
        stdout.print(f"marked, {counted(len(names), 'task')}: {reason} ({listed})")
