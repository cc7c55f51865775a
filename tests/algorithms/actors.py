"""Where actors really run, so that tests can really kill them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import ray


def process_of(actor: Any) -> int:
    """The process that an actor lives in."""
    return ray.get(actor.__ray_call__.remote(lambda _: os.getpid()), timeout=120)


def kill(pid: int) -> None:
    """End a process as the kernel does when memory runs out."""
    os.kill(pid, signal.SIGKILL)


def freeze(pid: int) -> None:
    """Make a process hang: it neither answers nor ends."""
    os.kill(pid, signal.SIGSTOP)


def is_running(pid: int) -> bool:
    """Whether a process exists; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether something becomes true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
