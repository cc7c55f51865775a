"""`rllib play` and its output."""

from __future__ import annotations

import argparse

from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags, warn_if_deterministic
from rllib_minestudio.experiments.evaluate_checkpoint import PlayRequest, play_task
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.names import agents_help

DESCRIPTION = f"""\
Play a task and record it: one folder per episode, with a video. The numbers continue from those of
the episodes that are already in the folder.

The player is a scripted agent, which needs no network, the policy of a checkpoint, or an agent
of your own. Use only task files that you trust: they import the classes that they name.

agents:
{agents_help()}

{HELP}\
  ID, FOLDER or .model        weights in any form that `rllib model info` reads
  FILE                        an experiment file: the weights that training would start from
  MODULE:FUNCTION             a function that makes an agent of your own (docs/agents.md): its
                              module is imported, which runs its code
"""

EXAMPLES = """\
examples:
  rllib play tuned_examples/cow.yaml --agent perfect-hunter
  rllib play tuned_examples/cow.yaml --agent package:hunter_nano
  rllib play tuned_examples/cow.yaml --agent results/cow/latest --episodes 3 --out plays/
  rllib play tuned_examples/cow.yaml --agent my_module:make_agent
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib play`."""
    add_flags(parser, PlayRequest, play)


def play(request: PlayRequest) -> int:
    """Run `rllib play` and return the exit status.

    Raises:
        MineStudioError: The file, an option, the checkpoint or the folder is invalid.
    """
    warn_if_deterministic(request.deterministic)
    returns = play_task(request)
    stdout.print(f"returns: {', '.join(f'{value:g}' for value in returns)}")
    stdout.print(f"recordings: {request.out}")
    return 0
