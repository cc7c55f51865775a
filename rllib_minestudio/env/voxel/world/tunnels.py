"""The ways of caves and ravines, after the carvers of Minecraft Java 1.16.

One chunk in seven has cave systems that start in it, one in fifty a ravine. A tunnel is walked step
by step in a direction that changes little by little, and at most steps there is a sphere, to be
carved out of the land: wider in the middle of the way than at its ends. A tunnel of some width
forks into two narrow ones. A ravine is walked alike; its spheres are high.

Tunnels lead into chunks up to `_FARTHEST` away. So the spheres of each start are walked once and
kept, see `Burrows`, and a chunk goes through those that come near it.

Which number is rolled where follows `WorldCarver`, `CaveWorldCarver` and `CanyonWorldCarver`, from
memory; the chances are those of `misode/vanilla-worldgen@1.16`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float32, int64, uint32, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.climate import hash_place
from rllib_minestudio.env.voxel.world.physics import random, random_bits

NEAR = 6
"""Columns around a chunk in which all spheres are known."""

_FARTHEST = 8
"""Chunks from a start to the farthest that its tunnels reach."""
_LONGEST = 112
"""Most steps of a tunnel, of a block each."""
_CAVES, _RAVINE = 1.0 / 7.0, 1.0 / 50.0
"""Chances of a chunk."""
_MOST_CAVES = 15
_FAR = np.float32(1e6)
_MARGIN, _NEAR_SIDE = np.float32(NEAR), np.float32(CHUNK + 2 * NEAR)
_SALT = 3000

_TURN = 2.0 * np.pi
_ANGLES = 4096
_SINES = np.round(np.sin(np.arange(_ANGLES) * (_TURN / _ANGLES)), 6)
"""Sines of so many angles, the same on all machines, whose last bits may differ."""
_21_BITS = np.uint64((1 << 21) - 1)

Spheres = NDArray[np.float32]
"""Rows of `X` to `RAVINE_SALT`, float32 [n, 6]."""
X, Y, Z, ACROSS, UP, RAVINE_SALT = range(6)
"""Centre and radii of a sphere in blocks, x and z from the corner of some chunk; and for the hash
by which its ravine is narrower in some layers, a whole number, 0 in a tunnel."""
_GRID = 256.0
"""Parts of a block to which x and z are rounded, so that no sum with a chunk's corner is."""

# ---------------------------------------------------------------------------- spheres that are kept

_SLOTS, _KEPT = 32, 1 << 17
"""Starts kept along each axis, those around all chunks of the window; and spheres kept."""
_STRETCH = 32
"""Spheres in a row of which it is known which columns they touch."""


class Burrows(NamedTuple):
    """The spheres that were walked, by the chunk in which their tunnels start.

    Spheres are kept in a ring: those walked last replace those walked longest ago.

    Attributes:
        start: The chunk in each slot, x and z, and the seed; int64 [1024, 3].
        firsts: How many spheres had been walked before its own, int64 [1024].
        counts: How many are its own, int64 [1024].
        spheres: Row `n % _KEPT` holds the n-th that was walked, from the corner of the chunk that
            it belongs to.
        bounds: What each stretch of spheres touches: lowest x and z, then highest, float32
            [4096, 4].
        walked: How many have been walked, int64 [1]; those of a start begin with a stretch.
    """

    start: NDArray[np.int64]
    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]
    spheres: Spheres
    bounds: NDArray[np.float32]
    walked: NDArray[np.int64]


def new_burrows() -> Burrows:
    """Burrows in which nothing has been walked yet."""
    slots = _SLOTS * _SLOTS
    return Burrows(
        start=np.full((slots, 3), -1, np.int64),  # no seed is negative
        firsts=np.zeros(slots, np.int64),
        counts=np.zeros(slots, np.int64),
        spheres=np.zeros((_KEPT, 6), np.float32),
        bounds=np.zeros((_KEPT // _STRETCH, 4), np.float32),
        walked=np.zeros(1, np.int64),
    )


@kernel(inline="always")
def _slot_of(x: int, z: int) -> int:
    return uint32((x & (_SLOTS - 1)) * _SLOTS + (z & (_SLOTS - 1)))


@kernel()
def _walk_all(burrows: Burrows, chunk_x: int, chunk_z: int, seed: int) -> None:
    """Walk the starts from which tunnels may lead to a chunk, unless they are kept."""
    start, firsts, counts, walked = burrows.start, burrows.firsts, burrows.counts, burrows.walked
    for x in range(chunk_x - _FARTHEST, chunk_x + _FARTHEST + 1):
        for z in range(chunk_z - _FARTHEST, chunk_z + _FARTHEST + 1):
            slot = _slot_of(x, z)
            is_there = start[slot, 0] == x and start[slot, 1] == z and start[slot, 2] == seed
            # Half the ring is room for those walked here: 13,000 of 289 starts, give or take 3,200.
            if is_there and walked[0] - firsts[slot] <= _KEPT // 2:
                continue
            start[slot, 0], start[slot, 1], start[slot, 2] = x, z, seed
            firsts[slot] = walked[0] = -(-walked[0] // _STRETCH) * _STRETCH
            _walk_start(burrows, x, z, seed)
            counts[slot] = walked[0] - firsts[slot]
            _find_bounds(burrows, firsts[slot])


@kernel(allocates=False)
def _keep(
    burrows: Burrows, x: float, y: float, z: float, across: float, up: float, salt: int
) -> None:
    """Keep one more sphere."""
    spheres, row = burrows.spheres, uint32(burrows.walked[0] & (_KEPT - 1))
    spheres[row, X] = float32(np.floor(x * _GRID) * (1.0 / _GRID))
    spheres[row, Y] = float32(y)
    spheres[row, Z] = float32(np.floor(z * _GRID) * (1.0 / _GRID))
    spheres[row, ACROSS], spheres[row, UP] = float32(across), float32(up)
    spheres[row, RAVINE_SALT] = float32(salt)
    burrows.walked[0] += 1


@kernel(allocates=False)
def _find_bounds(burrows: Burrows, first: int) -> None:
    """Find what the stretches touch of the spheres walked since there were `first`."""
    spheres, bounds = burrows.spheres, burrows.bounds
    for begin in range(first, burrows.walked[0], _STRETCH):
        low_x, low_z, high_x, high_z = _FAR, _FAR, -_FAR, -_FAR
        for number in range(begin, min(begin + _STRETCH, burrows.walked[0])):
            row = uint32(number & (_KEPT - 1))
            x, z, across = spheres[row, X], spheres[row, Z], spheres[row, ACROSS]
            low_x, high_x = min(low_x, x - across), max(high_x, x + across)
            low_z, high_z = min(low_z, z - across), max(high_z, z + across)
        stretch = uint32((begin & (_KEPT - 1)) // _STRETCH)
        bounds[stretch, 0], bounds[stretch, 1] = low_x, low_z
        bounds[stretch, 2], bounds[stretch, 3] = high_x, high_z


@kernel()
def spheres_near(burrows: Burrows, chunk_x: int, chunk_z: int, seed: int) -> Spheres:
    """Return the spheres that touch a chunk or come within `NEAR` columns of it.

    Args:
        burrows: What is kept, updated.
        chunk_x: Chunk coordinate: column x // 16.
        chunk_z: Chunk coordinate: column z // 16.
        seed: The world's seed.

    Returns:
        The spheres, x and z from the corner of the chunk, float32 [n, 6].
    """
    _walk_all(burrows, chunk_x, chunk_z, seed)
    near, count, bounds = np.empty((256, 6), np.float32), 0, burrows.bounds
    firsts, counts, spheres = burrows.firsts, burrows.counts, burrows.spheres
    for away_x in range(-_FARTHEST, _FARTHEST + 1):
        for away_z in range(-_FARTHEST, _FARTHEST + 1):
            slot = _slot_of(chunk_x + away_x, chunk_z + away_z)
            first, end = firsts[slot], firsts[slot] + counts[slot]
            low_x, low_z = float32(-NEAR - away_x * CHUNK), float32(-NEAR - away_z * CHUNK)
            high_x, high_z = low_x + _NEAR_SIDE, low_z + _NEAR_SIDE
            for begin in range(first, end, _STRETCH):
                stretch = uint32((begin & (_KEPT - 1)) // _STRETCH)
                if bounds[stretch, 0] > high_x or bounds[stretch, 2] < low_x:
                    continue
                if bounds[stretch, 1] > high_z or bounds[stretch, 3] < low_z:
                    continue
                if count + _STRETCH > len(near):
                    longer = np.empty((2 * len(near), 6), np.float32)
                    longer[:count] = near[:count]
                    near = longer
                last = min(begin + _STRETCH, end)
                count = _add_near(spheres, begin, last, low_x, low_z, near, count)
    return near[:count]


@kernel(allocates=False)
def _add_near(
    spheres: Spheres, begin: int, end: int, low_x: float, low_z: float, near: Spheres, count: int
) -> int:
    """Add those spheres of a stretch that are near, and return how many there are now.

    What is near begins `low_x` and `low_z` columns from the corner of the chunk of the stretch.
    """
    high_x, high_z = low_x + _NEAR_SIDE, low_z + _NEAR_SIDE
    for number in range(begin, end):
        row = uint32(number & (_KEPT - 1))
        x, z, across = spheres[row, X], spheres[row, Z], spheres[row, ACROSS]
        if max(max(low_x - x, x - high_x), max(low_z - z, z - high_z)) < across:
            to = uint32(count)
            near[to, X], near[to, Z] = x - low_x - _MARGIN, z - low_z - _MARGIN
            near[to, Y], near[to, UP] = spheres[row, Y], spheres[row, UP]
            near[to, ACROSS] = across
            near[to, RAVINE_SALT] = spheres[row, RAVINE_SALT]
            count += 1
    return count


# ------------------------------------------------------------------------------ tunnels are walked


@kernel(inline="always")
def _sine(turns: float) -> float:
    """The sine of an angle in turns, from a table, as the game has it."""
    return _SINES[uint32(int64(turns * _ANGLES) & (_ANGLES - 1))]


@kernel()
def _roll(state: NDArray[np.uint64], sides: int) -> int:
    """Roll a die with sides 0 to `sides` - 1."""
    return int64(random(state) * sides)


@kernel()
def _change(state: NDArray[np.uint64]) -> float:
    """By how much a direction changes: (u - v) * w of three random numbers in [0, 1)."""
    bits = random_bits(state)
    one, two = int64(bits >> uint64(43)), int64((bits >> uint64(22)) & _21_BITS)
    return (one - two) * int64((bits >> uint64(1)) & _21_BITS) * (1.0 / (1 << 42))


@kernel()
def _walk_start(burrows: Burrows, chunk_x: int, chunk_z: int, seed: int) -> None:
    """Walk all tunnels and ravines that start in a chunk, and keep their spheres."""
    dice = int64(hash_place(chunk_x, chunk_z, seed + _SALT))
    has_caves = (dice & 0xFFFF) < _CAVES * 65536.0
    has_ravine = (dice >> 16) < _RAVINE * 65536.0
    if not has_caves and not has_ravine:
        return
    state, way = np.empty(1, np.uint64), np.empty(6)
    high = uint64(hash_place(chunk_x, chunk_z, seed + _SALT + 1))
    low = uint64(hash_place(chunk_x, chunk_z, seed + _SALT + 2))
    state[0] = high << uint64(32) | low | uint64(1)
    if has_caves:
        for _ in range(_roll(state, _roll(state, _roll(state, _MOST_CAVES) + 1) + 1)):
            _walk_cave(burrows, way, state)
    if has_ravine:
        _walk_ravine(burrows, way, state)


_YAW, _PITCH, _WIDTH = 3, 4, 5
"""After x, y and z, what a `way` has: directions in turns, and the width in blocks by which the
radius grows towards its middle. float64 [6]."""


@kernel()
def _walk_cave(burrows: Burrows, way: NDArray[np.float64], state: NDArray[np.uint64]) -> None:
    """Walk the tunnels of a cave, which begin in one place, perhaps in a room."""
    x, y = _roll(state, CHUNK), _roll(state, _roll(state, 120) + 8)
    z, tunnels = _roll(state, CHUNK), 1
    if _roll(state, 4) == 0:
        across = 2.5 + random(state) * 6.0
        _keep(burrows, x + 1.0, y, z, across, across * 0.5, 0)
        tunnels += _roll(state, 4)
    for _ in range(tunnels):
        way[X], way[Y], way[Z] = x, y, z
        _aim(way, state)
        way[_WIDTH] = random(state) * 2.0 + random(state)
        if _roll(state, 10) == 0:
            way[_WIDTH] *= random(state) * random(state) * 3.0 + 1.0
        steps = _LONGEST - _roll(state, _LONGEST // 4)
        fork = _walk_tunnel(burrows, way, 0, steps, state)
        if fork < steps:
            stem = way.copy()
            for side in (-0.25, 0.25):
                way[:] = stem
                way[_YAW] += side
                way[_PITCH] /= 3.0
                way[_WIDTH] = random(state) * 0.5 + 0.5
                _walk_tunnel(burrows, way, fork, steps, state)


@kernel()
def _aim(way: NDArray[np.float64], state: NDArray[np.uint64]) -> None:
    """Choose the direction in which a tunnel begins: any, at most an eighth up or down."""
    way[_YAW] = random(state)
    way[_PITCH] = (random(state) - 0.5) / 4.0 / _TURN


@kernel(allocates=False)
def _walk_tunnel(
    burrows: Burrows,
    way: NDArray[np.float64],
    first: int,
    steps: int,
    state: NDArray[np.uint64],
) -> int:
    """Walk a tunnel from a step on, to its end or its fork.

    Args:
        burrows: Receives its spheres.
        way: Where it begins; afterwards, where it ends.
        first: The first step.
        steps: The step after the last.
        state: Of the random generator.

    Returns:
        The step at which it forks, `steps` if it does not.
    """
    fork = _roll(state, steps // 2) + steps // 4
    kept_pitch = 0.92 if _roll(state, 6) == 0 else 0.7
    climb, turn = 0.0, 0.0
    for step in range(first, steps):
        across = 1.5 + _sine(0.5 * step / steps) * way[_WIDTH]
        _take_step(way)
        way[_PITCH] = way[_PITCH] * kept_pitch + climb * (0.1 / _TURN)
        way[_YAW] += turn * (0.1 / _TURN)
        climb = climb * 0.9 + _change(state) * 2.0
        turn = turn * 0.75 + _change(state) * 4.0
        if step == fork and way[_WIDTH] > 1.0:
            return step
        if _roll(state, 4) != 0:
            _keep(burrows, way[X], way[Y], way[Z], across, across, 0)
    return steps


@kernel(allocates=False)
def _walk_ravine(burrows: Burrows, way: NDArray[np.float64], state: NDArray[np.uint64]) -> None:
    way[X], way[Z] = _roll(state, CHUNK), _roll(state, CHUNK)
    way[Y] = 20.0 + _roll(state, _roll(state, 40) + 8)
    _aim(way, state)
    width = (random(state) * 2.0 + random(state)) * 2.0
    steps = _LONGEST - _roll(state, _LONGEST // 4)
    salt = 1 + _roll(state, 1 << 23)
    climb, turn = 0.0, 0.0
    for step in range(steps):
        radius = 1.5 + _sine(0.5 * step / steps) * width
        across = radius * (random(state) * 0.25 + 0.75)
        up = radius * 3.0 * (random(state) * 0.25 + 0.75)
        _take_step(way)
        way[_PITCH] = way[_PITCH] * 0.7 + climb * (0.05 / _TURN)
        way[_YAW] += turn * (0.05 / _TURN)
        climb = climb * 0.8 + _change(state) * 2.0
        turn = turn * 0.5 + _change(state) * 4.0
        if _roll(state, 4) != 0:
            _keep(burrows, way[X], way[Y], way[Z], across, up, salt)


@kernel(allocates=False)
def _take_step(way: NDArray[np.float64]) -> None:
    """Go one block ahead."""
    level = _sine(way[_PITCH] + 0.25)
    way[X] += _sine(way[_YAW] + 0.25) * level
    way[Y] += _sine(way[_PITCH])
    way[Z] += _sine(way[_YAW]) * level
