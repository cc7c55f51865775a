"""Finding and importing the package `minestudio` next to current versions of other packages."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import os
import shlex
import sys
from pathlib import Path

from rllib_minestudio.errors import EngineError

_NEEDED = ("env._singleagent", "herobraine.env_specs.human_survival_specs")
_NOISY_LOGGERS = ("minestudio", "process_watcher")


_REQUIREMENTS = "requirements-minecraft.txt"


def install_command() -> str:
    """Return the command that installs the package into this Python."""
    file = Path(__file__).parents[4] / _REQUIREMENTS
    # A wheel does not contain the file.
    shown = shlex.quote(str(file)) if file.is_file() else f"{_REQUIREMENTS}  # in the repository"
    return f"{shlex.quote(sys.executable)} -m pip install --no-deps -r {shown}"


def is_installed() -> bool:
    """Return whether the package can be found; does not import it."""
    return importlib.util.find_spec("minestudio") is not None


def import_minestudio(directory: Path | None = None) -> None:
    """Import MineStudio's simulator so that it works next to current packages.

    Args:
        directory: MineStudio's directory, from which the import reads files. If None, the
            environment variable MINESTUDIO_DIR is left as it is.

    Raises:
        EngineError: If the package or something it needs is not installed.
    """
    import numpy as np

    if directory is not None:
        os.environ["MINESTUDIO_DIR"] = str(directory)
    # MineStudio 1.1.6 was written for NumPy 1 and uses the old name.
    if not hasattr(np, "unicode_"):
        np.unicode_ = np.str_  # type: ignore[attr-defined]
    handlers = list(logging.root.handlers)
    try:
        # gym 0.26, which it imports, prints an advertisement for its successor.
        with contextlib.redirect_stderr(io.StringIO()):
            for module in _NEEDED:
                importlib.import_module(f"minestudio.simulator.minerl.{module}")
    except ImportError as error:
        raise EngineError(
            f"engine='minecraft' needs the package minestudio 1.1.6: {error}. Install it with\n"
            f"    {install_command()}\n"
            "(see docs/minecraft.md), or use the embedded engine, engine='voxel'."
        ) from error
    finally:
        # Its import logs, and so configures the root logger: before the user can, and with the
        # redirected standard error as the destination.
        for handler in [each for each in logging.root.handlers if each not in handlers]:
            logging.root.removeHandler(handler)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
