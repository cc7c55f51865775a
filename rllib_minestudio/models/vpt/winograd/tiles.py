"""What the algorithm does with one tile: from pixels to values at the points, and back.

The points along an axis are 0, ±5/8, ±3/2 and infinity. Lavin & Gray take 0, ±1, ±2 and infinity;
powers nearer to 1 halve the rounding errors (Barabasz et al. 2020, arXiv:1803.10986, search for
good points likewise).

Images are [frames, height, width, channels], flattened: float32, or int16 with the bits of
bfloat16. Values at the points are float32, [point, tile, channel].
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.models.vpt.simd import LANES, load, positive_part, store, zeros

TILE = 4
"""Pixels of an output tile along an axis."""

PATCH = 6
"""Input pixels that a tile depends on along an axis; as many as there are points."""

# ---------------------------------------------------------------------------- points

_A, _B = 5 / 8, 3 / 2


def filter_matrix() -> NDArray[np.floating[Any]]:
    """Returns [36, 9]: the values at the points of a 3x3 filter, both row by row."""
    values = [[1 / (_A * _B) ** 2, 0, 0]]
    for point, other in ((_A, _B), (-_A, _B), (_B, _A), (-_B, _A)):
        scale = 2 * point**2 * (point**2 - other**2)
        values.append([1 / scale, point / scale, point**2 / scale])
    values.append([0, 0, 1])
    return np.kron(values, values)


# Exact in float32.
_A1, _A2, _A3 = (np.float32(_A**power) for power in (1, 2, 3))
_B1, _B2, _B3 = (np.float32(_B**power) for power in (1, 2, 3))
_A1_B2, _A2_B1, _A2_B2 = np.float32(_A * _B**2), np.float32(_A**2 * _B), np.float32((_A * _B) ** 2)
_A2_PLUS_B2 = np.float32(_A**2 + _B**2)


@numba.njit
def _at_points(d0: Any, d1: Any, d2: Any, d3: Any, d4: Any, d5: Any) -> Any:
    """B^T d along one axis."""
    even_a, odd_a = d4 - _B2 * d2, _A1 * d3 - _A1_B2 * d1
    even_b, odd_b = d4 - _A2 * d2, _B1 * d3 - _A2_B1 * d1
    return (
        _A2_B2 * d0 - _A2_PLUS_B2 * d2 + d4,
        even_a + odd_a,
        even_a - odd_a,
        even_b + odd_b,
        even_b - odd_b,
        _A2_B2 * d1 - _A2_PLUS_B2 * d3 + d5,
    )


@numba.njit
def _from_points(m0: Any, m1: Any, m2: Any, m3: Any, m4: Any, m5: Any) -> Any:
    """A^T m along one axis."""
    sum_a, difference_a = m1 + m2, m1 - m2
    sum_b, difference_b = m3 + m4, m3 - m4
    return (
        m0 + sum_a + sum_b,
        _A1 * difference_a + _B1 * difference_b,
        _A2 * sum_a + _B2 * sum_b,
        _A3 * difference_a + _B3 * difference_b + m5,
    )


@numba.njit
def _gradient_at_points(y0: Any, y1: Any, y2: Any, y3: Any) -> Any:
    """A y along one axis."""
    even_a, odd_a = y0 + _A2 * y2, _A1 * y1 + _A3 * y3
    even_b, odd_b = y0 + _B2 * y2, _B1 * y1 + _B3 * y3
    return y0, even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, y3


# ---------------------------------------------------------------------------- tiles


@numba.njit
def _load4(array: Any, first: int, stride: int) -> Any:
    return (
        load(array, first),
        load(array, first + stride),
        load(array, first + 2 * stride),
        load(array, first + 3 * stride),
    )


@numba.njit
def _load6(array: Any, first: int, stride: int) -> Any:
    four = _load4(array, first, stride)
    return (*four, load(array, first + 4 * stride), load(array, first + 5 * stride))


@numba.njit
def _store6(array: Any, first: int, stride: int, values: Any) -> None:
    store(array, first, values[0])
    store(array, first + stride, values[1])
    store(array, first + 2 * stride, values[2])
    store(array, first + 3 * stride, values[3])
    store(array, first + 4 * stride, values[4])
    store(array, first + 5 * stride, values[5])


@numba.njit
def corner(height: int, width: int, tile: int) -> Any:
    """Frame of a tile, and its first row and column."""
    across = (width + TILE - 1) // TILE
    down = (height + TILE - 1) // TILE
    frame, place = divmod(tile, down * across)
    return frame, place // across * TILE, place % across * TILE


@numba.njit
def square(image: Any, shape: Any, tile: int, margin: int, padded: Any) -> Any:
    """Finds the pixels of a tile and of a margin around it.

    Args:
        image: [frames * height * width * channels].
        shape: (height, width, channels).
        tile: Which.
        margin: Pixels on each side.
        padded: Room for the square, which is copied there if a part lies outside of the image.

    Returns:
        The array that holds the square, its index there, and its stride along rows.
    """
    height, width, channels = shape
    frame, row, column = corner(height, width, tile)
    row, column, size = row - margin, column - margin, TILE + 2 * margin
    if row >= 0 and column >= 0 and row + size <= height and column + size <= width:
        return image, ((frame * height + row) * width + column) * channels, width * channels
    for y in range(row, row + size):
        for x in range(column, column + size):
            to = ((y - row) * size + x - column) * channels
            if 0 <= y < height and 0 <= x < width:
                start = ((frame * height + y) * width + x) * channels
                padded[to : to + channels] = image[start : start + channels]
            else:
                padded[to : to + channels] = 0
    return padded, 0, size * channels


@numba.njit
def normalised_square(image: Any, shape: Any, tile: int, affine: Any, out: Any) -> Any:
    """As ``square`` with a margin of 1, each frame's channels scaled and shifted on the way.

    Args:
        image: [frames * height * width * channels].
        shape: (height, width, channels).
        tile: Which.
        affine: [frames * 2 * channels] float32: what each channel is multiplied by, then what is
            added to it. The border around the image is 0 nevertheless.
        out: [PATCH**2 * channels] float32, room for the square.
    """
    height, width, channels = shape
    frame, top, left = corner(height, width, tile)
    scale = 2 * frame * channels
    for y in range(PATCH):
        row = top + y - 1
        for x in range(PATCH):
            column = left + x - 1
            to = (y * PATCH + x) * channels
            if 0 <= row < height and 0 <= column < width:
                start = ((frame * height + row) * width + column) * channels
                for channel in range(0, channels, LANES):
                    scaled = load(image, start + channel) * load(affine, scale + channel)
                    store(out, to + channel, scaled + load(affine, scale + channels + channel))
            else:
                for channel in range(0, channels, LANES):
                    store(out, to + channel, zeros())
    return out, 0, PATCH * channels


@numba.njit
def transform_input(square: Any, channels: int, half: Any, out: Any, out_at: Any) -> None:
    """B^T d B for all channels of a tile; ``out_at`` is its first index, and a point's stride."""
    image, first, row = square
    out_first, point = out_at
    for channel in range(0, channels, LANES):
        for x in range(PATCH):
            column = _load6(image, first + x * channels + channel, row)
            _store6(half, x * LANES, PATCH * LANES, _at_points(*column))
        for y in range(PATCH):
            values = _at_points(*_load6(half, y * PATCH * LANES, LANES))
            _store6(out, out_first + y * PATCH * point + channel, point, values)


@numba.njit
def transform_gradient(square: Any, channels: int, half: Any, out: Any, out_at: Any) -> None:
    """A dY A^T, likewise."""
    image, first, row = square
    out_first, point = out_at
    for channel in range(0, channels, LANES):
        for x in range(TILE):
            column = _load4(image, first + x * channels + channel, row)
            _store6(half, x * LANES, TILE * LANES, _gradient_at_points(*column))
        for y in range(PATCH):
            values = _gradient_at_points(*_load4(half, y * TILE * LANES, LANES))
            _store6(out, out_first + y * PATCH * point + channel, point, values)


@numba.njit
def transform_output(
    products: Any,
    products_at: Any,
    half: Any,
    image: Any,
    skip: Any,
    shape: Any,
    tile: int,
    relu: bool,
) -> None:
    """A^T m A for all channels of a tile, as far as it lies in the image.

    Negative results are replaced by 0 if ``relu``, then ``skip`` is added unless it is empty.
    """
    first, point = products_at
    height, width, channels = shape
    frame, top, left = corner(height, width, tile)
    for channel in range(0, channels, LANES):
        for x in range(PATCH):
            column = _load6(products, first + x * point + channel, PATCH * point)
            values = _from_points(*column)
            store(half, x * LANES, values[0])
            store(half, (x + PATCH) * LANES, values[1])
            store(half, (x + 2 * PATCH) * LANES, values[2])
            store(half, (x + 3 * PATCH) * LANES, values[3])
        for y in range(min(TILE, height - top)):
            row = _from_points(*_load6(half, y * PATCH * LANES, LANES))
            pixel = ((frame * height + top + y) * width + left) * channels + channel
            _write(image, pixel, row[0], skip, relu)
            if left + 1 < width:
                _write(image, pixel + channels, row[1], skip, relu)
            if left + 2 < width:
                _write(image, pixel + 2 * channels, row[2], skip, relu)
            if left + 3 < width:
                _write(image, pixel + 3 * channels, row[3], skip, relu)


@numba.njit
def _write(image: Any, index: int, value: Any, skip: Any, relu: bool) -> None:
    if relu:
        value = positive_part(value)
    if skip.size > 0:
        value = value + load(skip, index)
    store(image, index, value)
