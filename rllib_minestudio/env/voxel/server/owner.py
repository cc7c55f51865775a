"""Notices that the process which started the engine is gone, so that no engine outlives it."""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.5
_STDOUT = 1


class OwnerProcess:
    """The process for which this one runs.

    MineStudio starts a shell script which starts us, and reads our output through a pipe. Killed
    with SIGKILL it leaves the script waiting for us forever.
    """

    def __init__(self, pid: int | None) -> None:
        """Remember the parent process and the pipe's reader.

        Args:
            pid: The owner, if it is not this process's parent but the parent's parent.
        """
        self._parent = os.getppid()
        self._grandparent = pid
        self._readers: select.poll | None = None
        if stat.S_ISFIFO(os.fstat(_STDOUT).st_mode):
            self._readers = select.poll()
            self._readers.register(_STDOUT, 0)  # errors only: nobody holds the reading end

    def is_gone(self) -> bool:
        """Whether nobody reads the output any more, or the parent or owner has ended."""
        if self._readers is not None and self._readers.poll(0):
            return True
        if os.getppid() != self._parent:
            return True
        return self._grandparent is not None and _parent_of(self._parent) not in (
            self._grandparent,
            None,
        )

    def wait(self) -> None:
        """Return once the owner is gone."""
        while not self.is_gone():
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _parent_of(pid: int) -> int | None:
    """Return the parent of a process; None where the system does not tell (no /proc)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[1])
