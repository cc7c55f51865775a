"""Sparse pictures glued to the screen: only the pixels that show anything, blended in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, uint8, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import Bytes, Floats, Words, render_kernel
from rllib_minestudio.env.voxel.render.texels import pack

# Less coverage than this is not worth a write.
FAINTEST = 1 / 64


class Overlay(NamedTuple):
    """Pixels to blend over a frame: `frame = frame * keep + colour`.

    Attributes:
        pixels: uint32 (n,), pixel number in row-major order.
        colour: uint32 (n,), packed RGB, multiplied by coverage.
        keep: float32 (n,), 1 - coverage.
    """

    pixels: NDArray[np.uint32]
    colour: NDArray[np.uint32]
    keep: NDArray[np.float32]


def make_overlay(
    premultiplied: NDArray[np.floating[Any]], width: int, top: int = 0, left: int = 0
) -> Overlay:
    """Collect the visible pixels of a picture that covers part of a frame.

    Args:
        premultiplied: (h, w, 4): RGB in 0..255 times alpha, and alpha in 0..1.
        width: Pixels per row of the frame.
        top: Row of the frame where the picture begins.
        left: Column of the frame where it begins.
    """
    rows, columns = np.nonzero(premultiplied[..., 3] > FAINTEST)
    visible = premultiplied[rows, columns]
    return Overlay(
        pixels=((rows + top) * width + columns + left).astype(np.uint32),
        colour=pack(visible[:, :3]),
        keep=(1 - visible[:, 3]).astype(np.float32),
    )


@render_kernel
def blend(
    frame: Bytes,
    pixels: Words,
    colour: Words,
    keep: Floats,
    red: float,
    green: float,
    blue: float,
) -> None:
    """Blend an overlay into a frame.

    Args:
        frame: uint8 (H * W * 3,).
        pixels: See `Overlay`.
        colour: See `Overlay`.
        keep: See `Overlay`.
        red: Light on the overlay's red, 0..1; 1 for what is not part of the world.
        green: Likewise.
        blue: Likewise.
    """
    for k in range(len(pixels)):
        pixel = pixels[k] * uint32(3)
        rgb, kept = colour[k], keep[k]
        r = float32(rgb & uint32(255)) * red
        g = float32((rgb >> uint32(8)) & uint32(255)) * green
        b = float32((rgb >> uint32(16)) & uint32(255)) * blue
        frame[pixel] = uint8(r + float32(frame[pixel]) * kept)
        frame[pixel + uint32(1)] = uint8(g + float32(frame[pixel + uint32(1)]) * kept)
        frame[pixel + uint32(2)] = uint8(b + float32(frame[pixel + uint32(2)]) * kept)


@render_kernel
def invert(frame: Bytes, pixels: Words) -> None:
    """Turn pixels into their negative, as Minecraft draws its crosshair.

    Args:
        frame: uint8 (H * W * 3,).
        pixels: uint32 (n,), pixel numbers.
    """
    for k in range(len(pixels)):
        pixel = pixels[k] * uint32(3)
        for channel in range(3):
            at = pixel + uint32(channel)
            frame[at] = uint8(255) - frame[at]
