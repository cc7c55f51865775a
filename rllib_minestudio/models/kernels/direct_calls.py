"""The kernels in `direct` as machine code, called with the addresses of arrays."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rllib_minestudio.models.kernels import compilation, direct, direct_blocks, direct_layers
from rllib_minestudio.models.kernels.compilation import NOTHING as NOTHING
from rllib_minestudio.models.kernels.compilation import Array, MachineCode, array_at, words_at
from rllib_minestudio.models.kernels.direct import NORMS as NORMS
from rllib_minestudio.models.kernels.direct import StackShape
from rllib_minestudio.models.kernels.direct import kept_size as kept_size
from rllib_minestudio.models.kernels.direct import taps_size as taps_size
from rllib_minestudio.models.kernels.direct_blocks import CHANNELS as CHANNELS

_FRAMES_PER_SHARE = 8
_MOST_SHARES = 64


def forward(
    image: Array,
    x: Array,
    parameters: Array,
    out: Array,
    kept: Array,
    taps: Array,
    statistics: Array,
    sizes: StackShape,
    threads: int,
) -> None:
    """Call `direct.forward` in up to `threads` threads."""
    arguments = image, x, parameters, out, kept, taps, statistics, *sizes
    compilation.run(CODE.addresses[_forward_code], arguments, min(threads, sizes.frames))


def backward(
    image: Array,
    x: Array,
    parameters: Array,
    turned: Array,
    kept: Array,
    taps: Array,
    statistics: Array,
    dy: Array,
    dx: Array,
    gradients: Array,
    sizes: StackShape,
    threads: int,
) -> None:
    """Call `direct.backward` in up to `threads` threads."""
    arrays = image, x, parameters, turned, kept, taps, statistics, dy, dx, gradients
    compilation.run(
        CODE.addresses[_backward_code], (*arrays, *sizes), min(threads, count_shares(sizes.frames))
    )


def count_shares(frames: int) -> int:
    """Return the number of shares into which `backward` should divide the frames."""
    return max(1, min(frames // _FRAMES_PER_SHARE, _MOST_SHARES))


# ---------------------------------------------------------------------------- machine code
# The words of a call are its arguments in order, from the second word on; arrays take two words.


@numba.njit
def _sizes_at(words: Any, index: int) -> Any:
    return words[index], words[index + 1], words[index + 2], words[index + 3], words[index + 4]


def _forward_code(address: Any) -> None:
    words = words_at(address, 20)
    direct.forward(
        words,
        array_at(words, 1, np.uint8),
        array_at(words, 3, np.float32),
        array_at(words, 5, np.float32),
        array_at(words, 7, np.float32),
        array_at(words, 9, np.float32),
        array_at(words, 11, np.int16),
        array_at(words, 13, np.float32),
        _sizes_at(words, 15),
    )


def _backward_code(address: Any) -> None:
    words = words_at(address, 26)
    direct.backward(
        words,
        array_at(words, 1, np.uint8),
        array_at(words, 3, np.float32),
        array_at(words, 5, np.float32),
        array_at(words, 7, np.float32),
        array_at(words, 9, np.float32),
        array_at(words, 11, np.int16),
        array_at(words, 13, np.float32),
        array_at(words, 15, np.float32),
        array_at(words, 17, np.float32),
        array_at(words, 19, np.float32),
        _sizes_at(words, 21),
    )


CODE = MachineCode(
    "convolutions of small networks",
    (direct, direct_blocks, direct_layers, compilation),
    (_forward_code, _backward_code),
)
