"""`rllib engine`: the embedded engine as MineStudio's own package sees it."""

from __future__ import annotations

import argparse
from pathlib import Path

from rllib_minestudio.cli.console import stdout
from rllib_minestudio.errors import InvalidOptionsError

DESCRIPTION = """\
Let MineStudio's own Python package play on the embedded engine: no Java, display or Xvfb.

`install --embedded` writes what MineStudio starts into its folder: a stand-in for its jar, and
commands of the names java, xvfb-run and vglrun. MineStudio's package stays as it is. This
package's `engine: minecraft` finds the embedded engine in that folder by itself.
"""

EXAMPLES = """\
examples:
  rllib engine install --embedded --dir ~/minestudio-embedded
  . ~/minestudio-embedded/engine/embedded.sh      # then, in the same shell:
  python my_minestudio_program.py
"""

_OWN_ENGINE = (
    "rllib engine install needs --embedded: it installs the embedded engine for MineStudio. "
    "MineStudio's own engine (Java) is installed by MineStudio: "
    "python -m minestudio.simulator.entry -y"
)


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rllib engine`."""
    commands = parser.add_subparsers(dest="engine_command", required=True, metavar="COMMAND")
    command = commands.add_parser("install", help="put an engine where MineStudio looks for one")
    command.add_argument(
        "--embedded", action="store_true", help="the embedded engine, which needs no Java"
    )
    command.add_argument(
        "--dir",
        metavar="MINESTUDIO_DIR",
        type=Path,
        help="MineStudio's folder (default: $MINESTUDIO_DIR, else MineStudio's own default)",
    )
    parser.set_defaults(run=install)


def install(arguments: argparse.Namespace) -> int:
    """Run `rllib engine install` and return the exit status.

    Raises:
        InvalidOptionsError: If --embedded is missing.
        EngineError: If the engine cannot be put there.
    """
    if not arguments.embedded:
        raise InvalidOptionsError(_OWN_ENGINE)
    from rllib_minestudio.cli.warmup import compile_kernels
    from rllib_minestudio.env.voxel.server import launcher

    activate = launcher.install(arguments.dir or launcher.default_directory())
    compile_kernels()
    stdout.print("The embedded engine is installed. In a shell, before MineStudio:", markup=False)
    stdout.print(f"  . {activate}", markup=False)
    return 0
