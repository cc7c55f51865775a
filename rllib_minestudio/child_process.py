"""Processes that end with the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""See prctl(2)."""


def die_with(parent: int) -> None:
    """Have the kernel (Linux) kill this process when its parent dies, whatever either is doing.

    Args:
        parent: Process id of the parent, which may have died already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
