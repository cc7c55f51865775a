"""The block world: the blocks around the player, and all operations on them.

Columns are addressed on a torus, so the window moves by making the chunks that come into reach in
place of those that went out of it. Only chunks within `LOAD_RADIUS` of the player's are *loaded*:
nothing else can be seen, walked on or changed. `make_ahead` makes the chunks that will be loaded
next little by little, so that loading them takes no time; its work has no visible effect.

`World.set_block`, `set_blocks` and `fill` are the only ways to change a block: they keep blocks,
tops and fields consistent and remember the change, so that a chunk looks as it was left when the
player returns to it.
"""

from __future__ import annotations

import math

import numpy as np

from rllib_minestudio.env.voxel.world.block_shapes import stops_nothing
from rllib_minestudio.env.voxel.world.blocks import ANY_BLOCK, SNOW, BlockFilter, kind_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, block_index, column_index
from rllib_minestudio.env.voxel.world.land import Changes, Chunk, Land, Span, fill_columns, square
from rllib_minestudio.env.voxel.world.worldgen import MANY_TINTS

LOAD_RADIUS = 5
"""Chunks that are always loaded in each direction from the player's."""
_AHEAD_RADIUS = LOAD_RADIUS + 1
"""Chunks in each direction that are made ready in advance. With the ring around them, which is made
but not ready, they fill 15 of the 16 chunks along each side of the window."""
_SOON = 4
"""Blocks: when chunks must be made at once, so are those needed this much farther on."""
_SET_OFF = 1.0
"""Blocks from where the player's chunk was entered to where land begins to be made in advance."""
_IN_TIME = 8.0
"""Blocks before they are loaded that chunks are made in advance: a row of 11 takes 25 ticks, in
which a sprinting player comes 7 blocks far."""
_CEILING_STEP = 8


class World:
    """Blocks around the player.

    Attributes:
        blocks: Blocks, as `blocks` has them. `Land` describes these first arrays.
        layer_radius: Distance to the nearest block of the layer.
        box: The box field.
        top: Highest block of each column.
        tints: Colours of each column, see `Land`.
        light: Levels of the light of the sky and of blocks, see `light_field`.
        shade: From which layer up there is nothing but full light of the sky around each column.
        thin: Where thin blocks are, see `cell_bits`.
        ceiling: No loaded block is at or above this y. It never falls, and rises in steps of 8.
        may_have_snow: Whether there may be single layers of snow on loaded land.
        only_tint: The entry in `tints` of all loaded land; `MANY_TINTS` if there are several.
        seed: The seed from which the terrain is made.
        changes: A counter that grows whenever blocks change or the seed does, by which others can
            tell that nothing has changed.
        has_plants: Whether plants grow on the land besides trees and cactus.
        unsupported: Places (x, y, z) where a change may have taken away what a block needs: sand
            and gravel above air, and blocks that need others next to a change. `game.notice`
            schedules what becomes of them and empties the list.
    """

    def __init__(self) -> None:
        self._land = Land()
        self.changes = 0
        self.blocks, self.top = self._land.blocks, self._land.top
        self.layer_radius, self.box = self._land.layer_radius, self._land.box
        self.tints = self._land.tints
        self.light, self.shade = self._land.lighting.light, self._land.lighting.shade
        self.thin = self._land.thin
        self.reset(0)

    def reset(self, seed: int, has_plants: bool = True) -> None:
        """Forget everything and take another seed; `load_around` then makes the world.

        Args:
            seed: From which the terrain is made.
            has_plants: Whether grass, ferns, flowers and the like grow on it.
        """
        self.seed, self.has_plants = seed & 0x3FFFFFFF, has_plants
        self._land.reset(self.seed, has_plants)
        self.ceiling = 0
        self.may_have_snow, self.only_tint = False, MANY_TINTS
        self.changes += 1
        self._centre: Chunk | None = None
        self._loaded_at = 0.0, 0.0
        self._loaded: set[Chunk] = set()
        self._ahead: list[Chunk] | None = None
        self.unsupported: list[tuple[int, int, int]] = []

    def edits(self) -> dict[Chunk, Changes]:
        """Return what was changed in the generated terrain, by chunk."""
        return self._land.edits.all_of(self._land.made, self.blocks)

    def begin_with(
        self, seed: int, has_plants: bool, edits: dict[Chunk, Changes], centre: Chunk
    ) -> None:
        """As `reset`, but with changes, and load the land around a chunk."""
        self.reset(seed, has_plants)
        self._land.edits.begin_with(edits)
        self.load_around((centre[0] + 0.5) * CHUNK, (centre[1] + 0.5) * CHUNK)

    def load_around(self, x: float, z: float) -> None:
        """Load every chunk within `LOAD_RADIUS` chunks of the point (x, z)."""
        centre = (int(x // CHUNK), int(z // CHUNK))
        if centre == self._centre:
            return
        is_first, self._centre, self._loaded_at = self._centre is None, centre, (x, z)
        loaded = set(square(centre, LOAD_RADIUS))
        if self._land.lacking(loaded):
            # A new world is ready sooner without what it can make ahead.
            needed = loaded if is_first else set(_needed_soon(x, z))
            self._land.make_ready(self._land.lacking(needed))
        if entered := loaded - self._loaded:
            self._raise_ceiling(self._land.ceiling(entered))
        self._loaded = loaded
        self.may_have_snow = not self._land.snowy.isdisjoint(loaded)
        self.only_tint = self._land.only_tint(loaded)
        self._ahead = None

    def make_ahead(self, x: float, z: float) -> None:
        """Do a little of the work that `load_around` will have to do as the player moves on.

        The player is at (x, z). The share is one chunk, whatever time that takes, so that the state
        of the land depends on the player's path alone. A player who stands still needs none.
        """
        if math.dist((x, z), self._loaded_at) < _SET_OFF:
            return
        if self._ahead is None and self._centre is not None:
            # Enough work for the tick that has loaded a row of chunks.
            self._ahead = self._land.lacking(set(square(self._centre, _AHEAD_RADIUS)))
            return
        if not self._ahead:
            return
        x, z = x / CHUNK - 0.5, z / CHUNK - 0.5

        def distance(chunk: Chunk) -> float:
            """Chunks to the middle of one, by the larger distance along an axis."""
            return max(abs(chunk[0] - x), abs(chunk[1] - z))

        chunk = min(self._ahead, key=distance)  # the one that is closest to being loaded
        if distance(chunk) <= LOAD_RADIUS + 0.5 + _IN_TIME / CHUNK and self._land.advance(chunk):
            self._ahead.remove(chunk)

    def is_loaded(self, x: float, z: float) -> bool:
        """Whether the column at (x, z) is within `LOAD_RADIUS` chunks of the player's chunk."""
        if self._centre is None:
            return False
        return (
            abs(x // CHUNK - self._centre[0]) <= LOAD_RADIUS
            and abs(z // CHUNK - self._centre[1]) <= LOAD_RADIUS
        )

    def block_at(self, x: int, y: int, z: int) -> int:
        """Block at (x, y, z); air outside the world's height and the loaded chunks."""
        if not 0 <= y < HEIGHT or not self.is_loaded(x, z):
            return 0
        return int(self.blocks[block_index(x, y, z)])

    def block_next_to(self, x: int, y: int, z: int) -> int:
        """As `block_at`, for places next to loaded chunks, too: their blocks are made."""
        return int(self.blocks[block_index(x, y, z)]) if 0 <= y < HEIGHT else 0

    def kind_at(self, x: int, y: int, z: int) -> int:
        """Kind of the block at (x, y, z), an index in `BLOCKS`; outside as in `block_at`."""
        return kind_of(self.block_at(x, y, z))

    def surface(self, x: float, z: float) -> int:
        """The y at which something stands on the column at (x, z): its top block's y + 1.

        Thin blocks do not count, nor does a layer of snow: what stands on the column stands in
        them.
        """
        column = int(x // 1), int(z // 1)
        y = int(self.top[column_index(*column)])
        return (
            y if y and stops_nothing(self.blocks[block_index(column[0], y, column[1])]) else y + 1
        )

    def set_block(self, x: int, y: int, z: int, block: int) -> bool:
        """Put a block at (x, y, z).

        Returns:
            False if the place cannot be changed (outside the height, or not loaded) or already
            holds that block.
        """
        return self.fill((x, x + 1), (y, y + 1), (z, z + 1), block) > 0

    def set_blocks(self, blocks: dict[tuple[int, int, int], int]) -> None:
        """Put many blocks by place (x, y, z); places must be loaded and within the height."""
        if not blocks:
            return
        for (x, y, z), block in blocks.items():
            self._put((x, x + 1), (y, y + 1), (z, z + 1), block, ANY_BLOCK)
        xs, ys, zs = ((min(places), max(places) + 1) for places in zip(*blocks, strict=True))
        self._raise_ceiling(ys[1])
        self._land.refresh(xs, ys, zs, SNOW in blocks.values())

    def fill(self, xs: Span, ys: Span, zs: Span, block: int, only: BlockFilter = ANY_BLOCK) -> int:
        """Fill a cuboid, given by half-open ranges, where chunks are loaded.

        Args:
            xs: Range of columns.
            ys: Range of layers.
            zs: Range of columns.
            block: Block to put.
            only: The blocks to replace.

        Returns:
            How many blocks changed.
        """
        if self._centre is None:
            return 0
        xs, zs = _clip(xs, self._centre[0]), _clip(zs, self._centre[1])
        ys = max(ys[0], 0), min(ys[1], HEIGHT)
        if xs[0] >= xs[1] or ys[0] >= ys[1] or zs[0] >= zs[1]:
            return 0
        changed = self._put(xs, ys, zs, block, only)
        if changed:
            self._raise_ceiling(ys[1])
            self._land.refresh(xs, ys, zs, block == SNOW)
        return changed

    @property
    def centre(self) -> Chunk | None:
        """The chunk around which land is loaded, the player's; None before any is."""
        return self._centre

    @property
    def num_edits(self) -> int:
        """Number of blocks that differ, or once did, from the generated terrain."""
        return self._land.edits.count

    def _put(self, xs: Span, ys: Span, zs: Span, block: int, only: BlockFilter) -> int:
        """Change blocks and tops, but not the fields; return how many blocks changed."""
        edits = self._land.edits
        changed, new, loose = fill_columns(
            self.blocks,
            self.top,
            edits.bits,
            *xs,
            *ys,
            *zs,
            block,
            only.kind,
            np.uint64(only.states),
        )
        edits.count += new
        self.changes += changed
        self.may_have_snow |= changed > 0 and block == SNOW
        if len(loose):
            self.unsupported.extend(map(tuple, loose.tolist()))
        return changed

    def _raise_ceiling(self, layer: int) -> None:
        if layer > self.ceiling:
            self.ceiling = min(-(-layer // _CEILING_STEP) * _CEILING_STEP, HEIGHT)


def _clip(span: Span, centre: int) -> Span:
    """The part of a range of columns that is loaded around a chunk."""
    low, high = (centre - LOAD_RADIUS) * CHUNK, (centre + LOAD_RADIUS + 1) * CHUNK
    return max(span[0], low), min(span[1], high)


def _needed_soon(x: float, z: float) -> list[Chunk]:
    """The chunks that are loaded if the player is at (x, z), or up to `_SOON` blocks away."""
    xs, zs = (
        range(
            int((at - _SOON) // CHUNK) - LOAD_RADIUS, int((at + _SOON) // CHUNK) + LOAD_RADIUS + 1
        )
        for at in (x, z)
    )
    return [(chunk_x, chunk_z) for chunk_x in xs for chunk_z in zs]
