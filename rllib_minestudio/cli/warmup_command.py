"""`rllib warmup`: compile the kernels of engine and network ahead of time."""

import argparse

from rllib_minestudio.console import stdout

DESCRIPTION = """\
Compile the embedded engine, and the convolutions of large networks. Training does it
by itself when needed; this command does it ahead of time, for instance when an image
is built.
"""

EXAMPLES = """\
example:
  rllib warmup
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib warmup`, which takes no arguments."""
    parser.set_defaults(run=warmup)


def warmup(arguments: argparse.Namespace) -> int:
    """Compile the kernels, or say that they are compiled; return the exit status."""
    from rllib_minestudio.experiments.running.kernels import compile_convolutions, compile_kernels

    if not (compile_kernels() | compile_convolutions()):
        stdout.print("The kernels are compiled already.")
    return 0
