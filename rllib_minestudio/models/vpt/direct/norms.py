"""Group norm of one group: each frame as a whole, Wu & He 2018, arXiv:1803.08494, equation 1."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rllib_minestudio.models.vpt.direct.lanes import filled, masked, total, where_greater
from rllib_minestudio.models.vpt.simd import LANES, load, store, zeros


@numba.njit
def moments(source: Any, channels: int, planes: Any, epsilon: float) -> Any:
    """Returns a frame's mean, and one over its standard deviation; float32.

    Squares are of distances from the mean of the first channel. That is off the mean by at most
    sqrt(channels) standard deviations, so that nothing cancels.
    """
    values, first, stride = source
    mask, pixels = planes.mask, planes.height * planes.width
    start = zeros()
    for pixel in range(0, planes.span, LANES):
        start = start + load(values, first + pixel)
    shift = np.float32(total(start) / np.float32(pixels))
    shifts = filled(shift)
    sums, squares = 0.0, 0.0
    for channel in range(channels):
        at = first + channel * stride
        sum0, sum1, squares0, squares1 = zeros(), zeros(), zeros(), zeros()
        for pixel in range(0, planes.span - LANES, 2 * LANES):
            value0 = masked(load(values, at + pixel) - shifts, mask, pixel)
            value1 = load(values, at + pixel + LANES) - shifts
            value1 = masked(value1, mask, pixel + LANES)
            sum0, sum1 = sum0 + value0, sum1 + value1
            squares0, squares1 = squares0 + value0 * value0, squares1 + value1 * value1
        if planes.span // LANES % 2:
            last = planes.span - LANES
            value0 = masked(load(values, at + last) - shifts, mask, last)
            sum0, squares0 = sum0 + value0, squares0 + value0 * value0
        sums += total(sum0 + sum1)
        squares += total(squares0 + squares1)
    count = channels * pixels
    distance = sums / count
    variance = max(squares / count - distance * distance, 0.0)
    return np.float32(shift + distance), np.float32(1.0 / np.sqrt(variance + epsilon))


@numba.njit
def normalise(
    source: Any,
    channels: int,
    planes: Any,
    statistics: Any,
    parameters: Any,
    norm_at: int,
    out: Any,
) -> None:
    """Normalises a frame.

    Args:
        source: `Channels`.
        channels: How many.
        planes: `Planes` of both.
        statistics: From `moments`.
        parameters: float32, holds the weights and the biases of the norm, one after the other.
        norm_at: Index of the first weight.
        out: `Channels`, receives zeros between pixels.
    """
    mean, scale = statistics
    values, first, stride = source
    normal, out_first, out_stride = out
    mask = planes.mask
    for channel in range(channels):
        factor = scale * parameters[norm_at + channel]
        added = filled(parameters[norm_at + channels + channel] - mean * factor)
        at, to = first + channel * stride, out_first + channel * out_stride
        for pixel in range(0, planes.span, LANES):
            value = factor * load(values, at + pixel) + added
            store(normal, to + pixel, masked(value, mask, pixel))


@numba.njit
def norm_slopes(
    source: Any,
    gradient: Any,
    channels: int,
    planes: Any,
    statistics: Any,
    parameters: Any,
    norm_at: int,
    gradients: Any,
    gradients_at: int,
    slopes: Any,
) -> None:
    """Finds the gradients of a norm's parameters, and how to get that of its input.

    With x the input, y' the gradient of the output, n numbers x^ normalised, and g the weights,
    x' = s (g y' - mean(g y') - x^ mean(g y' x^)), where s is one over the deviation.

    Args:
        source: `Channels` of the norm's input.
        gradient: `Channels` of its output's gradient, zero between pixels.
        channels: How many.
        planes: `Planes` of both.
        statistics: From `moments`.
        parameters: As `normalise` has it.
        norm_at: Likewise.
        gradients: float32, has the gradients of the parameters added to it.
        gradients_at: Index of that of the first weight.
        slopes: [channels + 2] float32, receives a, b, c in x' = a[channel] y' + b x + c.
    """
    mean, scale = statistics
    means = filled(mean)
    values, first, stride = source
    given, given_first, given_stride = gradient
    direct, along = 0.0, 0.0
    for channel in range(channels):
        at, given_at = first + channel * stride, given_first + channel * given_stride
        sum0, sum1 = zeros(), zeros()
        for pixel in range(0, planes.span, LANES):
            slope = load(given, given_at + pixel)
            sum0 = sum0 + slope
            sum1 = sum1 + slope * (load(values, at + pixel) - means)
        weight = parameters[norm_at + channel]
        of_bias, of_weight = total(sum0), total(sum1) * scale
        gradients[gradients_at + channel] += of_weight
        gradients[gradients_at + channels + channel] += of_bias
        direct += weight * of_bias
        along += weight * of_weight
        slopes[channel] = scale * weight
    count = channels * planes.height * planes.width
    by_input = -scale * scale * along / count
    slopes[channels] = by_input
    slopes[channels + 1] = -scale * direct / count - by_input * mean


@numba.njit
def add_input_gradient(
    source: Any, gradient: Any, channels: int, planes: Any, slopes: Any, out: Any
) -> None:
    """Adds the gradient of a norm's input, by ``slopes`` from `norm_slopes`."""
    by_input, constant = slopes[channels], filled(slopes[channels + 1])
    values, first, stride = source
    given, given_first, given_stride = gradient
    results, out_first, out_stride = out
    mask = planes.mask
    for channel in range(channels):
        at, given_at = first + channel * stride, given_first + channel * given_stride
        to = out_first + channel * out_stride
        by_gradient = slopes[channel]
        for pixel in range(0, planes.span, LANES):
            value = by_gradient * load(given, given_at + pixel)
            value = value + (by_input * load(values, at + pixel) + constant)
            value = load(results, to + pixel) + masked(value, mask, pixel)
            store(results, to + pixel, value)


@numba.njit
def gated_input_gradient(
    source: Any, gradient: Any, channels: int, planes: Any, slopes: Any, out: Any
) -> None:
    """Writes that gradient where the norm's input, which a ReLU made, is positive; else 0."""
    by_input, constant = slopes[channels], filled(slopes[channels + 1])
    values, first, stride = source
    given, given_first, given_stride = gradient
    results, out_first, out_stride = out
    for channel in range(channels):
        at, given_at = first + channel * stride, given_first + channel * given_stride
        to = out_first + channel * out_stride
        by_gradient = slopes[channel]
        for pixel in range(0, planes.span, LANES):
            before = load(values, at + pixel)
            value = by_gradient * load(given, given_at + pixel)
            value = value + (by_input * before + constant)
            # What lies between pixels is 0 in the input, so the gate closes there, too.
            store(results, to + pixel, where_greater(before, zeros(), value, zeros()))
