"""`rllib play`: its arguments, and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.agent_names import HUNTER, agents_help
from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.argument_types import LARGEST_SEED, MOST_EPISODES, whole_number
from rllib_minestudio.cli.deterministic import add_deterministic, warn_if_deterministic
from rllib_minestudio.console import stdout

DESCRIPTION = f"""\
Play a task and record it: one folder per episode, with a video. Episodes are numbered on from those
that the folder holds already.

The player is a scripted agent, which needs no network, the policy of a checkpoint, which is read
without unpickling, or an agent of your own. The task's file is to be trusted: it imports the
classes that it names.

agents:
{agents_help()}

{HELP}\
  ID, FOLDER or FILE          weights in any form that `rllib model info` reads
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, and so is run
"""

EXAMPLES = """\
examples:
  rllib play tuned_examples/cow.yaml --agent perfect-hunter
  rllib play tuned_examples/cow.yaml --agent package:hunter_nano
  rllib play tuned_examples/cow.yaml --agent results/cow/latest --episodes 3 --out plays/
  rllib play tuned_examples/cow.yaml --agent my_module:make_agent
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rllib play`."""
    parser.add_argument("task", metavar="TASK", help="an experiment file")
    parser.add_argument(
        "--agent",
        metavar="NAME|CHECKPOINT|MODULE:FUNCTION",
        default=HUNTER,
        help=f"who plays (default: {HUNTER})",
    )
    add_deterministic(parser)
    parser.add_argument(
        "--episodes",
        metavar="N",
        type=whole_number(1, MOST_EPISODES),
        default=1,
        help="how many are played (default: 1)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number(0, LARGEST_SEED),
        default=0,
        help="of the first episode, and of what the agent draws",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="plays", help="where recordings go (default: ./plays)"
    )
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

    warn_if_deterministic(arguments)
    returns = play_task(
        Path(arguments.task),
        arguments.agent,
        arguments.out,
        episodes=arguments.episodes,
        seed=arguments.seed,
        overrides=arguments.set,
        deterministic=arguments.deterministic,
    )
    stdout.print(f"returns: {', '.join(f'{value:g}' for value in returns)}")
    stdout.print(f"recordings: {arguments.out}")
    return 0
