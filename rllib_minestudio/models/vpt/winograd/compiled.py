"""The kernels as machine code: compiled once for a machine, then called with addresses."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from rllib_minestudio import compilation_cache
from rllib_minestudio.models.vpt.winograd import kernels, product, simd, team, tiles
from rllib_minestudio.models.vpt.winograd.kernels import BLOCK, Sizes, count_tiles
from rllib_minestudio.models.vpt.winograd.kernels import POINTS as POINTS
from rllib_minestudio.models.vpt.winograd.product import PANEL as PANEL
from rllib_minestudio.models.vpt.winograd.product import ROWS
from rllib_minestudio.models.vpt.winograd.team import NOTHING as NOTHING
from rllib_minestudio.models.vpt.winograd.team import Array as Array
from rllib_minestudio.models.vpt.winograd.team import array_at, words_at

_logger = logging.getLogger(__name__)

_MODULES = (
    *(__file__, kernels.__file__, compilation_cache.__file__, product.__file__),
    *(simd.__file__, team.__file__, tiles.__file__),
)
CACHE_FOLDER = compilation_cache.base_folder() / (
    "network-" + compilation_cache.fingerprint(Path(module) for module in _MODULES)
)
"""Folder of this version's machine code on this machine."""

_MARKER_NAME = "compiled"
_REPORT_SECONDS = 30.0


# ---------------------------------------------------------------------------- calls


def convolve(
    image: Array,
    affine: Array,
    filters: Array,
    skip: Array,
    out: Array,
    sizes: Sizes,
    relu: bool,
    is_bfloat16: bool,
    threads: int,
) -> None:
    """Calls `kernels.convolve` with up to so many threads."""
    arguments = image, affine, filters, skip, out, *sizes, relu, is_bfloat16
    team.run(_codes().convolve, arguments, min(threads, _groups(sizes, ROWS)))


def normalise(
    image: Array, norm: Array, affine: Array, frames: int, is_bfloat16: bool, threads: int
) -> None:
    """Calls `kernels.normalise` with up to so many threads."""
    team.run(_codes().normalise, (image, norm, affine, is_bfloat16), min(threads, frames))


def pool(image: Array, out: Array, shape: Sequence[int], is_bfloat16: bool, threads: int) -> None:
    """Calls `kernels.pool` with up to so many threads."""
    team.run(_codes().pool, (image, out, *shape, is_bfloat16), threads)


def filter_gradient(
    image: Array, gradient: Array, out: Array, sizes: Sizes, is_bfloat16: bool, threads: int
) -> None:
    """Calls `kernels.filter_gradient` with up to so many threads."""
    team.run(_codes().filter_gradient, (image, gradient, out, *sizes, is_bfloat16), threads)


def count_shares(sizes: Sizes, threads: int) -> int:
    """Into how many shares `filter_gradient` should divide the tiles."""
    return min(threads, _groups(sizes, BLOCK))


def _groups(sizes: Sizes, size: int) -> int:
    """How many groups of so many tiles there are."""
    return -(-int(count_tiles.py_func(sizes)) // size)


# ---------------------------------------------------------------------------- machine code
# The words of a call are its arguments in their order, from the second word on; arrays are two.


@numba.njit
def _sizes_at(words: Any, index: int) -> Any:
    return words[index], words[index + 1], words[index + 2], words[index + 3], words[index + 4]


@numba.njit
def _convolve(words: Any, image_type: Any) -> None:
    kernels.convolve(
        words,
        array_at(words, 1, image_type),
        array_at(words, 3, np.float32),
        array_at(words, 5, np.float32),
        array_at(words, 7, image_type),
        array_at(words, 9, image_type),
        _sizes_at(words, 11),
        words[16] != 0,
    )


def _convolve_code(address: Any) -> None:
    words = words_at(address, 18)
    if words[17]:
        _convolve(words, np.int16)
    else:
        _convolve(words, np.float32)


@numba.njit
def _normalise(words: Any, image_type: Any) -> None:
    kernels.normalise(
        words,
        array_at(words, 1, image_type),
        array_at(words, 3, np.float32),
        array_at(words, 5, np.float32),
    )


def _normalise_code(address: Any) -> None:
    words = words_at(address, 8)
    if words[7]:
        _normalise(words, np.int16)
    else:
        _normalise(words, np.float32)


@numba.njit
def _pool(words: Any, image_type: Any) -> None:
    kernels.pool(
        words,
        array_at(words, 1, image_type),
        array_at(words, 3, image_type),
        (words[5], words[6], words[7], words[8]),
    )


def _pool_code(address: Any) -> None:
    words = words_at(address, 10)
    if words[9]:
        _pool(words, np.int16)
    else:
        _pool(words, np.float32)


@numba.njit
def _filter_gradient(words: Any, image_type: Any) -> None:
    kernels.filter_gradient(
        words,
        array_at(words, 1, image_type),
        array_at(words, 3, image_type),
        array_at(words, 5, np.float32),
        _sizes_at(words, 7),
    )


def _filter_gradient_code(address: Any) -> None:
    words = words_at(address, 13)
    if words[12]:
        _filter_gradient(words, np.int16)
    else:
        _filter_gradient(words, np.float32)


class _Codes(NamedTuple):
    """Compiled code, which `team.run` takes the address of."""

    convolve: int
    normalise: int
    pool: int
    filter_gradient: int


@cache
def _codes() -> _Codes:
    """Loads the machine code, or compiles it."""
    functions = _convolve_code, _normalise_code, _pool_code, _filter_gradient_code
    return _Codes(
        *(compilation_cache.address_of(each, team.SIGNATURE, CACHE_FOLDER) for each in functions)
    )


def are_compiled() -> bool:
    """Whether this machine already holds the machine code of this version."""
    return (CACHE_FOLDER / _MARKER_NAME).exists()


def compile_once(progress: Callable[[str], None] | None = None) -> None:
    """Makes sure that the kernels are compiled; returns at once when they are.

    Args:
        progress: Receives a line of text before and after compiling, and while waiting for another
            process that does; by default the lines go to the log.

    Raises:
        OSError: If the machine code cannot be kept.
    """
    if are_compiled():
        return
    tell = progress or _logger.warning

    def waiting(seconds: float) -> None:
        if seconds % _REPORT_SECONDS < compilation_cache.POLL_SECONDS:
            tell("Another process is compiling the network's convolutions; waiting for it ...")

    with compilation_cache.only_process(CACHE_FOLDER, waiting):
        if not are_compiled():
            tell("Compiling the network's convolutions, once for this machine (about 10 s) ...")
            start = time.monotonic()
            _codes()
            (CACHE_FOLDER / _MARKER_NAME).touch()
            tell(f"The convolutions are compiled ({time.monotonic() - start:.0f} s).")
