"""Convolutions of channels-last images, and the gradients of their filters.

The kernels work on a range of tiles, so that threads can share the work; each tile's numbers are
the same whatever the range. They hold no lock and keep nothing between calls.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rllib_minestudio import machine_code
from rllib_minestudio.models.vpt.winograd import simd
from rllib_minestudio.models.vpt.winograd import tiles as transforms
from rllib_minestudio.models.vpt.winograd.simd import IS_FAST as IS_FAST  # for convolution.py
from rllib_minestudio.models.vpt.winograd.simd import LANES, PANEL, ROWS, multiply
from rllib_minestudio.models.vpt.winograd.tiles import (
    PATCH,
    TILE,
    square,
    transform_gradient,
    transform_input,
    transform_output,
)

_logger = logging.getLogger(__name__)

POINTS = PATCH**2

_BLOCK = 2 * ROWS
"""Tiles that are transformed together: their values stay in the L2 cache."""

_SKEW = LANES
"""Keeps values of different points off addresses that share a place in the L1 cache."""

_MODULES = (__file__, simd.__file__, transforms.__file__, machine_code.__file__)
CACHE_FOLDER = machine_code.base_folder() / (
    "network-" + machine_code.fingerprint(Path(module) for module in _MODULES)
)
"""Folder of this version's machine code on this machine."""

_MARKER_NAME = "compiled"
_REPORT_SECONDS = 30.0

_F = TypeVar("_F", bound=Callable[..., Any])


class Sizes(NamedTuple):
    """Shape of a convolution; the numbers of channels are multiples of `simd.PANEL`."""

    frames: int
    height: int
    width: int
    channels_in: int
    channels_out: int


def count_tiles(sizes: Sizes) -> int:
    """How many tiles cover the output; those at the edges may reach beyond it."""
    return sizes.frames * -(-sizes.height // TILE) * -(-sizes.width // TILE)


def _kernel(function: _F) -> _F:
    return machine_code.compiled(function, CACHE_FOLDER)


@_kernel
def convolve(image: Any, filters: Any, out: Any, sizes: Any, tiles: Any, relu: bool) -> None:
    """Computes tiles of a 3x3 convolution of the same size, with zeros around the image.

    Args:
        image: [frames * height * width * channels_in] float32, or int16: bits of bfloat16.
        filters: [POINTS * channels_out / PANEL * channels_in * PANEL] float32: values at the
            points, in panels of output channels.
        out: [frames * height * width * channels_out], of the image's type.
        sizes: `Sizes`.
        tiles: First, and the one after the last.
        relu: Whether to replace negative results by 0.
    """
    _, height, width, channels_in, channels_out = sizes
    first, last = tiles
    point_in, point_out = _BLOCK * channels_in + _SKEW, _BLOCK * channels_out + _SKEW
    values = np.empty(POINTS * point_in, np.float32)
    products = np.empty(POINTS * point_out, np.float32)
    half = np.empty(POINTS * LANES, np.float32)
    padded = np.empty(POINTS * channels_in, image.dtype)
    for start in range(first, last, _BLOCK):
        count = min(_BLOCK, last - start)
        for tile in range(count):
            patch = square(image, (height, width, channels_in), start + tile, 1, padded)
            transform_input(patch, channels_in, half, values, (tile * channels_in, point_in))
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
            transform_output(
                products,
                (tile * channels_out, point_out),
                half,
                out,
                (height, width, channels_out),
                start + tile,
                relu,
            )


@_kernel
def filter_gradient(image: Any, gradient: Any, out: Any, sizes: Any, tiles: Any) -> None:
    """Computes what some tiles contribute to the gradient of the filters.

    Args:
        image: [frames * height * width * channels_in] float32, or int16: bits of bfloat16.
        gradient: [frames * height * width * channels_out], of the image's type: of the output.
        out: [POINTS * channels_in * channels_out] float32: receives the gradient of the filters'
            values at the points.
        sizes: `Sizes`.
        tiles: First, and the one after the last; at least one.
    """
    _, height, width, channels_in, channels_out = sizes
    first, last = tiles
    point_in, point_out = _BLOCK * channels_in + _SKEW, _BLOCK * channels_out + _SKEW
    values = np.empty(POINTS * point_in, np.float32)
    gradients = np.empty(POINTS * point_out, np.float32)
    half = np.empty(POINTS * LANES, np.float32)
    padded = np.empty(POINTS * channels_in, image.dtype)
    padded_gradient = np.empty(TILE**2 * channels_out, image.dtype)
    for start in range(first, last, _BLOCK):
        count = min(_BLOCK, last - start)
        for tile in range(count):
            patch = square(image, (height, width, channels_in), start + tile, 1, padded)
            transform_input(patch, channels_in, half, values, (tile * channels_in, point_in))
            patch = square(
                gradient, (height, width, channels_out), start + tile, 0, padded_gradient
            )
            transform_gradient(
                patch, channels_out, half, gradients, (tile * channels_out, point_out)
            )
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
                        (row + panel, channels_out),
                        count,
                        start > first,
                    )


def are_compiled() -> bool:
    """Whether this machine already holds the machine code of this version."""
    return (CACHE_FOLDER / _MARKER_NAME).exists()


def compile_once(progress: Callable[[str], None] | None = None) -> None:
    """Makes sure that the kernels are compiled; returns at once when they are.

    Args:
        progress: Receives a line of text before and after compiling, and while waiting for another
            process that does; by default the lines go to the log.

    Raises:
        OSError: If the machine code cannot be kept.
    """
    if are_compiled():
        return
    tell = progress or _logger.warning

    def waiting(seconds: float) -> None:
        if seconds % _REPORT_SECONDS < machine_code.POLL_SECONDS:
            tell("Another process is compiling the network's convolutions; waiting for it ...")

    with machine_code.only_process(CACHE_FOLDER, waiting):
        if not are_compiled():
            tell("Compiling the network's convolutions, once for this machine (about 10 s) ...")
            start = time.monotonic()
            _rehearse()
            (CACHE_FOLDER / _MARKER_NAME).touch()
            tell(f"The convolutions are compiled ({time.monotonic() - start:.0f} s).")


def _rehearse() -> None:
    """Runs every kernel for every type of image."""
    sizes, tiles = Sizes(1, TILE, TILE, PANEL, PANEL), (0, 1)
    at_points = np.zeros(POINTS * PANEL**2, np.float32)
    for dtype in (np.float32, np.int16):
        image, out = np.zeros((2, TILE**2 * PANEL), dtype)
        convolve(image, at_points, out, sizes, tiles, False)
        filter_gradient(image, out, at_points, sizes, tiles)
