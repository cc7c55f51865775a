"""How rays of the eye treat each block: as an opaque cube, or as something special.

The march of a tile ends in the first cell that the box field holds for a block. Most of these are
opaque cubes, and what is seen is the face by which the ray entered. In a *special* cell it may be
something else, which `see_through` finds out: a face inside the cell, a texel behind a hole, or
what lies behind the cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.render.texels import TEXTURE_WORDS
from rllib_minestudio.env.voxel.world.block_shapes import SHAPES, Box, default_shape
from rllib_minestudio.env.voxel.world.block_states import states_of
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCKS, Block

SPECIAL = 1
"""A ray may go on from it; unset for opaque cubes."""
BOXES = 2
"""It is made of boxes, see `block_shapes`; without this bit it fills its cell."""
LEAVES = 4
"""It is special near the eye only; farther away its holes are filled."""
CULLED = 8
"""Between two blocks of its kind, no faces are drawn."""
HOLES_BIT = 5
HOLES = 1 << HOLES_BIT
"""Some texels of its faces are not opaque; set by `with_looks`, since pictures may be replaced."""
FULL_LEAVES = 10.0
"""Distance in blocks from which leaves have no gaps."""
LOOK_SHIFT = 24
"""Bits below a block's look in the entries of its faces, see `with_looks`."""
TINTED_BIT = 6
"""Of the entry of a face whose texture is the first of some, one for each tint of a column."""
DARKENS_BIT = 4
DARKENS = 1 << DARKENS_BIT
"""It darkens the corners of faces at it."""

_CUBE = ((0, 0, 0, 1, 1, 1),)

TRANSLUCENT_KINDS = frozenset(
    (
        *("ice", "frosted_ice", "slime_block", "honey_block", "nether_portal"),
        *(
            block.name
            for block in BLOCKS
            if block.name.endswith(("_stained_glass", "_stained_glass_pane"))
        ),
    )
)
"""Kinds whose texels tint what is behind them; all other texels are opaque or holes."""


def _is_culled(block: Block) -> bool:
    """Minecraft's `skipRendering`, from memory: glass, panes and bars, and translucent blocks."""
    is_glass = block.name.endswith(("glass", "glass_pane", "iron_bars"))
    return is_glass or block.name in TRANSLUCENT_KINDS


def is_leaves(name: str) -> bool:
    """Whether blocks of a kind, by its name, are leaves."""
    return name.endswith("_leaves")


def _look(kind: int, block: int) -> int:
    its = BLOCKS[kind]
    look = 0
    if SHAPES[default_shape(block)].model != _CUBE:
        look |= SPECIAL | BOXES
    elif not its.name.endswith("glass") and its.name != "lava":
        # In Minecraft, whatever fills its cell for bodies does, except glass (from memory).
        look |= DARKENS
    if its.see_through or its.name in TRANSLUCENT_KINDS:
        look |= SPECIAL
    if is_leaves(its.name):
        look |= LEAVES
    if _is_culled(its):
        look |= CULLED
    return look


def _find_looks() -> NDArray[np.uint8]:
    looks = np.zeros(1 << 16, np.uint8)
    for kind in range(len(BLOCKS)):
        if kind != AIR:
            for block in states_of(kind):
                looks[block] = _look(kind, block)
    return looks


LOOKS = _find_looks()
"""The bits above for each block, uint8 (65536,); 0 for air and for what is no block."""


def with_looks(
    faces: NDArray[np.int32], has_holes: NDArray[np.bool_], tinted: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Add each block's look to the entries of its faces, where it costs no further look-up.

    Args:
        faces: `BlockAtlas.faces`, whose textures start below `1 << LOOK_SHIFT`.
        has_holes: See `BlockAtlas.has_holes`.
        tinted: `BlockAtlas.tinted`.
    """
    looks = LOOKS.astype(np.int32)
    looks |= (
        has_holes[faces // TEXTURE_WORDS].reshape(len(LOOKS), -1).any(1).astype(np.int32)
        << HOLES_BIT
    )
    looks = np.repeat(looks, len(faces) // len(LOOKS))
    return faces | (looks | tinted.astype(np.int32) << TINTED_BIT) << LOOK_SHIFT


# ------------------------------------------------------------------- fewer boxes that look the same


def joined(boxes: Iterable[Box]) -> list[Box]:
    """Join boxes into as few as look the same, because every ray has to be tried with each.

    Two boxes become one if they differ along one axis alone and there is no gap between them, or
    one that a third box fills: the arms of a fence run through its post.
    """
    left = list(dict.fromkeys(boxes))
    for one, other in itertools.combinations(left, 2):
        axes = [axis for axis in range(3) if one[axis::3] != other[axis::3]]
        if len(axes) == 1:
            axis = axes[0]
            (low, end), (begin, high) = sorted((one[axis::3], other[axis::3]))
            gap = _stretched(one, axis, end, begin)
            if end >= begin or any(_contains(box, gap) for box in left):
                rest = [box for box in left if box not in (one, other)]
                return joined([*rest, _stretched(one, axis, low, max(end, high))])
    return left


def _stretched(box: Box, axis: int, low: float, high: float) -> Box:
    """The box, but from `low` to `high` along an axis."""
    places = list(box)
    places[axis::3] = low, high
    x0, y0, z0, x1, y1, z1 = places
    return x0, y0, z0, x1, y1, z1


def _contains(box: Box, other: Box) -> bool:
    return all(box[n] <= other[n] and other[n + 3] <= box[n + 3] for n in range(3))
