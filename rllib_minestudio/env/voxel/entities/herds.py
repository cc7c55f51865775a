"""Herds of animals that come with the land, as in Minecraft Java 1.16, and animals far away.

When a chunk is loaded for the first time, a number below the biome's chance gives it a herd, and
another such number one more. Each is of one kind, drawn by weight among those of the biome; its
members are scattered around a place in the chunk, where they stand on grass (`spawnMobsForChunk
Generation`, from memory; chances and weights by `misode/vanilla-worldgen@1.16`). Kinds that this
engine lacks, such as horses and wolves, are drawn and left out, so that the others are as frequent
as in the game. All follows from the seed and the chunk alone.

The game saves animals with their chunk. So animals whose chunk is no longer loaded are taken out of
the game, as they are, and return when it is loaded again. At most `AWAY_CAPACITY` are kept; then
the oldest are forgotten. So are the oldest of more than `MOST_CHUNKS` chunks that had a herd, which
have it again when the player returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.entities.mobs import EGG_TICKS
from rllib_minestudio.env.voxel.entities.records import (
    MOB_CAPACITY,
    MOB_KIND_ID,
    MOB_KINDS,
    YOUNG_AGE,
    Mobs,
    coat_of,
)
from rllib_minestudio.env.voxel.kernels import kernel
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.block_shapes import stops_nothing
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, GRASS_BLOCK, kind_of
from rllib_minestudio.env.voxel.world.box_field import CHUNK, block_index, column_index
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at, hash_place
from rllib_minestudio.env.voxel.world.land import Chunk, square
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS, World

AWAY_CAPACITY = 1024
"""Most animals that are kept for their return."""
MOST_CHUNKS = 16384
"""Most chunks of which is known that their herds have appeared."""

_IS_LEAVES = np.array([block.material == "leaves" for block in BLOCKS])
_SALT = 31
_YOUNG_CHANCE = 0.05
"""Of each member of a herd but the first."""
_TRIES = 4
"""Places that are tried for each member of a herd."""
_SCATTER = 5
"""A member is at most one less than so many columns from the one before, along each axis."""


class Group(NamedTuple):
    """A kind of herd.

    Attributes:
        mob: Name of its animals.
        weight: How likely it is among those of its biome.
        least: Fewest members.
        most: Most members.
    """

    mob: str
    weight: int
    least: int
    most: int


GROUPS: dict[str, tuple[Group, ...]] = {
    biome: tuple(
        Group(row["mob"], int(row["weight"]), int(row["least"]), int(row["most"]))
        for row in read_csv("herds.csv")
        if row["biome"] == biome
    )
    for biome in BIOMES
}
"""Kinds of herds by biome."""
CHANCES: dict[str, float] = {row["biome"]: float(row["herds"]) for row in read_csv("biomes.csv")}
"""Chance of a herd in a chunk, and then of each further one, by biome."""
_LARGEST_CHANCE = max(CHANCES.values())


class Herds:
    """What is known of herds in a game.

    Attributes:
        are_natural: Whether they appear with the land.
        centre: The chunk around which they have appeared; None before any have.
        done: The chunks whose herds have appeared, the oldest first; of those that have one.
        away: Animals whose chunk is not loaded, the oldest first.
    """

    def __init__(self) -> None:
        self.away = Mobs(AWAY_CAPACITY)
        self.reset(False)

    def reset(self, are_natural: bool) -> None:
        """Forget everything."""
        self.are_natural = are_natural
        self.centre: Chunk | None = None
        self.done: dict[Chunk, None] = {}
        self.away.clear()

    def begin_with(self, are_natural: bool, centre: Chunk | None, done: Iterable[Chunk]) -> None:
        """As `reset`, but with what is known; `away` is then to be filled."""
        self.reset(are_natural)
        self.centre = centre
        self.done.update(dict.fromkeys(done))

    def follow(self, world: World, mobs: Mobs) -> None:
        """Let herds appear, and animals leave and return, after other land has been loaded.

        Args:
            world: The blocks.
            mobs: The animals on loaded land; changed.
        """
        centre, before = world.centre, self.centre
        if not self.are_natural or centre is None or centre == before:
            return
        self.centre = centre
        self._let_leave(mobs, centre)
        self._let_return(mobs, centre)
        for chunk in _entered(before, centre):
            if chunk not in self.done:
                self._appear(world, mobs, chunk)

    def _let_leave(self, mobs: Mobs, centre: Chunk) -> None:
        are_near = _are_near(mobs.records[: mobs.count], centre)
        if not are_near.all():
            self.away.extend(mobs.records[: mobs.count][~are_near])
            mobs.keep(are_near)

    def _let_return(self, mobs: Mobs, centre: Chunk) -> None:
        away = self.away
        are_near = _are_near(away.records[: away.count], centre)
        returning = np.flatnonzero(are_near)[: MOB_CAPACITY - mobs.count]
        mobs.extend(away.records[returning])
        stay = np.ones(away.count, np.bool_)
        stay[returning] = False
        away.keep(stay)

    def _appear(self, world: World, mobs: Mobs, chunk: Chunk) -> None:
        """Let the herds of a chunk appear; members without room wait with those far away."""
        herds = list(herds_of(world, chunk))
        for herd in herds:
            for member in herd.members:
                crowd = mobs if mobs.count < MOB_CAPACITY else self.away
                crowd.add(MOB_KIND_ID[herd.mob], *member)
        if herds:
            self.done[chunk] = None
            if len(self.done) > MOST_CHUNKS:
                del self.done[next(iter(self.done))]


def _entered(before: Chunk | None, centre: Chunk) -> Iterator[Chunk]:
    """Yield the chunks that are loaded around one chunk, and were not around another."""
    if before is None:
        yield from square(centre, LOAD_RADIUS)
        return
    spans = [range(place - LOAD_RADIUS, place + LOAD_RADIUS + 1) for place in (*before, *centre)]
    new_rows = [z for z in spans[3] if z not in spans[1]]
    for x in spans[2]:
        for z in new_rows if x in spans[0] else spans[3]:
            yield x, z


def _are_near(records: NDArray[np.void], centre: Chunk) -> NDArray[np.bool_]:
    """Whether the chunk of each mob is loaded around `centre`, bool [n]."""
    away = np.abs(np.floor(records["position"][:, ::2] / CHUNK) - centre)
    return away.max(axis=1) <= LOAD_RADIUS


# ----------------------------------------------------------------------------- the herds of a chunk


Generator = NDArray[np.uint64]
"""State of a generator of random numbers, uint64 [1]; see `physics.random`."""


class Member(NamedTuple):
    """An animal of a herd: as `Mobs.add` takes it."""

    position: tuple[float, float, float]
    yaw: float
    coat: int
    age: int
    egg_ticks: int


class Herd(NamedTuple):
    """A herd of a chunk.

    Attributes:
        mob: Name of its animals.
        size: How many they would be if all found a place.
        members: Those that do; none of a kind that this engine lacks.
    """

    mob: str
    size: int
    members: list[Member]


def herds_of(world: World, chunk: Chunk) -> Iterator[Herd]:
    """Yield the herds of a loaded chunk, on the blocks that are there."""
    rng = np.zeros(1, np.uint64)
    first = _begin(chunk[0], chunk[1], world.seed, rng)
    if first >= _LARGEST_CHANCE:
        return
    middle = (chunk[0] * CHUNK + CHUNK // 2, chunk[1] * CHUNK + CHUNK // 2)
    biome = BIOMES[biome_at(*middle, world.seed)]
    groups, chance, dice = GROUPS[biome], CHANCES[biome], first
    while groups and dice < chance:
        group = _drawn(groups, rng)
        size = group.least + _below(group.most - group.least + 1, rng)
        members: list[Member] = []
        if group.mob in MOB_KIND_ID:
            members = _scattered(world, chunk, group.mob, size, rng)
        yield Herd(group.mob, size, members)
        dice = physics.random(rng)


def first_herd(chunk: Chunk, seed: int) -> str:
    """Return of what kind a chunk's first herd will be, loaded or not; empty for no herd."""
    rng = np.zeros(1, np.uint64)
    dice = _begin(chunk[0], chunk[1], seed, rng)
    if dice >= _LARGEST_CHANCE:
        return ""
    middle = (chunk[0] * CHUNK + CHUNK // 2, chunk[1] * CHUNK + CHUNK // 2)
    biome = BIOMES[biome_at(*middle, seed)]
    groups = GROUPS[biome]
    return _drawn(groups, rng).mob if groups and dice < CHANCES[biome] else ""


@kernel()
def _begin(chunk_x: int, chunk_z: int, seed: int, rng: Generator) -> float:
    """Begin a chunk's own stream of random numbers, and return the first of them."""
    high, low = hash_place(chunk_x, chunk_z, seed + _SALT), hash_place(chunk_x, chunk_z, seed)
    rng[0] = (uint64(high) << uint64(32)) | uint64(low) | uint64(1)
    return physics.random(rng)


@kernel()
def _below(limit: int, rng: Generator) -> int:
    """A random whole number from 0 to below the limit."""
    return int64(physics.random(rng) * limit)


def _drawn(groups: tuple[Group, ...], rng: Generator) -> Group:
    left = _below(sum(group.weight for group in groups), rng)
    for group in groups:
        left -= group.weight
        if left < 0:
            break
    return group


def _scattered(world: World, chunk: Chunk, mob: str, size: int, rng: Generator) -> list[Member]:
    """Find a place for each member that has one, within the chunk."""
    kind = MOB_KINDS[MOB_KIND_ID[mob]]
    found = np.zeros((size, 4))
    x0, z0, half = chunk[0] * CHUNK, chunk[1] * CHUNK, kind.width / 2
    count = _scatter(world.blocks, world.top, x0, z0, half, kind.height, rng, found)
    return [
        Member((x, y, z), yaw, *_born(mob, is_first=number == 0, rng=rng))
        for number, (x, y, z, yaw) in enumerate(found[:count].tolist())
    ]


def _born(mob: str, is_first: bool, rng: Generator) -> tuple[int, int, int]:
    """Draw the coat, the age and the time of the first egg of a member."""
    coat = coat_of(physics.random(rng), physics.random(rng)) if mob == "sheep" else 0
    is_young = not is_first and physics.random(rng) < _YOUNG_CHANCE
    egg_ticks = EGG_TICKS + _below(EGG_TICKS, rng) if mob == "chicken" else 0
    return coat, YOUNG_AGE if is_young else 0, egg_ticks


@kernel()
def _scatter(
    blocks: NDArray[np.uint16],
    top: NDArray[np.uint8],
    x0: int,
    z0: int,
    half: float,
    height: float,
    rng: Generator,
    found: NDArray[np.float64],
) -> int:
    """Scatter a herd over a chunk.

    Args:
        blocks: The window's blocks.
        top: The window's column tops.
        x0: First column of the chunk.
        z0: First column of the chunk.
        half: Half the width of an animal.
        height: Its height.
        rng: The chunk's random numbers.
        found: float64 [members, 4]; receives x, y, z of the feet and the yaw of each.

    Returns:
        How many have found a place.
    """
    first_x, first_z = x0 + _below(CHUNK, rng), z0 + _below(CHUNK, rng)
    x, z, count = first_x, first_z, 0
    for _ in range(len(found)):
        is_placed = False
        for _ in range(_TRIES):
            y = _ground(blocks, top, x, z)
            is_placed = kind_of(blocks[block_index(x, y - 1, z)]) == GRASS_BLOCK
            is_placed &= physics.is_free(blocks, x + 0.5, float(y), z + 0.5, half, height)
            if is_placed:
                found[count, 0], found[count, 1], found[count, 2] = x + 0.5, y, z + 0.5
                found[count, 3] = (physics.random(rng) * 2.0 - 1.0) * np.pi
                count += 1
            x, z = x + _step(rng), z + _step(rng)
            while not (x0 <= x < x0 + CHUNK and z0 <= z < z0 + CHUNK):
                x, z = first_x + _step(rng), first_z + _step(rng)
            if is_placed:
                break
    return count


@kernel(inline="always")
def _step(rng: Generator) -> int:
    return _below(_SCATTER, rng) - _below(_SCATTER, rng)


@kernel(inline="always")
def _ground(blocks: NDArray[np.uint16], top: NDArray[np.uint8], x: int, z: int) -> int:
    """The layer above the highest block of a column that is neither leaves nor passable."""
    start, y = block_index(x, 0, z), int64(top[column_index(x, z)])
    while y > 0 and (stops_nothing(blocks[start + y]) or _IS_LEAVES[kind_of(blocks[start + y])]):
        y -= 1
    return y + 1
