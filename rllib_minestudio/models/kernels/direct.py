"""Stacks of few channels, computed by their definition, in numba and without torch.

A convolution of 8 to 16 channels is too small for the libraries: moving its numbers between layers
takes longer than multiplying them. Here a thread takes one frame through a whole stack. Norms,
ReLUs, residuals and the pool find the frame's numbers in the cache; the sums of products remain,
which run near a core's peak.

A stack is `engines.ConvolutionStack`: [norm] -> convolution -> max pool and ReLU -> norm ->
residual blocks, each norm -> convolution -> ReLU twice. Convolution 0 precedes the pool, and the
others are numbered on from it. Norm i precedes convolution i; norm `NORM_OF_POOL` follows the pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rllib_minestudio.models.kernels.compilation import LANES, load, store, take_ticket, zeros
from rllib_minestudio.models.kernels.direct_blocks import TAPS, where_greater
from rllib_minestudio.models.kernels.direct_layers import (
    Channels,
    add_input_gradient,
    add_over_lanes,
    add_over_pixels,
    bare,
    bordered,
    convolve,
    correlate,
    gated_input_gradient,
    moments,
    norm_slopes,
    normalise,
    planes_of,
    pool,
    read_dense,
    read_image,
    span_of,
    unpool,
    write_dense,
)

# ---------------------------------------------------------------------------- sizes
# Shared by forward and backward passes: sizes, and where numbers are kept.

BLOCKS = 2
"""Residual blocks."""

CONVOLUTIONS = 1 + 2 * BLOCKS
NORM_OF_POOL = CONVOLUTIONS
NORMS = CONVOLUTIONS + 1


class StackShape(NamedTuple):
    """Shape of a stack's input, and its channels."""

    frames: int
    height: int
    width: int
    channels_in: int
    channels: int


@numba.njit
def count_parameters(channels_in: int, channels: int) -> int:
    """Return the number of a stack's parameters.

    Their order is: filters, a bias per channel (of convolution 0; possibly zeros), norm 0, norm
    `NORM_OF_POOL`, then for each further convolution its norm and its filters.
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
    """The number of values a frame's forward pass keeps for the backward pass; see `kept`."""
    _, height, width, _, channels = sizes
    # A pool may write one vector too many.
    return CONVOLUTIONS * channels * span_of(height // 2, width // 2) + LANES


@numba.njit
def kept(values: Any, frame: int, convolution: int, sizes: Any) -> Any:
    """Return the `Channels` of a convolution's result; for convolution 0, the pooled one."""
    _, height, width, _, channels = sizes
    span = span_of(height // 2, width // 2)
    return Channels(values, frame * kept_size(sizes) + convolution * channels * span, span)


@numba.njit
def taps_size(sizes: Any) -> int:
    """The number of values a frame's pool keeps for the backward pass."""
    _, height, width, _, channels = sizes
    # Pools may write one vector too many, and their gradients read one row further.
    return channels * span_of(height // 2, width // 2) + width // 2 + 1 + 2 * LANES


# ---------------------------------------------------------------------------- forward
# Several threads may call the kernel at the same time with the same arguments: they share the
# frames by the tickets in `words` (`take_ticket`). A frame's numbers depend neither on the thread
# that computes it nor on other frames.


@numba.njit
def forward(
    words: Any,
    image: Any,
    x: Any,
    parameters: Any,
    out: Any,
    kept_values: Any,
    taps: Any,
    statistics: Any,
    sizes: Any,
) -> None:
    """Compute a stack's output.

    Args:
        words: The call's words.
        image: [frames * height * width * channels_in] uint8, which is not normalised; or empty.
        x: [frames * channels_in * height * width] float32, unless there is an image.
        parameters: float32, in the order of `count_parameters`, then the norms' epsilon.
        out: [frames * channels * height / 2 * width / 2] float32.
        kept_values: [frames * kept_size] float32; or empty where no gradients follow.
        taps: [frames * taps_size] int16; or empty likewise.
        statistics: [frames * NORMS * 2] float32; or empty likewise.
        sizes: `StackShape`.
    """
    frames, height, width, channels_in, channels = sizes
    whole, halved = planes_of(height, width), planes_of(height // 2, width // 2)
    keeps = kept_values.size > 0
    if not keeps:
        kept_values = np.empty(kept_size(sizes), np.float32)
        taps = np.empty(taps_size(sizes), np.int16)
        statistics = np.empty(2 * NORMS, np.float32)
    raw, read = bare(channels_in, whole), bordered(channels_in, whole)
    convolved, normal = bordered(channels, whole), bordered(channels, halved)
    added, none = bare(channels, halved), np.zeros(channels, np.float32)
    epsilon = parameters[parameters.size - 1]
    frame = take_ticket(words)
    while frame < frames:
        slot = frame if keeps else 0
        facts = statistics[2 * NORMS * slot : 2 * NORMS * (slot + 1)]
        if image.size > 0:
            read_image(image, frame, read, whole)
        else:
            read_dense(x, frame, raw, channels_in, whole)
            of_input = _note(facts, 0, moments(raw, channels_in, whole, epsilon))
            at = norm_at(0, channels_in, channels)
            normalise(raw, channels_in, whole, of_input, parameters, at, read)
        at = filters_at(0, channels_in, channels)
        bias = bias_at(channels_in, channels)
        convolve(
            *(read, channels_in, whole, parameters, at),
            *(parameters, bias, False, convolved, channels),
        )
        pooled = kept(kept_values, slot, 0, sizes)
        pool(convolved, channels, whole, halved, pooled, taps, slot * taps_size(sizes))
        of_pooled = _note(facts, NORM_OF_POOL, moments(pooled, channels, halved, epsilon))
        at = norm_at(NORM_OF_POOL, channels_in, channels)
        normalise(pooled, channels, halved, of_pooled, parameters, at, added)
        for block in range(BLOCKS):
            before = added
            for number in range(2 * block + 1, 2 * block + 3):
                found = _note(facts, number, moments(before, channels, halved, epsilon))
                at = norm_at(number, channels_in, channels)
                normalise(before, channels, halved, found, parameters, at, normal)
                after = kept(kept_values, slot, number, sizes)
                at = filters_at(number, channels_in, channels)
                convolve(
                    *(normal, channels, halved, parameters, at),
                    *(none, 0, True, after, channels),
                )
                before = after
            add(before, added, channels, halved)
        write_dense(added, out, frame, channels, halved)
        frame = take_ticket(words)


@numba.njit
def add(source: Any, out: Any, channels: int, planes: Any) -> None:
    """Add planes of `source` to those of `out`."""
    values, first, stride = source
    sums, out_first, out_stride = out
    for channel in range(channels):
        at, to = first + channel * stride, out_first + channel * out_stride
        for pixel in range(0, planes.span, LANES):
            store(sums, to + pixel, load(sums, to + pixel) + load(values, at + pixel))


@numba.njit
def _note(facts: Any, norm: int, found: Any) -> Any:
    """Store the moments of a norm's input, and return them."""
    facts[2 * norm], facts[2 * norm + 1] = found
    return found


# ---------------------------------------------------------------------------- backward
# Gradients of parameters are sums over frames. Frames are divided into shares, whose number depends
# only on the number of frames. One thread computes a share's sums, in the frames' order, so that
# gradients do not depend on the number of threads.


class Work(NamedTuple):
    """Buffers for the numbers of one frame, of the pooled size unless stated otherwise."""

    slope: Any
    """`Channels` of the gradient that flows back through the residual blocks."""

    inputs: Any
    """[BLOCKS] `Channels`: the input of each block."""

    normal: Any
    """`Channels` with a border of a convolution's normalised input."""

    gated: Any
    """`Channels` with a border of the gradient of a convolution's output."""

    back: Any
    """`Channels` of the gradient of a norm's output."""

    slopes: Any
    """[channels + 2], from `norm_slopes`."""

    none: Any
    """[channels] zeros, in place of a bias."""

    sums: Any
    """Gradients of all filters over the share so far, lane by lane."""

    pooled_slope: Any
    """`Channels` with a border of the gradient of the pool's output."""

    whole_slope: Any
    """`Channels` with a border of the gradient of the pool's input, of the whole size."""

    raw: Any
    """`Channels` of the stack's input, of the whole size."""

    read: Any
    """`Channels` with a border of what the first convolution reads, of the whole size."""

    whole_back: Any
    """`Channels` of the gradient of what the first convolution reads, of the whole size."""


@numba.njit
def make_work(channels_in: int, channels: int, whole: Any, halved: Any) -> Any:
    """Allocate the buffers of one thread."""
    widest = max(channels, channels_in)
    filters = (channels_in + (CONVOLUTIONS - 1) * channels) * channels
    return Work(
        bare(channels, halved),
        (bare(channels, halved), bare(channels, halved)),
        bordered(channels, halved),
        bordered(channels, halved),
        bare(channels, halved),
        np.empty(widest + 2, np.float32),
        np.zeros(widest, np.float32),
        np.empty(filters * TAPS * LANES, np.float32),
        bordered(channels, halved),
        bordered(channels, whole),
        bare(channels_in, whole),
        bordered(channels_in, whole),
        bare(channels_in, whole),
    )


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
    """Compute a stack's gradients.

    Args:
        words: The call's words.
        image: As in `forward`.
        x: Likewise.
        parameters: Likewise.
        turned: As `parameters`, with filters that map gradients of outputs to gradients of inputs.
        kept_values: From `forward`.
        taps: Likewise.
        statistics: Likewise.
        dy: [frames * channels * height / 2 * width / 2] float32, gradient of the output.
        dx: As `x`, receives its gradient; or empty.
        gradients: [shares * count_parameters] float32, receives each share's sums.
        sizes: `StackShape`.
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
    """Propagate back through the norm after the pool and the pool, to `work.whole_slope`."""
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
    """Propagate back through the first convolution and its norm, to `dx` if that is not empty."""
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
    """Propagate `work.slope` back through the residual blocks, in place."""
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
    """Call `norm_slopes` for one of the stack's norms."""
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
    """Add up the lanes of all filters' gradients."""
    for number in range(CONVOLUTIONS):
        count = (channels_in if number == 0 else channels) * channels * TAPS
        start = _sums_at(number, channels_in, channels)
        to = filters_at(number, channels_in, channels)
        add_over_lanes(sums, start, count, found, to)


@numba.njit
def _gate(source: Any, gradient: Any, channels: int, planes: Any, out: Any) -> None:
    """Pass gradients on where a ReLU's output is positive, and 0 elsewhere."""
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
    """Copy planes without a border."""
    out.values[: channels * planes.span] = source.values[: channels * planes.span]


@numba.njit
def _clear(out: Any, channels: int, planes: Any) -> None:
    """Set planes with a border to zero."""
    out.values[: channels * planes.padded] = 0
