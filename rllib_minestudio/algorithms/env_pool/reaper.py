"""Kills the process groups of environments once the process that started them is gone.

A script of its own, on the standard library alone. The kernel kills the environments' processes
with their parent, but not the games that those have started; these belong to the same groups.

Reads lines `+GROUP` and `-GROUP` from standard input; its end means that the parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

CHECK_EVERY_S = 1.0
"""A process that was forked from the parent may keep the other end of the pipe open."""


def main() -> None:
    """Keep account of the groups; kill those that are left at the end."""
    parent, stdin = os.getppid(), sys.stdin.fileno()
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
        elif os.getppid() != parent:
            break
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
