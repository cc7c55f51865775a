"""The kernels in `winograd` as machine code, called with the addresses of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from rllib_minestudio.models.kernels import compilation, winograd
from rllib_minestudio.models.kernels.compilation import NOTHING as NOTHING
from rllib_minestudio.models.kernels.compilation import Array as Array
from rllib_minestudio.models.kernels.compilation import MachineCode, array_at, words_at
from rllib_minestudio.models.kernels.winograd import BLOCK, ROWS, ConvolutionShape, count_tiles
from rllib_minestudio.models.kernels.winograd import PANEL as PANEL
from rllib_minestudio.models.kernels.winograd import POINTS as POINTS

# ---------------------------------------------------------------------------- calls


def convolve(
    image: Array,
    affine: Array,
    filters: Array,
    skip: Array,
    out: Array,
    sizes: ConvolutionShape,
    relu: bool,
    is_bfloat16: bool,
    threads: int,
) -> None:
    """Call `winograd.convolve` in up to `threads` threads."""
    arguments = image, affine, filters, skip, out, *sizes, relu, is_bfloat16
    compilation.run(CODE.addresses[_convolve_code], arguments, min(threads, _groups(sizes, ROWS)))


def normalise(
    image: Array, norm: Array, affine: Array, frames: int, is_bfloat16: bool, threads: int
) -> None:
    """Call `winograd.normalise` in up to `threads` threads."""
    compilation.run(
        CODE.addresses[_normalise_code], (image, norm, affine, is_bfloat16), min(threads, frames)
    )


def pool(image: Array, out: Array, shape: Sequence[int], is_bfloat16: bool, threads: int) -> None:
    """Call `winograd.pool` in up to `threads` threads."""
    compilation.run(CODE.addresses[_pool_code], (image, out, *shape, is_bfloat16), threads)


def filter_gradient(
    image: Array,
    gradient: Array,
    out: Array,
    sizes: ConvolutionShape,
    is_bfloat16: bool,
    threads: int,
) -> None:
    """Call `winograd.filter_gradient` in up to `threads` threads."""
    compilation.run(
        CODE.addresses[_filter_gradient_code], (image, gradient, out, *sizes, is_bfloat16), threads
    )


def count_shares(sizes: ConvolutionShape, threads: int) -> int:
    """Return the number of shares into which `filter_gradient` should divide the tiles."""
    return min(threads, _groups(sizes, BLOCK))


def _groups(sizes: ConvolutionShape, size: int) -> int:
    """The number of groups of `size` tiles."""
    return -(-int(count_tiles.py_func(sizes)) // size)


# ---------------------------------------------------------------------------- machine code
# The words of a call are its arguments in order, from the second word on; arrays take two words.


@numba.njit
def _sizes_at(words: Any, index: int) -> Any:
    return words[index], words[index + 1], words[index + 2], words[index + 3], words[index + 4]


@numba.njit
def _convolve(words: Any, image_type: Any) -> None:
    winograd.convolve(
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
    winograd.normalise(
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
    winograd.pool(
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
    winograd.filter_gradient(
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


CODE = MachineCode(
    "convolutions of large networks",
    (winograd, compilation),
    (_convolve_code, _normalise_code, _pool_code, _filter_gradient_code),
)
