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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.env.voxel.data import read_csv
from rllib_minestudio.env.voxel.entities.records import (
    MOB_CAPACITY,
    MOB_KIND_ID,
    MOB_KINDS,
    MobKind,
    Mobs,
)
from rllib_minestudio.env.voxel.world import physics
from rllib_minestudio.env.voxel.world.block_shapes import stops_nothing
from rllib_minestudio.env.voxel.world.block_states import kind_of
from rllib_minestudio.env.voxel.world.blocks import BLOCKS, GRASS_BLOCK
from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.climate import BIOMES, biome_at, hash_place
from rllib_minestudio.env.voxel.world.land import Chunk, square
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS, World

if TYPE_CHECKING:
    from rllib_minestudio.env.voxel.game.game_state import GameState

AWAY_CAPACITY = 1024
"""Most animals that are kept for their return."""
MOST_CHUNKS = 16384
"""Most chunks of which is known that their herds have appeared."""

_SALT = 31
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


def follow(state: GameState) -> None:
    """Let herds appear, and animals leave and return, after other land has been loaded."""
    herds, centre = state.herds, state.world.centre
    if not herds.are_natural or centre is None or centre == herds.centre:
        return
    before = set() if herds.centre is None else set(square(herds.centre, LOAD_RADIUS))
    herds.centre = centre
    _let_leave(state, centre)
    _let_return(state, centre)
    for chunk in square(centre, LOAD_RADIUS):
        if chunk not in before and chunk not in herds.done:
            _appear(state, chunk)


def _are_near(records: NDArray[np.void], centre: Chunk) -> NDArray[np.bool_]:
    """Whether the chunk of each mob is loaded around `centre`, bool [n]."""
    away = np.abs(np.floor(records["position"][:, ::2] / CHUNK) - centre)
    return away.max(axis=1) <= LOAD_RADIUS


def _let_leave(state: GameState, centre: Chunk) -> None:
    mobs = state.mobs
    are_near = _are_near(mobs.records[: mobs.count], centre)
    if are_near.all():
        return
    state.herds.away.extend(mobs.records[: mobs.count][~are_near])
    mobs.keep(are_near)


def _let_return(state: GameState, centre: Chunk) -> None:
    away = state.herds.away
    are_near = _are_near(away.records[: away.count], centre)
    returning = np.flatnonzero(are_near)[: MOB_CAPACITY - state.mobs.count]
    state.mobs.extend(away.records[returning])
    stay = np.ones(away.count, np.bool_)
    stay[returning] = False
    away.keep(stay)


def _appear(state: GameState, chunk: Chunk) -> None:
    """Let the herds of a chunk appear in it; members without room wait with those far away."""
    herds = list(herds_of(state.world, chunk))
    for herd in herds:
        for place, yaw in herd.members:
            crowd = state.mobs if state.mobs.count < MOB_CAPACITY else state.herds.away
            crowd.add(MOB_KIND_ID[herd.mob], place, yaw)
    if herds:
        done = state.herds.done
        done[chunk] = None
        if len(done) > MOST_CHUNKS:
            del done[next(iter(done))]


# ----------------------------------------------------------------------------- the herds of a chunk


class Herd(NamedTuple):
    """A herd of a chunk.

    Attributes:
        mob: Name of its animals.
        size: How many they would be if all found a place.
        members: Place (x, y, z) of the feet, and yaw in radians, of each that does; none of a kind
            that this engine lacks.
    """

    mob: str
    size: int
    members: list[tuple[tuple[float, float, float], float]]


def herds_of(world: World, chunk: Chunk) -> Iterator[Herd]:
    """Yield the herds of a loaded chunk, on the blocks that are there."""
    middle = (chunk[0] * CHUNK + CHUNK // 2, chunk[1] * CHUNK + CHUNK // 2)
    biome = BIOMES[biome_at(*middle, world.seed)]
    groups = GROUPS[biome]
    rng = _generator(chunk, world.seed)
    while groups and physics.random(rng) < CHANCES[biome]:
        group = _drawn(groups, rng)
        size = group.least + _below(group.most - group.least + 1, rng)
        members = []
        if group.mob in MOB_KIND_ID:
            members = list(_scattered(world, chunk, MOB_KINDS[MOB_KIND_ID[group.mob]], size, rng))
        yield Herd(group.mob, size, members)


def _generator(chunk: Chunk, seed: int) -> NDArray[np.uint64]:
    """The state of a chunk's own stream of random numbers, uint64 [1]."""
    high, low = (int(hash_place(*chunk, seed + _SALT + number)) for number in range(2))
    return np.array([high << 32 | low | 1], np.uint64)


def _below(limit: int, rng: NDArray[np.uint64]) -> int:
    return int(physics.random(rng) * limit)


def _drawn(groups: tuple[Group, ...], rng: NDArray[np.uint64]) -> Group:
    left = _below(sum(group.weight for group in groups), rng)
    for group in groups:
        left -= group.weight
        if left < 0:
            break
    return group


def _scattered(
    world: World, chunk: Chunk, kind: MobKind, size: int, rng: NDArray[np.uint64]
) -> Iterator[tuple[tuple[float, float, float], float]]:
    """Yield place and yaw of each member that finds a place, within the chunk."""
    x0, z0 = chunk[0] * CHUNK, chunk[1] * CHUNK
    first_x, first_z = x0 + _below(CHUNK, rng), z0 + _below(CHUNK, rng)
    x, z = first_x, first_z
    for _ in range(size):
        for _ in range(_TRIES):
            place = x + 0.5, float(_ground(world, x, z)), z + 0.5
            is_placed = _may_stand(world, place, kind)
            if is_placed:
                yield place, (physics.random(rng) * 2.0 - 1.0) * np.pi
            x, z = x + _step(rng), z + _step(rng)
            while not (x0 <= x < x0 + CHUNK and z0 <= z < z0 + CHUNK):
                x, z = first_x + _step(rng), first_z + _step(rng)
            if is_placed:
                break


def _step(rng: NDArray[np.uint64]) -> int:
    return _below(_SCATTER, rng) - _below(_SCATTER, rng)


def _ground(world: World, x: int, z: int) -> int:
    """The layer above the highest block of a column that is neither leaves nor passable."""
    y = world.surface(x, z)
    while y > 0 and _is_above_ground(world.block_next_to(x, y - 1, z)):
        y -= 1
    return y


def _is_above_ground(block: int) -> bool:
    return stops_nothing(block) or BLOCKS[kind_of(block)].material == "leaves"


def _may_stand(world: World, place: tuple[float, float, float], kind: MobKind) -> bool:
    """Whether an animal may stand with its feet at a place: on grass, with room around it."""
    x, y, z = place
    ground = world.block_next_to(int(x // 1), int(y) - 1, int(z // 1))
    if kind_of(ground) != GRASS_BLOCK:
        return False
    return bool(physics.is_free(world.blocks, x, y, z, kind.width / 2, kind.height))
