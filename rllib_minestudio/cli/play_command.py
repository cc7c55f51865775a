"""`rllib play`: its arguments, and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.cli.argument_types import LARGEST_SEED, MOST_EPISODES, whole_number
from rllib_minestudio.console import stdout

DESCRIPTION = """\
Play a task and record it: one folder per episode, with a video.

The player is a scripted agent, which needs no network, or the policy of a checkpoint, which is read
without unpickling. The task's file is to be trusted: it imports the classes that it names.
"""

EXAMPLES = """\
examples:
  rllib play tuned_examples/cow.yaml                         a hunter that knows where the cows are
  rllib play tuned_examples/cow.yaml --agent random
  rllib play tuned_examples/cow.yaml --agent CHECKPOINT --episodes 3 --out plays/
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib play`."""
    parser.add_argument("task", metavar="TASK", help="an experiment file")
    parser.add_argument(
        "--agent", default="hunter", help="hunter, random, or the folder of a checkpoint"
    )
    parser.add_argument(
        "--episodes", metavar="N", type=whole_number(1, MOST_EPISODES), default=1, help="default: 1"
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number(0, LARGEST_SEED),
        default=0,
        help="of the first episode",
    )
    parser.add_argument("--out", metavar="DIR", default="plays", help="default: ./plays")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set an option below the task's `config`, as in `rllib train file`",
    )
    parser.set_defaults(run=play)


def play(arguments: argparse.Namespace) -> int:
    """Run `rllib play` and return the exit status.

    Raises:
        MineStudioError: The file, an option, the checkpoint or the folder is not in order.
    """
    from rllib_minestudio.experiments.play_task import play_task

    returns = play_task(
        Path(arguments.task),
        arguments.agent,
        arguments.out,
        episodes=arguments.episodes,
        seed=arguments.seed,
        overrides=arguments.set,
    )
    stdout.print(f"returns: {', '.join(f'{value:g}' for value in returns)}")
    stdout.print(f"recordings: {arguments.out}")
    return 0
