"""`rllib watch` and its output."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from rllib_minestudio.checkpoints.lookup import HELP
from rllib_minestudio.cli.flags import add_flags, warn_if_deterministic
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.names import agents_help
from rllib_minestudio.watch.request import WatchRequest

DESCRIPTION = f"""\
Play a task yourself, and watch agents play and learn, in the browser (docs/watch.md).

The command prints an address on this machine, with a token that others do not know. The page
shows a task that you play with keyboard and mouse, and records it if you say so; an agent with
what it has in mind, even while it is being trained; recorded episodes, step by step; and two of
these side by side in the same world.

A TASK is an experiment file, or the name of an example such as cow. Use only those that you
trust: they import the classes that they name. In its world play, besides you:
{agents_help()}
  package:NAME                a prior that comes with this package

{HELP}\
  FOLDER                      recorded episodes below it, also those of an evaluation or benchmark
"""

EXAMPLES = """\
examples:
  rllib watch cow --open
  rllib watch tuned_examples/stone_pickaxe_bc.yaml --out demos/mine
  rllib watch results/cow
  rllib watch results/cow/latest --compare evaluations/cow
  rllib watch tuned_examples/cow.yaml --agent my_module:make_agent --port 8123
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib watch`."""
    add_flags(parser, WatchRequest, watch)


def watch(request: WatchRequest) -> int:
    """Run `rllib watch` and return the exit status.

    Raises:
        MineStudioError: There is nothing to view, or the page cannot be served.
    """
    from rllib_minestudio.experiments.experiment_file import make_importable
    from rllib_minestudio.experiments.ray_session import compile_kernels, quieten, set_environment

    warn_if_deterministic(request.deterministic)
    make_importable(Path.cwd())
    set_environment()
    from rllib_minestudio.watch.server import WatchServer  # the extra may be missing

    quieten(verbose=False)
    import torch

    from rllib_minestudio.watch.catalogue import Catalogue

    # One agent at a time: a training run may need the cores.
    torch.set_num_threads(1)
    compile_kernels()
    server = WatchServer(Catalogue(request), request.port, request.rate)
    stdout.print(f"watch: {server.address}")
    stdout.print(f"what you play and keep: {request.out}")
    stdout.print("Ctrl-C ends it.")
    sys.stdout.flush()
    if request.open and not webbrowser.open(server.address):
        stdout.print("No browser could be opened: open the address yourself.")
    server.run()
    return 0
