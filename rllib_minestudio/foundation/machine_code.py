"""The cache of numba's machine code, and the lock by which processes take turns compiling it.

The name of the cache folder depends on everything the code is compiled from, so the cache is never
out of date. It does not depend on paths: checkouts and installations of the same sources share it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import llvmlite.binding
import numba
import numpy as np
from numba.core import codegen
from numba.core.caching import UserProvidedCacheLocator

if sys.platform != "win32":
    import fcntl

CACHE_VARIABLE = "RLLIB_MINESTUDIO_CACHE"
"""Environment variable for another cache folder, which should be on a local disk."""

_LOCK_NAME = "lock"
POLL_SECONDS = 0.1
"""Interval at which a lock held by another process is polled."""

_PACKAGE = Path(__file__).parents[1]

_F = TypeVar("_F", bound=Callable[..., Any])


class MachineTarget(NamedTuple):
    """A kind of processor that machine code is compiled for."""

    architecture: str
    """The value of `platform.machine`."""

    name: str
    """LLVM's name of the processor."""

    features: str
    """Features in LLVM's form, separated by commas: present ("+fma") or absent ("-avx512f")."""

    def has(self, feature: str) -> bool:
        """Return whether a feature is listed as present; those implied by `name` do not count."""
        return f"+{feature}" in self.features.split(",")


def target() -> MachineTarget:
    """Return the processor that numba compiles for.

    It is this machine's unless NUMBA_CPU_NAME, NUMBA_CPU_FEATURES or NUMBA_ENABLE_AVX say less.
    """
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    return MachineTarget(
        platform.machine(),
        llvmlite.binding.get_host_cpu_name() if name is None else name,
        codegen.get_host_cpu_features() if features is None else features,
    )


def base_folder() -> Path:
    """Return the root folder of the cache."""
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


def fingerprint(sources: Iterable[Path]) -> str:
    """Return a hash of all that machine code depends on: sources, compiler, Python and target."""
    digest = hashlib.sha256()
    for part in (
        numba.__version__,
        np.__version__,
        platform.python_version(),
        *target(),
    ):
        digest.update(part.encode())
    for name, source in sorted((_name_of(source), source) for source in sources):
        digest.update(name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _name_of(source: Path | str) -> str:
    """Return a source's path relative to the package."""
    return Path(os.path.relpath(source, _PACKAGE)).as_posix()


class ByContents(UserProvidedCacheLocator):
    """A numba cache locator that identifies source files by their contents.

    Numba's own locators also use a file's path and, up to version 0.67, its modification time.
    """

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return a subfolder per source folder, because files in different folders share names."""
        return Path(_name_of(py_file)).parent.as_posix().replace("/", ".")

    def get_source_stamp(self) -> str:
        """Return a digest of the source; some, such as tests, are not part of `fingerprint`."""
        return _digest(self._py_file)


@cache
def _digest(source: str) -> str:
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()


def compiled(function: _F, folder: Path, **options: Any) -> _F:
    """Return `function` wrapped by numba, which compiles it, without the GIL, at its first call.

    Args:
        function: The function to compile.
        folder: The cache folder.
        **options: Further options of `numba.njit`.
    """
    with _cache_in(folder):
        result: _F = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    return result


def address_of(function: Callable[..., None], signature: Any, folder: Path) -> int:
    """Compile `function`, or load it, and return its address for other compiled code to call.

    The code stays in memory for the life of the process.

    Args:
        function: The function to compile.
        signature: Its numba signature, in C types.
        folder: The cache folder.
    """
    with _cache_in(folder):
        code = numba.cfunc(signature, cache=True, error_model="numpy")(function)
    _LOADED.append(code)
    return int(code.address)


_LOADED: list[Any] = []
"""Compiled functions that numba would otherwise free."""


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Set numba's cache folder and locator, which it reads when a function is declared."""
    config = numba.config
    previous = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
    config.CACHE_DIR = str(folder)
    config.CACHE_LOCATOR_CLASSES = f"{ByContents.__module__}.{ByContents.__name__}"
    try:
        yield
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = previous


@contextmanager
def only_process(folder: Path, waiting: Callable[[float], None]) -> Iterator[None]:
    """Hold the lock of a cache folder; the system releases it if this process dies.

    Args:
        folder: The cache folder, which is created if it does not exist.
        waiting: Called repeatedly while another process holds the lock, with the seconds waited.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK_NAME).open("a") as file:
        if sys.platform != "win32":
            _wait_for(file.fileno(), waiting)
        yield


def _wait_for(descriptor: int, waiting: Callable[[float], None]) -> None:
    waited = 0.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waiting(waited)
            time.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
