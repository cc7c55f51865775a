"""Kills the process groups of environments once the process that started them is gone.

A script of its own, on the standard library alone. The kernel kills the environments' processes
with their owner, but not the games that those have started; these belong to the same groups.

It must not be a child of the owner: a worker of Ray that ends kills its children first, and it
would be among them. So it forks, and what was started ends at once.

Its argument is the owner's process id. It writes its own to standard output, which closes when its
work is done, and reads lines `+GROUP` and `-GROUP` from standard input; its end means that the
owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

CHECK_EVERY_S = 1.0
"""A process that was forked from the owner may keep the other end of the pipe open."""


def main() -> None:
    """Leave the family, keep account of the groups, and kill those that are left at the end."""
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
    """Return when a process began, in ticks since the machine did; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *rest = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state in b"ZX" else rest[18]


if __name__ == "__main__":
    main()
