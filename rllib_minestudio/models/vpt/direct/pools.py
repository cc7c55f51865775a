"""Max pool of 3x3 pixels around every second one, and the ReLU after it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rllib_minestudio.models.vpt.direct.blocks import TAPS
from rllib_minestudio.models.vpt.direct.lanes import (
    alternating_high,
    alternating_low,
    even,
    filled,
    odd,
    where_equal,
    where_greater,
)
from rllib_minestudio.models.vpt.simd import LANES, load, store, zeros

_ONE, _TWO = np.float32(1), np.float32(2)


@numba.njit
def pool(
    source: Any, channels: int, planes: Any, halved: Any, out: Any, taps: Any, taps_at: int
) -> None:
    """Pools a frame.

    Vectors may run on beyond the end of a row, and of ``out``: what follows there must be written
    later.

    Args:
        source: `Channels` with a border.
        channels: How many.
        planes: `Planes` of ``source``, of even height and width.
        halved: `Planes` of ``out``.
        out: `Channels`; zeros are written between pixels.
        taps: int16, bits of bfloat16: receives which of the nine pixels, row by row, was the first
            largest one, or `TAPS` where none was positive; planes as those of ``out``.
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
    """Hands each gradient to the pixel that was the largest.

    Args:
        gradient: `Channels` with a border, of the pool's output.
        taps: From `pool`.
        taps_at: Index of the first.
        channels: How many.
        planes: `Planes` of ``out``.
        halved: `Planes` of ``gradient``.
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
    """The gradients of those pooled pixels whose largest was at this tap."""
    return where_equal(load(taps, tap_at), filled(np.float32(number)), load(gradient, at))


@numba.njit
def _store_pairs(out: Any, at: int, left: Any, right: Any) -> None:
    store(out, at, alternating_low(left, right))
    store(out, at + LANES, alternating_high(left, right))
