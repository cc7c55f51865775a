"""Layers over the world, composed in window pixels and scaled; and which pixels are drawn.

Minecraft draws its display and screens in pixels of its window (640x360 at GUI scale 1 in
MineStudio), whatever the size of the frame. A `Layer` is a part of that window: a `canvas` in
window pixels, and its effect on the frame's pixels. Painters change the canvas and report the
rectangle that they touched; `refresh` rescales that rectangle alone to the frame's size.

A canvas is uint8 (h, w, 4): RGB multiplied by coverage, and coverage, 255 for opaque.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import float32, int32, int64, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel import AVERAGE
from rllib_minestudio.env.voxel.render.camera import (
    Bytes,
    Floats,
    Ints,
    render_kernel,
    scratch_kernel,
)

WINDOW_WIDTH = 640
"""Columns of the window that MineStudio plays in; screens are centred in them."""

Rgba = NDArray[np.uint8]


class Rect(NamedTuple):
    """Pixels from (x, y), `width` by `height`."""

    x: int
    y: int
    width: int
    height: int

    def union(self, other: Rect) -> Rect:
        """Return the smallest rectangle around both."""
        x, y = min(self.x, other.x), min(self.y, other.y)
        right = max(self.x + self.width, other.x + other.width)
        bottom = max(self.y + self.height, other.y + other.height)
        return Rect(x, y, right - x, bottom - y)


class Reduction(NamedTuple):
    """How a line of window pixels becomes a line of frame pixels.

    Frame pixel i is the sum over k of `weights[i, k]` times window pixel `first[i] + k`.

    Attributes:
        first: int32 (n,), the first window pixel of each frame pixel.
        weights: float32 (n, taps); each row sums to 1.
    """

    first: NDArray[np.int32]
    weights: NDArray[np.float32]


def reduction(matrix: NDArray[np.float64]) -> Reduction:
    """Convert a matrix (n, window), whose rows are mostly 0, to a reduction."""
    first = (matrix > 0).argmax(1)
    last = matrix.shape[1] - 1 - (matrix > 0)[:, ::-1].argmax(1)
    pixels = first[:, None] + np.arange(int((last - first).max()) + 1)
    inside = np.minimum(pixels, matrix.shape[1] - 1)
    weights = np.where(pixels <= last[:, None], np.take_along_axis(matrix, inside, 1), 0.0)
    return Reduction(first.astype(np.int32), weights.astype(np.float32))


@render_kernel
def paste(canvas: Rgba, x: int, y: int, sprite: Rgba) -> None:
    """Draw a sprite over a canvas, clipped to it.

    Args:
        canvas: uint8 (h, w, 4), see the module's docstring.
        x: Column of the sprite's left edge.
        y: Row of its upper edge.
        sprite: uint8 (h, w, 4), not multiplied by alpha.
    """
    for row in range(max(0, -y), min(sprite.shape[0], canvas.shape[0] - y)):
        for column in range(max(0, -x), min(sprite.shape[1], canvas.shape[1] - x)):
            alpha = int32(sprite[row, column, 3])
            if alpha == 0:
                continue
            if alpha == 255:
                for channel in range(4):
                    canvas[y + row, x + column, channel] = sprite[row, column, channel]
                continue
            for channel in range(3):
                over = int32(sprite[row, column, channel]) * alpha
                below = int32(canvas[y + row, x + column, channel]) * (255 - alpha)
                canvas[y + row, x + column, channel] = uint8((over + below + 127) // 255)
            below = int32(canvas[y + row, x + column, 3]) * (255 - alpha)
            canvas[y + row, x + column, 3] = uint8(alpha + (below + 127) // 255)


@scratch_kernel
def _paste_all(canvas: Rgba, placed: Ints, pixels: Bytes, table: Ints) -> None:
    """Draw sprites over a canvas, one after the other; see `Sprites`."""
    for index in range(len(placed)):
        number = placed[index, 2]
        offset, height, width = table[number, 0], int64(table[number, 1]), int64(table[number, 2])
        sprite = pixels[offset : offset + 4 * height * width].reshape((height, width, 4))
        paste(canvas, placed[index, 0], placed[index, 1], sprite)


class Sprites:
    """Sprites in one array, so that a single kernel call can paste many of them."""

    def __init__(self) -> None:
        self._pixels = np.zeros(2**16, np.uint8)
        self._table = np.zeros((64, 3), np.int32)  # of each: offset, height, width
        self._count = self._end = 0

    def add(self, sprite: Rgba) -> int:
        """Copy a sprite, uint8 (h, w, 4), and return its number."""
        number, begin = self._count, self._end
        self._count, self._end = number + 1, begin + sprite.size
        if self._count > len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        while self._end > len(self._pixels):
            self._pixels = np.concatenate([self._pixels, np.zeros_like(self._pixels)])
        self._table[number] = begin, *sprite.shape[:2]
        self._pixels[begin : self._end] = sprite.reshape(-1)
        return number

    def paste(self, canvas: Rgba, placed: Sequence[int]) -> None:
        """Draw sprites over a canvas, each as the function `paste` does.

        Args:
            canvas: uint8 (h, w, 4), see the module's docstring.
            placed: Column, row and number of the first sprite, then of the second, and so on.
        """
        if placed:
            places = np.array(placed, np.int32).reshape(-1, 3)
            _paste_all(canvas, places, self._pixels, self._table)


def part(canvas: Rgba, rect: Rect) -> Rgba:
    """The pixels of a canvas inside a rectangle, which may reach beyond the canvas."""
    x, y, width, height = rect
    return canvas[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]


@scratch_kernel
def _reduce(
    canvas: Rgba,
    colour: Bytes,
    keep: Bytes,
    rows: Ints,
    row_weights: Floats,
    columns: Ints,
    column_weights: Floats,
    top: int,
    left: int,
    bottom: int,
    right: int,
) -> None:
    """Scale a canvas to the frame's rows `top:bottom` and columns `left:right`.

    For each row, rows of the canvas are summed at full width first, then columns of the result.
    """
    if right <= left:
        return
    height, width = canvas.shape[0], canvas.shape[1]
    begin = max(columns[left], 0)
    end = min(columns[right - 1] + column_weights.shape[1], width)
    line = np.empty(4 * max(end - begin, 0), np.float32)
    for row in range(top, bottom):
        line[:] = 0
        for i in range(row_weights.shape[1]):
            y, weight = rows[row] + i, row_weights[row, i]
            if weight == float32(0) or y < 0 or y >= height:
                continue
            pixels = canvas[y].reshape(-1)[4 * begin : 4 * end]
            for at in range(len(line)):
                line[at] += weight * float32(pixels[at])
        for column in range(left, right):
            red = green = blue = cover = float32(0.5)  # to round
            for j in range(column_weights.shape[1]):
                x, weight = columns[column] + j, column_weights[column, j]
                if weight == float32(0) or x < 0 or x >= width:
                    continue
                at = 4 * (x - begin)
                red += weight * line[at]
                green += weight * line[at + 1]
                blue += weight * line[at + 2]
                cover += weight * line[at + 3]
            at = 3 * column
            colour[row, at] = uint8(red)
            colour[row, at + 1] = uint8(green)
            colour[row, at + 2] = uint8(blue)
            for channel in range(3):
                keep[row, at + channel] = uint8(255) - uint8(cover)


@render_kernel
def blend_layer(frame: Bytes, stride: int, top: int, left: int, colour: Bytes, keep: Bytes) -> None:
    """Blend a layer into a frame.

    Args:
        frame: uint8 (h * w * 3,), drawn into.
        stride: Bytes in a row of it.
        top: See `Layer`, as all others.
        left: First column.
        colour: What is added.
        keep: What is kept of the frame.
    """
    for row in range(colour.shape[0]):
        start = (top + row) * stride + 3 * left
        into = frame[start : start + colour.shape[1]]
        for at in range(colour.shape[1]):
            # Exactly into * keep / 255, rounded, without a division.
            share = uint32(into[at]) * uint32(keep[row, at]) + uint32(128)
            share = (share + (share >> uint32(8))) >> uint32(8)
            into[at] = uint8(uint32(colour[row, at]) + share)


class Layer:
    """A rectangle of the window, and its effect on the frame.

    Inside the rectangle, a pixel p of the frame becomes `colour + p * keep / 255`.

    Attributes:
        canvas: uint8 (height, width, 4), for painters to draw on.
        top: First row of the frame that it covers.
        left: First column.
        colour: uint8 (rows, columns * 3), RGB multiplied by coverage.
        keep: uint8 (rows, columns * 3), 255 - coverage, once per channel.
    """

    def __init__(self, area: Rect, rows: Reduction, columns: Reduction) -> None:
        """Create a fully see-through layer.

        Args:
            area: The rectangle, in window pixels; it may reach beyond the window.
            rows: Reduction of the window's height to the frame's.
            columns: Reduction of the window's width to the frame's.
        """
        self.canvas = np.zeros((area.height, area.width, 4), np.uint8)
        self._rows, self._columns = _Line(rows, area.y), _Line(columns, area.x)
        self.top, bottom = self._rows.span(0, area.height)
        self.left, right = self._columns.span(0, area.width)
        size = (bottom - self.top, 3 * (right - self.left))
        self.colour, self.keep = np.zeros(size, np.uint8), np.full(size, 255, np.uint8)
        self._rows.drop(self.top, bottom)
        self._columns.drop(self.left, right)

    def copy(self) -> Layer:
        """Return another layer with the same picture."""
        other = copy.copy(self)
        other.canvas, other.colour = self.canvas.copy(), self.colour.copy()
        other.keep = self.keep.copy()
        return other

    def refresh(self, touched: Rect) -> None:
        """Rescale a rectangle of the canvas, in the canvas's own pixels, to the frame's size."""
        x, y, width, height = touched
        top, bottom = self._rows.span(y, height)
        left, right = self._columns.span(x, width)
        _reduce(
            self.canvas,
            self.colour,
            self.keep,
            self._rows.first,
            self._rows.weights,
            self._columns.first,
            self._columns.weights,
            top,
            left,
            bottom,
            right,
        )

    def blend(self, frame: Bytes, stride: int) -> None:
        """Blend the layer into a frame, uint8 (h * w * 3,), with `stride` bytes in a row."""
        blend_layer(frame, stride, self.top, self.left, self.colour, self.keep)


class _Line:
    """A reduction of rows or columns, relative to the start of a canvas."""

    def __init__(self, line: Reduction, start: int) -> None:
        self.first = (line.first - start).astype(np.int32)
        self.weights = line.weights
        self._ordered: list[int] = self.first.tolist()
        self._taps = line.weights.shape[1]

    def span(self, start: int, length: int) -> tuple[int, int]:
        """Frame pixels (first, end excluded) that depend on `length` pixels from `start`."""
        first = bisect_left(self._ordered, start - self._taps + 1)
        return first, max(first, bisect_left(self._ordered, start + length))

    def drop(self, first: int, stop: int) -> None:
        """Keep only the frame pixels from `first` to `stop`, and count from there."""
        self.first, self.weights = self.first[first:stop], self.weights[first:stop]
        self._ordered = self._ordered[first:stop]


# -------------------------- which pixels are drawn for a frame, and how the frame is made from them
# Minecraft draws a window, and MineStudio scales that window down to the observation by bilinear
# interpolation of the pixels next to each sampling point, without averaging (OpenCV's
# INTER_LINEAR). For a window of 640x360 and an observation of 128x128, column i is the window's
# column 5i + 2, and each row is mixed from two rows. There are two ways to draw a frame:
#
# - `SAMPLES` draws just those pixels of the window, with all layers over them, and mixes them as
#   OpenCV would, which is what a network trained on MineStudio's observations expects.
# - `AVERAGE` draws the frame's own pixels, with a ray through the middle of each, coarser textures,
#   and display and hand averaged: half the work, and less flicker.

WINDOW_HEIGHT = 360
"""Rows of the game's window; the display is laid out in its pixels."""

# OpenCV uses 11 bits for interpolation weights (INTER_RESIZE_COEF_BITS).
BITS = 11
WHOLE = 1 << BITS
HALF = 1 << (BITS - 1)

Size = tuple[int, int]


class Mixture(NamedTuple):
    """How a line of the frame is mixed from the drawn pixels of the window.

    Pixel i is `((WHOLE - weight[i]) * drawn[first[i]] + weight[i] * drawn[second[i]]) / WHOLE`.

    Attributes:
        sources: int64 (n,), places of the drawn pixels in the window, ascending.
        first: int32 (size,), indices into `sources`.
        second: int32 (size,).
        weight: int32 (size,), 0 to `WHOLE`.
    """

    sources: NDArray[np.int64]
    first: Ints
    second: Ints
    weight: Ints

    @property
    def is_plain(self) -> bool:
        """Whether nothing is mixed, because each pixel of the frame is one drawn pixel."""
        return not self.weight.any() and len(self.sources) == len(self.first)


def mixture(size: int, window: int) -> Mixture:
    """Bilinear interpolation of a line of `window` pixels at `size` places.

    Pixel i is at `(i + 0.5) * window / size - 0.5`, clipped to the window.
    """
    places = np.clip((np.arange(size) + 0.5) * (window / size) - 0.5, 0, window - 1)
    low = np.floor(places).astype(np.int64)
    weight = np.rint((places - low) * WHOLE).astype(np.int32)
    high = np.where(weight > 0, low + 1, low)
    sources = np.union1d(low, high)
    first, second = (np.searchsorted(sources, ends).astype(np.int32) for ends in (low, high))
    return Mixture(sources, first, second, weight)


def averaging(size: int, window: int) -> NDArray[np.float64]:
    """Matrix (size, window) that averages a line of `window` pixels into `size` pixels."""
    edges = np.arange(size + 1) * window / size
    pixels = np.arange(window)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.clip(overlap, 0, None) * size / window


def picking(sources: NDArray[np.int64], window: int) -> NDArray[np.float64]:
    """Matrix (n, window) that picks the pixels `sources` of a line of `window` pixels."""
    return np.eye(window)[sources]


@render_kernel
def _mix_rows(
    drawn: Bytes, out: Bytes, stride: int, first: Ints, second: Ints, weight: Ints
) -> None:
    for row in range(len(first)):
        upper = drawn[first[row] * stride : (first[row] + 1) * stride]
        lower = drawn[second[row] * stride : (second[row] + 1) * stride]
        target = out[row * stride : (row + 1) * stride]
        share = weight[row]
        rest = int32(WHOLE) - share
        for i in range(stride):
            mixed = int32(upper[i]) * rest + int32(lower[i]) * share
            target[i] = uint8((mixed + int32(HALF)) >> int32(BITS))


@render_kernel
def _mix_columns(
    drawn: Bytes, out: Bytes, height: int, width: int, first: Ints, second: Ints, weight: Ints
) -> None:
    for row in range(height):
        source = drawn[row * width * 3 : (row + 1) * width * 3]
        target = out[row * len(first) * 3 : (row + 1) * len(first) * 3]
        for column in range(len(first)):
            share = weight[column]
            rest = int32(WHOLE) - share
            for channel in range(3):
                mixed = int32(source[3 * first[column] + channel]) * rest
                mixed += int32(source[3 * second[column] + channel]) * share
                target[3 * column + channel] = uint8((mixed + int32(HALF)) >> int32(BITS))


@dataclass(frozen=True, eq=False)
class Sampling:
    """Which pixels are drawn for a frame.

    Attributes:
        frame: (width, height) of the frame.
        window: (width, height) of the picture whose pixels are drawn: the game's window, or the
            frame itself.
        columns: int64 (w,), columns of that picture that are drawn, ascending.
        rows: int64 (h,), its rows.
        display_columns: float64 (w, W), turns a row of the game's window into a drawn row.
        display_rows: float64 (h, H), turns a column of the game's window into a drawn column.
        mixtures: How the frame's rows and columns are mixed from the drawn pixels; None if the
            frame is drawn directly.
    """

    frame: Size
    window: Size
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    display_columns: NDArray[np.float64]
    display_rows: NDArray[np.float64]
    mixtures: tuple[Mixture, Mixture] | None

    @property
    def drawn(self) -> Size:
        """Number of drawn columns and rows, (w, h)."""
        return len(self.columns), len(self.rows)

    def new_canvas(self) -> Bytes | None:
        """Memory for the drawn pixels, uint8 (h * w * 3,); None if the frame is drawn directly."""
        width, height = self.drawn
        return None if self.mixtures is None else np.empty(height * width * 3, np.uint8)

    def finish(self, drawn: Bytes, out: Bytes) -> None:
        """Mix a frame from the drawn pixels.

        Args:
            drawn: uint8 (h * w * 3,), the drawn pixels.
            out: uint8 (H * W * 3,), the frame; the same memory if nothing is mixed.
        """
        if self.mixtures is None:
            return
        rows, columns = self.mixtures
        width, height = self.drawn
        if not columns.is_plain:
            mixed = np.empty(height * self.frame[0] * 3, np.uint8)
            _mix_columns(drawn, mixed, height, width, *columns[1:])
            drawn = mixed
        _mix_rows(drawn, out, self.frame[0] * 3, *rows[1:])


@lru_cache(maxsize=64)
def sampling_of(mode: str, frame: Size, aspect: float) -> Sampling:
    """Return which pixels are drawn for a frame.

    Args:
        mode: One of `rllib_minestudio.env.voxel.SAMPLINGS`.
        frame: (width, height) of the frame.
        aspect: Width over height of the window.
    """
    window = round(WINDOW_HEIGHT * aspect), WINDOW_HEIGHT
    if mode == AVERAGE:
        return Sampling(
            frame=frame,
            window=frame,
            columns=np.arange(frame[0]),
            rows=np.arange(frame[1]),
            display_columns=averaging(frame[0], window[0]),
            display_rows=averaging(frame[1], window[1]),
            mixtures=None,
        )
    columns, rows = mixture(frame[0], window[0]), mixture(frame[1], window[1])
    return Sampling(
        frame=frame,
        window=window,
        columns=columns.sources,
        rows=rows.sources,
        display_columns=picking(columns.sources, window[0]),
        display_rows=picking(rows.sources, window[1]),
        mixtures=None if rows.is_plain and columns.is_plain else (rows, columns),
    )
