"""Which pixels are drawn for a frame, and how the frame is made from them.

Minecraft draws a window, and MineStudio scales that window down to the observation by bilinear
interpolation of the pixels next to each sampling point, without averaging (OpenCV's INTER_LINEAR):
of a window of 640x360 and an observation of 128x128, column i is the window's column 5i + 2, and
each row is mixed from two rows. There are two ways to make a frame:

- `SAMPLES` draws just those pixels of the window, with everything that lies over them, and mixes
  them as OpenCV would: what a network trained on MineStudio's observations expects.
- `AVERAGE` draws the frame's own pixels, with a ray through the middle of each, coarser textures,
  and display and hand averaged: half the work, and less flicker.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import int32, uint8
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import Bytes, Ints, render_kernel
from rllib_minestudio.env.voxel.view_options import AVERAGE

WINDOW_HEIGHT = 360
"""Rows of the game's window; the display is laid out in its pixels."""

# OpenCV has 11 bits for the weights of a mixture (INTER_RESIZE_COEF_BITS).
BITS = 11
WHOLE = 1 << BITS
HALF = 1 << (BITS - 1)

Size = tuple[int, int]


class Mixture(NamedTuple):
    """How a line of a frame is mixed from the window's pixels that are drawn.

    Pixel i is `(WHOLE - weight[i]) * drawn[first[i]] + weight[i] * drawn[second[i]]`, over `WHOLE`.

    Attributes:
        sources: int64 (n,), places in the window of what is drawn, ascending.
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
        """Whether nothing is mixed: each pixel is the one that is drawn for it."""
        return not self.weight.any() and len(self.sources) == len(self.first)


def mixture(size: int, window: int) -> Mixture:
    """Bilinear interpolation of a line of `window` pixels at `size` places.

    Pixel i lies at `(i + 0.5) * window / size - 0.5`, cut to the window.
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
    """Matrix (n, window) that picks n of a line's `window` pixels."""
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
    """What is drawn for a frame.

    Attributes:
        frame: (width, height) of the frame.
        window: (width, height) of the picture whose pixels are drawn: the game's window, or the
            frame itself.
        columns: int64 (w,), columns of that picture that are drawn, ascending.
        rows: int64 (h,), its rows.
        display_columns: float64 (w, W), makes a row of what is drawn from one of the game's window.
        display_rows: float64 (h, H), likewise of a column.
        mixtures: How the frame's rows and columns are mixed from what is drawn; None: it is that.
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
        """(width, height) of what is drawn."""
        return len(self.columns), len(self.rows)

    def new_canvas(self) -> Bytes | None:
        """Memory for what is drawn, uint8 (h * w * 3,); None if the frame itself is drawn into."""
        width, height = self.drawn
        return None if self.mixtures is None else np.empty(height * width * 3, np.uint8)

    def finish(self, drawn: Bytes, out: Bytes) -> None:
        """Mix a frame from what is drawn.

        Args:
            drawn: uint8 (h * w * 3,), of the size `drawn`.
            out: uint8 (H * W * 3,), of the size `frame`; the same memory if nothing is mixed.
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
    """What is drawn for a frame.

    Args:
        mode: One of `view_options.SAMPLINGS`.
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
