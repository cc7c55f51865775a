"""The box field: what lets a ray leap through empty space.

For every air cell it tells a box around the cell that contains no block: a square of columns and
a run of layers. Both kernels update any rectangle of columns in place, so a single edited block,
a new row of chunks and a whole world take the same path.
"""

from __future__ import annotations

import numpy as np
from numba import uint8, uint16, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.addressing import block_index

MAX_RADIUS = 15
"""Largest radius that is stored, in columns."""
MAX_RUN = 15
"""Longest run of layers that is stored, each way."""

_SOLID = uint8(0)
_STEP = uint8(1)


@kernel()
def update_layer_radius(
    blocks: NDArray[np.uint8],
    layer_radius: NDArray[np.uint8],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    y0: int,
    y1: int,
) -> None:
    """Recomputes the layer radius of the columns [x0, x1) x [z0, z1), layers [y0, y1).

    A two-pass chamfer transform (Rosenfeld and Pfaltz 1966), which is exact for the Chebyshev
    distance. Columns around the rectangle are read as they are, so the rectangle must reach
    `MAX_RADIUS` columns beyond every changed block, and span at most the window.
    """
    n = y1 - y0
    radius = np.empty(n, np.uint8)
    for x in range(x0, x1):
        for z in range(z0, z1):
            _pull(layer_radius, x, z, -1, y0, radius)
            here = block_index(x, y0, z)
            blocks_here = blocks[here : here + n]
            out = layer_radius[here : here + n]
            for y in range(n):
                out[y] = _SOLID if blocks_here[y] != _SOLID else radius[y]
    for x in range(x1 - 1, x0 - 1, -1):
        for z in range(z1 - 1, z0 - 1, -1):
            _pull(layer_radius, x, z, 1, y0, radius)
            here = block_index(x, y0, z)
            out = layer_radius[here : here + n]
            for y in range(n):
                value = out[y]
                out[y] = value if value < radius[y] else radius[y]


@kernel(inline="always")
def _pull(
    layer_radius: NDArray[np.uint8], x: int, z: int, side: int, y0: int, out: NDArray[np.uint8]
) -> None:
    """One more than the smallest radius of four neighbours, at most `MAX_RADIUS`; by layer.

    The neighbours are the three columns at x + side and the one at z + side: those that a pass
    in that direction has visited already.
    """
    n = len(out)
    limit = uint8(MAX_RADIUS)
    straight = block_index(x + side, y0, z)
    before = block_index(x + side, y0, z - 1)
    after = block_index(x + side, y0, z + 1)
    beside = block_index(x, y0, z + side)
    a = layer_radius[straight : straight + n]
    b = layer_radius[before : before + n]
    c = layer_radius[after : after + n]
    d = layer_radius[beside : beside + n]
    for y in range(n):
        p = a[y]
        q = b[y]
        r = c[y]
        s = d[y]
        p = p if p < q else q
        r = r if r < s else s
        p = p if p < r else r
        p = uint8(p + _STEP)
        out[y] = p if p < limit else limit


@kernel()
def update_boxes(
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    y0: int,
    y1: int,
) -> None:
    """Recomputes the box field of the columns [x0, x1) x [z0, z1) from the layer radius.

    The layers [y0, y1) must be the world's whole band [floor, ceiling): below it everything is
    solid, above it everything is open. Runs are found with the nearest-smaller-value chain, each
    link of which leads to a lower (then: higher) layer, in linear time.
    """
    n = y1 - y0
    smaller = np.zeros(n, np.int32)
    for x in range(x0, x1):
        for z in range(z0, z1):
            here = block_index(x, y0, z)
            radius = layer_radius[here : here + n]
            out = box[here : here + n]
            for y in range(n):
                value = radius[y]
                below = y - 1
                while below >= 0 and radius[below] >= value and value != _SOLID:
                    below = smaller[below]
                smaller[y] = below
                run = min(y - 1 - below, MAX_RUN)
                out[y] = (
                    uint16(0)
                    if value == _SOLID
                    else uint16(uint32(value) | (uint32(run) << uint32(10)))
                )
            for y in range(n - 1, -1, -1):
                value = radius[y]
                above = y + 1
                while above < n and radius[above] >= value and value != _SOLID:
                    above = smaller[above]
                smaller[y] = above
                if value != _SOLID:
                    run = min(above - 1 - y, MAX_RUN) if above < n else MAX_RUN
                    out[y] |= uint16(uint32(run) << uint32(5))
