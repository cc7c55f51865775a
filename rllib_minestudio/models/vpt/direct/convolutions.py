"""3x3 convolutions of one frame, and the gradients of their filters, by blocks."""

from __future__ import annotations

from typing import Any

import numba

from rllib_minestudio.models.vpt.direct.blocks import (
    BLOCK,
    CHANNELS,
    TAPS,
    convolve_block,
    correlate_block,
)
from rllib_minestudio.models.vpt.direct.lanes import total
from rllib_minestudio.models.vpt.simd import LANES, load, zeros

_STRETCH = 72
"""Vectors of pixels whose gradients are taken together: these stay in the L1 cache."""


@numba.njit
def convolve(
    source: Any,
    channels_in: int,
    planes: Any,
    parameters: Any,
    filters_at: int,
    bias: Any,
    bias_at: int,
    relu: bool,
    out: Any,
    channels_out: int,
) -> None:
    """Convolves a frame; what lies between pixels becomes 0.

    Args:
        source: `Channels` with a border.
        channels_in: How many.
        planes: `Planes` of both.
        parameters: float32, holds [channels_out / CHANNELS, channels_in, 3, CHANNELS, 3]: filters'
            rows by output channel.
        filters_at: Index of the first.
        bias: float32, holds one number per output channel.
        bias_at: Index of the first.
        relu: Whether negative results are replaced by 0.
        out: `Channels`.
        channels_out: How many, a multiple of `CHANNELS`.
    """
    values, first, stride = source
    convolved, out_first, out_stride = out
    mask, strides = planes.mask, (stride, planes.row)
    for pixel in range(0, planes.span, BLOCK):
        for channel in range(0, channels_out, CHANNELS):
            convolve_block(
                *(values, first + pixel, strides),
                *(parameters, filters_at + channel * channels_in * TAPS),
                *(bias, bias_at + channel, mask, pixel),
                *(convolved, out_first + channel * out_stride + pixel, out_stride),
                *(channels_in, relu),
            )


@numba.njit
def correlate(
    source: Any,
    channels_in: int,
    planes: Any,
    gradient: Any,
    channels_out: int,
    sums: Any,
    sums_at: int,
) -> None:
    """Adds a frame's gradient of the filters to sums that are kept lane by lane.

    Args:
        source: `Channels` with a border, of the convolution's input.
        channels_in: How many.
        planes: `Planes` of both.
        gradient: `Channels` of its output's gradient, zero between pixels.
        channels_out: How many, a multiple of `CHANNELS`.
        sums: float32, holds [channels_out / CHANNELS, channels_in, 3, CHANNELS, 3, LANES].
        sums_at: Index of the first.
    """
    values, first, stride = source
    slopes, slopes_first, slopes_stride = gradient
    rows = 3 * CHANNELS * LANES
    for stretch in range(0, planes.vectors, _STRETCH):
        start, vectors = stretch * LANES, min(planes.vectors - stretch, _STRETCH)
        to = sums_at
        for channel in range(0, channels_out, CHANNELS):
            slopes_at = slopes_first + channel * slopes_stride + start
            for channel_in in range(channels_in):
                for y in range(-1, 2):
                    at = first + channel_in * stride + start + y * planes.row - 1
                    correlate_block(
                        *(values, at, slopes, slopes_at, slopes_stride, sums, to, vectors)
                    )
                    to += rows


@numba.njit
def add_over_lanes(sums: Any, sums_at: int, count: int, out: Any, out_at: int) -> None:
    """Adds the lanes of each of so many sums to one number of ``out``."""
    for index in range(count):
        out[out_at + index] += total(load(sums, sums_at + index * LANES))


@numba.njit
def add_over_pixels(gradient: Any, channels: int, planes: Any, out: Any, out_at: int) -> None:
    """Adds each channel's sum to ``out``: the gradient of a bias."""
    values, first, stride = gradient
    for channel in range(channels):
        summed = zeros()
        for pixel in range(0, planes.span, LANES):
            summed = summed + load(values, first + channel * stride + pixel)
        out[out_at + channel] += total(summed)
