"""`rllib warmup`: compile the kernels of engine and network ahead of time."""

import argparse

from rllib_minestudio.cli.console import phase, stdout

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


def compile_kernels() -> None:
    """Compile the engine if this machine has not yet, showing that it takes a while."""
    from rllib_minestudio.env.voxel import kernel_cache

    if not kernel_cache.is_warm():
        with phase("compiling kernels (once per machine)") as show:
            kernel_cache.warmup(lambda message: show(message.strip()))


def warmup(arguments: argparse.Namespace) -> int:
    """Compile the kernels, or say that they are compiled; return the exit status."""
    from rllib_minestudio.env.voxel import kernel_cache
    from rllib_minestudio.models.vpt.winograd import compiled

    if kernel_cache.is_warm() and compiled.are_compiled():
        stdout.print("The kernels are compiled already.")
    compile_kernels()
    if not compiled.are_compiled():
        with phase("compiling convolutions (once per machine)") as show:
            compiled.compile_once(lambda message: show(message.strip()))
    return 0
