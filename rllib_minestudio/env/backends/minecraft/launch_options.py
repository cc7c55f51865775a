"""The options of the real game: the mapping `minecraft` in the environment's config."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rllib_minestudio.foundation.options import Problems, is_integer, is_number

DISPLAYS = ("auto", "xvfb", "virtualgl", "existing")
LAST_PORT = 65535

_MEMORY = re.compile(r"[1-9][0-9]{0,3}[gG]|[1-9][0-9]{0,6}[mM]")


@dataclass(frozen=True)
class MinecraftOptions:
    """How the real game is launched and how long it may take.

    Attributes:
        directory: MineStudio's directory, with the game in `engine/`. None means the environment
            variable MINESTUDIO_DIR, or `MineStudio` in the system's temporary folder.
        display: Where the game draws. "xvfb": a virtual screen per game, drawn by the CPU;
            "virtualgl": drawn by `device`; "existing": the screen that DISPLAY names; "auto":
            "virtualgl" if the environment variable MINESTUDIO_GPU_RENDER is 1, else "xvfb".
        device: What VirtualGL draws on: "egl", or a path such as "/dev/dri/card0".
        java_memory: Upper bound of the game's Java heap, such as "2G".
        first_port: Where the search for a free port begins. Each worker first searches its own
            range.
        starts_at_once: How many games of this node may be starting or loading a world at the
            same time. Others wait for their turn.
        launch_timeout_s: Seconds from the start of the process until the game is ready.
        reset_timeout_s: Seconds in which a world has to be loaded.
        step_timeout_s: Seconds for one tick.
        restart_interval: Episodes after which the game is restarted, because Java's memory use
            grows; 0 for never.
    """

    directory: str | None = None
    display: str = "auto"
    device: str = "egl"
    java_memory: str = "2G"
    first_port: int = 20000
    starts_at_once: int = max(1, (os.cpu_count() or 4) // 4)
    launch_timeout_s: float = 180.0
    reset_timeout_s: float = 90.0
    step_timeout_s: float = 30.0
    restart_interval: int = 0

    @classmethod
    def from_mapping(cls, options: Any) -> MinecraftOptions:
        """Check options from a user, and fill in the defaults.

        Raises:
            InvalidOptionsError: If anything is wrong; lists all problems.
        """
        if isinstance(options, cls):
            return options
        problems = Problems("minecraft")
        if not isinstance(options, Mapping):
            problems.add("minecraft", options, "must be a mapping")
            options = {}
        names = [option.name for option in fields(cls)]
        checked = cls(**problems.known("option", options, names))
        _check(problems, checked)
        problems.raise_if_any()
        return checked

    @property
    def root(self) -> Path:
        """MineStudio's directory."""
        default = Path(tempfile.gettempdir(), "MineStudio")
        return Path(self.directory or os.environ.get("MINESTUDIO_DIR") or default).expanduser()

    @property
    def jar(self) -> Path:
        """The game's jar file, where MineStudio looks for it."""
        return self.root / "engine" / "build" / "libs" / "mcprec-6.13.jar"

    @property
    def draws_with(self) -> str:
        """The display, with "auto" resolved."""
        if self.display != "auto":
            return self.display
        return "virtualgl" if os.environ.get("MINESTUDIO_GPU_RENDER") == "1" else "xvfb"

    @property
    def commands(self) -> Path:
        """The folder of the embedded engine's commands, if it stands in for the game."""
        return self.root / "engine" / "bin"

    def search_path(self) -> str:
        """Return the folders to search for programs: the engine's own, JAVA_HOME's, then PATH."""
        folders = [self.commands]
        if java_home := os.environ.get("JAVA_HOME"):
            folders.append(Path(java_home, "bin"))
        return os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])


def _check(problems: Problems, options: MinecraftOptions) -> None:
    directory: Any = options.directory
    if directory is not None and (not isinstance(directory, str) or not directory):
        problems.add("directory", directory, "must be a path, or None")
    problems.choice("display", options.display, DISPLAYS)
    if not isinstance(options.device, str) or not options.device:
        problems.add("device", options.device, "must be 'egl' or the path of a device")
    if not isinstance(options.java_memory, str) or not _MEMORY.fullmatch(options.java_memory):
        problems.add("java_memory", options.java_memory, "must be a size such as '2G' or '1500M'")
    if not is_integer(options.first_port) or not 1024 <= options.first_port <= LAST_PORT - 5000:
        rule = f"must be an integer from 1024 to {LAST_PORT - 5000}"
        problems.add("first_port", options.first_port, rule)
    if not is_integer(options.starts_at_once) or not 1 <= options.starts_at_once <= 10_000:
        problems.add("starts_at_once", options.starts_at_once, "must be an integer from 1 to 10000")
    for name in ("launch_timeout_s", "reset_timeout_s", "step_timeout_s"):
        seconds = getattr(options, name)
        if not is_number(seconds) or seconds <= 0:
            problems.add(name, seconds, "must be a positive number of seconds")
    if not is_integer(options.restart_interval) or options.restart_interval < 0:
        rule = "must be an integer of at least 0 (episodes; 0 for never)"
        problems.add("restart_interval", options.restart_interval, rule)
