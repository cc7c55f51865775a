"""A bit for each cell of a column: two words of 64 layers.

So a kernel finds the few cells that matter in a glance at two words, and goes from bit to bit.
"""

from __future__ import annotations

import numpy as np
from numba import uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel

WORD_LAYERS, COLUMN_WORDS = 64, 2
"""Layers of a word, and words of a column, the lower layers first; a layer's bit is its number
within the word."""

Bits = NDArray[np.uint64]
"""uint64 [2**17]: those of a column begin at `COLUMN_WORDS * column_index(x, z)`."""

_NONE, _ALL, _ONE = np.uint64(0), np.uint64(2**64 - 1), np.uint64(1)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"""A number in which each run of six bits is another one, so that it tells shifts apart."""
_SHIFTS = np.zeros(64, np.int64)
for _shift in range(64):
    _SHIFTS[(int(_DE_BRUIJN) << _shift & 2**64 - 1) >> 58] = _shift


@kernel(inline="always")
def lowest_bit(word: int) -> int:
    """Number of the lowest bit set in a uint64 that is not 0, see Leiserson et al. (1998)."""
    alone = word & (~word + _ONE)
    return _SHIFTS[(alone * _DE_BRUIJN) >> uint64(58)]


@kernel(inline="always")
def without_lowest(word: int) -> int:
    """A uint64 that is not 0 without its lowest bit."""
    return word & (word - _ONE)


@kernel(inline="always")
def bits_from(layer: int, part: int) -> int:
    """The bits of a column's word `part` from a layer up."""
    above = layer - part * WORD_LAYERS
    if above <= 0:
        return _ALL
    return _NONE if above >= WORD_LAYERS else _ALL << uint64(above)


@kernel(inline="always")
def bits_between(low: int, high: int, part: int) -> int:
    """The bits of a column's word `part` in the layers [low, high)."""
    return bits_from(low, part) & ~bits_from(high, part)


@kernel(inline="always")
def set_run(bits: Bits, first: int, low: int, high: int) -> None:
    """Set the bits of at most 63 layers from `low` on, before `high`, where a column's begin.

    Layer 0 is not among them, and those beyond the last are left out.
    """
    run = (_ONE << uint64(high - low)) - _ONE
    if low < WORD_LAYERS:
        bits[first] |= run << uint64(low)
        bits[first + uint32(1)] |= run >> uint64(WORD_LAYERS - low)
    elif low < COLUMN_WORDS * WORD_LAYERS:
        bits[first + uint32(1)] |= run << uint64(low - WORD_LAYERS)
