"""Compilation of the engine's kernels, once per machine however many processes start together.

The first process takes a lock, starts a child that plays a short game to run every kernel, and
leaves a marker file beside the machine code. The other processes wait for it. A process that
compiles a kernel rounds a few pixels in millions differently from one that loads it. Because only a
child compiles, every process that plays has loaded its kernels, and the same seed gives the same
frames in all of them.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rllib_minestudio.env.voxel import kernels
from rllib_minestudio.errors import EngineError
from rllib_minestudio.foundation import machine_code

_logger = logging.getLogger(__name__)

_MARKER_NAME = "ready"
_OUTDATED_AFTER = 30 * 24 * 3600.0
"""Seconds after which the machine code of other versions is deleted."""
_REPORT_SECONDS = 30.0

_STAGE = "stage:"
"""Prefix of the lines in which the child reports its progress."""
_PROGRAM = "rllib_minestudio.env.voxel.warmup_game"
_LINES_OF_A_FAILURE = 20

_in_process = threading.Lock()


def _marker() -> Path:
    return kernels.CACHE_FOLDER / _MARKER_NAME


def is_warm() -> bool:
    """Whether this machine already holds the machine code of this version."""
    return _marker().exists()


def warmup(progress: Callable[[str], None] | None = None) -> None:
    """Make sure that every kernel is compiled; return at once if they are.

    Args:
        progress: Receives a line of text now and then while compiling, or while waiting for
            another process that compiles; by default the lines go to the log.

    Raises:
        EngineError: If the cache folder cannot be written, or compiling fails.
    """
    if is_warm():
        return
    tell = progress or _logger.warning
    with _in_process, _machine_lock(tell):
        if not is_warm():
            _compile(tell)


def _compile(tell: Callable[[str], None]) -> None:
    tell("Compiling the game engine, once for this machine (a minute or two on one core) ...")
    start = time.monotonic()
    package = str(Path(__file__).parents[3])
    search = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen(
        [sys.executable, "-m", _PROGRAM, _STAGE, str(os.getpid())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with child:
        lines = deque(_told(child, tell), maxlen=_LINES_OF_A_FAILURE)
    if child.returncode != 0:
        raise EngineError(
            f"Compiling the game engine failed (exit status {child.returncode}). It ended with:\n"
            + "".join(lines)
        )
    _marker().touch()
    _delete_outdated()
    tell(f"The engine is compiled ({time.monotonic() - start:.0f} s).")


def _told(child: subprocess.Popen[str], tell: Callable[[str], None]) -> Iterator[str]:
    """Report each stage that the child reaches, and yield every line that it prints."""
    for line in child.stdout or ():
        if line.startswith(_STAGE):
            tell(line.removeprefix(_STAGE).rstrip())
        yield line


@contextmanager
def _machine_lock(tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of this cache folder; the system releases it if this process dies."""

    def waiting(seconds: float) -> None:
        if seconds % _REPORT_SECONDS < machine_code.POLL_SECONDS:
            tell("Another process is compiling the game engine; waiting for it ...")

    try:
        with machine_code.only_process(kernels.CACHE_FOLDER, waiting):
            yield
    except OSError as error:
        raise EngineError(
            f"The engine's compiled code cannot be kept in {kernels.CACHE_FOLDER} ({error}). "
            f"Set the environment variable {kernels.CACHE_VARIABLE} to a writable folder "
            "on a local disk."
        ) from error


def _delete_outdated() -> None:
    for folder in kernels.CACHE_FOLDER.parent.iterdir():
        marker = folder / _MARKER_NAME
        outdated = marker.exists() and time.time() - marker.stat().st_mtime > _OUTDATED_AFTER
        if outdated and folder != kernels.CACHE_FOLDER:
            shutil.rmtree(folder, ignore_errors=True)
