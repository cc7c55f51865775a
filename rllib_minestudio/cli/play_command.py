"""`rllib play`, and what it prints."""

from __future__ import annotations

import argparse

from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags, warn_if_deterministic
from rllib_minestudio.experiments.play_task import PlayRequest, play_task
from rllib_minestudio.foundation.agent_names import agents_help
from rllib_minestudio.foundation.console import stdout

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
    """Declare `rllib play`."""
    add_flags(parser, PlayRequest, play)


def play(request: PlayRequest) -> int:
    """Run `rllib play` and return the exit status.

    Raises:
        MineStudioError: The file, an option, the checkpoint or the folder is not in order.
    """
    warn_if_deterministic(request.deterministic)
    returns = play_task(request)
    stdout.print(f"returns: {', '.join(f'{value:g}' for value in returns)}")
    stdout.print(f"recordings: {request.out}")
    return 0
