"""Where numba's machine code is kept, and how processes take turns in making it.

Code lies in a folder whose name depends on everything that it is made from, so it never has to be
checked for staleness. Paths are not among it: checkouts and installations of the same sources share
it.
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
"""Environment variable that names another cache folder; it should be on a local disk."""

_LOCK_NAME = "lock"
POLL_SECONDS = 0.1
"""Between two looks at a lock that another process holds."""

_PACKAGE = Path(__file__).parents[1]

_F = TypeVar("_F", bound=Callable[..., Any])


class MachineTarget(NamedTuple):
    """A kind of processor that machine code is made for."""

    architecture: str
    """As `platform.machine` has it."""

    name: str
    """LLVM's name of the processor."""

    features: str
    """As LLVM takes them: what it has ("+fma") and what it lacks ("-avx512f"), with commas."""

    def has(self, feature: str) -> bool:
        """Whether it is said to have a feature; what only its name implies does not count."""
        return f"+{feature}" in self.features.split(",")


def target() -> MachineTarget:
    """Return what numba compiles for.

    That is this processor unless NUMBA_CPU_NAME, NUMBA_CPU_FEATURES or NUMBA_ENABLE_AVX ask for
    less.
    """
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    return MachineTarget(
        platform.machine(),
        llvmlite.binding.get_host_cpu_name() if name is None else name,
        codegen.get_host_cpu_features() if features is None else features,
    )


def base_folder() -> Path:
    """Return the folder below which all machine code is kept."""
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
    """Names everything that machine code depends on: sources, compiler, Python and target."""
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
    """Of a file of this package, wherever the package is installed."""
    return Path(os.path.relpath(source, _PACKAGE)).as_posix()


class ByContents(UserProvidedCacheLocator):
    """A numba cache locator that goes by the contents of source files.

    Numba's own also depend on a file's path and, up to version 0.67, on its modification time.
    """

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return a subfolder for each source folder: files in several may share a name."""
        return Path(_name_of(py_file)).parent.as_posix().replace("/", ".")

    def get_source_stamp(self) -> str:
        """Return a digest, also for sources that `fingerprint` was not given, such as tests."""
        return _digest(self._py_file)


@cache
def _digest(source: str) -> str:
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()


def compiled(function: _F, folder: Path, **options: Any) -> _F:
    """Return `function` as numba compiles it at its first call, free of the GIL.

    Args:
        function: What to compile.
        folder: Where its machine code is kept.
        **options: Further ones of `numba.njit`.
    """
    with _cache_in(folder):
        result: _F = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    return result


def address_of(function: Callable[..., None], signature: Any, folder: Path) -> int:
    """Compile `function` for other compiled code to call, or loads it; it stays in memory.

    Args:
        function: What to compile.
        signature: Numba's, of C types.
        folder: Where its machine code is kept.
    """
    with _cache_in(folder):
        code = numba.cfunc(signature, cache=True, error_model="numpy")(function)
    _LOADED.append(code)
    return int(code.address)


_LOADED: list[Any] = []
"""What numba would otherwise free."""


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Numba looks at its settings when a function is declared."""
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
        folder: Is created if it does not exist.
        waiting: Is called again and again while another process holds the lock, with the seconds
            that it has been so.

    Raises:
        OSError: If the folder cannot be written.
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
