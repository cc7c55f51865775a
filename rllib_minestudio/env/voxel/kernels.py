"""The `kernel` decorator, which compiles a function and caches its machine code on disk.

The name of the cache folder depends on everything that goes into the code, so the cache never goes
stale. `kernel_cache` compiles all kernels once per machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba.extending import register_jitable

from rllib_minestudio.foundation import machine_code
from rllib_minestudio.foundation.machine_code import CACHE_VARIABLE as CACHE_VARIABLE

_WITHOUT_KERNELS = {"game", "screens", "commands", "server"}
"""Folders of the engine without kernels: changing them does not recompile anything."""

_F = TypeVar("_F", bound=Callable[..., Any])


def _sources() -> list[Path]:
    engine = Path(__file__).parent
    sources = [
        source
        for source in engine.rglob("*.py")
        if _WITHOUT_KERNELS.isdisjoint(source.relative_to(engine).parts)
    ]
    # Columns of the tables, such as hardness, are compiled into kernels as constants.
    return [*sources, *(engine / "data").glob("*.csv")]


CACHE_FOLDER = machine_code.base_folder() / machine_code.fingerprint(
    [*_sources(), Path(machine_code.__file__)]
)
"""Folder of the machine code of this version on this machine."""


_kernels: list[Any] = []


def count_compiled() -> int:
    """How many kernels this process has compiled itself instead of loading."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in _kernels)


def shared_with_kernels(function: _F) -> _F:
    """Decorator for a small function that Python calls directly and kernels inline."""
    shared: _F = register_jitable(inline="always")(function)
    return shared


def kernel(
    *, fastmath: bool = False, inline: str = "never", allocates: bool = True
) -> Callable[[_F], _F]:
    """Decorator that makes a function a kernel: compiled, cached on disk, without the GIL.

    Args:
        fastmath: Allow the compiler to reorder floating-point arithmetic. Results then differ in
            the last bits from one compilation to the next, so only rendering may use it.
        inline: "always" to inline the function into its callers.
        allocates: Whether it, or what is inlined into it, may create arrays. A kernel that does not
            need not count the references to those it is given, which costs a small one more than
            its work. Said to numba for every kernel, as one would else inherit it from its caller.
    """

    def decorate(function: _F) -> _F:
        compiled = machine_code.compiled(
            function, CACHE_FOLDER, fastmath=fastmath, inline=inline, _nrt=allocates
        )
        _kernels.append(compiled)
        return compiled

    return decorate
