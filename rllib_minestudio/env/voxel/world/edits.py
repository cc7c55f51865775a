"""Changes of blocks, and the memory of what was changed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import numpy as np
from numba import int64, uint8, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.block_states import (
    STATE_SHIFT,
    bears,
    covers,
    kind_of,
    needs_others,
)
from rllib_minestudio.env.voxel.world.blocks import FALLS, SNOW
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
)
from rllib_minestudio.env.voxel.world.column_bits import Bits

Changes = tuple[NDArray[np.intp], NDArray[np.uint16]]
"""Places in a chunk, as indices into its columns, ascending; and the blocks there."""

_BITS = 8
_Id = TypeVar("_Id", np.uint8, np.uint16, np.uint64)


class EditMemory:
    """The blocks changed since the world was made, in the window and in chunks that left it.

    For a chunk in the window, the window's arrays hold the changed blocks, and a bit here marks
    each of them. When the chunk is overwritten, its changes move to a list of their own until it is
    made again.

    Attributes:
        bits: A bit for each block of the window, uint8 [2**20]: bit `index % 8` of entry
            `index // 8` for the block at `index`.
        count: Number of blocks that differ, or once did, from the generated terrain.
    """

    def __init__(self) -> None:
        self.bits = np.zeros(WINDOW * WINDOW * HEIGHT // _BITS, np.uint8)
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.bits.fill(0)
        self.count = 0
        self._left: dict[tuple[int, int], Changes] = {}

    def leave(self, chunk: tuple[int, int], blocks: NDArray[np.uint16]) -> None:
        """Remember the changed blocks of a chunk that is about to be overwritten."""
        if (changes := self._changes(chunk, blocks)) is not None:
            self._left[chunk] = changes
            part_of_chunk(self.bits, chunk)[...] = 0

    def all_of(
        self, present: Collection[tuple[int, int]], blocks: NDArray[np.uint16]
    ) -> dict[tuple[int, int], Changes]:
        """Return the changes of all chunks in order, those of `present` from the window."""
        found = dict(self._left)
        for chunk in present:
            if (changes := self._changes(chunk, blocks)) is not None:
                found[chunk] = changes
        return dict(sorted(found.items()))

    def begin_with(self, changes: dict[tuple[int, int], Changes]) -> None:
        """Remember changes, of chunks that have yet to be made, in place of all others."""
        self.clear()
        self._left = dict(changes)
        self.count = sum(len(places) for places, _ in changes.values())

    def _changes(self, chunk: tuple[int, int], blocks: NDArray[np.uint16]) -> Changes | None:
        bits = part_of_chunk(self.bits, chunk)
        if not bits.any():
            return None
        changed = np.flatnonzero(np.unpackbits(bits.reshape(-1), bitorder="little"))
        return changed, part_of_chunk(blocks, chunk).reshape(-1)[changed]

    def enter(
        self,
        chunk: tuple[int, int],
        blocks: NDArray[np.uint16],
        top: NDArray[np.uint8],
        hollow: Bits,
    ) -> tuple[int, int, bool] | None:
        """Repeat the remembered changes in a chunk just generated; correct its tops and hollows.

        Returns:
            The lowest and the highest layer with a change, and whether any is a single layer of
            snow; or None if there are no changes.
        """
        if chunk not in self._left:
            return None
        changed, values = self._left.pop(chunk)
        x, z, y = np.unravel_index(changed, (CHUNK, CHUNK, HEIGHT))
        columns = part_of_chunk(blocks, chunk)
        columns[x, z, y] = values
        flags = np.zeros(CHUNK * CHUNK * HEIGHT, np.uint8)
        flags[changed] = 1
        bits = part_of_chunk(self.bits, chunk)
        bits[...] = np.packbits(flags, bitorder="little").reshape(bits.shape)
        part_of_chunk(hollow, chunk)[...] |= np.ascontiguousarray(bits).view("<u8")
        covered = covers(columns)
        highest = HEIGHT - 1 - covered[:, :, ::-1].argmax(2)
        part_of_chunk(top, chunk)[:, :, 0] = np.where(covered.any(2), highest, 0)
        return int(y.min()), int(y.max()), SNOW in values


def part_of_chunk(flat: NDArray[_Id], chunk: tuple[int, int]) -> NDArray[_Id]:
    """A chunk's part of one of the window's arrays, as a view [16, 16, entries per column]."""
    x, z = (place * CHUNK % WINDOW for place in chunk)
    return flat.reshape(WINDOW, WINDOW, -1)[x : x + CHUNK, z : z + CHUNK]


@kernel()
def fill_columns(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    bits: NDArray[np.uint8],
    x0: int,
    x1: int,
    y0: int,
    y1: int,
    z0: int,
    z1: int,
    block: int,
    only: int,
    only_states: int,
) -> tuple[int, int, NDArray[np.int64]]:
    """Fill [x0, x1) x [y0, y1) x [z0, z1) with a block; layers must be within the height.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        top: The window's column tops, uint8 [2**16].
        bits: `EditMemory.bits`.
        x0: First column.
        x1: Column after the last.
        y0: First layer.
        y1: Layer after the last.
        z0: First column.
        z1: Column after the last.
        block: Block to put.
        only: The only kind to replace, -1 for any.
        only_states: Which of its states to replace, see `BlockFilter.states`; uint64.

    Returns:
        How many blocks changed, how many of them for the first time, and the places, int64 [n, 3]
        of x, y and z, where a block may have lost what it needs; see `_find_unsupported`.
    """
    touched = np.zeros((x1 - x0 + 2, z1 - z0 + 2), np.bool_)
    changed, new = 0, 0
    for x in range(x0, x1):
        for z in range(z0, z1):
            in_column, first_time = _fill_column(
                blocks, bits, x, z, y0, y1, block, only, only_states
            )
            if in_column == 0:
                continue
            changed += in_column
            new += first_time
            touched[x - x0 + 1, z - z0 + 1] = True
            _update_top(blocks, top, x, z, y1)
    return changed, new, _find_unsupported(blocks, touched, x0, y0, y1, z0)


@kernel()
def _fill_column(
    blocks: NDArray[np.uint16],
    bits: NDArray[np.uint8],
    x: int,
    z: int,
    y0: int,
    y1: int,
    block: int,
    only: int,
    only_states: int,
) -> tuple[int, int]:
    """Fill layers [y0, y1) of a column; return how many changed, and how many had not before."""
    changed, new = 0, 0
    for index in range(block_index(x, y0, z), block_index(x, y0, z) + y1 - y0):
        old = int64(blocks[index])
        # What `only` selects counts as changed, even if the same block replaces it.
        if only >= 0:
            fits = kind_of(old) == only and _has_bit(only_states, old >> STATE_SHIFT)
        else:
            fits = old != block
        if not fits:
            continue
        blocks[index] = block
        changed += 1
        bit = uint8(uint32(1) << uint32(index % _BITS))
        if not bits[index // _BITS] & bit:
            bits[index // _BITS] |= bit
            new += 1
    return changed, new


@kernel(inline="always")
def _has_bit(bits: int, number: int) -> bool:
    return (bits >> uint64(number)) & uint64(1) != uint64(0)


@kernel()
def _update_top(
    blocks: NDArray[np.uint16], top: NDArray[np.uint8], x: int, z: int, y1: int
) -> None:
    """Correct a column's top after changes below layer y1."""
    y = max(int64(top[column_index(x, z)]), y1 - 1)
    while y > 0 and not covers(blocks[block_index(x, y, z)]):
        y -= 1
    top[column_index(x, z)] = y


@kernel()
def _find_unsupported(
    blocks: NDArray[np.uint16],
    touched: NDArray[np.bool_],
    x0: int,
    y0: int,
    y1: int,
    z0: int,
) -> NDArray[np.int64]:
    """Find the blocks that may have lost what they need by changes in layers [y0, y1).

    These are sand and gravel without ground in the changed columns, and every block that needs
    others within or next to the changed part of a column, whether it has lost them or not. A block
    that is put alone is not among them: as in the game, a command may leave a torch in mid-air.

    Args:
        blocks: The window's blocks, uint16 [2**23].
        touched: Which columns have changed, with a ring of columns around.
        x0: First column inside the ring.
        y0: First layer.
        y1: Layer after the last.
        z0: First column inside the ring.

    Returns:
        Their places, int64 [n, 3] of x, y and z, ordered by x, then z, then y.
    """
    places, count = np.empty((4, 3), np.int64), 0
    rows, row = touched.shape
    for i in range(rows):
        for k in range(row):
            here = touched[i, k]
            beside = (i > 0 and touched[i - 1, k]) or (i + 1 < rows and touched[i + 1, k])
            beside = beside or (k > 0 and touched[i, k - 1]) or (k + 1 < row and touched[i, k + 1])
            if not here and not beside:
                continue
            x, z = x0 - 1 + i, z0 - 1 + k
            alone = y1 - y0 == 1 and not beside
            for y in range(max(y0 - 1, 0) if here else y0, min(y1 + 1, HEIGHT) if here else y1):
                is_found = needs_others(blocks[block_index(x, y, z)]) and not (alone and y == y0)
                if not is_found and not (here and y >= y0 and _is_loose(blocks, x, y, z)):
                    continue
                if count == len(places):
                    larger = np.empty((2 * count, 3), np.int64)
                    larger[:count] = places
                    places = larger
                places[count, 0], places[count, 1], places[count, 2] = x, y, z
                count += 1
    return places[:count]


@kernel()
def _is_loose(blocks: NDArray[np.uint16], x: int, y: int, z: int) -> bool:
    """Whether a block falls and has nothing to rest on."""
    here = block_index(x, y, z)
    return FALLS[kind_of(blocks[here])] and (y == 0 or not bears(blocks[here - 1]))
