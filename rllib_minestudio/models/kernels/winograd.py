"""3x3 convolutions by Winograd's algorithm F(4x4, 3x3), in numba and without torch.

A tile, an output square of 4x4 pixels, needs the 6x6 input pixels around it. Seen as polynomials of
degree 5 in each axis and evaluated at 6x6 points, an input d and a filter g are convolved by
multiplying: Y = A^T [(G g G^T) * (B^T d B)] A. That is 36 products per tile and pair of channels,
where the definition has 144; over tiles and channels they are 36 matrix products, one per point.
Gradients of the input are the same with another filter, and those of the filter are the transpose:
dg = G^T [(B^T d B) * (A dY A^T)] G.

Source: Lavin & Gray 2016, arXiv:1509.09308, sections 4.1 and 4.3.

The points along an axis are 0, ±5/8, ±3/2 and infinity. Lavin & Gray take 0, ±1, ±2 and infinity;
powers nearer to 1 halve the rounding errors (Barabasz et al. 2020, arXiv:1803.10986, search for
good points likewise).

Images are [frames, height, width, channels], flattened: float32, or int16 with the bits of
bfloat16. Values at the points are float32, [point, tile, channel].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from rllib_minestudio.models.kernels.compilation import (
    FLOAT,
    FLOATS,
    LANES,
    NO_FLOATS,
    load,
    maximum,
    moments,
    pointer_to,
    positive_part,
    spread,
    store,
    take_ticket,
    zeros,
)

TILE = 4
"""Pixels of an output tile along an axis."""

PATCH = 6
"""Input pixels that a tile depends on along an axis; also the number of points."""

# ---------------------------------------------------------------------------- points

_A, _B = 5 / 8, 3 / 2


def filter_matrix() -> NDArray[np.floating[Any]]:
    """Return [36, 9], which maps a 3x3 filter to its values at the points, both row by row."""
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
    """Find the pixels of a tile and of a margin around it.

    Args:
        image: [frames * height * width * channels].
        shape: (height, width, channels).
        tile: Its index.
        margin: Pixels on each side.
        padded: Buffer to which the square is copied if a part is outside the image.

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
    """Do as `square` with a margin of 1, and scale and shift each frame's channels.

    Args:
        image: [frames * height * width * channels].
        shape: (height, width, channels).
        tile: Its index.
        affine: [frames * 2 * channels] float32: each frame's scalings, then its shifts. The border
            around the image is 0 nevertheless.
        out: [PATCH**2 * channels] float32, buffer for the square.
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
    """Compute B^T d B for all channels of a tile; `out_at` is first index, point stride."""
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
    """Compute A dY A^T, likewise."""
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
    """Compute A^T m A for all channels of a tile, as far as it is inside the image.

    Negative results are replaced by 0 if `relu`, then `skip` is added unless it is empty.
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


# ---------------------------------------------------------------------------- products
# The matrix product, as a numba intrinsic.

PANEL_VECTORS = 2
"""Vectors of output channels that are computed at a time; channels come in whole panels."""

ROWS = 8 if LANES == 16 else 4
"""Rows that `multiply` computes at a time, so many that the sums fill the registers."""

PANEL = PANEL_VECTORS * LANES
"""Columns that `multiply` computes at a time."""


@intrinsic
def multiply(
    typing: Any,
    left: Any,
    left_at: Any,
    right: Any,
    right_at: Any,
    out: Any,
    out_at: Any,
    depth: Any,
    adds: Any,
) -> Any:
    """Do out = left @ right, or out += left @ right, for one block that fits into registers.

    Args:
        typing: Passed by numba, not by callers.
        left: float32, holds a matrix [ROWS, depth].
        left_at: Index of its first element, and its strides along rows and along depth.
        right: float32, holds a matrix [depth, PANEL] whose rows are contiguous.
        right_at: Index of its first element, and its stride along depth.
        out: float32, holds a matrix [ROWS, PANEL] whose rows are contiguous.
        out_at: Index of its first element, and its stride along rows.
        depth: Length of the sums, at least 1; terms are added in order.
        adds: Whether sums start from `out`; otherwise from 0.
    """
    index = types.intp
    pair, triple = types.UniTuple(index, 2), types.UniTuple(index, 3)
    signature = types.void(left, triple, right, pair, out, pair, index, types.boolean)
    return signature, _generate_multiply


def _generate_multiply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    left, left_at, right, right_at, out, out_at, depth, adds = arguments
    left_first, left_row, left_depth = cgutils.unpack_tuple(builder, left_at)
    right_first, right_depth = cgutils.unpack_tuple(builder, right_at)
    out_first, out_row = cgutils.unpack_tuple(builder, out_at)

    def place(which: int, array: Any, first: Any, *steps: tuple[Any, Any], to: Any) -> Any:
        for stride, count in steps:
            first = builder.add(first, builder.mul(stride, count))
        return pointer_to(context, builder, signature.args[which], array, first, to)

    one, lanes = depth.type(1), depth.type(LANES)
    vectors = [(lanes, depth.type(vector)) for vector in range(PANEL_VECTORS)]
    rows = [depth.type(row) for row in range(ROWS)]
    outs = [
        place(4, out, out_first, (out_row, row), vector, to=FLOATS)
        for row in rows
        for vector in vectors
    ]
    starts = _starts(builder, outs, adds)
    before, loop = builder.block, builder.append_basic_block("depth")
    after = builder.append_basic_block("summed")
    builder.branch(loop)

    builder.position_at_end(loop)
    step = builder.phi(depth.type)
    step.add_incoming(depth.type(0), before)
    sums = [builder.phi(FLOATS) for _ in outs]
    rights = [
        builder.load(place(2, right, right_first, (right_depth, step), vector, to=FLOATS), align=4)
        for vector in vectors
    ]
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{LANES}f32"
    )
    summed = []
    for number, row in enumerate(rows):
        factor = place(0, left, left_first, (left_depth, step), (left_row, row), to=FLOAT)
        factors = spread(builder, builder.load(factor, align=4))
        for vector in range(PANEL_VECTORS):
            summed.append(
                builder.call(fma, [factors, rights[vector], sums[PANEL_VECTORS * number + vector]])
            )
    for total, start, value in zip(sums, starts, summed, strict=True):
        total.add_incoming(start, before)
        total.add_incoming(value, loop)
    following = builder.add(step, one)
    step.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)

    builder.position_at_end(after)
    for value, out_place in zip(summed, outs, strict=True):
        builder.store(value, out_place, align=4)
    return context.get_dummy_value()


def _starts(builder: Any, outs: list[Any], adds: Any) -> list[Any]:
    """The sums' initial values."""
    before = builder.block
    with builder.if_then(adds):
        loaded = [builder.load(place, align=4) for place in outs]
        loading = builder.block
    starts = [builder.phi(FLOATS) for _ in outs]
    for start, value in zip(starts, loaded, strict=True):
        start.add_incoming(NO_FLOATS, before)
        start.add_incoming(value, loading)
    return starts


# ---------------------------------------------------------------------------- convolutions
# Several threads may call a kernel at the same time with the same arguments: they share the work by
# the tickets in `words` (`take_ticket`). A tile's numbers do not depend on the thread that computes
# it. Kernels hold no lock and keep nothing between calls.

POINTS = PATCH**2

BLOCK = 2 * ROWS
"""Tiles that are transformed together: their values stay in the L2 cache."""

_SKEW = LANES
"""Keeps values of different points from competing for the same places in the L1 cache."""


class ConvolutionShape(NamedTuple):
    """Shape of a convolution; the numbers of channels are multiples of `PANEL`."""

    frames: int
    height: int
    width: int
    channels_in: int
    channels_out: int


@numba.njit
def count_tiles(sizes: Any) -> int:
    """The number of tiles that cover the output; those at the edges may reach beyond it."""
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
    """Compute a 3x3 convolution of the same size, with zeros around the image.

    Args:
        words: The call's words.
        image: [frames * height * width * channels_in].
        affine: [frames * 2 * channels_in] float32, from `normalise`: scalings and shifts of each
            frame's channels before they are convolved; or empty.
        filters: [POINTS * channels_out / PANEL * channels_in * PANEL] float32: values at the
            points, in panels of output channels.
        skip: Of the shape and dtype of `out`, added to the result at the end; or empty.
        out: [frames * height * width * channels_out], of the image's type.
        sizes: `ConvolutionShape`.
        relu: Whether to replace negative results by 0, before `skip` is added.
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
    block = BLOCK if tiles >= 4 * BLOCK else ROWS  # so that every thread has work
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
                # The last rows may belong to no tile; their contents are never used.
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
    """Compute each frame's scalings and shifts that are equivalent to a group norm of one group.

    Wu & He 2018, arXiv:1803.08494, equation 1, with all of a frame's numbers in one group.

    Args:
        words: The call's words.
        image: [frames * height * width * channels].
        norm: [2 * channels + 1] float32: weights, biases, and what is added to the variance.
        affine: [frames * 2 * channels] float32, receives each frame's scalings, then its shifts.
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
    """Take the largest of 3x3 pixels around every second pixel, or 0 if all are negative.

    Args:
        words: The call's words.
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
    """Compute the tiles' contributions to the gradient of the filters.

    Args:
        words: The call's words.
        image: [frames * height * width * channels_in].
        gradient: [frames * height * width * channels_out], the output's, of the image's type.
        out: [shares * POINTS * channels_in * channels_out] float32: receives gradients of the
            filters' values at the points, to be summed over the shares. Each share has its own
            tiles, whichever thread computes it; there are no more shares than blocks.
        sizes: `ConvolutionShape`.
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
