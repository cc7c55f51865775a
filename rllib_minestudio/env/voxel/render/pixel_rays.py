"""Where the rays of the pixels that are drawn pass, as arrays for the kernels.

Kernels number columns and rows of what is drawn; places on the screen are counted in pixels of the
window that these are part of (see `sampling`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.camera import STEP_X, STEP_Y, Camera, Floats, Ints
from rllib_minestudio.env.voxel.render.ray_tiles import TILE
from rllib_minestudio.env.voxel.render.sampling import Sampling


class PixelRays(NamedTuple):
    """The rays of the pixels drawn.

    Python hands kernels the arrays one by one: numba takes 5 µs to unpack a tuple of arrays.

    Attributes:
        across: float32 (width + TILE - 1,), how far to the right each column's rays pass on the
            plane one block ahead; the last are those beyond the frame that a tile reaches.
        upward: float32 (height + TILE - 1,), how far up each row's rays pass.
        columns_before: int32 (window's width + 1,), how many of the columns drawn lie to the left
            of one of the window.
        rows_before: int32 (window's height + 1,), how many of the rows drawn lie above one.
    """

    across: Floats
    upward: Floats
    columns_before: Ints
    rows_before: Ints


def pixel_rays(sampling: Sampling, camera: Camera) -> PixelRays:
    """The rays of what is drawn, for a camera of the window's size."""
    width, height = sampling.window
    step_x, step_y = camera.vector[STEP_X], camera.vector[STEP_Y]
    return PixelRays(
        across=_middles(sampling.columns, width) * step_x,
        upward=-_middles(sampling.rows, height) * step_y,
        columns_before=np.searchsorted(sampling.columns, np.arange(width + 1)).astype(np.int32),
        rows_before=np.searchsorted(sampling.rows, np.arange(height + 1)).astype(np.int32),
    )


def _middles(pixels: NDArray[np.int64], size: int) -> Floats:
    """The middle of each pixel of a line, counted from the line's own; and some beyond its end."""
    beyond = pixels[-1] + 1 + np.arange(TILE - 1)
    return (np.concatenate([pixels, beyond]) + 0.5 - size / 2).astype(np.float32)
