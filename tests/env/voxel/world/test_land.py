"""Land on the move: whatever was walked, teleported and built before, all is as if made anew.

After every operation blocks, tops, lights, layer radius and boxes of all that is ready, loaded or
ahead, are compared with those of land that is made at the same place at once, with the same edits.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import numpy as np
import pytest

from rllib_minestudio.env.voxel.world import box_field
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, STONE, block_of, covers
from rllib_minestudio.env.voxel.world.box_field import (
    CHUNK,
    HEIGHT,
    WINDOW,
    block_index,
    column_index,
)
from rllib_minestudio.env.voxel.world.land import Chunk, Land, square
from rllib_minestudio.env.voxel.world.world import LOAD_RADIUS, World
from tests.env.voxel.caches import check_world

SEED = 5
REACH = LOAD_RADIUS * CHUNK
LAYERS = (0, 1, 15, 31, 32, 55, 60, 63, 64, 66, 68, 70, 75, 81, 95, 96, 112, 126, 127)
SLAB, LOG = BLOCK_ID["oak_slab"], BLOCK_ID["oak_log"]
BUILT = (
    *(AIR, AIR, AIR, STONE, STONE, SLAB, block_of(SLAB, {"type": "double"})),
    *(block_of(LOG, {"axis": "x"}), block_of(BLOCK_ID["bell"], {"attachment": "double_wall"})),
    *(BLOCK_ID["torch"], BLOCK_ID["glowstone"], BLOCK_ID["oak_leaves"], BLOCK_ID["oak_stairs"]),
    BLOCK_ID["poppy"],
)
"""Blocks that are put, in states that let light pass, emit it, and others."""
FRESH = Land()


class Walk:
    """A world, and a player who does anything in it."""

    def __init__(self, number: int) -> None:
        self.random = Random(number)
        self.world = World()
        self.world.reset(SEED)
        self.edits: dict[tuple[int, int, int], int] = {}
        self.x, self.z = self.random.uniform(-40, 40), self.random.uniform(-40, 40)
        self.places = [(self.x, self.z)]
        self.world.load_around(self.x, self.z)

    def act(self) -> str:
        """Does something, and says what."""
        often = (self.stroll, self.build, self.fill)
        seldom = (self.run, self.jump, self.dig, self.scatter, self.leave)
        action = self.random.choice((*often, *often, *seldom))
        action()
        return action.__name__

    def stroll(self) -> None:
        self._go(self.random.uniform(-9, 9), self.random.uniform(-9, 9), self.random.randint(0, 9))

    def run(self) -> None:
        dx, dz = self.random.uniform(-0.6, 0.6), self.random.uniform(-0.6, 0.6)
        for _ in range(self.random.choice((20, 60))):
            self._go(dx, dz, 1)

    def jump(self) -> None:
        """To somewhere else, or back."""
        if self.random.random() < 0.5:
            self.x, self.z = self.random.choice(self.places)
        else:
            far = self.random.choice((20, 100, 250, 5000))
            self.x += self.random.uniform(-far, far)
            self.z += self.random.uniform(-far, far)
            self.places.append((self.x, self.z))
        self._go(0, 0, self.random.choice((0, 3, 40)))

    def leave(self) -> None:
        """To two places that take all slots of the window between them, and back."""
        for away in (5000, 5128, 0):
            self.world.load_around(self.x + away, self.z)

    def build(self) -> None:
        x, y, z = self._place()
        block = self.random.choice(BUILT)
        if self.world.set_block(x, y, z, block):
            self.edits[x, y, z] = block

    def dig(self) -> None:
        x, _, z = self._place()
        y = min(self.world.surface(x, z), HEIGHT) - 1
        if self.world.set_block(x, y, z, AIR):
            self.edits[x, y, z] = AIR

    def fill(self) -> None:
        low = self._place()
        size = self.random.choice(((1, 100, 1), (1, 128, 1), (3, 3, 3), (20, 2, 9), (12, 1, 30)))
        high = [place + length for place, length in zip(low, size, strict=True)]
        block = self.random.choice(BUILT)
        self.world.fill((low[0], high[0]), (low[1], high[1]), (low[2], high[2]), block)
        for x in range(low[0], high[0]):
            for z in range(low[2], high[2]):
                if self.world.is_loaded(x, z):
                    for y in range(low[1], min(high[1], HEIGHT)):
                        self.edits[x, y, z] = block

    def scatter(self) -> None:
        places = (self._place() for _ in range(3))
        blocks = {at: self.random.choice(BUILT) for at in places if self._is_loaded(at)}
        self.world.set_blocks(blocks)
        self.edits.update(blocks)

    def _is_loaded(self, at: tuple[int, int, int]) -> bool:
        return self.world.is_loaded(at[0], at[2])

    def _go(self, dx: float, dz: float, ticks: int) -> None:
        self.x, self.z = self.x + dx, self.z + dz
        self.world.load_around(self.x, self.z)
        for _ in range(ticks):
            self.world.make_ahead(self.x, self.z)

    def _place(self) -> tuple[int, int, int]:
        """Near the player, or near the end of what is loaded, sometimes beyond."""
        near = self.random.random() < 0.4
        span = (0, 20) if near else (REACH - 34, REACH + 18)
        side = [self.random.choice((-1, 1)) * self.random.randint(*span) for _ in range(2)]
        if not near and self.random.random() < 0.7:
            side[self.random.randint(0, 1)] = self.random.randint(-REACH, REACH)
        return int(self.x // 1) + side[0], self.random.choice(LAYERS), int(self.z // 1) + side[1]

    def check(self) -> None:
        """Compares all that is ready with land made anew."""
        land = self.world._land
        ready = sorted(land._ready)
        made = {near for chunk in ready for near in square(chunk, 1)}
        assert set(square(self.world._centre, LOAD_RADIUS)) <= set(ready)
        assert made <= set(land.made)
        assert len(land.made) == len({(x % 16, z % 16) for x, z in land.made})
        remake(sorted(land.made), ready, self.edits)
        names = ("blocks", "top", "layer_radius", "box")
        for name, chunks in zip(names, (land.made, land.made, ready, ready), strict=True):
            compare(name, getattr(land, name), getattr(FRESH, name), chunks)
        for name, kept, anew in zip(
            land.lighting._fields, land.lighting, FRESH.lighting, strict=True
        ):
            compare(name, kept, anew, ready if name == "light" else square(self._centre(), 5))

    def _centre(self) -> Chunk:
        assert self.world.centre is not None
        return self.world.centre


def compare(name: str, kept: np.ndarray, anew: np.ndarray, chunks: Collection[Chunk]) -> None:
    """Compares an array of the window with one made anew, in some chunks."""
    for chunk in chunks:
        assert np.array_equal(part(kept, chunk), part(anew, chunk)), f"{name} of {chunk}"


def part(flat: np.ndarray, chunk: Chunk) -> np.ndarray:
    """A chunk's part of an array of the window."""
    x, z = (place * CHUNK % WINDOW for place in chunk)
    return flat.reshape(WINDOW, WINDOW, -1)[x : x + CHUNK, z : z + CHUNK]


def remake(made: list[Chunk], ready: list[Chunk], edits: dict[tuple[int, int, int], int]) -> None:
    """Makes chunks in `FRESH` from nothing, with the edits, and the fields of those ready."""
    FRESH.reset(SEED)
    known = set(made)
    for chunk in made:
        FRESH._make(chunk)
    for (x, y, z), block in edits.items():
        if (x // CHUNK, z // CHUNK) in known:
            FRESH.blocks[block_index(x, y, z)] = block
    for x, z in {(x, z) for x, _, z in edits if (x // CHUNK, z // CHUNK) in known}:
        column = FRESH.blocks[block_index(x, 0, z) : block_index(x, 0, z) + HEIGHT]
        solid = np.flatnonzero(covers(column))
        FRESH.top[column_index(x, z)] = solid[-1] if len(solid) else 0
    for field in FRESH.lighting:
        field.fill(0)
    FRESH._ceiling = dict.fromkeys(made, HEIGHT)
    FRESH.hollow.fill(2**64 - 1)
    for chunk in made:
        FRESH._let_light_in(chunk, HEIGHT)
    for x, z in ready:
        first_x, first_z = x * CHUNK, z * CHUNK
        box_field.build(
            *(FRESH.blocks, FRESH.top, FRESH.hollow, FRESH.layer_radius, FRESH.box),
            *(first_x, first_x + CHUNK, first_z, first_z + CHUNK, HEIGHT),
        )


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_land_is_as_if_made_anew(number):
    walk = Walk(number)
    done = []
    for _ in range(16):
        done.append(walk.act())
        try:
            walk.check()
        except AssertionError as error:
            raise AssertionError(f"walk {number}, after {', '.join(done)}") from error
    check_world(walk.world)  # by a slow program that shares nothing with the kernels


def test_edits_far_below_and_above_count_when_their_chunk_is_entered_again():
    walk = Walk(1)
    x, z = int(walk.x), int(walk.z)
    for y, block in ((20, AIR), (120, STONE)):
        assert walk.world.set_block(x, y, z, block)
        walk.edits[x, y, z] = block
    walk.leave()
    walk.check()
    check_world(walk.world)


def test_land_made_ahead_shows_in_nothing():
    world = World()
    world.reset(SEED)
    world.load_around(8, 8)
    for _ in range(200):
        world.make_ahead(9, 8)
    assert world._land.is_ready((6, 0))
    assert not world.is_loaded(96, 8)
    assert world.block_at(96, 60, 8) == AIR
    assert world.fill((96, 120), (70, 71), (0, 9), STONE) == 0
    assert not world.set_block(96, 70, 8, STONE)


def test_a_player_who_stands_needs_no_land_ahead():
    world = World()
    world.reset(SEED)
    world.load_around(8, 8)
    made = set(world._land.made)
    for _ in range(200):
        world.make_ahead(8.5, 8.5)
    assert set(world._land.made) == made


def test_a_chunk_row_that_was_made_ahead_costs_no_land():
    world = World()
    world.reset(SEED)
    world.load_around(8, 8)
    for _ in range(200):
        world.make_ahead(15, 15)
    made = set(world._land.made)
    world.load_around(17, 17)
    assert set(world._land.made) == made


def test_one_tick_makes_one_chunk_at_most():
    world = World()
    world.reset(SEED)
    world.load_around(8, 8)
    for tick in range(300):
        before = len(world._land.made), len(world._land._ready)
        world.make_ahead(*((1, 1), (1, 15), (15, 1), (15, 15))[tick // 75])
        after = len(world._land.made), len(world._land._ready)
        assert sum(after) - sum(before) <= 1
    assert not world._ahead
