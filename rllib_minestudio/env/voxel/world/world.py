"""The block world: a window of columns that follows the player, and its acceleration structures.

Columns are addressed on a torus, so the window moves by loading the chunks that come into reach
over those that went out of it. `World.set_block` and `World.fill` are the
only ways to change a block: they keep blocks, column tops and box field in agreement and remember
the change, so that a chunk that was left and is entered again looks as it was left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.world import box_field, worldgen
from rllib_minestudio.env.voxel.world.addressing import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
    place_in_window,
)
from rllib_minestudio.env.voxel.world.blocks import AIR, FALLS

CHUNKS = WINDOW // CHUNK
LOAD_RADIUS = 5
"""Chunks that are always loaded in each direction from the player's."""
_BAND_STEP = 8
"""Floor and ceiling move in steps, so that digging down or building up rarely moves them."""


class World:
    """Blocks around the player.

    Attributes:
        blocks: Block ids, uint8 [256 * 256 * 128]; see `addressing`.
        layer_radius: Horizontal Chebyshev distance to the nearest block in the same layer, at
            most 15; 0 in a block. uint8, indexed as `blocks`; exact below `ceiling`.
        box: The box field, uint16, indexed as `blocks`; valid below `ceiling`. 0 in a block,
            otherwise bits 0-4 hold the layer radius r (no block within r - 1 columns), bits 5-9
            and 10-14 for how many layers up and down the radius is at least r too (at most 15).
        top: y of the highest block of a column, uint8 [256 * 256]; see
            `addressing`.
        ceiling: No block of the window is at or above this y.
        floor: Below this y the loaded chunks are solid as generated; a lower bound for kernels.
        seed: What the terrain is made from.
        unsupported: Places (x, y, z) where a change left sand or gravel above air; `Falling` lets
            them fall and empties the list.
    """

    def __init__(self) -> None:
        """Makes the world of seed 0, without land."""
        self.blocks = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint8)
        self.layer_radius = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint8)
        self.box = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint16)
        self.top = np.zeros(WINDOW * WINDOW, np.uint8)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forgets everything and makes the world of `seed`; `load_around` then fills it."""
        self.seed = seed & 0x3FFFFFFF
        self.blocks.fill(0)
        self.layer_radius.fill(box_field.MAX_RADIUS)
        self.box.fill(0)
        self.top.fill(0)
        self.floor = HEIGHT
        self.ceiling = 0
        self._centre: tuple[int, int] | None = None
        self._loaded: dict[tuple[int, int], tuple[int, int]] = {}
        self._edits: dict[tuple[int, int], dict[int, int]] = {}
        self.unsupported: list[tuple[int, int, int]] = []

    def load_around(self, x: float, z: float) -> None:
        """Loads every missing chunk within `LOAD_RADIUS` chunks of the point (x, z)."""
        centre = (int(x // CHUNK), int(z // CHUNK))
        if centre == self._centre:
            return
        self._centre = centre
        missing = [
            (chunk_x, chunk_z)
            for chunk_x in range(centre[0] - LOAD_RADIUS, centre[0] + LOAD_RADIUS + 1)
            for chunk_z in range(centre[1] - LOAD_RADIUS, centre[1] + LOAD_RADIUS + 1)
            if self._loaded.get((chunk_x % CHUNKS, chunk_z % CHUNKS)) != (chunk_x, chunk_z)
        ]
        if not missing:
            return
        bounds = [self._load(chunk) for chunk in missing]
        self._widen_band(min(low for low, _ in bounds), max(high for _, high in bounds) + 1)
        chunks_x = [chunk[0] for chunk in missing]
        chunks_z = [chunk[1] for chunk in missing]
        self._refresh(
            (min(chunks_x) * CHUNK, (max(chunks_x) + 1) * CHUNK),
            (self.floor, self.ceiling),
            (min(chunks_z) * CHUNK, (max(chunks_z) + 1) * CHUNK),
        )

    def is_loaded(self, x: float, z: float) -> bool:
        """Whether the column at (x, z) is within `LOAD_RADIUS` chunks of the player's chunk."""
        if self._centre is None:
            return False
        return (
            abs(x // CHUNK - self._centre[0]) <= LOAD_RADIUS
            and abs(z // CHUNK - self._centre[1]) <= LOAD_RADIUS
        )

    def block_at(self, x: int, y: int, z: int) -> int:
        """Block id at (x, y, z); air outside of the world's height and of the loaded chunks."""
        if not 0 <= y < HEIGHT or not self.is_loaded(x, z):
            return 0
        return int(self.blocks[block_index(x, y, z)])

    def surface(self, x: float, z: float) -> int:
        """The y on which something stands on the column at (x, z): its top block's y + 1."""
        return int(self.top[column_index(int(x // 1), int(z // 1))]) + 1

    def set_block(self, x: int, y: int, z: int, block: int) -> bool:
        """Puts block id `block` at (x, y, z).

        Returns:
            False when the place cannot be changed (outside of the height, or not loaded) or
            already holds that block.
        """
        return self.fill((x, x + 1), (y, y + 1), (z, z + 1), block) > 0

    def set_blocks(self, blocks: dict[tuple[int, int, int], int]) -> None:
        """Puts many blocks, by place (x, y, z), which must be loaded and within the height."""
        if not blocks:
            return
        for (x, y, z), block in blocks.items():
            self._set_column(x, z, y, y + 1, block)
        xs, ys, zs = ((min(places), max(places) + 1) for places in zip(*blocks, strict=True))
        self._widen_band(*ys)
        self._refresh(xs, ys, zs)

    def fill(
        self,
        xs: tuple[int, int],
        ys: tuple[int, int],
        zs: tuple[int, int],
        block: int,
        only: int | None = None,
    ) -> int:
        """Fills the cuboid of half-open ranges with block id `block`, where chunks are loaded.

        Args:
            xs: Columns.
            ys: Layers.
            zs: Columns.
            block: What to put.
            only: Replace this block id only; None for any.

        Returns:
            How many blocks changed.
        """
        if self._centre is None:
            return 0
        x0, x1 = self._clip(xs, self._centre[0])
        z0, z1 = self._clip(zs, self._centre[1])
        y0, y1 = max(ys[0], 0), min(ys[1], HEIGHT)
        if y0 >= y1:  # a negative end would count from the top of a column
            return 0
        changed = sum(
            self._set_column(x, z, y0, y1, block, only)
            for x in range(x0, x1)
            for z in range(z0, z1)
        )
        if changed:
            self._widen_band(y0, y1)
            self._refresh((x0, x1), (y0, y1), (z0, z1))
        return changed

    @staticmethod
    def _clip(span: tuple[int, int], centre: int) -> tuple[int, int]:
        low, high = (centre - LOAD_RADIUS) * CHUNK, (centre + LOAD_RADIUS + 1) * CHUNK
        return max(span[0], low), min(span[1], high)

    @property
    def num_edits(self) -> int:
        """Blocks that differ, or did once, from the terrain as generated."""
        return sum(map(len, self._edits.values()))

    def _column(self, x: int, z: int) -> NDArray[np.uint8]:
        start = block_index(x, 0, z)
        return self.blocks[start : start + HEIGHT]

    def _set_column(
        self, x: int, z: int, y0: int, y1: int, block: int, only: int | None = None
    ) -> int:
        column = self._column(x, z)
        old = column[y0:y1]
        changed = np.flatnonzero(old != block if only is None else old == only) + y0
        if len(changed) == 0:
            return 0
        column[changed] = block
        edits = self._edits.setdefault((x // CHUNK, z // CHUNK), {})
        for y in changed.tolist():
            edits[block_index(x, y, z)] = block
        self._note_unsupported(x, z, y0, min(y1 + 1, HEIGHT))
        self._update_top(x, z)
        return len(changed)

    def _note_unsupported(self, x: int, z: int, y0: int, y1: int) -> None:
        """Notes the blocks of a column, in the layers [y0, y1), that have nothing to rest on."""
        column = self._column(x, z)
        for y in (np.flatnonzero(FALLS[column[y0:y1]]) + y0).tolist():
            if y == 0 or column[y - 1] == AIR:
                self.unsupported.append((x, y, z))

    def _update_top(self, x: int, z: int) -> None:
        column = self._column(x, z)
        solid = np.flatnonzero(column)
        self.top[column_index(x, z)] = solid[-1] if len(solid) else 0

    def _load(self, chunk: tuple[int, int]) -> tuple[int, int]:
        """Writes a chunk's blocks; returns its lowest layer with air and highest with a block."""
        low, high = worldgen.generate_chunk(self.blocks, self.top, *chunk, self.seed)
        for cell, block in self._edits.get(chunk, {}).items():
            self.blocks[cell] = block
            x, y, z = place_in_window(cell)
            low, high = min(low, y), max(high, y)
            self._update_top(x, z)
        x, z = chunk[0] % CHUNKS * CHUNK, chunk[1] % CHUNKS * CHUNK
        layers = self.layer_radius.reshape(WINDOW, WINDOW, HEIGHT)
        layers[x : x + CHUNK, z : z + CHUNK, :low] = 0
        self._loaded[chunk[0] % CHUNKS, chunk[1] % CHUNKS] = chunk
        return low, high

    def _widen_band(self, low: int, high: int) -> None:
        """Widens [floor, ceiling) to contain the layers [low, high), with a valid box field."""
        was_empty = self.ceiling == 0
        floor, ceiling = self.floor, self.ceiling
        if low < floor:
            floor = low // _BAND_STEP * _BAND_STEP
        if high > ceiling:
            ceiling = min(-(-high // _BAND_STEP) * _BAND_STEP, HEIGHT)
        if (floor, ceiling) == (self.floor, self.ceiling):
            return
        self.floor, self.ceiling = floor, ceiling
        if not was_empty:
            box_field.update_boxes(
                self.layer_radius, self.box, 0, WINDOW, 0, WINDOW, floor, ceiling
            )

    def _refresh(self, xs: tuple[int, int], ys: tuple[int, int], zs: tuple[int, int]) -> None:
        """Brings the acceleration structures up to date after blocks in the cuboid changed."""
        reach = box_field.MAX_RADIUS
        x0, x1, z0, z1 = xs[0] - reach, xs[1] + reach, zs[0] - reach, zs[1] + reach
        box_field.update_layer_radius(self.blocks, self.layer_radius, x0, x1, z0, z1, *ys)
        box_field.update_boxes(
            self.layer_radius, self.box, x0, x1, z0, z1, self.floor, self.ceiling
        )
