"""How a frame lies in memory while its convolutions are computed: one plane per channel.

A plane has the pixels row by row, and a zero after each row. Between zeros enough for a row and a
pixel, before and after, that is all the border that a 3x3 filter reaches into: what lies left of a
row is the zero after the one above it. For 2 x 3 pixels p::

    0 0 0 0 0 | p p p 0 p p p 0 ... | 0 0 0 0 0 ...
    lead      | span                | tail

A filter's taps are then nine constant distances whatever the width is, and vectors of pixels run
from one row into the next. What is computed for the zeros after rows is masked.

Planes without lead and tail are used where only pixels of the same place meet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rllib_minestudio.models.vpt.direct.blocks import BLOCK
from rllib_minestudio.models.vpt.direct.lanes import COLOURS, load_colours
from rllib_minestudio.models.vpt.simd import LANES, load, store


class Planes(NamedTuple):
    """Where pixels are in a plane of height x width."""

    height: int
    width: int
    row: int
    """From a pixel to the one below."""

    span: int
    """From the first pixel to the end of the last row, in whole blocks."""

    vectors: int
    """Likewise, in whole vectors."""

    lead: int
    """Zeros before the first pixel, in planes that have a border."""

    padded: int
    """Length of a plane that has a border."""

    mask: Any
    """[span] int32: -1 for pixels, 0 for what lies between and after them."""


class Channels(NamedTuple):
    """Planes of a frame in an array."""

    values: Any
    first: int
    """Index of the first pixel of the first channel."""

    stride: int
    """From a channel to the next."""


@numba.njit
def _rounded_up(number: int, unit: int) -> int:
    return (number + unit - 1) // unit * unit


@numba.njit
def span_of(height: int, width: int) -> int:
    """Length of a plane without a border."""
    return _rounded_up(height * (width + 1), BLOCK)


@numba.njit
def planes_of(height: int, width: int) -> Any:
    """Returns the `Planes` of a size."""
    row = width + 1
    span = span_of(height, width)
    lead = _rounded_up(row + 1, LANES)
    # Pools read pairs of vectors from a pixel on.
    tail = _rounded_up(row + 1 + 2 * LANES, LANES)
    mask = np.zeros(span, np.int32)
    for y in range(height):
        mask[y * row : y * row + width] = -1
    vectors = _rounded_up(height * row, LANES) // LANES
    return Planes(height, width, row, span, vectors, lead, lead + span + tail, mask)


@numba.njit
def bordered(channels: int, planes: Any) -> Any:
    """Allocates planes with a border, all of zeros."""
    return Channels(np.zeros(channels * planes.padded, np.float32), planes.lead, planes.padded)


@numba.njit
def bare(channels: int, planes: Any) -> Any:
    """Allocates planes without a border, all of zeros."""
    return Channels(np.zeros(channels * planes.span, np.float32), 0, planes.span)


# ---------------------------------------------------------------------------- frames
# Arrays are taken out of tuples before the loops: numba counts references where that is done.


@numba.njit
def read_image(image: Any, frame: int, out: Any, planes: Any) -> None:
    """Spreads a frame of [height, width, COLOURS] bytes over planes, as numbers from 0 to 1."""
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
    """Copies a frame of [channels, height, width] float32 into planes."""
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
    """Copies planes into a frame of [channels, height, width] float32."""
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
