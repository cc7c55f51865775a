"""The box field: what lets a ray leap through empty space.

For every air cell it tells a box around the cell that contains no block: a square of columns and
a run of layers. It is made in two stages, and what a cell depends on bounds what a change touches:

- A cell's *layer radius* depends on the blocks of its layer within `REACH` columns, no others
  (`layer_radius.py`).
- A cell's *box* depends on the layer radius of its own column within `MAX_RUN` layers, no others.

So a change of the blocks in layers [y0, y1) can alter the layer radius of these layers in columns
within `REACH`, and boxes in the layers [y0 - MAX_RUN, y1 + MAX_RUN) of the columns in which a layer
radius did change. `build` makes both from the blocks alone; `refresh` redoes just that part.
"""

from __future__ import annotations

import numpy as np
from numba import uint8, uint16, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.addressing import HEIGHT, block_index
from rllib_minestudio.env.voxel.world.layer_radius import MAX_RADIUS, OPEN, SLAB, SOLID, WORD
from rllib_minestudio.env.voxel.world.layer_radius import build as build_layer_radius
from rllib_minestudio.env.voxel.world.layer_radius import refresh as refresh_layer_radius

MAX_RUN = 15
"""Longest run of layers that is stored, each way."""

_LANES, _STEP = np.uint64(SLAB), uint8(1)
_PAD_WORDS = np.uint64(2)
_LAST_SLAB = HEIGHT - SLAB
_ALL_OPEN = uint16(MAX_RADIUS | MAX_RUN << 5 | MAX_RUN << 10)

# Scratch of `_update_boxes`: layer radius around a slab with `_PAD` layers at either end for what
# lies below and above the world, then the slab's runs up and down.
_PAD = 2 * WORD
# A slab and `MAX_RUN` layers at either end, wherever in a word they begin.
_AROUND = 9
_WORDS_AROUND, _LAST_AROUND = np.uint64(_AROUND), HEIGHT // WORD - _AROUND
_UP, _DOWN = np.uint64(128), np.uint64(160)
_SCRATCH = 192


@kernel()
def build(
    blocks: NDArray[np.uint16],
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    low: int,
    high: int,
) -> None:
    """Makes layer radius and boxes of the columns [x0, x1) x [z0, z1), in all layers.

    Reads the blocks within `REACH` columns of them and nothing else, whatever the fields held.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        layer_radius: Overwritten in these columns, uint8 [2**23].
        box: Overwritten in these columns, uint16 [2**23].
        x0: First column.
        x1: Column after the last, at most 256 - 2 * REACH away from the first.
        z0: First column.
        z1: Column after the last.
        low: These columns are solid below this layer.
        high: From this layer on nothing is solid within `REACH` columns of them.
    """
    for x in range(x0, x1):
        for z in range(z0, z1):
            column = block_index(x, 0, z)
            box[column : column + low] = uint16(SOLID)
            box[column + low : column + HEIGHT] = _ALL_OPEN
    columns = build_layer_radius(blocks, layer_radius, x0, x1, z0, z1, low, high)
    alike = np.zeros(len(columns), np.uint8)
    _update_boxes(layer_radius, box, columns, alike, low, min(high + MAX_RUN, HEIGHT))


@kernel()
def refresh(
    blocks: NDArray[np.uint16],
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    x0: int,
    x1: int,
    z0: int,
    z1: int,
    y0: int,
    y1: int,
) -> None:
    """Brings both fields up to date after blocks of [x0, x1) x [y0, y1) x [z0, z1) changed.

    Both must have been exact before within `REACH` + 1 columns of the change: the columns that the
    change does not reach any more stand for all blocks beyond them.

    Args:
        blocks: The window's block ids, uint16 [2**23].
        layer_radius: uint8 [2**23].
        box: uint16 [2**23].
        x0: First column.
        x1: Column after the last.
        z0: First column.
        z1: Column after the last.
        y0: First layer.
        y1: Layer after the last.
    """
    columns, alike = refresh_layer_radius(blocks, layer_radius, x0, x1, z0, z1, y0, y1)
    low, high = max(y0 - MAX_RUN, 0), min(y1 + MAX_RUN, HEIGHT)
    _update_boxes(layer_radius, box, columns, alike, low, high)


@kernel()
def _update_boxes(
    layer_radius: NDArray[np.uint8],
    box: NDArray[np.uint16],
    columns: NDArray[np.int32],
    alike: NDArray[np.uint8],
    low: int,
    high: int,
) -> None:
    """Makes the boxes of the layers [low, high) of some columns.

    Slabs are made whole, and so a few more layers.

    Args:
        layer_radius: uint8 [2**23].
        box: uint16 [2**23].
        columns: Where they begin.
        alike: At most `MAX_RADIUS` for each. One that equals the column before it with the same
            number, in all layers that count, has the same boxes, which are not found again.
        low: First layer.
        high: Layer after the last.
    """
    kept = layer_radius.view(np.uint64)
    scratch = np.empty(_SCRATCH, np.uint8)
    words = scratch.view(np.uint64)
    found = np.empty((MAX_RADIUS + 1, _AROUND), np.uint64)
    boxes = np.empty((MAX_RADIUS + 1, SLAB), np.uint16)
    for start in range(low, high, SLAB):
        first = min(start, _LAST_SLAB)
        bottom = min(max(first - MAX_RUN, 0) // WORD, _LAST_AROUND)
        # Below the world everything is solid, above it everything is open.
        scratch[:_PAD] = SOLID
        scratch[_PAD:] = OPEN
        here = uint64(_PAD + first - bottom * WORD)
        counts = np.zeros(_AROUND * WORD, np.uint8)
        begin = max(first - MAX_RUN, 0) - bottom * WORD
        counts[begin : first + SLAB + MAX_RUN - bottom * WORD] = uint8(0xFF)
        mask = counts.view(np.uint64)
        is_found = np.zeros(MAX_RADIUS + 1, np.bool_)
        for number in range(len(columns)):
            kind, column = alike[number], columns[number]
            around, differs = uint64(column // WORD + bottom), uint64(0)
            for i in range(_WORDS_AROUND):
                differs |= (kept[around + i] ^ found[kind, i]) & mask[i]
            if differs or not is_found[kind]:
                for i in range(_WORDS_AROUND):
                    found[kind, i] = words[_PAD_WORDS + i] = kept[around + i]
                _find_runs(scratch, here)
                _find_boxes(scratch, here, boxes[kind])
                is_found[kind] = True
            at = uint64(column + first)
            for i in range(_LANES):
                box[at + i] = boxes[kind, i]


@kernel()
def _find_runs(scratch: NDArray[np.uint8], here: int) -> None:
    """Finds the runs of a slab, whose layer radius is at `here` in the scratch."""
    for i in range(_LANES):
        radius = scratch[here + i]
        up, down = uint8(0), uint8(0)
        goes_up, goes_down = _STEP, _STEP
        for step in range(1, MAX_RUN + 1):
            goes_up = uint8(goes_up & uint8(scratch[here + i + uint64(step)] >= radius))
            goes_down = uint8(goes_down & uint8(scratch[here + i - uint64(step)] >= radius))
            up = uint8(up + goes_up)
            down = uint8(down + goes_down)
        scratch[_UP + i] = up
        scratch[_DOWN + i] = down


@kernel()
def _find_boxes(scratch: NDArray[np.uint8], here: int, boxes: NDArray[np.uint16]) -> None:
    """Joins the layer radius and the runs of a slab, which are in the scratch, to its boxes."""
    for i in range(_LANES):
        radius = uint16(scratch[here + i])
        up = uint16(uint16(scratch[_UP + i]) << uint16(5))
        down = uint16(uint16(scratch[_DOWN + i]) << uint16(10))
        open_box = uint16(uint16(radius | up) | down)
        boxes[i] = open_box if radius != uint16(0) else uint16(0)
