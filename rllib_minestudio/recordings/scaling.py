"""Scaling frames exactly as OpenCV's INTER_LINEAR does, which made the frames that VPT saw.

`resize_image` in OpenAI's agent.py, MineStudio's simulator and its `ImageKernelCallback` scale with
it. It mixes the pixels next to each sampling point, without averaging: a frame scaled in another
way looks smoother than those that a policy was trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BITS = 11
"""OpenCV's bits of an interpolation weight (INTER_RESIZE_COEF_BITS in imgproc/src/resize.cpp)."""


def scaled(frame: NDArray[np.uint8], size: tuple[int, int] | None) -> NDArray[np.uint8]:
    """Return a frame scaled.

    Args:
        frame: (height, width, 3) uint8 RGB, or with a fourth channel, which is ignored.
        size: (width, height); None, or the frame's own, returns it as it is.
    """
    height, width, channels = frame.shape
    if size in (None, (width, height)):
        return frame
    assert size is not None
    out = np.empty((size[1], size[0], 3), np.uint8)
    lines = np.ascontiguousarray(frame).reshape(height, -1)
    columns, weights = _columns(size[0], width)
    rows = _rows(size[1], height)
    _kernel()(lines, out.reshape(size[1], -1), *rows, columns * np.uint64(channels), weights)
    return out


def _places(size: int, length: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the place below each of `size` sampling points of a line, and the share above it."""
    points = (np.arange(size) + 0.5) * (1.0 / (size / length)) - 0.5
    places = points.astype(np.float32)
    low = np.floor(places)
    return low.astype(np.int64), places - low


@cache
def _rows(size: int, length: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the two rows that are mixed for each of `size` rows, and their weights, (2, size)."""
    low, share = _places(size, length)
    return np.clip(np.stack([low, low + 1]), 0, length - 1), _weights(share)


@cache
def _columns(size: int, length: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """As `_rows`; beyond the outermost columns, OpenCV takes these alone."""
    low, share = _places(size, length)
    share[(low < 0) | (low >= length - 1)] = 0
    low = np.clip(low, 0, length - 1)
    # Unsigned: compiled code would ask of each signed index whether it counts from the end.
    both = np.stack([low, np.minimum(low + 1, length - 1)]).astype(np.uint64)
    return both, _weights(share)


def _weights(share: NDArray[np.float32]) -> NDArray[np.int32]:
    both = np.stack([np.float32(1) - share, share])
    return np.rint(both * np.float32(1 << _BITS)).astype(np.int32)


@cache
def _kernel() -> Callable[..., None]:
    """Return the compiled loop; numba is imported only where frames are scaled."""
    from rllib_minestudio.foundation.machine_code import base_folder, compiled, fingerprint

    folder = base_folder() / f"recordings-{fingerprint([Path(__file__)])}"
    return compiled(_mix, folder)


def _mix(frame: Any, out: Any, rows: Any, row_weights: Any, columns: Any, weights: Any) -> None:
    """Mix pixels; rows of both pictures are bytes, all channels of a pixel side by side."""
    int32 = np.int32  # around each product, as numba's are of 64 bits, half as many at a time
    left, right = columns
    near, far = weights
    size, bytes_per_row = len(left), out.shape[1]
    mixed = np.empty((2, bytes_per_row), int32)
    held = np.array([-1, -1])  # the rows in `mixed`
    for y in range(len(out)):
        for k in range(2):
            row = rows[k, y]
            if row == held[k]:
                continue
            if k == 0 and row == held[1]:
                mixed[0] = mixed[1]
            else:
                pixels, mix = frame[row], mixed[k]
                for x in range(size):
                    for channel in range(3):
                        one = int32(int32(pixels[left[x] + np.uint64(channel)]) * near[x])
                        other = int32(int32(pixels[right[x] + np.uint64(channel)]) * far[x])
                        # The vector code of OpenCV's `VResizeLinear` drops four bits here.
                        mix[3 * x + channel] = int32(one + other) >> int32(4)
            held[k] = row
        upper, lower, line = mixed[0], mixed[1], out[y]
        above, below = row_weights[0, y], row_weights[1, y]
        for i in range(bytes_per_row):
            total = int32(int32(above * upper[i]) >> int32(16))
            total = int32(total + int32(int32(below * lower[i]) >> int32(16)))
            line[i] = np.uint8(int32(total + int32(2)) >> int32(2))
