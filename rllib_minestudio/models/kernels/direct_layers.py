"""The layers of a stack, for one frame: convolutions, norms and pools, and their gradients.

A frame is stored as one plane per channel. A plane holds the pixels row by row, with a zero after
each row. With zeros for a row and a pixel before and after, this is all the border that a 3x3
filter needs: to the left of a row it finds the zero after the row above. For 2 x 3 pixels p::

    0 0 0 0 0 | p p p 0 p p p 0 ... | 0 0 0 0 0 ...
    lead      | span                | tail

A filter's taps are then at nine constant distances whatever the width is, and vectors of pixels run
from one row into the next. Results for the zeros after rows are masked.

Planes without lead and tail are used where only pixels at the same position are combined.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rllib_minestudio.models.kernels.compilation import LANES, load, store, zeros
from rllib_minestudio.models.kernels.direct_blocks import (
    BLOCK,
    CHANNELS,
    COLOURS,
    TAPS,
    alternating_high,
    alternating_low,
    convolve_block,
    correlate_block,
    even,
    filled,
    load_colours,
    masked,
    odd,
    total,
    where_equal,
    where_greater,
)

# ---------------------------------------------------------------------------- planes


class Planes(NamedTuple):
    """The layout of a plane of height x width pixels."""

    height: int
    width: int
    row: int
    """Distance from a pixel to the one below."""

    span: int
    """Length from the first pixel to the end of the last row, rounded up to whole blocks."""

    vectors: int
    """The number of vectors from the first pixel to the end of the last row."""

    lead: int
    """Zeros before the first pixel, in planes that have a border."""

    padded: int
    """Length of a plane that has a border."""

    mask: Any
    """[span] int32: -1 for pixels, 0 between and after them."""


class Channels(NamedTuple):
    """Planes of a frame in an array."""

    values: Any
    first: int
    """Index of the first pixel of the first channel."""

    stride: int
    """Distance from a channel to the next."""


@numba.njit
def _rounded_up(number: int, unit: int) -> int:
    return (number + unit - 1) // unit * unit


@numba.njit
def span_of(height: int, width: int) -> int:
    """Length of a plane without a border."""
    return _rounded_up(height * (width + 1), BLOCK)


@numba.njit
def planes_of(height: int, width: int) -> Any:
    """Return the `Planes` of a size."""
    row = width + 1
    span = span_of(height, width)
    lead = _rounded_up(row + 1, LANES)
    # Pools read pairs of vectors that start at a pixel.
    tail = _rounded_up(row + 1 + 2 * LANES, LANES)
    mask = np.zeros(span, np.int32)
    for y in range(height):
        mask[y * row : y * row + width] = -1
    vectors = _rounded_up(height * row, LANES) // LANES
    return Planes(height, width, row, span, vectors, lead, lead + span + tail, mask)


@numba.njit
def bordered(channels: int, planes: Any) -> Any:
    """Allocate planes with a border, all of zeros."""
    return Channels(np.zeros(channels * planes.padded, np.float32), planes.lead, planes.padded)


@numba.njit
def bare(channels: int, planes: Any) -> Any:
    """Allocate planes without a border, all of zeros."""
    return Channels(np.zeros(channels * planes.span, np.float32), 0, planes.span)


# ---------------------------------------------------------------------------- frames
# Arrays are taken out of tuples before the loops, because numba counts references there.


@numba.njit
def read_image(image: Any, frame: int, out: Any, planes: Any) -> None:
    """Spread a frame of [height, width, COLOURS] bytes over planes, as numbers from 0 to 1."""
    values, first, stride = out
    scale = np.float32(1 / 255)
    vectors = planes.width // LANES
    at = frame * planes.height * planes.width * COLOURS
    for y in range(planes.height):
        to = first + y * planes.row
        for vector in range(vectors):
            x = vector * LANES
            pixels = load_colours(image, at + x * COLOURS)
            store(values, to + x, scale * pixels[0])
            store(values, to + stride + x, scale * pixels[1])
            store(values, to + 2 * stride + x, scale * pixels[2])
        for x in range(vectors * LANES, planes.width):
            for colour in range(COLOURS):
                byte = image[at + x * COLOURS + colour]
                values[to + colour * stride + x] = scale * np.float32(byte)
        at += planes.width * COLOURS


@numba.njit
def read_dense(image: Any, frame: int, out: Any, channels: int, planes: Any) -> None:
    """Copy a frame of [channels, height, width] float32 into planes."""
    values, first, stride = out
    vectors = planes.width // LANES
    at = frame * channels * planes.height * planes.width
    for channel in range(channels):
        for y in range(planes.height):
            to = first + channel * stride + y * planes.row
            for vector in range(vectors):
                store(values, to + vector * LANES, load(image, at + vector * LANES))
            for x in range(vectors * LANES, planes.width):
                values[to + x] = image[at + x]
            at += planes.width


@numba.njit
def write_dense(source: Any, image: Any, frame: int, channels: int, planes: Any) -> None:
    """Copy planes into a frame of [channels, height, width] float32."""
    values, first, stride = source
    vectors = planes.width // LANES
    at = frame * channels * planes.height * planes.width
    for channel in range(channels):
        for y in range(planes.height):
            start = first + channel * stride + y * planes.row
            for vector in range(vectors):
                store(image, at + vector * LANES, load(values, start + vector * LANES))
            for x in range(vectors * LANES, planes.width):
                image[at + x] = values[start + x]
            at += planes.width


# ---------------------------------------------------------------------------- convolutions

_STRETCH = 72
"""Vectors of pixels whose gradients are processed together, so that they stay in the L1 cache."""


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
    """Convolve a frame; the result is 0 between pixels.

    Args:
        source: `Channels` with a border.
        channels_in: Their number.
        planes: `Planes` of both.
        parameters: float32, holds [channels_out / CHANNELS, channels_in, 3, CHANNELS, 3]: filters'
            rows by output channel.
        filters_at: Index of the first.
        bias: float32, holds one number per output channel.
        bias_at: Index of the first.
        relu: Whether negative results are replaced by 0.
        out: `Channels`.
        channels_out: Their number, a multiple of `CHANNELS`.
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
    """Add a frame's gradient of the filters to sums that are kept lane by lane.

    Args:
        source: `Channels` with a border, of the convolution's input.
        channels_in: Their number.
        planes: `Planes` of both.
        gradient: `Channels` of its output's gradient, zero between pixels.
        channels_out: Their number, a multiple of `CHANNELS`.
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
    """Add the lanes of each of `count` sums to one number of `out`."""
    for index in range(count):
        out[out_at + index] += total(load(sums, sums_at + index * LANES))


@numba.njit
def add_over_pixels(gradient: Any, channels: int, planes: Any, out: Any, out_at: int) -> None:
    """Add each channel's sum to `out`: the gradient of a bias."""
    values, first, stride = gradient
    for channel in range(channels):
        summed = zeros()
        for pixel in range(0, planes.span, LANES):
            summed = summed + load(values, first + channel * stride + pixel)
        out[out_at + channel] += total(summed)


# ---------------------------------------------------------------------------- norms
# Group norms of one group: each frame as a whole, Wu & He 2018, arXiv:1803.08494, equation 1.


@numba.njit
def moments(source: Any, channels: int, planes: Any, epsilon: float) -> Any:
    """Return a frame's mean, and one over its standard deviation; float32.

    Squares are of distances from the mean of the first channel, which differs from the mean by at
    most sqrt(channels) standard deviations, so that nothing cancels.
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
    """Normalise a frame.

    Args:
        source: `Channels`.
        channels: Their number.
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
    """Compute the gradients of a norm's parameters, and the coefficients of its input's gradient.

    With x the input, x^ the normalised input, y' the gradient of the output, g the weights, and s
    one over the standard deviation, x' = s (g y' - mean(g y') - x^ mean(g y' x^)).

    Args:
        source: `Channels` of the norm's input.
        gradient: `Channels` of its output's gradient, zero between pixels.
        channels: Their number.
        planes: `Planes` of both.
        statistics: From `moments`.
        parameters: As in `normalise`.
        norm_at: Likewise.
        gradients: float32, to which the gradients of the parameters are added.
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
    """Add the gradient of a norm's input to `out`, by `slopes` from `norm_slopes`."""
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
    """Write a norm's input gradient where the input, a ReLU's output, is positive; else 0."""
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
            # The input is 0 between pixels, so the gate closes there, too.
            store(results, to + pixel, where_greater(before, zeros(), value, zeros()))


# ---------------------------------------------------------------------------- pools
# Max pools of 3x3 pixels around every second pixel, and the ReLU after them.

_ONE, _TWO = np.float32(1), np.float32(2)


@numba.njit
def pool(
    source: Any, channels: int, planes: Any, halved: Any, out: Any, taps: Any, taps_at: int
) -> None:
    """Pool a frame.

    Vectors may overwrite what follows a row, and what follows `out`: it must be written later.

    Args:
        source: `Channels` with a border.
        channels: Their number.
        planes: `Planes` of `source`, of even height and width.
        halved: `Planes` of `out`.
        out: `Channels`; zeros are written between pixels.
        taps: int16, bits of bfloat16, in planes as those of `out`: receives the index of the first
            largest of the nine pixels, row by row, or `TAPS` where none is positive.
        taps_at: Index of the first.
    """
    values, first, stride = source
    pooled, pooled_first, pooled_stride = out
    vectors = (halved.width + LANES - 1) // LANES
    for channel in range(channels):
        for y in range(halved.height):
            row = first + channel * stride + 2 * y * planes.row
            to = pooled_first + channel * pooled_stride + y * halved.row
            taps_to = taps_at + channel * halved.span + y * halved.row
            for vector in range(vectors):
                x = vector * LANES
                largest, tap = zeros(), filled(np.float32(TAPS))
                for k in range(3):
                    at = row + (k - 1) * planes.row + 2 * x
                    before0, before1 = load(values, at - 1), load(values, at + LANES - 1)
                    pixels0, pixels1 = load(values, at), load(values, at + LANES)
                    left = np.float32(3 * k)
                    largest, tap = _larger(even(before0, before1), largest, left, tap)
                    largest, tap = _larger(even(pixels0, pixels1), largest, left + _ONE, tap)
                    largest, tap = _larger(odd(pixels0, pixels1), largest, left + _TWO, tap)
                store(pooled, to + x, largest)
                store(taps, taps_to + x, tap)
            pooled[to + halved.width] = 0
        end = pooled_first + channel * pooled_stride
        pooled[end + halved.height * halved.row : end + halved.span] = 0


@numba.njit
def _larger(value: Any, largest: Any, number: Any, tap: Any) -> Any:
    tap = where_greater(value, largest, filled(number), tap)
    return where_greater(value, largest, value, largest), tap


@numba.njit
def unpool(
    gradient: Any, taps: Any, taps_at: int, channels: int, planes: Any, halved: Any, out: Any
) -> None:
    """Pass each gradient to the pixel that was the largest.

    Args:
        gradient: `Channels` with a border, of the pool's output.
        taps: From `pool`.
        taps_at: Index of the first.
        channels: Their number.
        planes: `Planes` of `out`.
        halved: `Planes` of `gradient`.
        out: `Channels` with a border.
    """
    slopes, first, stride = gradient
    values, out_first, out_stride = out
    vectors = (halved.width + LANES - 1) // LANES
    for channel in range(channels):
        start = out_first + channel * out_stride
        for y in range(halved.height):
            at = first + channel * stride + y * halved.row
            tap = taps_at + channel * halved.span + y * halved.row
            to = start + 2 * y * planes.row
            for vector in range(vectors):
                x = vector * LANES
                left = _handed(slopes, at + x, taps, tap + x, 4)
                right = _handed(slopes, at + x, taps, tap + x, 5)
                right = right + _handed(slopes, at + x + 1, taps, tap + x + 1, 3)
                _store_pairs(values, to + 2 * x, left, right)
            to += planes.row
            values[to - 1] = 0
            below, tap_below = at + halved.row, tap + halved.row
            for vector in range(vectors):
                x = vector * LANES
                left = _handed(slopes, at + x, taps, tap + x, 7)
                left = left + _handed(slopes, below + x, taps, tap_below + x, 1)
                right = _handed(slopes, at + x, taps, tap + x, 8)
                right = right + _handed(slopes, at + x + 1, taps, tap + x + 1, 6)
                right = right + _handed(slopes, below + x, taps, tap_below + x, 2)
                right = right + _handed(slopes, below + x + 1, taps, tap_below + x + 1, 0)
                _store_pairs(values, to + 2 * x, left, right)
            values[to + planes.width] = 0
        values[start + planes.height * planes.row : start - planes.lead + planes.padded] = 0


@numba.njit
def _handed(gradient: Any, at: int, taps: Any, tap_at: int, number: int) -> Any:
    """The gradients of the pooled pixels whose largest pixel was at this tap."""
    return where_equal(load(taps, tap_at), filled(np.float32(number)), load(gradient, at))


@numba.njit
def _store_pairs(out: Any, at: int, left: Any, right: Any) -> None:
    store(out, at, alternating_low(left, right))
    store(out, at + LANES, alternating_high(left, right))
