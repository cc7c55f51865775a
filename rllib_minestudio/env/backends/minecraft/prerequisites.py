"""Checks of what the real game needs on a machine, each with the command that provides it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from rllib_minestudio.env.backends.minecraft.process import MinecraftOptions
from rllib_minestudio.errors import EngineError

# -------- finding and importing the package `minestudio` next to current versions of other packages

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


# ---------- checks of what the real game needs on a machine, each with the command that provides it

_JAVA_HOMES = Path("/usr/lib/jvm")
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_NEEDED_JAVA = 8
_SECONDS_FOR_JAVA = 20.0


class PrerequisiteCheck(NamedTuple):
    """The result of one check.

    Attributes:
        subject: What was checked, in a few words.
        ok: Whether the game can run with it.
        detail: What was found.
        fix: The command or action that would fix it; empty if `ok`.
    """

    subject: str
    ok: bool
    detail: str
    fix: str = ""


def examine(options: MinecraftOptions) -> list[PrerequisiteCheck]:
    """Check everything that `options` need; starts nothing but `java -version`."""
    return [package(), java(options), jar(options), display(options), loopback()]


def require(options: MinecraftOptions) -> None:
    """Check everything that a launch needs.

    Raises:
        EngineError: If anything is missing; lists everything, with fixes.
    """
    missing = [finding for finding in examine(options) if not finding.ok]
    if missing:
        lines = [f"- {each.subject}: {each.detail}. {each.fix}" for each in missing]
        raise EngineError(
            "engine='minecraft' cannot start on this machine:\n" + "\n".join(lines) + "\n"
            "All of it is explained in docs/minecraft.md; the embedded engine, engine='voxel', "
            "needs none of it."
        )


def package() -> PrerequisiteCheck:
    """Check whether the Python package `minestudio` is installed."""
    if is_installed():
        return PrerequisiteCheck("package minestudio", True, "installed")
    fix = f"Run: {install_command()}"
    return PrerequisiteCheck("package minestudio", False, "not installed", fix)


def java(options: MinecraftOptions) -> PrerequisiteCheck:
    """Check whether Java is installed, and is version 8."""
    fix = _java_fix()
    program = shutil.which("java", path=options.search_path())
    if program is None:
        return PrerequisiteCheck("Java 8", False, "no program 'java' in PATH", fix)
    try:
        answer = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS_FOR_JAVA,
            env={**os.environ, "PATH": options.search_path()},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return PrerequisiteCheck("Java 8", False, f"'{program} -version' failed: {error}", fix)
    match = _JAVA_VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        return PrerequisiteCheck("Java 8", False, f"'{program} -version' reports no version", fix)
    version = int(match[1])
    if version != _NEEDED_JAVA:
        detail = f"{program} is Java {version}, and Minecraft 1.16 needs Java {_NEEDED_JAVA}"
        return PrerequisiteCheck("Java 8", False, detail, fix)
    return PrerequisiteCheck("Java 8", True, program)


def _java_fix() -> str:
    """Return how to get Java 8, or how to select it if another Java comes first."""
    for home in sorted(_JAVA_HOMES.glob("*8*")):
        if (home / "bin" / "java").exists() and re.search(r"(^|\D)8(\D|$)", home.name):
            return f"Run: export JAVA_HOME={home}"
    return (
        "Install OpenJDK 8: conda install -c conda-forge openjdk=8, on Ubuntu "
        f"{_as_root('apt-get install openjdk-8-jdk')}, or unpack one from https://adoptium.net; "
        "then put it first in PATH or set JAVA_HOME"
    )


def _as_root(command: str) -> str:
    return command if os.geteuid() == 0 else f"sudo {command}"


def jar(options: MinecraftOptions) -> PrerequisiteCheck:
    """Check whether the game itself is installed."""
    if options.jar.is_file():
        return PrerequisiteCheck("engine", True, str(options.jar))
    folder = shlex.quote(str(options.root))
    fix = (
        f"Run: rllib engine install --minestudio --dir {folder} (downloads it), or without Java: "
        f"rllib engine install --embedded --dir {folder}"
    )
    return PrerequisiteCheck("engine", False, f"{options.jar} does not exist", fix)


def display(options: MinecraftOptions) -> PrerequisiteCheck:
    """Check whether the game has something to draw on."""
    subject, kind = "display", options.draws_with
    path = options.search_path()
    if kind == "existing":
        if os.environ.get("DISPLAY"):
            return PrerequisiteCheck(subject, True, f"DISPLAY={os.environ['DISPLAY']}")
        fix = "Set DISPLAY, or use display: xvfb."
        return PrerequisiteCheck(
            subject, False, "display is 'existing' but DISPLAY is not set", fix
        )
    programs, fix = {
        "xvfb": (
            ("xvfb-run", "Xvfb", "xauth"),
            f"Run: {_as_root('apt-get install xvfb xauth mesa-utils libgl1 libegl1 libglu1-mesa')}",
        ),
        "virtualgl": (
            ("vglrun",),
            "Install VirtualGL (https://virtualgl.org), or draw with the CPU: display: xvfb",
        ),
    }[kind]
    found = shutil.which(programs[0], path=path)
    if found is not None and Path(found).parent == options.commands:
        return PrerequisiteCheck(subject, True, f"{found} (the embedded engine needs none)")
    for program in programs:
        if shutil.which(program, path=path) is None:
            return PrerequisiteCheck(subject, False, f"no program '{program}' in PATH", fix)
    if kind == "virtualgl" and options.device != "egl" and not os.path.exists(options.device):
        fix = "See ls /dev/dri for the devices; 'egl' takes the first."
        return PrerequisiteCheck(subject, False, f"there is no device {options.device}", fix)
    return PrerequisiteCheck(subject, True, str(found))


def loopback() -> PrerequisiteCheck:
    """Check whether a server can listen on this machine at all."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            probe.listen()
    except OSError as error:
        fix = "Allow connections to 127.0.0.1: the game is reached over TCP."
        return PrerequisiteCheck("loopback", False, str(error), fix)
    return PrerequisiteCheck("loopback", True, "127.0.0.1 can be listened on")
