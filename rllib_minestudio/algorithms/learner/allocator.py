"""Keeping freed memory in the process while training on a CPU.

glibc returns every large block to the kernel as soon as it is freed, and faults it in again,
page by page, at the next allocation. A training step frees and allocates hundreds of megabytes of
activations, so these faults can cost more than half of it.
"""

from __future__ import annotations

import ctypes
import sys

# Parameter numbers of mallopt(3), glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

_LARGE = 2**31 - 1


def keep_freed_memory() -> bool:
    """Raise glibc's thresholds for giving memory back, in this process.

    Returns:
        Whether it took effect; False where the C library is not glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGE)) & bool(mallopt(_M_TRIM_THRESHOLD, _LARGE))
