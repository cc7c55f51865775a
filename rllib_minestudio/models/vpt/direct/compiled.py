"""The kernels as machine code: compiled once for a machine, then called with addresses."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rllib_minestudio.models.vpt import simd, team
from rllib_minestudio.models.vpt.direct import backward as backward_
from rllib_minestudio.models.vpt.direct import (
    blocks,
    convolutions,
    lanes,
    norms,
    planes,
    pools,
    stacks,
    work,
)
from rllib_minestudio.models.vpt.direct import forward as forward_
from rllib_minestudio.models.vpt.direct.blocks import CHANNELS as CHANNELS
from rllib_minestudio.models.vpt.direct.stacks import NORMS as NORMS
from rllib_minestudio.models.vpt.direct.stacks import Sizes
from rllib_minestudio.models.vpt.direct.stacks import kept_size as kept_size
from rllib_minestudio.models.vpt.direct.stacks import taps_size as taps_size
from rllib_minestudio.models.vpt.machine_code import MachineCode
from rllib_minestudio.models.vpt.team import NOTHING as NOTHING
from rllib_minestudio.models.vpt.team import Array, array_at, words_at

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
    sizes: Sizes,
    threads: int,
) -> None:
    """Calls `forward.forward` with up to so many threads."""
    arguments = image, x, parameters, out, kept, taps, statistics, *sizes
    team.run(CODE.addresses[_forward_code], arguments, min(threads, sizes.frames))


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
    sizes: Sizes,
    threads: int,
) -> None:
    """Calls `backward.backward` with up to so many threads."""
    arrays = image, x, parameters, turned, kept, taps, statistics, dy, dx, gradients
    team.run(
        CODE.addresses[_backward_code], (*arrays, *sizes), min(threads, count_shares(sizes.frames))
    )


def count_shares(frames: int) -> int:
    """Into how many shares `backward` should divide the frames."""
    return max(1, min(frames // _FRAMES_PER_SHARE, _MOST_SHARES))


# ---------------------------------------------------------------------------- machine code
# The words of a call are its arguments in their order, from the second word on; arrays are two.


@numba.njit
def _sizes_at(words: Any, index: int) -> Any:
    return words[index], words[index + 1], words[index + 2], words[index + 3], words[index + 4]


def _forward_code(address: Any) -> None:
    words = words_at(address, 20)
    forward_.forward(
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
    backward_.backward(
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
    (backward_, blocks, convolutions, forward_, lanes, norms, planes, pools, simd, stacks, work),
    (_forward_code, _backward_code),
)
