"""How the engine's kernels are compiled, and where their machine code is kept.

Compiled code is cached on disk in a folder whose name depends on everything that it is made from,
so it never has to be checked for staleness (see `jitcache` for compiling it once per machine).
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
import numpy as np

CACHE_VARIABLE = "RLLIB_MINESTUDIO_CACHE"
"""Environment variable that names another cache folder; it should be on a local disk."""

_WITHOUT_KERNELS = "server"
"""Folder below the engine's that has no kernels: a change there compiles nothing anew."""

_F = TypeVar("_F", bound=Callable[..., Any])


def _base_folder() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    candidate = Path(home) if home else Path("~/.cache").expanduser()
    try:
        candidate.mkdir(parents=True, exist_ok=True)
        if os.access(candidate, os.W_OK):
            return candidate / "rllib_minestudio"
    except OSError:
        pass  # no usable home folder, as in some containers
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"rllib_minestudio-{user}"


def _fingerprint() -> str:
    """Names everything the machine code depends on: sources, compiler, Python and CPU."""
    digest = hashlib.sha256()
    for part in (
        numba.__version__,
        np.__version__,
        platform.python_version(),
        platform.machine(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
    ):
        digest.update(part.encode())
    engine = Path(__file__).parent
    for source in sorted(engine.rglob("*.py")):
        if _WITHOUT_KERNELS in source.relative_to(engine).parts:
            continue
        # numba itself checks path and time of a source file, so they are part of the name
        digest.update(f"{source}:{source.stat().st_mtime_ns}".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


CACHE_FOLDER = _base_folder() / _fingerprint()
"""Folder of this version's machine code on this machine."""


_kernels: list[Any] = []


def count_compiled() -> int:
    """How many kernels this process has compiled itself, instead of loading them."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in _kernels)


def kernel(*, fastmath: bool = False, inline: str = "never") -> Callable[[_F], _F]:
    """Decorator that makes a function a kernel: compiled, cached on disk, free of the GIL.

    Args:
        fastmath: Allow the compiler to reorder floating-point arithmetic. Its results differ from
            one compilation to the next in the last bits, so only rendering may use it.
        inline: "always" to paste the function into its callers.
    """

    def decorate(function: _F) -> _F:
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(CACHE_FOLDER)
        try:
            compiled: _F = numba.njit(
                cache=True, nogil=True, error_model="numpy", fastmath=fastmath, inline=inline
            )(function)
        finally:
            numba.config.CACHE_DIR = previous
        _kernels.append(compiled)
        return compiled

    return decorate
