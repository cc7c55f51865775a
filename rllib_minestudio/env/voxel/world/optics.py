"""What blocks do to light: how much of it they give, let through and shut out.

A block of Minecraft has three facts about light, which depend on its state:

- its *emission*, 0 to 15, is the light of its own;
- its *opacity* is 0 if the light of the sky falls through it undimmed, 1 if it only passes on like
  any other light, dimmer by one with each step, and 15 if none enters;
- its *full sides* are closed: nothing passes from one cell to the next through a full side of
  either. So a slab or stairs shut light out on some sides and let it in on the others.

A full cube that one cannot see through is opaque, everything else has opacity 0; the exceptions,
and all that emits light, are rows of `data/block_light.csv`. A block that emits light gives it on
all sides, even if it is opaque. (Minecraft also stops light between two half sides that make a full
one, as of a slab beside another that is turned over; here it passes. Stairs count as straight.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import shared_with_kernels
from rllib_minestudio.env.voxel.world.block_states import (
    FAMILY_OF,
    KIND_MASK,
    MOST_STATES,
    STATE_SHIFT,
    BlockFilter,
)
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, LARGEST_KIND, Block, Shape

OPAQUE = 15
"""Opacity of what light does not enter."""

SIDES = ("east", "west", "up", "down", "south", "north")
"""Sides in the order of their numbers: `number ^ 1` is the opposite side, `number >> 1` the axis
(x, y, z), and even numbers look along it."""
UP, DOWN = SIDES.index("up"), SIDES.index("down")

# A word for each block and state:
#
#      11       6 5    4 3        0
#     +----------+------+----------+
#     |  sides   | opac.| emission |     opacity: 0, 1, or 3 for 15
#     +----------+------+----------+
_EMISSION = np.uint16(15)
_DIMS, _STOPS = np.uint16(1 << 4), np.uint16(1 << 5)
_FIRST_SIDE = 6
_OPACITY_BITS = {0: 0, 1: int(_DIMS), OPAQUE: int(_DIMS | _STOPS)}

Optics = NDArray[np.uint16]


def _kinds_of(cell: str) -> Iterator[int]:
    """Kinds by "glass *_stained_glass", where * stands for any beginning."""
    for word in cell.split():
        for kind, block in enumerate(BLOCKS):
            if block.name == word or (word[0] == "*" and block.name.endswith(word[1:])):
                yield kind


def _usual(block: Block) -> int:
    stops = block.shape is Shape.CUBE and not block.see_through
    return _OPACITY_BITS[OPAQUE if stops else 0]


def _changed(word: int, row: Mapping[str, str]) -> int:
    """A block's word after what a row of the table says of it."""
    if row["light"]:
        word = word & ~int(_EMISSION) | int(row["light"])
    if row["opacity"]:
        word = word & ~int(_DIMS | _STOPS) | _OPACITY_BITS[int(row["opacity"])]
    for side in row["sides"].split():
        word |= 1 << _FIRST_SIDE + SIDES.index(side)
    return word


def _read_table() -> Optics:
    """The words of all kinds and states, uint16 [kinds, MOST_STATES]."""
    words = np.zeros((LARGEST_KIND + 1, MOST_STATES), np.uint16)
    words[: len(BLOCKS)] = np.array([_usual(block) for block in BLOCKS])[:, None]
    for row in read_csv("block_light.csv"):
        properties = dict(pair.split("=") for pair in row["state"].split())
        for kind in _kinds_of(row["kinds"]):
            states = BlockFilter.of(kind, properties).states
            for state in range(FAMILY_OF[kind].size):
                if states >> state & 1:
                    words[kind, state] = _changed(int(words[kind, state]), row)
    return words


_LIKE, _ROW_OF_KIND = np.unique(_read_table(), axis=0, return_inverse=True)
# Kinds that are alike in all states share a row, so that the table stays in the processor's cache.
_ROWS: Optics = np.ascontiguousarray(_LIKE.reshape(-1))
_FIRST_OF_KIND = (_ROW_OF_KIND.reshape(-1) * MOST_STATES).astype(np.int32)


@shared_with_kernels
def optics_of(block: Any) -> Any:
    """The word of a block, or of each block of an array."""
    return _ROWS[_FIRST_OF_KIND[block & KIND_MASK] + (block >> STATE_SHIFT)]


@shared_with_kernels
def emission(optics: Any) -> Any:
    """Light that a block gives, 0 to 15, by its word."""
    return optics & _EMISSION


@shared_with_kernels
def is_opaque(optics: Any) -> Any:
    """Whether no light enters a block from another, by its word."""
    return (optics & _STOPS) != 0


@shared_with_kernels
def dims_sky(optics: Any) -> Any:
    """Whether the light of the sky does not fall through a block undimmed, by its word."""
    return (optics & _DIMS) != 0


@shared_with_kernels
def closes(optics: Any, side: int) -> Any:
    """Whether one of a block's sides is full, by its word and the side's number."""
    return (optics & np.uint16(1 << (_FIRST_SIDE + side))) != 0
