"""The forward pass of a stack, frame by frame.

Several threads may call the kernel at the same time with the same arguments: they share the frames
by the tickets in ``words`` (`team.take_ticket`). A frame's numbers are the same whoever computes
it and whatever other frames there are.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rllib_minestudio.models.vpt.direct.convolutions import convolve
from rllib_minestudio.models.vpt.direct.norms import moments, normalise
from rllib_minestudio.models.vpt.direct.planes import (
    bare,
    bordered,
    planes_of,
    read_dense,
    read_image,
    write_dense,
)
from rllib_minestudio.models.vpt.direct.pools import pool
from rllib_minestudio.models.vpt.direct.stacks import (
    BLOCKS,
    NORM_OF_POOL,
    NORMS,
    bias_at,
    filters_at,
    kept,
    kept_size,
    norm_at,
    taps_size,
)
from rllib_minestudio.models.vpt.simd import LANES, load, store
from rllib_minestudio.models.vpt.team import take_ticket


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
    """Computes a stack's output.

    Args:
        words: Of the call.
        image: [frames * height * width * channels_in] uint8, which is not normalised; or empty.
        x: [frames * channels_in * height * width] float32, unless there is an image.
        parameters: float32, in the order of `stacks.count_parameters`, then the norms' epsilon.
        out: [frames * channels * height / 2 * width / 2] float32.
        kept_values: [frames * kept_size] float32; or empty where no gradients follow.
        taps: [frames * taps_size] int16; or empty likewise.
        statistics: [frames * NORMS * 2] float32; or empty likewise.
        sizes: `stacks.Sizes`.
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
    """Adds planes to others."""
    values, first, stride = source
    sums, out_first, out_stride = out
    for channel in range(channels):
        at, to = first + channel * stride, out_first + channel * out_stride
        for pixel in range(0, planes.span, LANES):
            store(sums, to + pixel, load(sums, to + pixel) + load(values, at + pixel))


@numba.njit
def _note(facts: Any, norm: int, found: Any) -> Any:
    """Keeps what `moments` found of a norm's input."""
    facts[2 * norm], facts[2 * norm + 1] = found
    return found
