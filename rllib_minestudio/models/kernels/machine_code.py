"""Kernels as machine code: compiled once per machine, stored there, and run by a team of threads.

The threads take tickets, numbers from a shared counter, until the work is done. They are OpenMP's
threads where the process has loaded its library, as torch does on Linux. Those wait for torch's
next operation anyway, while other threads would have to be woken (20 to 100 us) and would compete
with them for the cores.
"""

from __future__ import annotations

import ctypes
import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rllib_minestudio.foundation import machine_code

_logger = logging.getLogger(__name__)

_MARKER_NAME = "compiled"
_REPORT_SECONDS = 30.0

SIGNATURE = types.void(types.voidptr)
"""The signature of code that a team can run: it receives the address of words."""


class Array(NamedTuple):
    """Contiguous numbers in memory, which the caller keeps alive."""

    address: int
    size: int


NOTHING = Array(0, 0)

Argument = Array | int
"""An array becomes two words, a number one."""


# ---------------------------------------------------------------------------- in compiled code


@numba.njit
def words_at(address: Any, count: int) -> Any:
    """Return the words of a call, an array of int64; the first is the team's ticket counter."""
    return numba.carray(address, count, np.int64)


@numba.njit
def array_at(words: Any, index: int, dtype: Any) -> Any:
    """Return the array whose address and size are `words[index]` and the next word."""
    return numba.carray(_pointer(words[index]), words[index + 1], dtype)


@intrinsic
def take_ticket(typing: Any, words: Any) -> Any:
    """Return 0, 1, 2, ..., each number to only one thread."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counter = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", counter, ir.IntType(64)(1), "monotonic")

    return types.int64(words), generate


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


# ---------------------------------------------------------------------------- running it


def run(code: int, arguments: Sequence[Argument], threads: int) -> None:
    """Run the same code in several threads; return when all are done.

    Args:
        code: Address of compiled code with `SIGNATURE`.
        arguments: Become its words, from the second on.
        threads: Their number, including this one; there may be fewer.
    """
    words = [0]
    for argument in arguments:
        if isinstance(argument, Array):
            words += argument
        else:
            words.append(argument)
    packed = (ctypes.c_int64 * len(words))(*words)
    parallel = _openmp() if threads > 1 else None
    if parallel is not None:
        parallel(code, ctypes.addressof(packed), threads, 0)
    else:
        _run_in_pool(_function(code), ctypes.addressof(packed), threads)


@cache
def _openmp() -> Callable[[int, int, int, int], None] | None:
    """Return GNU OpenMP's `GOMP_parallel` if its library is loaded already; never load a second."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    try:
        library = ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        function: Any = library.GOMP_parallel
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    function.restype = None
    parallel: Callable[[int, int, int, int], None] = function
    return parallel


@cache
def _function(code: int) -> Callable[[int], None]:
    """Make compiled code callable; it runs without the GIL."""
    function: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code)
    return function


def _run_in_pool(code: Callable[[int], None], words: int, threads: int) -> None:
    """Run the code here and in Python's threads."""
    futures = [_pool(os.getpid()).submit(code, words) for _ in range(threads - 1)]
    code(words)
    for future in futures:
        future.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked one inherits none."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="convolution")


# ---------------------------------------------------------------------------- compiling it


class MachineCode:
    """Functions that `run` runs, which are compiled together."""

    def __init__(
        self, what: str, modules: Sequence[ModuleType], functions: Sequence[Callable[[Any], None]]
    ) -> None:
        """Compile nothing yet.

        Args:
            what: Their name in messages.
            modules: The modules whose code they use, besides their own.
            functions: Each takes the address of words.
        """
        own = functions[0].__code__.co_filename
        sources = [own, __file__, machine_code.__file__]
        sources += [str(module.__file__) for module in modules]
        name = machine_code.fingerprint({Path(source) for source in sources})
        self.folder = machine_code.base_folder() / f"network-{name}"
        self._what = what
        self._functions = functions

    @cached_property
    def addresses(self) -> dict[Callable[[Any], None], int]:
        """The address of each function's machine code, which is loaded or compiled."""
        return {
            function: machine_code.address_of(function, SIGNATURE, self.folder)
            for function in self._functions
        }

    def is_compiled(self) -> bool:
        """Whether this machine already holds the machine code of this version."""
        return (self.folder / _MARKER_NAME).exists()

    def compile_once(self, progress: Callable[[str], None] | None = None) -> None:
        """Compile the functions unless that has been done.

        Args:
            progress: Receives a line of text before and after compiling, and while waiting for
                another process that does; by default the lines go to the log.

        Raises:
            OSError: The machine code cannot be stored.
        """
        if self.is_compiled():
            return
        tell = progress or _logger.warning

        def waiting(seconds: float) -> None:
            if seconds % _REPORT_SECONDS < machine_code.POLL_SECONDS:
                tell(f"Another process is compiling the {self._what}; waiting for it ...")

        with machine_code.only_process(self.folder, waiting):
            if not self.is_compiled():
                tell(f"Compiling the {self._what}, once for this machine (10 to 20 s) ...")
                start = time.monotonic()
                _ = self.addresses
                (self.folder / _MARKER_NAME).touch()
                tell(f"The {self._what} are compiled ({time.monotonic() - start:.0f} s).")
