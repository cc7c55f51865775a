"""Biomes and heights: what the land is like at a column, from the seed alone.

Everything at a place follows from hashes of its coordinates, so chunks come out the same in any
order and at any distance from the origin. Kernels are compiled without fastmath: the same bits
everywhere.

Noises decide, each in turn:

    warmth > 0.7      desert, or savanna in a milder climate
    wetness <= 0.62   plains
    peaks > 0.64      mountains, which rise from nothing at their border
    else              by the climate from cold to mild: snowy tundra or taiga, forest, birch forest
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.kernels import kernel

BIOMES: tuple[str, ...] = tuple(row["biome"] for row in read_csv("biomes.csv"))
"""Names of all biomes; kernels know them by index."""
PLAINS, FOREST, DESERT, BIRCH_FOREST, TAIGA, SAVANNA, SNOWY_TUNDRA, MOUNTAINS = range(len(BIOMES))

LOWEST_GROUND, HIGHEST_GROUND = 62, 71
"""Between these layers is all ground outside mountains, see `land_at`."""
HIGHEST_PEAK = 103
"""No ground is higher."""

_BASE_HEIGHT = 63.0
_BIOME_SCALE = 1.0 / 260.0
_SEARCH_STEP = 48
_SEARCH_RINGS = 200
_DRY, _WET, _PEAKS = 0.7, 0.62, 0.64
"""Thresholds of the noises of warmth, wetness and peaks."""
_SAVANNA_FROM, _COLD_TO, _MILD_FROM = 0.55, 0.42, 0.66
"""Thresholds of the noise of the climate: for savanna in dry land; of cold and of mild woods."""


# ------------------------------------------------------------------------- randomness from a place


@kernel()
def hash_place(x: int, z: int, salt: int) -> int:
    """Well-mixed 32-bit hash of a place: multiplicative mixing with xor shifts (lowbias32)."""
    value = (
        (uint32(x) * uint32(0x9E3779B1))
        ^ (uint32(z) * uint32(0x85EBCA77))
        ^ (uint32(salt) * uint32(0xC2B2AE3D))
    )
    value = uint32(value ^ (value >> uint32(16)))
    value = uint32(value * uint32(0x7FEB352D))
    value = uint32(value ^ (value >> uint32(15)))
    value = uint32(value * uint32(0x846CA68B))
    return uint32(value ^ (value >> uint32(16)))


@kernel(inline="always")
def _lattice(x: int, z: int, salt: int) -> float:
    return (hash_place(x, z, salt) >> uint32(8)) * (1.0 / 16777216.0)


@kernel(inline="always")
def _fade(share: float) -> float:
    """From 0 to 1 as the share does, level at both ends."""
    return share * share * (3.0 - 2.0 * share)


@kernel(inline="always")
def _along_x(i: int, k: int, share: float, salt: int) -> float:
    """The lattice's value a share of the way from (i, k) to (i + 1, k)."""
    return _lattice(i, k, salt) * (1.0 - share) + _lattice(i + 1, k, salt) * share


@kernel()
def noise(x: float, z: float, salt: int) -> float:
    """Value noise in [0, 1): random values on the integer lattice, smoothly interpolated."""
    floor_x, floor_z = np.floor(x), np.floor(z)
    i, k = int64(floor_x), int64(floor_z)
    u, v = _fade(x - floor_x), _fade(z - floor_z)
    return _along_x(i, k, u, salt) * (1.0 - v) + _along_x(i, k + 1, u, salt) * v


@kernel()
def _noise_row(out: NDArray[np.float64], x: int, z0: int, scale: float, salt: int) -> None:
    """`noise` at (x * scale, z * scale) for each z from `z0` on, to the last bit."""
    floor_x = np.floor(x * scale)
    i, u = int64(floor_x), _fade(x * scale - floor_x)
    before, low, high = int64(0), 0.0, 0.0
    for number in range(len(out)):
        z = (z0 + number) * scale
        floor_z = np.floor(z)
        k = int64(floor_z)
        if number == 0 or k != before:
            before = k
            low, high = _along_x(i, k, u, salt), _along_x(i, k + 1, u, salt)
        v = _fade(z - floor_z)
        out[number] = low * (1.0 - v) + high * v


# ----------------------------------------------------------------------------- biomes and heights

_RAGGED_SCALE, _HILLS_SCALE, _BUMPS_SCALE = 0.06, 0.011, 0.045
_RAGGED_SALT, _WARMTH_SALT, _WETNESS_SALT = 13, 11, 12
_HILLS_SALT, _BUMPS_SALT = 1, 2
_RAGGEDNESS = 0.04
ROW_NOISES = 5
"""Noises that `find_land` computes row by row."""


@kernel(inline="always")
def _slow(x: int, z: int, salt: int) -> float:
    return noise(x * _BIOME_SCALE, z * _BIOME_SCALE, salt)


@kernel(inline="always")
def _smooth(value: float) -> float:
    """`_fade` of a value that may be outside of [0, 1]."""
    return _fade(min(max(value, 0.0), 1.0))


@kernel()
def _biome_and_lift(
    x: int, z: int, seed: int, ragged: float, warmth: float, wetness: float
) -> tuple[int, float]:
    """The biome's index, and by how much mountains rise above the usual ground.

    Args:
        x: Column.
        z: Column.
        seed: The world's seed.
        ragged: By how much all thresholds are lower there, so that borders are ragged.
        warmth: The noise of the warmth there.
        wetness: The noise of the wetness there.
    """
    if warmth + ragged > _DRY:
        return (SAVANNA if _slow(x, z, seed + 14) + ragged > _SAVANNA_FROM else DESERT), 0.0
    if wetness + ragged <= _WET:
        return PLAINS, 0.0
    peaks = _slow(x, z, seed + 15) + ragged
    if peaks > _PEAKS:
        # Each factor is 0 at a border, so that a slope begins there and no cliff.
        share = _smooth((peaks - _PEAKS) / 0.14) * _smooth((wetness + ragged - _WET) / 0.07)
        share *= _smooth((_DRY - warmth - ragged) / 0.07)
        crags = (
            noise(x * 0.028, z * 0.028, seed + 17) * 14.0
            + noise(x * 0.09, z * 0.09, seed + 18) * 4.0
        )
        return MOUNTAINS, share * (15.0 + crags)
    climate = _slow(x, z, seed + 14) + ragged
    if climate < _COLD_TO:
        return (SNOWY_TUNDRA if _slow(x, z, seed + 16) + ragged > 0.5 else TAIGA), 0.0
    return (BIRCH_FOREST if climate > _MILD_FROM else FOREST), 0.0


@kernel()
def _biome_and_lift_at(x: int, z: int, seed: int) -> tuple[int, float]:
    """`_biome_and_lift` of a single column."""
    ragged = noise(x * _RAGGED_SCALE, z * _RAGGED_SCALE, seed + _RAGGED_SALT) * _RAGGEDNESS
    warmth, wetness = _slow(x, z, seed + _WARMTH_SALT), _slow(x, z, seed + _WETNESS_SALT)
    return _biome_and_lift(x, z, seed, ragged, warmth, wetness)


@kernel()
def biome_at(x: int, z: int, seed: int) -> int:
    """Index in `BIOMES` of the biome at column (x, z)."""
    return _biome_and_lift_at(x, z, seed)[0]


@kernel(inline="always")
def _height(hills: float, bumps: float, lift: float) -> int:
    return int64(_BASE_HEIGHT + hills * 5.5 + bumps * 1.6 + lift)


@kernel()
def land_at(x: int, z: int, seed: int) -> tuple[int, int]:
    """The biome's index, and the y of the highest ground block, of column (x, z).

    Trees are not counted, nor what is dug.
    """
    biome, lift = _biome_and_lift_at(x, z, seed)
    hills = noise(x * _HILLS_SCALE, z * _HILLS_SCALE, seed + _HILLS_SALT)
    bumps = noise(x * _BUMPS_SCALE, z * _BUMPS_SCALE, seed + _BUMPS_SALT)
    return biome, _height(hills, bumps, lift)


@kernel()
def find_land(
    land: NDArray[np.int64], noises: NDArray[np.float64], x: int, z0: int, seed: int
) -> None:
    """Find `land_at` for a row of columns, at less cost than one by one.

    Args:
        land: Receives biomes and heights, int64 [2, columns].
        noises: Scratch, float64 [`ROW_NOISES`, columns].
        x: The row.
        z0: Its first column.
        seed: The world's seed.
    """
    ragged, warmth, wetness, hills, bumps = noises
    _noise_row(ragged, x, z0, _RAGGED_SCALE, seed + _RAGGED_SALT)
    _noise_row(warmth, x, z0, _BIOME_SCALE, seed + _WARMTH_SALT)
    _noise_row(wetness, x, z0, _BIOME_SCALE, seed + _WETNESS_SALT)
    _noise_row(hills, x, z0, _HILLS_SCALE, seed + _HILLS_SALT)
    _noise_row(bumps, x, z0, _BUMPS_SCALE, seed + _BUMPS_SALT)
    for i in range(land.shape[1]):
        lower = ragged[i] * _RAGGEDNESS
        biome, lift = _biome_and_lift(x, z0 + i, seed, lower, warmth[i], wetness[i])
        land[0, i], land[1, i] = biome, _height(hills[i], bumps[i], lift)


@kernel()
def ground_height(x: int, z: int, seed: int) -> int:
    """The y of the highest ground block of column (x, z), trees not counted."""
    return land_at(x, z, seed)[1]


@kernel()
def find_biome(biome: int, x: int, z: int, seed: int, out: NDArray[np.int64]) -> bool:
    """Search for the nearest place amid a biome, ring by ring around (x, z).

    Args:
        biome: Index in `BIOMES`.
        x: Column where the search begins.
        z: Column where the search begins.
        seed: The world's seed.
        out: int64 [2]; receives the place's x and z.

    Returns:
        Whether there is one within about 9,600 blocks.
    """
    for ring in range(_SEARCH_RINGS):
        for i in range(-ring, ring + 1):
            for k in range(-ring, ring + 1):
                if max(abs(i), abs(k)) != ring:
                    continue
                place_x = x + i * _SEARCH_STEP
                place_z = z + k * _SEARCH_STEP
                inside = True
                for dx in range(-1, 2):
                    for dz in range(-1, 2):
                        near_x = place_x + dx * _SEARCH_STEP
                        near_z = place_z + dz * _SEARCH_STEP
                        inside = inside and biome_at(near_x, near_z, seed) == biome
                if inside:
                    out[0] = place_x
                    out[1] = place_z
                    return True
    return False
