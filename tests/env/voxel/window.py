"""Chunks made one by one into a window of their own, without a world around them."""

from __future__ import annotations

import numpy as np

from rllib_minestudio.env.voxel.world import caves, cell_bits, tunnels, worldgen
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT, WINDOW


class Window:
    """The arrays into which chunks are made."""

    def __init__(self) -> None:
        self.blocks = np.zeros(WINDOW * WINDOW * HEIGHT, np.uint16)
        self.top = np.zeros(WINDOW * WINDOW, np.uint8)
        self.tints = np.zeros(WINDOW * WINDOW, np.uint8)
        self.hollow = cell_bits.new_bits()
        self._rest = tunnels.new_burrows(), caves.find_shapes()

    def make(self, x: int, z: int, seed: int, has_plants: bool = True) -> tuple[int, int]:
        """Makes a chunk; returns what `make_chunk` does."""
        arrays = self.blocks, self.top, self.tints, self.hollow, *self._rest
        low, high, *_ = worldgen.make_chunk(*arrays, x, z, seed, has_plants)
        return low, high

    def chunk(self, x: int, z: int) -> np.ndarray:
        """The blocks of a chunk, uint16 [x, z, y]; a view."""
        x, z = x * CHUNK % WINDOW, z * CHUNK % WINDOW
        return self.blocks.reshape(WINDOW, WINDOW, HEIGHT)[x : x + CHUNK, z : z + CHUNK]

    def tops(self, x: int, z: int) -> np.ndarray:
        """The tops of a chunk, uint8 [x, z]; a view."""
        x, z = x * CHUNK % WINDOW, z * CHUNK % WINDOW
        return self.top.reshape(WINDOW, WINDOW)[x : x + CHUNK, z : z + CHUNK]

    def tints_of(self, x: int, z: int) -> np.ndarray:
        """The tints of a chunk, uint8 [x, z]; a view."""
        x, z = x * CHUNK % WINDOW, z * CHUNK % WINDOW
        return self.tints.reshape(WINDOW, WINDOW)[x : x + CHUNK, z : z + CHUNK]
