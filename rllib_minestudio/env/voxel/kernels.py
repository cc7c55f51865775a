"""How the engine's kernels are compiled, and where their machine code is kept.

Compiled code is cached on disk in a folder whose name depends on everything that it is made from,
so it never has to be checked for staleness (see `kernel_cache` for compiling it once per machine).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba.extending import register_jitable

from rllib_minestudio.foundation import machine_code
from rllib_minestudio.foundation.machine_code import CACHE_VARIABLE as CACHE_VARIABLE

_WITHOUT_KERNELS = {"screens", "commands", "server"}
"""Folders below the engine's that have no kernels: a change there compiles nothing anew."""

_F = TypeVar("_F", bound=Callable[..., Any])


def _sources() -> list[Path]:
    engine = Path(__file__).parent
    sources = [
        source
        for source in engine.rglob("*.py")
        if _WITHOUT_KERNELS.isdisjoint(source.relative_to(engine).parts)
    ]
    # Kernels hold columns of the tables, such as hardness, as constants.
    return [*sources, *(engine / "data").glob("*.csv")]


CACHE_FOLDER = machine_code.base_folder() / machine_code.fingerprint(
    [*_sources(), Path(machine_code.__file__)]
)
"""Folder of this version's machine code on this machine."""


_kernels: list[Any] = []


def count_compiled() -> int:
    """How many kernels this process has compiled itself, instead of loading them."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in _kernels)


def shared_with_kernels(function: _F) -> _F:
    """Decorator of a small function that Python calls as it is, and kernels as a part of them."""
    shared: _F = register_jitable(inline="always")(function)
    return shared


def kernel(*, fastmath: bool = False, inline: str = "never") -> Callable[[_F], _F]:
    """Decorator that makes a function a kernel: compiled, cached on disk, free of the GIL.

    Args:
        fastmath: Allow the compiler to reorder floating-point arithmetic. Its results differ from
            one compilation to the next in the last bits, so only rendering may use it.
        inline: "always" to paste the function into its callers.
    """

    def decorate(function: _F) -> _F:
        compiled = machine_code.compiled(function, CACHE_FOLDER, fastmath=fastmath, inline=inline)
        _kernels.append(compiled)
        return compiled

    return decorate
