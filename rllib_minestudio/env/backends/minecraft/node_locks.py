"""File locks with which a node's processes share ports and take turns to start a game.

A lock belongs to an open file (flock) and ends with the process, however that ends, so no process
can leave anything locked. The files are in the temporary folder, which is local to the node, unlike
MineStudio's directory, which several nodes may share.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rllib_minestudio.errors import EngineError

PORTS_PER_WORKER = 32
_PORT_RANGE = 4096
"""Number of ports from `first_port` on that games may use: the ranges of 128 workers."""
_LOOK_EVERY_S = 0.05


def node_directory() -> Path:
    """Return this user's folder of shared state on this node; create it if it is missing.

    Raises:
        EngineError: Others may write there, and what is written there says which processes to end.
    """
    directory = Path(tempfile.gettempdir(), f"rllib_minestudio-{os.getuid()}")
    directory.mkdir(mode=0o700, exist_ok=True)
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise EngineError(
            f"{str(directory)!r} must be a folder of yours that nobody else can write to. Remove "
            "it, or set TMPDIR to a folder of your own."
        )
    return directory


class Lock:
    """A file that this process has locked; holds a note about what the lock protects."""

    def __init__(self, file: Any) -> None:
        self._file = file

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self._file.name)

    def read(self) -> dict[str, Any]:
        """Return the note of the current or the previous holder; {} if there is none."""
        self._file.seek(0)
        try:
            note = json.loads(self._file.read() or "{}")
        except ValueError:  # its writer died while writing
            return {}
        return note if isinstance(note, dict) else {}

    def write(self, note: dict[str, Any]) -> None:
        """Replace the note."""
        self._file.truncate(0)
        self._file.write(json.dumps(note))
        self._file.flush()

    def clear(self) -> None:
        """Remove the note: what the lock protects has ended properly."""
        self._file.truncate(0)

    def release(self) -> None:
        """Unlock; may be called twice. The file stays: removing it would race with others."""
        self._file.close()


def try_lock(path: Path) -> Lock | None:
    """Lock a file, creating it if it is missing; return None if it is already locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return Lock(file)


def claim_port(first_port: int, worker_index: int, *, avoid: frozenset[int] = frozenset()) -> Lock:
    """Lock a port that nothing on this node uses.

    Args:
        first_port: The first port of all workers' ranges.
        worker_index: The worker whose range of `PORTS_PER_WORKER` ports is tried first; the other
            workers' ranges follow.
        avoid: Ports to leave out.

    Returns:
        The lock; `port_of` returns its port.

    Raises:
        EngineError: If every port is taken.
    """
    start = worker_index * PORTS_PER_WORKER % _PORT_RANGE
    for offset in range(_PORT_RANGE):
        port = first_port + (start + offset) % _PORT_RANGE
        if port in avoid or port > 65535:
            continue
        lock = try_lock(node_directory() / "ports" / f"{port}.lock")
        if lock is None:
            continue
        if _is_free(port):
            return lock
        lock.release()
    raise EngineError(
        f"No port from {first_port} to {first_port + _PORT_RANGE - 1} is free for the game. Choose "
        "another minecraft.first_port, or end the games that hold them (ss -tlnp)."
    )


def port_of(lock: Lock) -> int:
    """Return the port of a lock from `claim_port`."""
    return int(lock.path.stem)


def abandoned() -> Iterator[Lock]:
    """Yield the locks of ports whose holder has died without releasing them.

    The caller owns each lock and must release it.
    """
    for path in sorted((node_directory() / "ports").glob("*.lock")):
        if path.stat().st_size == 0:
            continue
        lock = try_lock(path)
        if lock is None:
            continue
        if path.stat().st_size:
            yield lock
        else:  # released just now
            lock.release()


@contextlib.contextmanager
def turn_to_start(limit: int, timeout_s: float) -> Iterator[None]:
    """Wait for one of this node's `limit` turns to start a game, and hold it in the `with` block.

    Raises:
        EngineError: If none has become free after `timeout_s` seconds.
    """
    slots = [node_directory() / "starts" / f"{i}.lock" for i in range(limit)]
    deadline = time.monotonic() + timeout_s
    while True:
        for path in random.sample(slots, len(slots)):
            lock = try_lock(path)
            if lock is not None:
                try:
                    yield
                finally:
                    lock.release()
                return
        if time.monotonic() >= deadline:
            raise EngineError(
                f"Waited {timeout_s:.0f} s for one of {limit} turns to start a game on this node. "
                "Start fewer workers per node, or raise minecraft.starts_at_once."
            )
        time.sleep(_LOOK_EVERY_S * random.uniform(0.5, 1.5))


def _is_free(port: int) -> bool:
    """Return whether the game could listen on a port."""
    with socket.socket() as probe:
        # Like the game: a port whose last connection is in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
