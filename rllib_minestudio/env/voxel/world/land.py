"""The chunks in the window, the state of each, and what has been changed in them.

A chunk of the world has one of 16 x 16 slots in the window; chunks that are a multiple of 256
columns apart share a slot. A chunk is in one of three states:

    absent --make--> made --build--> ready
       ^              |  ^             |
       +--overwritten-+  +-------------+ a neighbour was overwritten

- *Made*: its blocks, tops and bits of thin blocks are those of the world, as generated and then
  edited.
- *Ready*: so are those of the eight chunks around it, and its layer radius, boxes and light are
  exact.

This is the invariant. Fields depend on blocks at most `REACH` columns away, fewer than a chunk has,
so those of a ready chunk depend on made chunks only, never on leftovers in a slot. Everything that
writes to the window keeps the invariant:

- Making a chunk changes no block that a ready chunk's fields depend on, because no neighbour of an
  absent chunk is ready; and before a chunk is overwritten, its neighbours stop being ready.
- The light of a chunk just made spreads over the made chunks around it only, as it reaches no
  farther. What an overwritten chunk gave to its neighbours they get again when it returns, as
  nothing can change it meanwhile.
- Building a chunk's other fields reads blocks alone, never fields, and writes to no other chunk.
- An edit refreshes the fields within `REACH` columns and relies on those beyond, so every chunk
  within `REACH` + 1 columns is made ready first.

Ready chunks are therefore the same whatever was loaded before, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from typing import Any, TypeVar

import numpy as np
from numba import int64, uint8, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import (
    box_field,
    caves,
    cell_bits,
    lighting,
    tunnels,
    worldgen,
)
from rllib_minestudio.env.voxel.world.blocks import (
    FALLS,
    SNOW,
    STATE_SHIFT,
    bears,
    covers,
    kind_of,
    needs_others,
)
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
)
from rllib_minestudio.env.voxel.world.column_bits import Bits
from rllib_minestudio.env.voxel.world.worldgen import MANY_TINTS

# -------------------------------------------- changes of blocks, and the memory of what was changed

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


# -------------------------------------------------- the chunks in the window, and the state of each

Chunk = tuple[int, int]
"""Coordinates of a chunk: column x // 16 and z // 16."""
Span = tuple[int, int]
"""A half-open range of columns or layers."""

CHUNKS = WINDOW // CHUNK
"""Slots along each side of the window."""


def square(centre: Chunk, radius: int) -> list[Chunk]:
    """The chunks within `radius` chunks of `centre` along both axes, itself included."""
    reach = range(-radius, radius + 1)
    return [(centre[0] + dx, centre[1] + dz) for dx in reach for dz in reach]


class Land:
    """The chunks in the window.

    Attributes:
        blocks: Blocks, uint16 [256 * 256 * 128]; see `box_field.block_index`.
        layer_radius: Horizontal Chebyshev distance to the nearest block in the same layer, at
            most 15; 0 in a block. uint8, indexed as `blocks`.
        box: The box field, uint16, indexed as `blocks`. 0 in a block, otherwise bits 0-4 hold the
            layer radius r (no block within r - 1 columns), bits 5-9 and 10-14 the number of layers
            up and down (at most 15) in which the radius is at least r, too.
        top: y of the highest block of a column, uint8 [256 * 256]; see `box_field.column_index`.
        tints: Whose colours a column's grass and leaves have: an index in `BIOMES`, or `SNOWY` for
            grass below snow as the land was made; uint8, indexed as `top`.
        lighting: Light of the sky and of blocks, see `lighting`.
        thin: Where thin blocks are, see `cell_bits`.
        hollow: Where the land is hollow, see `cell_bits`.
        snowy: The chunks in which there may be single layers of snow: all others have none.
        edits: What was changed.
        seed: The seed from which the terrain is made.
        has_plants: Whether plants grow on it besides trees and cactus.
    """

    def __init__(self) -> None:
        self.blocks = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint16)
        self.layer_radius = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint8)
        self.box = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint16)
        self.top = np.zeros(WINDOW * WINDOW, np.uint8)
        self.tints = np.zeros(WINDOW * WINDOW, np.uint8)
        self.lighting = lighting.new_lighting()
        self.thin = cell_bits.new_bits()
        self.hollow = cell_bits.new_bits()
        self.edits = EditMemory()
        self._burrows, self._shapes = tunnels.new_burrows(), caves.find_shapes()
        self._slots: dict[Chunk, Chunk] = {}
        """Slot in the window -> the chunk in it."""
        self._left_over: set[Chunk] = set()
        """Slots that may hold what was made before the reset."""
        self.reset(0)

    def reset(self, seed: int, has_plants: bool = True) -> None:
        """Forget all chunks and edits, and take another seed.

        What was made is gone after the next `make_ready`, which writes over most of it.
        """
        self.seed, self.has_plants = seed, has_plants
        self._left_over.update(self._slots)
        self._slots.clear()
        self.edits.clear()
        self.snowy: set[Chunk] = set()
        self._ceiling: dict[Chunk, int] = {}
        """Of each made chunk, the layer from which up it is empty."""
        self._tints: dict[Chunk, int] = {}
        """Of each made chunk, the tint of its columns, or `MANY_TINTS`."""
        self._ready: set[Chunk] = set()

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether a chunk is ready: blocks, tops and fields are exact."""
        return chunk in self._ready

    def lacking(self, chunks: Set[Chunk]) -> list[Chunk]:
        """Those of `chunks` that are not ready, in a fixed order."""
        return sorted(chunks - self._ready)

    @property
    def made(self) -> Collection[Chunk]:
        """The chunks whose blocks are in the window."""
        return self._ceiling.keys()

    def ceiling(self, chunks: Collection[Chunk]) -> int:
        """A layer from which up there are no blocks in `chunks`, which must be made."""
        return max(self._ceiling[chunk] for chunk in chunks)

    def only_tint(self, chunks: Collection[Chunk]) -> int:
        """The one tint of all columns in `chunks`, which must be made, or `MANY_TINTS`."""
        found = {self._tints[chunk] for chunk in chunks}
        return found.pop() if len(found) == 1 else MANY_TINTS

    def make_ready(self, chunks: Collection[Chunk]) -> None:
        """Make chunks ready that are not yet; they must be at most 14 apart along each axis."""
        for chunk in chunks:
            for near in square(chunk, 1):
                if near not in self._ceiling:
                    self._make(near)
        for xs, zs in _rectangles(chunks):
            self._build(xs, zs)
        if self._left_over:
            self._clear_left_over()

    def advance(self, chunk: Chunk) -> bool:
        """Do one step towards making a chunk ready: make one chunk, or build its fields.

        Returns:
            Whether it is ready now.
        """
        if chunk in self._ready:
            return True
        for near in square(chunk, 1):
            if near not in self._ceiling:
                self._make(near)
                return False
        self._build((chunk[0], chunk[0] + 1), (chunk[1], chunk[1] + 1))
        return True

    def refresh(self, xs: Span, ys: Span, zs: Span, has_snow: bool) -> None:
        """Update the fields after blocks of ready chunks changed, in half-open ranges.

        Chunks that are near enough to matter become ready as well. `has_snow` says whether any of
        the new blocks is a single layer of snow.
        """
        for chunk in _chunks_of(xs, zs, 0):
            self._ceiling[chunk] = max(self._ceiling[chunk], ys[1])
            if has_snow:
                self.snowy.add(chunk)
        cell_bits.open_box(self.hollow, *xs, *zs, *ys)
        near = _chunks_of(xs, zs, box_field.REACH + 1)
        if not self._ready.issuperset(near):
            self.make_ready(self.lacking(set(near)))
        cell_bits.find_thin(self.blocks, self.thin, *xs, *zs, *ys)
        arrays = self.blocks, self.top, self.hollow
        box_field.refresh(*arrays, self.layer_radius, self.box, *xs, *zs, *ys)
        lighting.refresh(self.lighting, *arrays, *xs, *ys, *zs)

    def _make(self, chunk: Chunk) -> None:
        slot = (chunk[0] % CHUNKS, chunk[1] % CHUNKS)
        if slot in self._slots:
            overwritten = self._slots[slot]
            self._ready.difference_update(square(overwritten, 1))
            self.edits.leave(overwritten, self.blocks)
            del self._ceiling[overwritten], self._tints[overwritten]
            self.snowy.discard(overwritten)
        arrays = self.blocks, self.top, self.tints, self.hollow, self._burrows, self._shapes
        low, high, has_snow, tint = worldgen.make_chunk(*arrays, *chunk, self.seed, self.has_plants)
        glowing = caves.LAVA_LAYERS
        if edited := self.edits.enter(chunk, self.blocks, self.top, self.hollow):
            lowest, highest, is_snowy = edited
            low, high, has_snow = min(low, lowest), max(high, highest), has_snow or is_snowy
            glowing = max(glowing, highest + 1)
        if has_snow:
            self.snowy.add(chunk)
        self._slots[slot] = chunk
        self._ceiling[chunk] = high + 1
        x, z = chunk[0] * CHUNK, chunk[1] * CHUNK
        self._tints[chunk] = tint
        cell_bits.enter_thin(self.blocks, self.thin, x, z, low, high + 1)
        self._let_light_in(chunk, glowing)

    def _clear_left_over(self) -> None:
        """Make zero what is left from before the reset, which nothing has been written over."""
        unmade = [slot for slot in self._left_over if slot not in self._slots]
        unready = [slot for slot in self._left_over if self._slots.get(slot) not in self._ready]
        for array in (self.blocks, self.top, self.tints, self.thin, self.hollow):
            _clear(array, unmade)
        for array in (self.layer_radius, self.box):
            _clear(array, unready)
        self._left_over.clear()

    def _let_light_in(self, chunk: Chunk, glowing: int) -> None:
        """Add a chunk just made, in which nothing glows from a layer up, to the fields of light."""
        slots = np.zeros(CHUNKS * CHUNKS, np.bool_)
        for x in range(chunk[0] - 1, chunk[0] + 2):
            for z in range(chunk[1] - 1, chunk[1] + 2):
                if (x, z) in self._ceiling:
                    slots[x % CHUNKS * CHUNKS + z % CHUNKS] = True
        arrays = self.lighting, self.blocks, self.top, self.hollow, slots
        lighting.enter_chunk(*arrays, chunk[0] * CHUNK, chunk[1] * CHUNK, glowing)

    def _build(self, xs: Span, zs: Span) -> None:
        """Build the fields of the chunks [xs) x [zs); all chunks around them must be made."""
        around = [(x, z) for x in range(xs[0] - 1, xs[1] + 1) for z in range(zs[0] - 1, zs[1] + 1)]
        box_field.build(
            self.blocks,
            self.top,
            self.hollow,
            self.layer_radius,
            self.box,
            xs[0] * CHUNK,
            xs[1] * CHUNK,
            zs[0] * CHUNK,
            zs[1] * CHUNK,
            self.ceiling(around),
        )
        self._ready.update((x, z) for x in range(*xs) for z in range(*zs))


def _clear(array: NDArray[Any], slots: list[Chunk]) -> None:
    """Make one of the window's arrays zero in some slots."""
    if slots:
        x, z = np.array(slots).T
        array.reshape(CHUNKS, CHUNK, CHUNKS, -1)[x, :, z] = 0


def _chunks_of(xs: Span, zs: Span, margin: int) -> list[Chunk]:
    """The chunks with columns within a margin of a rectangle."""
    first_x, last_x = (xs[0] - margin) // CHUNK, (xs[1] - 1 + margin) // CHUNK
    first_z, last_z = (zs[0] - margin) // CHUNK, (zs[1] - 1 + margin) // CHUNK
    return [(x, z) for x in range(first_x, last_x + 1) for z in range(first_z, last_z + 1)]


def _rectangles(chunks: Collection[Chunk]) -> Iterator[tuple[Span, Span]]:
    """Group chunks to rectangles, as spans of x and z: building a group together is faster.

    Each is as long as it can be along z, then as wide as it can be along x.
    """
    left = set(chunks)
    for x, z in sorted(chunks):
        if (x, z) not in left:
            continue
        end_x, end_z = x + 1, z + 1
        while (x, end_z) in left:
            end_z += 1
        while all((end_x, i) in left for i in range(z, end_z)):
            end_x += 1
        left.difference_update((i, k) for i in range(x, end_x) for k in range(z, end_z))
        yield (x, end_x), (z, end_z)
