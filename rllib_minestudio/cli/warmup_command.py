"""`rllib warmup`: compiles the kernels of engine and network ahead of time."""

import argparse
from dataclasses import dataclass

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.foundation.console import stdout

DESCRIPTION = """\
Compile the embedded engine, and the convolutions of large networks. Training does this
by itself when needed; this command does it ahead of time, for instance while a
container image is built.
"""

EXAMPLES = """\
example:
  rllib warmup
"""


@dataclass(frozen=True, kw_only=True)
class WarmupRequest:
    """Options of `rllib warmup`: none."""


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib warmup`."""
    add_flags(parser, WarmupRequest, warmup)


def warmup(_: WarmupRequest) -> int:
    """Compile kernels that are not compiled yet, and return the exit status."""
    from rllib_minestudio.experiments.ray_session import compile_convolutions, compile_kernels

    if not (compile_kernels() | compile_convolutions()):
        stdout.print("The kernels are already compiled.")
    return 0
