"""What is below the ground, against a plain reading of Minecraft 1.16's rules.

The reference shares nothing with the engine but the land that it starts from: it draws from numpy's
generator, places veins sphere by sphere, and carves tunnels into an array. Counts are means of a
chunk, with a standard error from chunks (veins) or areas (caves).

`python -m tests.env.voxel.world.underground` prints tables for 400 chunks: what the rules give,
what the engine makes, and the interval in which the difference should be found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.world import tunnels
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, LAVA, STONE
from rllib_minestudio.env.voxel.world.box_field import CHUNK, HEIGHT
from rllib_minestudio.env.voxel.world.climate import ground_height
from tests.env.voxel.window import Window

ORES = ("coal_ore", "iron_ore", "gold_ore", "redstone_ore", "diamond_ore", "lapis_ore")
STONES = ("andesite", "diorite", "granite", "dirt", "gravel")
BASE_STONE = [BLOCK_ID[name] for name in ("stone", "granite", "diorite", "andesite")]
SIGMAS = 4.0
"""Standard errors by which a mean may differ from the reference's."""


class Vein(NamedTuple):
    """A row of the game's table, in the order in which veins are placed."""

    block: str
    size: int
    count: int
    top: int
    """Below this layer a vein begins; for lapis, the sides of each of two dice."""
    dice: int


VEINS = (
    Vein("dirt", 33, 10, 256, 1),
    Vein("gravel", 33, 8, 256, 1),
    Vein("granite", 33, 10, 80, 1),
    Vein("diorite", 33, 10, 80, 1),
    Vein("andesite", 33, 10, 80, 1),
    Vein("coal_ore", 17, 20, 128, 1),
    Vein("iron_ore", 9, 20, 64, 1),
    Vein("gold_ore", 9, 2, 32, 1),
    Vein("redstone_ore", 8, 8, 16, 1),
    Vein("diamond_ore", 8, 1, 16, 1),
    Vein("lapis_ore", 7, 1, 16, 2),
)
"""`misode/vanilla-worldgen@1.16`, for the 68 biomes of the overworld."""


class Mean(NamedTuple):
    """A mean with its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, samples: np.ndarray) -> Mean:
        """The mean of independent samples."""
        return cls(float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(len(samples))))

    def interval(self, other: Mean) -> tuple[float, float]:
        """Where this mean should be if the other one is of the same thing."""
        reach = SIGMAS * math.hypot(self.error, other.error)
        return other.value - reach, other.value + reach

    def agrees(self, other: Mean) -> bool:
        """Whether it is there."""
        low, high = self.interval(other)
        return low <= self.value <= high


def seeds(count: int) -> range:
    """Seeds of worlds; those of numbers in a row would share most of their dice."""
    return range(1, 104729 * count, 104729)


# ------------------------------------------------------------------------------------------- veins


def vein_cells(size: int, rng: np.random.Generator) -> np.ndarray:
    """The cells of a vein around where it begins, int [n, 3] of x, y, z, by `OreFeature`."""
    angle = rng.random() * math.pi
    half_x, half_z = math.sin(angle) * size / 8, math.cos(angle) * size / 8
    y0, y1 = rng.integers(3) - 2.0, rng.integers(3) - 2.0
    found = set()
    for number in range(size):
        share = number / size
        x = half_x + (-half_x - half_x) * share
        y = y0 + (y1 - y0) * share
        z = half_z + (-half_z - half_z) * share
        radius = ((math.sin(math.pi * share) + 1) * rng.random() * size / 16 + 1) / 2
        spans = [range(math.floor(c - radius), math.floor(c + radius) + 1) for c in (x, y, z)]
        for i in spans[0]:
            for j in spans[1]:
                for k in spans[2]:
                    away = (i + 0.5 - x) ** 2 + (j + 0.5 - y) ** 2 + (k + 0.5 - z) ** 2
                    if away < radius * radius:
                        found.add((i, j, k))
    return np.array(sorted(found), int).reshape(-1, 3)


def place_veins(land: np.ndarray, rng: np.random.Generator) -> None:
    """Place the veins of all chunks of a square of land, uint16 [x, z, y], with edges that meet."""
    side = land.shape[0]
    for vein in VEINS:
        for chunk_x in range(0, side, CHUNK):
            for chunk_z in range(0, side, CHUNK):
                for _ in range(vein.count):
                    x, z = chunk_x + rng.integers(CHUNK), chunk_z + rng.integers(CHUNK)
                    y = sum(rng.integers(vein.top) for _ in range(vein.dice))
                    if y > HEIGHT - 8:
                        continue
                    cells = vein_cells(vein.size, rng) + np.array((x, y, z))
                    cells = cells[cells[:, 1] >= 0]
                    at = cells[:, 0] % side, cells[:, 2] % side, cells[:, 1]
                    land[at] = np.where(
                        np.isin(land[at], BASE_STONE), BLOCK_ID[vein.block], land[at]
                    )


def made_land(side: int, seed: int) -> np.ndarray:
    """A square of at most 16 chunks a side as the engine makes it, uint16 [x, z, y]."""
    window, rows = Window(), []
    for x in range(side):
        for z in range(side):
            window.make(x, z, seed)
        rows.append(np.concatenate([window.chunk(x, z) for z in range(side)], 1))
    return np.concatenate(rows)


def grounds(side: int, seed: int) -> np.ndarray:
    """The layer of each column's ground in a square of chunks, int [x, z]."""
    span = range(side * CHUNK)
    return np.array([[ground_height(x, z, seed) for z in span] for x in span])


def without_veins(land: np.ndarray, ground: np.ndarray) -> np.ndarray:
    """Land before its veins were placed: stone in their place below the soil."""
    is_deep = np.arange(HEIGHT) < ground[:, :, None] - 5
    veins = [BLOCK_ID[name] for name in (*ORES, *STONES)]
    return np.where(is_deep & np.isin(land, veins), STONE, land).astype(np.uint16)


def in_chunks(marked: np.ndarray) -> np.ndarray:
    """How many cells of each chunk are marked, of bool [x, z, y]; int [chunks, layers]."""
    side = marked.shape[0] // CHUNK
    return marked.reshape(side, CHUNK, side, CHUNK, HEIGHT).sum((1, 3)).reshape(-1, HEIGHT)


BANDS = (0, 8, 16, 32, 48, 58)
"""Layers between which veins are counted; all are below the soil."""


class Row(NamedTuple):
    """Something counted: its mean in a chunk by the reference, and in the engine's land."""

    name: str
    wanted: Mean
    found: Mean


def count_veins(areas: int, side: int) -> list[Row]:
    """Compare the veins of some areas with those that the reference places in the same land."""
    rng, found, wanted = np.random.default_rng(5), [], []
    for seed in seeds(areas):
        land = made_land(side, seed)
        found.append(land)
        bare = without_veins(land, grounds(side, seed))
        place_veins(bare, rng)
        wanted.append(bare)
    rows = []
    for name in (*ORES, *STONES):
        of_chunk = [
            np.concatenate([in_chunks(land == BLOCK_ID[name]) for land in lands])
            for lands in (wanted, found)
        ]
        bands = *pairwise(BANDS), (0, BANDS[-1])
        for low, high in bands:
            means = (Mean.of(counts[:, low:high].sum(1)) for counts in of_chunk)
            rows.append(Row(f"{name}, y {low} to {high - 1}", *means))
    return rows


# ------------------------------------------------------------------------------------------- caves


class Sphere(NamedTuple):
    """A sphere that a carver opens; `narrow` has the factors of a ravine's layers."""

    x: float
    y: float
    z: float
    across: float
    up: float
    narrow: Sequence[float] | None


def spheres_of(chunk_x: int, chunk_z: int, random: Random) -> list[Sphere]:
    """All spheres of the tunnels and the ravine that start in a chunk, few chunks having any."""
    found: list[Sphere] = []
    x0, z0 = chunk_x * CHUNK, chunk_z * CHUNK
    if random.random() < 1 / 7:
        for _ in range(random.randrange(random.randrange(random.randrange(15) + 1) + 1)):
            x, z = x0 + random.randrange(16), z0 + random.randrange(16)
            y, tunnels = random.randrange(random.randrange(120) + 8), 1
            if random.randrange(4) == 0:
                radius = 1.5 + 1.0 + random.random() * 6
                found.append(Sphere(x + 1, y, z, radius, radius / 2, None))
                tunnels += random.randrange(4)
            for _ in range(tunnels):
                yaw, pitch = random.random() * 2 * math.pi, (random.random() - 0.5) / 4
                width = random.random() * 2 + random.random()
                if random.randrange(10) == 0:
                    width *= random.random() * random.random() * 3 + 1
                steps = 112 - random.randrange(28)
                way = (float(x), float(y), float(z), yaw, pitch)
                found += tunnel(way, width, 0, steps, random)
    if random.random() < 1 / 50:
        place = x0 + random.randrange(16), z0 + random.randrange(16)
        found += ravine(*place, random)
    return found


def tunnel(
    way: tuple[float, ...], width: float, first: int, steps: int, random: Random
) -> list[Sphere]:
    """The spheres of a tunnel from a step on, and of those into which it forks."""
    found = []
    x, y, z, yaw, pitch = way
    fork = random.randrange(steps // 2) + steps // 4
    kept = 0.92 if random.randrange(6) == 0 else 0.7
    climb = turn = 0.0
    for step in range(first, steps):
        radius = 1.5 + math.sin(step * math.pi / steps) * width
        x += math.cos(yaw) * math.cos(pitch)
        y += math.sin(pitch)
        z += math.sin(yaw) * math.cos(pitch)
        pitch = pitch * kept + climb * 0.1
        yaw += turn * 0.1
        climb = climb * 0.9 + (random.random() - random.random()) * random.random() * 2
        turn = turn * 0.75 + (random.random() - random.random()) * random.random() * 4
        if step == fork and width > 1:
            for side in (-1, 1):
                branch = (x, y, z, yaw + side * math.pi / 2, pitch / 3)
                found += tunnel(branch, random.random() / 2 + 0.5, step, steps, random)
            break
        if random.randrange(4):
            found.append(Sphere(x, y, z, radius, radius, None))
    return found


def ravine(x: float, z: float, random: Random) -> list[Sphere]:
    """The spheres of a ravine."""
    found = []
    y = 20.0 + random.randrange(random.randrange(40) + 8)
    yaw, pitch = random.random() * 2 * math.pi, (random.random() - 0.5) / 4
    width = (random.random() * 2 + random.random()) * 2
    steps = 112 - random.randrange(28)
    narrow, factor = [], 1.0
    for layer in range(HEIGHT):
        if layer == 0 or random.randrange(3) == 0:
            factor = (1 + random.random() * random.random()) ** 2
        narrow.append(factor)
    climb = turn = 0.0
    for step in range(steps):
        radius = 1.5 + math.sin(step * math.pi / steps) * width
        across = radius * (random.random() / 4 + 0.75)
        up = radius * 3 * (random.random() / 4 + 0.75)
        x += math.cos(yaw) * math.cos(pitch)
        y += math.sin(pitch)
        z += math.sin(yaw) * math.cos(pitch)
        pitch = pitch * 0.7 + climb * 0.05
        yaw += turn * 0.05
        climb = climb * 0.8 + (random.random() - random.random()) * random.random() * 2
        turn = turn * 0.5 + (random.random() - random.random()) * random.random() * 4
        if random.randrange(4):
            found.append(Sphere(x, y, z, across, up, tuple(narrow)))
    return found


def open_sphere(carved: np.ndarray, sphere: Sphere) -> None:
    """Mark what a sphere carves out of land, bool [x, z, y]."""
    side, spans = carved.shape[0], []
    for centre, radius, begin, end in (
        (sphere.x, sphere.across, 0, side),
        (sphere.z, sphere.across, 0, side),
        (sphere.y, sphere.up, 2, HEIGHT),
    ):
        first = max(math.floor(centre - radius), begin)
        spans.append(np.arange(first, max(min(math.floor(centre + radius) + 2, end), first)))
    x, z = (spans[0] + 0.5 - sphere.x) / sphere.across, (spans[1] + 0.5 - sphere.z) / sphere.across
    y, share = (spans[2] - 0.5 - sphere.y) / sphere.up, x[:, None, None] ** 2 + z[:, None] ** 2
    if sphere.narrow is None:
        inside = (share + y**2 < 1) & (y > -0.7)
    else:
        inside = (share < 1) & (share * np.array(sphere.narrow)[spans[2]] + y**2 / 6 < 1)
    carved[np.ix_(*spans)] |= inside


def carved_land(side: int, random: Random) -> np.ndarray:
    """What the reference carves out of a square of chunks, bool [x, z, y]."""
    carved = np.zeros((side * CHUNK, side * CHUNK, HEIGHT), bool)
    for x in range(-8, side + 8):
        for z in range(-8, side + 8):
            for sphere in spheres_of(x, z, random):
                reach = sphere.across
                if (
                    -reach < min(sphere.x, sphere.z)
                    and max(sphere.x, sphere.z) < len(carved) + reach
                ):
                    open_sphere(carved, sphere)
    return carved


CAVE_BANDS = ((2, 11), (11, 20), (20, 30), (30, 40), (40, 58), (2, 58))
"""Layers between which caves are measured."""


def measure(hollow: np.ndarray, ground: np.ndarray) -> list[float]:
    """What is counted of caves in an area, in a chunk: of bool [x, z, y] and its grounds."""
    chunks = hollow.shape[0] ** 2 / CHUNK**2
    x, z = np.indices(ground.shape)
    opened = hollow[x, z, ground]
    of_chunk = opened.reshape(hollow.shape[0] // CHUNK, CHUNK, -1, CHUNK).any((1, 3))
    cells = [hollow[:, :, low:high].sum() / chunks for low, high in CAVE_BANDS]
    return [*cells, opened.sum() / chunks, of_chunk.mean()]


def count_caves(areas: int, side: int, more: int) -> list[Row]:
    """Compare the caves of areas with the reference's; the engine makes `more` times as many."""
    wanted, found = [], []
    for number, seed in enumerate(seeds(areas * more)):
        ground = grounds(side, seed)
        found.append(measure(np.isin(made_land(side, seed), (AIR, LAVA)), ground))
        if number < areas:
            wanted.append(measure(carved_land(side, Random(seed)), ground))
    names = [f"carved, y {low} to {high - 1}" for low, high in CAVE_BANDS]
    names += ["columns open to the sky", "chunks with an opening"]
    columns = zip(np.array(wanted).T, np.array(found).T, strict=True)
    return [
        Row(name, Mean.of(of_rules), Mean.of(of_engine))
        for name, (of_rules, of_engine) in zip(names, columns, strict=True)
    ]


def describe(spheres: np.ndarray) -> list[float]:
    """What is compared of the spheres of a start, float [n, 5]: sums, so that means add up."""
    x, y, z, across, up = spheres.reshape(-1, 5).T
    volume = 4 / 3 * math.pi * across**2 * up
    away = np.hypot(x - CHUNK / 2, z - CHUNK / 2)
    return [len(x), volume.sum(), (volume * y).sum(), away.sum(), (up > across).sum()]


def engine_starts(seed: int) -> list[np.ndarray]:
    """The spheres of each of the 289 starts around a chunk, as the engine walks them."""
    burrows = tunnels.new_burrows()
    tunnels.spheres_near(burrows, 0, 0, seed)
    slots = np.flatnonzero(burrows.start[:, 2] == seed)
    return [burrows.spheres[burrows.firsts[slot] :][: burrows.counts[slot], :5] for slot in slots]


def count_spheres(worlds: int) -> list[Row]:
    """Compare what starts in a chunk, from many starts of either."""
    random = Random(3)
    found = [describe(spheres) for seed in seeds(worlds) for spheres in engine_starts(seed)]
    wanted = [
        describe(np.array([sphere[:5] for sphere in spheres_of(0, 0, random)])) for _ in found
    ]
    names = ("spheres", "volume of all", "volume times y", "sum of distances", "of ravines")
    columns = zip(np.array(wanted).T, np.array(found).T, strict=True)
    return [
        Row(f"at a start: {name}", Mean.of(of_rules), Mean.of(of_engine))
        for name, (of_rules, of_engine) in zip(names, columns, strict=True)
    ]


def main() -> None:
    """Print the tables."""
    print(f"{'a chunk has':>32} {'wanted':>10} {'found':>10} {'interval':>22}")
    for row in (*count_spheres(40), *count_caves(64, 5, 4), *count_veins(4, 10)):
        low, high = row.found.interval(row.wanted)
        flag = "" if row.found.agrees(row.wanted) else "  differs"
        interval = f"{max(low, 0.0):.2f} to {high:.2f}"
        print(
            f"{row.name:>32} {row.wanted.value:10.2f} {row.found.value:10.2f} {interval:>22}{flag}"
        )


if __name__ == "__main__":
    main()
