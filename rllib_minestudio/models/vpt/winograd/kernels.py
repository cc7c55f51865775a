"""Convolutions of channels-last images, and the gradients of their filters, in numba.

Several threads may call a kernel at the same time with the same arguments: they share the work by
the tickets in ``words`` (`team.take_ticket`). Each tile's numbers are the same whoever computes it.
Kernels hold no lock and keep nothing between calls.

Images are one-dimensional: float32, or int16 with the bits of bfloat16.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rllib_minestudio.models.vpt.simd import (
    LANES,
    load,
    maximum,
    moments,
    store,
    zeros,
)
from rllib_minestudio.models.vpt.team import take_ticket
from rllib_minestudio.models.vpt.winograd.product import PANEL, ROWS, multiply
from rllib_minestudio.models.vpt.winograd.tiles import (
    PATCH,
    TILE,
    normalised_square,
    square,
    transform_gradient,
    transform_input,
    transform_output,
)

POINTS = PATCH**2

BLOCK = 2 * ROWS
"""Tiles that are transformed together: their values stay in the L2 cache."""

_SKEW = LANES
"""Keeps values of different points off addresses that share a place in the L1 cache."""


class Sizes(NamedTuple):
    """Shape of a convolution; the numbers of channels are multiples of `product.PANEL`."""

    frames: int
    height: int
    width: int
    channels_in: int
    channels_out: int


@numba.njit
def count_tiles(sizes: Any) -> int:
    """How many tiles cover the output; those at the edges may reach beyond it."""
    frames, height, width, _, _ = sizes
    return frames * ((height + TILE - 1) // TILE) * ((width + TILE - 1) // TILE)


@numba.njit
def convolve(
    words: Any,
    image: Any,
    affine: Any,
    filters: Any,
    skip: Any,
    out: Any,
    sizes: Any,
    relu: bool,
) -> None:
    """Computes a 3x3 convolution of the same size, with zeros around the image.

    Args:
        words: Of the call.
        image: [frames * height * width * channels_in].
        affine: [frames * 2 * channels_in] float32, from `normalise`: what each channel of a frame
            is multiplied by, and what is added to it, before it is convolved; or empty.
        filters: [POINTS * channels_out / PANEL * channels_in * PANEL] float32: values at the
            points, in panels of output channels.
        skip: Shape and type of ``out``, added to the result in the end; or empty.
        out: [frames * height * width * channels_out], of the image's type.
        sizes: `Sizes`.
        relu: Whether to replace negative results by 0, before ``skip`` is added.
    """
    _, height, width, channels_in, channels_out = sizes
    tiles = count_tiles(sizes)
    point_in, point_out = BLOCK * channels_in + _SKEW, BLOCK * channels_out + _SKEW
    values = np.empty(POINTS * point_in, np.float32)
    products = np.empty(POINTS * point_out, np.float32)
    half = np.empty(POINTS * LANES, np.float32)
    padded = np.empty(POINTS * channels_in, image.dtype)
    normal = np.empty(POINTS * channels_in, np.float32)
    shape_in, shape_out = (height, width, channels_in), (height, width, channels_out)
    block = BLOCK if tiles >= 4 * BLOCK else ROWS  # so that there is something for every thread
    start = take_ticket(words) * block
    while start < tiles:
        count = min(block, tiles - start)
        for tile in range(count):
            values_at = tile * channels_in, point_in
            if affine.size > 0:
                patch = normalised_square(image, shape_in, start + tile, affine, normal)
                transform_input(patch, channels_in, half, values, values_at)
            else:
                patch = square(image, shape_in, start + tile, 1, padded)
                transform_input(patch, channels_in, half, values, values_at)
        for point in range(POINTS):
            for panel in range(0, channels_out, PANEL):
                filter_at = ((point * channels_out + panel) * channels_in, PANEL)
                # The last rows may belong to no tile; what they hold is never looked at.
                for tile in range(0, count, ROWS):
                    multiply(
                        values,
                        (point * point_in + tile * channels_in, channels_in, 1),
                        filters,
                        filter_at,
                        products,
                        (point * point_out + tile * channels_out + panel, channels_out),
                        channels_in,
                        False,
                    )
        for tile in range(count):
            products_at = tile * channels_out, point_out
            transform_output(products, products_at, half, out, skip, shape_out, start + tile, relu)
        start = take_ticket(words) * block


@numba.njit
def normalise(words: Any, image: Any, norm: Any, affine: Any) -> None:
    """Finds the scalings and shifts that a group norm of one group is, for each frame.

    Wu & He 2018, arXiv:1803.08494, equation 1, with all of a frame's numbers in one group.

    Args:
        words: Of the call.
        image: [frames * height * width * channels].
        norm: [2 * channels + 1] float32: weights, biases, and what is added to the variance.
        affine: [frames * 2 * channels] float32, receives them: a frame's scalings, its shifts.
    """
    channels = norm.size // 2
    frames = affine.size // (2 * channels)
    size = image.size // frames
    frame = take_ticket(words)
    while frame < frames:
        mean, variance = moments(image, frame * size, size)
        scale = 1.0 / np.sqrt(variance + norm[2 * channels])
        first = 2 * frame * channels
        for channel in range(channels):
            factor = scale * norm[channel]
            affine[first + channel] = factor
            affine[first + channels + channel] = norm[channels + channel] - mean * factor
        frame = take_ticket(words)


@numba.njit
def pool(words: Any, image: Any, out: Any, shape: Any) -> None:
    """Takes the largest of 3x3 pixels around every second one, or 0 if all are negative.

    Args:
        words: Of the call.
        image: [frames * height * width * channels].
        out: [frames * rows * columns * channels], of the image's type, with half as many rows and
            columns, rounded up.
        shape: (frames, height, width, channels).
    """
    frames, height, width, channels = shape
    rows, columns = (height + 1) // 2, (width + 1) // 2
    line = take_ticket(words)
    while line < frames * rows:
        frame, row = divmod(line, rows)
        top, bottom = max(2 * row - 1, 0), min(2 * row + 2, height)
        for column in range(columns):
            left, right = max(2 * column - 1, 0), min(2 * column + 2, width)
            for channel in range(0, channels, LANES):
                largest = zeros()
                for y in range(top, bottom):
                    for x in range(left, right):
                        pixel = ((frame * height + y) * width + x) * channels + channel
                        largest = maximum(largest, load(image, pixel))
                store(out, (line * columns + column) * channels + channel, largest)
        line = take_ticket(words)


@numba.njit
def filter_gradient(words: Any, image: Any, gradient: Any, out: Any, sizes: Any) -> None:
    """Computes what the tiles contribute to the gradient of the filters.

    Args:
        words: Of the call.
        image: [frames * height * width * channels_in].
        gradient: [frames * height * width * channels_out], of the image's type: of the output.
        out: [shares * POINTS * channels_in * channels_out] float32: receives gradients of the
            filters' values at the points; their sum over the shares is the whole one. Each share
            has its own tiles, whoever computes it; there are no more shares than blocks.
        sizes: `Sizes`.
    """
    _, height, width, channels_in, channels_out = sizes
    tiles = count_tiles(sizes)
    blocks = (tiles + BLOCK - 1) // BLOCK
    share_size = POINTS * channels_in * channels_out
    shares = out.size // share_size
    shape_in, shape_out = (height, width, channels_in), (height, width, channels_out)
    point_in, point_out = BLOCK * channels_in + _SKEW, BLOCK * channels_out + _SKEW
    values = np.empty(POINTS * point_in, np.float32)
    gradients = np.empty(POINTS * point_out, np.float32)
    half = np.empty(POINTS * LANES, np.float32)
    padded = np.empty(POINTS * channels_in, image.dtype)
    padded_gradient = np.empty(TILE**2 * channels_out, image.dtype)
    share = take_ticket(words)
    while share < shares:
        first = blocks * share // shares * BLOCK
        last = min(blocks * (share + 1) // shares * BLOCK, tiles)
        for start in range(first, last, BLOCK):
            count = min(BLOCK, last - start)
            for tile in range(count):
                patch = square(image, shape_in, start + tile, 1, padded)
                transform_input(patch, channels_in, half, values, (tile * channels_in, point_in))
                patch = square(gradient, shape_out, start + tile, 0, padded_gradient)
                gradients_at = tile * channels_out, point_out
                transform_gradient(patch, channels_out, half, gradients, gradients_at)
            for point in range(POINTS):
                for panel in range(0, channels_out, PANEL):
                    for channel in range(0, channels_in, ROWS):
                        row = (point * channels_in + channel) * channels_out
                        multiply(
                            values,
                            (point * point_in + channel, 1, channels_in),
                            gradients,
                            (point * point_out + panel, channels_out),
                            out,
                            (share * share_size + row + panel, channels_out),
                            count,
                            start > first,
                        )
        share = take_ticket(words)
