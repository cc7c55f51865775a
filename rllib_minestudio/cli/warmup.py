"""`rllib warmup`: compile the embedded engine's kernels ahead of time."""

import argparse

from rllib_minestudio.cli.console import phase, stdout

DESCRIPTION = """\
Compile the embedded engine's kernels. Training does it by itself when needed;
this command does it ahead of time, for instance when an image is built.
"""

EXAMPLES = """\
example:
  rllib warmup
"""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib warmup`, which takes no arguments."""
    parser.set_defaults(run=warmup)


def compile_kernels() -> None:
    """Compile what is not compiled yet on this machine, showing that it takes a while."""
    from rllib_minestudio.env.voxel import jitcache

    if not jitcache.is_warm():
        with phase("compiling kernels (once per machine)") as show:
            jitcache.warmup(lambda message: show(message.strip()))


def warmup(arguments: argparse.Namespace) -> int:
    """Compile the kernels, or say that they are compiled; return the exit status."""
    from rllib_minestudio.env.voxel import jitcache

    if jitcache.is_warm():
        stdout.print("The kernels are compiled already.")
    compile_kernels()
    return 0
