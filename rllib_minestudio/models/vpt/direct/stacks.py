"""What forward and backward passes of a stack agree on: sizes, and where which numbers are kept.

A stack is `impala.DownStack`: [norm] -> convolution -> max pool and ReLU -> norm -> residual
blocks of twice norm -> convolution -> ReLU. Below, convolution 0 is the one before the pool, and
the others are counted on; norm i precedes convolution i, but norm `NORM_OF_POOL` follows the pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba

from rllib_minestudio.models.vpt.direct.blocks import TAPS
from rllib_minestudio.models.vpt.direct.planes import Channels, span_of
from rllib_minestudio.models.vpt.simd import LANES

BLOCKS = 2
"""Residual blocks."""

CONVOLUTIONS = 1 + 2 * BLOCKS
NORM_OF_POOL = CONVOLUTIONS
NORMS = CONVOLUTIONS + 1


class Sizes(NamedTuple):
    """Shape of a stack's input, and its channels."""

    frames: int
    height: int
    width: int
    channels_in: int
    channels: int


@numba.njit
def count_parameters(channels_in: int, channels: int) -> int:
    """Of a stack, in this order.

    Filters, a bias per channel (of convolution 0; perhaps zeros), norm 0, norm `NORM_OF_POOL`,
    then per further convolution its norm and its filters.
    """
    first = channels_in * channels * TAPS + 3 * channels + 2 * channels_in
    return first + 2 * BLOCKS * (2 * channels + channels * channels * TAPS)


@numba.njit
def filters_at(convolution: int, channels_in: int, channels: int) -> int:
    """Index of a convolution's filters among the parameters."""
    if convolution == 0:
        return 0
    return norm_at(convolution, channels_in, channels) + 2 * channels


@numba.njit
def bias_at(channels_in: int, channels: int) -> int:
    """Index of the bias of convolution 0."""
    return channels_in * channels * TAPS


@numba.njit
def norm_at(norm: int, channels_in: int, channels: int) -> int:
    """Index of a norm's parameters: its weights, then its biases."""
    first = channels_in * channels * TAPS + channels
    if norm == 0:
        return first
    first += 2 * channels_in
    if norm == NORM_OF_POOL:
        return first
    return first + 2 * channels + (norm - 1) * (2 * channels + channels * channels * TAPS)


@numba.njit
def kept_size(sizes: Any) -> int:
    """How many numbers a frame's forward pass keeps for the backward pass: see `kept`."""
    _, height, width, _, channels = sizes
    # A pool may run on by a vector.
    return CONVOLUTIONS * channels * span_of(height // 2, width // 2) + LANES


@numba.njit
def kept(values: Any, frame: int, convolution: int, sizes: Any) -> Any:
    """Returns the `Channels` of a convolution's result; of convolution 0, the pooled one."""
    _, height, width, _, channels = sizes
    span = span_of(height // 2, width // 2)
    return Channels(values, frame * kept_size(sizes) + convolution * channels * span, span)


@numba.njit
def taps_size(sizes: Any) -> int:
    """How many numbers a frame's pool keeps for the backward pass."""
    _, height, width, _, channels = sizes
    # Pools may run on by a vector, and their gradients look one row further.
    return channels * span_of(height // 2, width // 2) + width // 2 + 1 + 2 * LANES
