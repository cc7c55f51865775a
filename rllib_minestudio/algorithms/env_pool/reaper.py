"""Script that kills the environments' process groups once the process that started them is gone.

It only needs the standard library. The kernel kills the environments' processes together with their
owner, but not the games that they have started, which belong to the same groups.

The reaper must not be a child of the owner: a Ray worker that exits kills its children first. So
the script forks, and the process that the owner started exits at once.

Its argument is the owner's process id. It writes its own id to standard output, which is closed
when its work is done, and reads lines `+GROUP` and `-GROUP` from standard input. End of input means
that the owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

CHECK_EVERY_S = 1.0
"""Polling is needed because a process forked from the owner may keep the pipe open."""


def main() -> None:
    """Detach from the owner, track the groups, and kill those that remain when it is gone."""
    owner, stdin = int(sys.argv[1]), sys.stdin.fileno()
    began = _began(owner)
    if os.fork():
        os._exit(0)
    print(os.getpid(), flush=True)
    groups: set[int] = set()
    rest = b""
    while True:
        readable, _, _ = select.select([stdin], [], [], CHECK_EVERY_S)
        if readable:
            received = os.read(stdin, 65536)
            if not received:
                break
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
        elif _began(owner) != began:
            break
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _began(pid: int) -> bytes | None:
    """Return when a process started, in clock ticks since boot; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *rest = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state in b"ZX" else rest[18]


if __name__ == "__main__":
    main()
