"""The dust of blocks that are hit or break, as in Minecraft Java 1.16 (`TerrainParticle`).

Particles serve the eye alone: no rule reads them, and they have a random stream of their own, so
that a game is the same with and without them. A particle is a point that flies until it touches the
ground. Minecraft's have boxes, which stop a tenth of a block from walls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.entities.records import Records
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.block_shapes import OUTLINE_BOUNDS, shape_at
from rllib_minestudio.env.voxel.world.box_field import block_index

PARTICLE_CAPACITY = 512
"""Most particles at once; the oldest vanish first. Eight blocks that break at once fill it."""
BURST_SIDE = 4
"""A block bursts into this many particles along each axis."""
GRAVITY, DRAG = 0.04, 0.98
SHORTEST_LIFE = 4
"""Ticks; a life is this divided by a random number from 0.1 to 1."""
SMALLEST_HALF = 0.05
"""Half the side of the smallest particle, in blocks; the largest is twice as large."""
HIT_SIZE, HIT_SPEED = 0.6, 0.2
"""Factors on size and speed of a hit's particle, compared to those of a burst."""
LIFT = 0.1
"""Upward speed that every particle starts with, in blocks per tick."""
SCATTER = 0.4
"""Most that chance adds to each component of a particle's direction."""
HIT_MARGIN = 0.1
"""A hit's particle starts this far in front of the face, and as far from its edges."""
WINDOW_STEPS = 12.0
"""A particle shows 4 x 4 of the 16 x 16 texels of the block's picture."""

PARTICLE_DTYPE = np.dtype(
    [
        ("position", np.float64, 3),  # middle
        ("seen", np.float64, 3),  # the position a tick ago, which a frame shows
        ("velocity", np.float64, 3),  # blocks per tick
        ("half", np.float64),  # half the side, in blocks
        ("column", np.float64),  # upper left corner of what it shows, in texels of the picture
        ("row", np.float64),
        ("block", np.int32),  # block id, whose picture it shows
        ("age", np.int32),  # ticks
        ("life", np.int32),  # ticks
        ("resting", np.int32),  # whether it has met the ground or a ceiling
    ],
    align=True,
)
"""One particle."""


class Particles(Records):
    """All particles of a game.

    Attributes:
        rng: State of their random stream, uint64 [1]; never 0.
    """

    def __init__(self) -> None:
        super().__init__(PARTICLE_DTYPE, PARTICLE_CAPACITY)
        self.rng = np.ones(1, np.uint64)

    def begin(self, seed: int) -> None:
        """Remove all, and restart the random stream from a non-zero seed of 64 bits."""
        self.clear()
        self.rng[0] = seed

    def tick(self, blocks: NDArray[np.uint16]) -> None:
        """Advance all by one tick among the window's block ids."""
        self.count = _tick(blocks, self.records, self.count)

    def burst(self, block: int, x: int, y: int, z: int) -> None:
        """Let the block at (x, y, z), of this id, burst."""
        self.count = _burst(self.records, self.count, self.rng, block, x, y, z)

    def hit(self, blocks: NDArray[np.uint16], targets: NDArray[np.void]) -> None:
        """Add the particle of a hit on the face in `targets`, `TARGET_DTYPE` [1], of a block."""
        self.count = _hit(blocks, self.records, self.count, self.rng, targets)


@kernel()
def _make_room(records: NDArray[np.void], count: int, needed: int) -> int:
    """Remove as many of the oldest particles as are in the way; return how many are left."""
    surplus = count + needed - len(records)
    if surplus <= 0:
        return count
    for row in range(count - surplus):
        records[row] = records[row + surplus]
    return count - surplus


@kernel()
def _start(
    particle: np.void,
    rng: NDArray[np.uint64],
    block: int,
    place: tuple[float, float, float],
    aim: tuple[float, float, float],
    speed: float,
    size: float,
) -> None:
    """Fill in a new particle.

    Args:
        particle: A `PARTICLE_DTYPE` record.
        rng: State of the random stream.
        block: Block id.
        place: Where it starts.
        aim: Where it flies, apart from chance.
        speed: Factor on its speed.
        size: Factor on its size.
    """
    dx = aim[0] + (physics.random(rng) * 2.0 - 1.0) * SCATTER
    dy = aim[1] + (physics.random(rng) * 2.0 - 1.0) * SCATTER
    dz = aim[2] + (physics.random(rng) * 2.0 - 1.0) * SCATTER
    length = max(np.sqrt(dx * dx + dy * dy + dz * dz), 1e-9)
    pace = (physics.random(rng) + physics.random(rng) + 1.0) * 0.06 * speed / length
    particle.velocity[0] = dx * pace
    particle.velocity[1] = dy * pace + LIFT
    particle.velocity[2] = dz * pace
    for axis in range(3):
        particle.position[axis] = particle.seen[axis] = place[axis]
    particle.half = SMALLEST_HALF * (physics.random(rng) + 1.0) * size
    particle.column = physics.random(rng) * WINDOW_STEPS
    particle.row = physics.random(rng) * WINDOW_STEPS
    particle.block = block
    particle.age = particle.resting = 0
    particle.life = int(SHORTEST_LIFE / (physics.random(rng) * 0.9 + 0.1))


@kernel()
def _burst(
    records: NDArray[np.void],
    count: int,
    rng: NDArray[np.uint64],
    block: int,
    x: int,
    y: int,
    z: int,
) -> int:
    count = _make_room(records, count, BURST_SIDE**3)
    for i in range(BURST_SIDE):
        for j in range(BURST_SIDE):
            for k in range(BURST_SIDE):
                east, up, south = (
                    (i + 0.5) / BURST_SIDE,
                    (j + 0.5) / BURST_SIDE,
                    (k + 0.5) / BURST_SIDE,
                )
                place = (x + east, y + up, z + south)
                outward = (east - 0.5, up - 0.5, south - 0.5)
                _start(records[count], rng, block, place, outward, 1.0, 1.0)
                count += 1
    return count


@kernel()
def _hit(
    blocks: NDArray[np.uint16],
    records: NDArray[np.void],
    count: int,
    rng: NDArray[np.uint64],
    targets: NDArray[np.void],
) -> int:
    target = targets[0]
    block = int(blocks[block_index(target.x, target.y, target.z)])
    if block == 0:  # it has just broken
        return count
    count = _make_room(records, count, 1)
    along = np.empty(3, np.float64)
    bounds = OUTLINE_BOUNDS[shape_at(blocks, target.x, target.y, target.z)]
    for axis in range(3):
        low, high = bounds[axis], bounds[axis + 3]
        if target.face[axis] > 0:
            along[axis] = high + HIT_MARGIN
        elif target.face[axis] < 0:
            along[axis] = low - HIT_MARGIN
        else:
            along[axis] = low + HIT_MARGIN + physics.random(rng) * (high - low - 2.0 * HIT_MARGIN)
    place = (target.x + along[0], target.y + along[1], target.z + along[2])
    _start(records[count], rng, block, place, (0.0, 0.0, 0.0), HIT_SPEED, HIT_SIZE)
    return count + 1


@kernel()
def _tick(blocks: NDArray[np.uint16], records: NDArray[np.void], count: int) -> int:
    """Advance all particles, and remove those whose life is over; return how many are left."""
    kept = 0
    for row in range(count):
        if records[row].age >= records[row].life:
            continue
        if kept != row:
            records[kept] = records[row]
        records[kept].age += 1
        _fly(blocks, records[kept])
        kept += 1
    return kept


@kernel()
def _fly(blocks: NDArray[np.uint16], particle: np.void) -> None:
    """Move a particle by its velocity, axis by axis, as far as its middle meets no block."""
    position, velocity = particle.position, particle.velocity
    for axis in range(3):
        particle.seen[axis] = position[axis]
    if particle.resting:
        return
    velocity[1] -= GRAVITY
    for axis in (1, 0, 2):
        before = position[axis]
        position[axis] = before + velocity[axis]
        if physics.is_free(blocks, position[0], position[1], position[2], 0.0, 0.0):
            continue
        if axis == 1:
            # A little above the ground, for that is the cell whose light falls on it.
            landed = np.floor(position[1]) + 1.0 + 1e-3
            position[1] = min(landed, before) if velocity[1] < 0.0 else before
            particle.resting = 1
            return
        position[axis] = before
        velocity[axis] = 0.0
    for axis in range(3):
        velocity[axis] *= DRAG
