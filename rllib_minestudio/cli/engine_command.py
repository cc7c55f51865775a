"""`rllib engine`: installs MineStudio's or the embedded engine where MineStudio looks for one."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path

from rllib_minestudio.cli.flags import add_flags
from rllib_minestudio.errors import EngineError
from rllib_minestudio.foundation.console import stdout
from rllib_minestudio.foundation.options import Flag, option

DESCRIPTION = """\
Put an engine where MineStudio's package and this package's `engine: minecraft` look for one.

`install --minestudio` downloads MineStudio's own engine, Minecraft in Java, from the Hugging Face
Hub, as MineStudio does.

`install --embedded` lets MineStudio's own Python package play on the embedded engine: no Java,
display or Xvfb. It writes what MineStudio starts into its folder: a stand-in for its jar, and
commands of the names java, xvfb-run and vglrun. MineStudio's package stays as it is. This
package's `engine: minecraft` finds the embedded engine in that folder by itself.
"""

EXAMPLES = """\
examples:
  rllib engine install --embedded --dir ~/minestudio-embedded
  . ~/minestudio-embedded/engine/embedded.sh      # then, in the same shell:
  python my_minestudio_program.py
"""


@dataclass(frozen=True, kw_only=True)
class InstallRequest:
    """Options of `rllib engine install`."""

    embedded: bool = option(
        False, "The embedded engine, which needs no Java.", Flag(is_alternative=True)
    )
    minestudio: bool = option(
        False, "MineStudio's own engine, by download.", Flag(is_alternative=True)
    )
    dir: Path | None = option(
        None,
        "MineStudio's folder. Default: $MINESTUDIO_DIR, else MineStudio's own default.",
        Flag("MINESTUDIO_DIR"),
    )


def add_parser(parser: argparse.ArgumentParser) -> None:
    """Declare `rllib engine install`."""
    commands = parser.add_subparsers(dest="engine_command", required=True, metavar="COMMAND")
    command = commands.add_parser("install", help="put an engine where MineStudio looks for one")
    add_flags(command, InstallRequest, install)


def install(request: InstallRequest) -> int:
    """Run `rllib engine install` and return the exit status.

    Raises:
        EngineError: The engine cannot be installed there.
    """
    from rllib_minestudio.env.voxel.server import launcher
    from rllib_minestudio.experiments.ray_session import compile_kernels

    directory = (request.dir or launcher.default_directory()).expanduser().absolute()
    if request.minestudio:
        _download(directory)
        stdout.print(f"MineStudio's engine is in {directory}.", markup=False)
        stdout.print(f"  export MINESTUDIO_DIR={shlex.quote(str(directory))}", markup=False)
        stdout.print("  rllib doctor --engine minecraft", markup=False)
        return 0
    activate = launcher.install(directory)
    compile_kernels()
    stdout.print("The embedded engine is installed. In a shell, before MineStudio:", markup=False)
    stdout.print(f"  . {activate}", markup=False)
    return 0


def _download(directory: Path) -> None:
    """Let MineStudio download its engine, unless it is there already.

    Raises:
        EngineError: MineStudio's package is not installed, the embedded engine is in the folder, or
            the download fails.
    """
    from rllib_minestudio.env.backends.minecraft import prerequisites
    from rllib_minestudio.env.voxel.server import launcher

    if launcher.is_installed(directory):
        raise EngineError(
            f"The embedded engine is in {directory / 'engine'}. Choose another folder with --dir, "
            "or remove that one."
        )
    prerequisites.import_minestudio(directory)
    from minestudio.simulator.entry import check_engine

    try:
        check_engine(skip_confirmation=True)
    except Exception as error:
        raise EngineError(
            f"MineStudio's engine cannot be downloaded to {directory}: {error} "
            "(`rllib doctor` says whether the Hugging Face Hub can be reached.)"
        ) from error
