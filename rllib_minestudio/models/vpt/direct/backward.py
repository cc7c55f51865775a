"""The backward pass of a stack, frame by frame; gradients of parameters are sums over frames.

Frames are divided into shares whose number depends on nothing but that of the frames. A share's
sums are computed by one thread, in the frames' order, so that gradients do not depend on how many
threads there are.
"""

from __future__ import annotations

from typing import Any

import numba

from rllib_minestudio.models.vpt.direct.blocks import TAPS
from rllib_minestudio.models.vpt.direct.convolutions import (
    add_over_lanes,
    add_over_pixels,
    convolve,
    correlate,
)
from rllib_minestudio.models.vpt.direct.forward import add
from rllib_minestudio.models.vpt.direct.lanes import where_greater
from rllib_minestudio.models.vpt.direct.norms import (
    add_input_gradient,
    gated_input_gradient,
    norm_slopes,
    normalise,
)
from rllib_minestudio.models.vpt.direct.planes import (
    planes_of,
    read_dense,
    read_image,
    write_dense,
)
from rllib_minestudio.models.vpt.direct.pools import unpool
from rllib_minestudio.models.vpt.direct.stacks import (
    BLOCKS,
    CONVOLUTIONS,
    NORM_OF_POOL,
    NORMS,
    bias_at,
    count_parameters,
    filters_at,
    kept,
    norm_at,
    taps_size,
)
from rllib_minestudio.models.vpt.direct.work import make_work
from rllib_minestudio.models.vpt.simd import LANES, load, store, zeros
from rllib_minestudio.models.vpt.team import take_ticket


@numba.njit
def backward(
    words: Any,
    image: Any,
    x: Any,
    parameters: Any,
    turned: Any,
    kept_values: Any,
    taps: Any,
    statistics: Any,
    dy: Any,
    dx: Any,
    gradients: Any,
    sizes: Any,
) -> None:
    """Computes a stack's gradients.

    Args:
        words: Of the call.
        image: As `forward` had it.
        x: Likewise.
        parameters: Likewise.
        turned: As ``parameters``, with filters that lead from gradients of outputs to gradients of
            inputs.
        kept_values: From `forward`.
        taps: Likewise.
        statistics: Likewise.
        dy: [frames * channels * height / 2 * width / 2] float32, gradient of the output.
        dx: As ``x``, receives its gradient; or empty.
        gradients: [shares * count_parameters] float32, receives each share's sums.
        sizes: `stacks.Sizes`.
    """
    frames, height, width, channels_in, channels = sizes
    whole, halved = planes_of(height, width), planes_of(height // 2, width // 2)
    count = count_parameters(channels_in, channels)
    shares = gradients.size // count
    work = make_work(channels_in, channels, whole, halved)
    share = take_ticket(words)
    while share < shares:
        found = gradients[share * count : (share + 1) * count]
        found[:] = 0
        work.sums[:] = 0
        for frame in range(frames * share // shares, frames * (share + 1) // shares):
            facts = statistics[2 * NORMS * frame : 2 * NORMS * (frame + 1)]
            read_dense(dy, frame, work.slope, channels, halved)
            _blocks(frame, parameters, turned, kept_values, facts, work, found, sizes, halved)
            _pool(frame, parameters, kept_values, taps, facts, work, found, sizes, whole, halved)
            if image.size > 0:
                read_image(image, frame, work.read, whole)
                correlate(work.read, channels_in, whole, work.whole_slope, channels, work.sums, 0)
                bias = bias_at(channels_in, channels)
                add_over_pixels(work.whole_slope, channels, whole, found, bias)
            else:
                _first_convolution(
                    *(frame, x, parameters, turned, facts, dx),
                    *(work, found, channels_in, channels, whole),
                )
        _collect(work.sums, found, channels_in, channels)
        share = take_ticket(words)


@numba.njit
def _pool(
    frame: int,
    parameters: Any,
    kept_values: Any,
    taps: Any,
    facts: Any,
    work: Any,
    found: Any,
    sizes: Any,
    whole: Any,
    halved: Any,
) -> None:
    """Runs back through the norm after the pool, and the pool; fills ``work.whole_slope``."""
    _, _, _, channels_in, channels = sizes
    pooled = kept(kept_values, frame, 0, sizes)
    _norm(
        *(pooled, work.slope, channels, halved, NORM_OF_POOL),
        *(facts, parameters, found, work.slopes, channels_in, channels),
    )
    gated_input_gradient(pooled, work.slope, channels, halved, work.slopes, work.pooled_slope)
    at = frame * taps_size(sizes)
    unpool(work.pooled_slope, taps, at, channels, whole, halved, work.whole_slope)


@numba.njit
def _first_convolution(
    frame: int,
    x: Any,
    parameters: Any,
    turned: Any,
    facts: Any,
    dx: Any,
    work: Any,
    found: Any,
    channels_in: int,
    channels: int,
    planes: Any,
) -> None:
    """Runs back through the first convolution and its norm, to ``dx`` if that is asked for."""
    read_dense(x, frame, work.raw, channels_in, planes)
    statistics, at = (facts[0], facts[1]), norm_at(0, channels_in, channels)
    normalise(work.raw, channels_in, planes, statistics, parameters, at, work.read)
    correlate(work.read, channels_in, planes, work.whole_slope, channels, work.sums, 0)
    convolve(
        *(work.whole_slope, channels, planes, turned, filters_at(0, channels_in, channels)),
        *(work.none, 0, False, work.whole_back, channels_in),
    )
    _norm(
        *(work.raw, work.whole_back, channels_in, planes, 0),
        *(facts, parameters, found, work.slopes, channels_in, channels),
    )
    if dx.size > 0:
        _clear(work.read, channels_in, planes)
        add_input_gradient(work.raw, work.whole_back, channels_in, planes, work.slopes, work.read)
        write_dense(work.read, dx, frame, channels_in, planes)


@numba.njit
def _blocks(
    frame: int,
    parameters: Any,
    turned: Any,
    kept_values: Any,
    facts: Any,
    work: Any,
    found: Any,
    sizes: Any,
    planes: Any,
) -> None:
    """Runs back through the residual blocks; ``work.slope`` becomes the gradient before them."""
    _, _, _, channels_in, channels = sizes
    pooled = kept(kept_values, frame, 0, sizes)
    of_pool = facts[2 * NORM_OF_POOL], facts[2 * NORM_OF_POOL + 1]
    at = norm_at(NORM_OF_POOL, channels_in, channels)
    normalise(pooled, channels, planes, of_pool, parameters, at, work.inputs[0])
    for block in range(1, BLOCKS):
        _copy(work.inputs[block - 1], work.inputs[block], channels, planes)
        add(kept(kept_values, frame, 2 * block, sizes), work.inputs[block], channels, planes)
    for block in range(BLOCKS - 1, -1, -1):
        middle = kept(kept_values, frame, 2 * block + 1, sizes)
        after = kept(kept_values, frame, 2 * block + 2, sizes)
        _gate(after, work.slope, channels, planes, work.gated)
        for number in (2 * block + 2, 2 * block + 1):
            before = middle if number == 2 * block + 2 else work.inputs[block]
            statistics = facts[2 * number], facts[2 * number + 1]
            at = norm_at(number, channels_in, channels)
            normalise(before, channels, planes, statistics, parameters, at, work.normal)
            at = _sums_at(number, channels_in, channels)
            correlate(work.normal, channels, planes, work.gated, channels, work.sums, at)
            at = filters_at(number, channels_in, channels)
            convolve(
                *(work.gated, channels, planes, turned, at),
                *(work.none, 0, False, work.back, channels),
            )
            _norm(
                *(before, work.back, channels, planes, number),
                *(facts, parameters, found, work.slopes, channels_in, channels),
            )
            if number == 2 * block + 2:
                gated_input_gradient(middle, work.back, channels, planes, work.slopes, work.gated)
            else:
                add_input_gradient(before, work.back, channels, planes, work.slopes, work.slope)


@numba.njit
def _norm(
    source: Any,
    gradient: Any,
    channels: int,
    planes: Any,
    number: int,
    facts: Any,
    parameters: Any,
    found: Any,
    slopes: Any,
    channels_in: int,
    channels_out: int,
) -> None:
    """`norm_slopes` of one of the stack's norms."""
    at = norm_at(number, channels_in, channels_out)
    statistics = facts[2 * number], facts[2 * number + 1]
    norm_slopes(
        *(source, gradient, channels, planes, statistics, parameters, at),
        *(found, at, slopes),
    )


@numba.njit
def _sums_at(convolution: int, channels_in: int, channels: int) -> int:
    """Index of a convolution's gradients in `Work.sums`."""
    if convolution == 0:
        return 0
    return (channels_in + (convolution - 1) * channels) * channels * TAPS * LANES


@numba.njit
def _collect(sums: Any, found: Any, channels_in: int, channels: int) -> None:
    """Adds up the lanes of all filters' gradients."""
    for number in range(CONVOLUTIONS):
        count = (channels_in if number == 0 else channels) * channels * TAPS
        start = _sums_at(number, channels_in, channels)
        to = filters_at(number, channels_in, channels)
        add_over_lanes(sums, start, count, found, to)


@numba.njit
def _gate(source: Any, gradient: Any, channels: int, planes: Any, out: Any) -> None:
    """Hands gradients on where a ReLU's output is positive, and 0 elsewhere."""
    values, first, stride = source
    given, given_first, given_stride = gradient
    gated, out_first, out_stride = out
    for channel in range(channels):
        at, given_at = first + channel * stride, given_first + channel * given_stride
        to = out_first + channel * out_stride
        for pixel in range(0, planes.span, LANES):
            slope = load(given, given_at + pixel)
            kept_slope = where_greater(load(values, at + pixel), zeros(), slope, zeros())
            store(gated, to + pixel, kept_slope)


@numba.njit
def _copy(source: Any, out: Any, channels: int, planes: Any) -> None:
    """Copies planes without a border."""
    out.values[: channels * planes.span] = source.values[: channels * planes.span]


@numba.njit
def _clear(out: Any, channels: int, planes: Any) -> None:
    """Sets planes with a border to zero."""
    out.values[: channels * planes.padded] = 0
