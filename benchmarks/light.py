"""What light costs: `python benchmarks/light.py [--before COMMIT]`.

The first table has edits: a torch set and broken again, then stone, at four places. *Alone* is the
time for both lights and the columns' shade, *whole* that of `World.set_block`, which also follows
the change in the box field. In microseconds of CPU time, medians and worst.

| place | what is around it |
|---|---|
| ground | open plains: half a ball of 1,800 cells is lit by a torch |
| air | nothing: a whole ball of 3,300 cells |
| tunnel | a sealed tunnel, two blocks wide |
| hall | a sealed hall, 17 blocks wide and three high |

The second table has frames, as `renderer.py` measures them, beside those of another commit.
"""

from __future__ import annotations

import argparse
import math
import time
from statistics import median
from typing import NamedTuple

from renderer import ROOT, SEED, Tree, checkout, compare

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.world import lighting
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, STONE
from rllib_minestudio.env.voxel.world.box_field import block_index
from rllib_minestudio.env.voxel.world.world import World

TORCH = BLOCK_ID["torch"]
EDITS = (("torch set", TORCH), ("torch broken", AIR), ("stone set", STONE), ("stone dug", AIR))
SCENES = ["plains", "underground", "lamplight"]
MOST_ALONE, MOST_WHOLE = 20, 60
"""Bounds on the medians of a torch set or broken, and of a whole `set_block`, in microseconds."""
FILL = (32, 31, 32)
"""Columns, layers and columns of a fill of 31,744 blocks."""


class Place(NamedTuple):
    """Where blocks are put.

    Attributes:
        name: For the table.
        at: The block.
    """

    name: str
    at: tuple[int, int, int]


def alone(world: World, place: Place, block: int) -> float:
    """CPU microseconds for the light of a block, whose box field is left as it was."""
    x, y, z = place.at
    world.blocks[block_index(x, y, z)] = block
    fields = world._land.lighting, world.blocks, world.top, world._land.hollow
    start = time.thread_time_ns()
    lighting.refresh(*fields, x, x + 1, y, y + 1, z, z + 1)
    return (time.thread_time_ns() - start) / 1e3


def whole(world: World, place: Place, block: int) -> float:
    """CPU microseconds for a block put into the world."""
    start = time.thread_time_ns()
    world.set_block(*place.at, block)
    return (time.thread_time_ns() - start) / 1e3


def prepare() -> tuple[World, list[Place]]:
    """A world on plains, with a tunnel and a hall under the ground."""
    engine = VoxelEngine(frame_size=(64, 64))
    engine.reset(SEED, biome="plains")
    world = engine._game.state.world
    x, _, z = (math.floor(value) for value in engine.player.position.tolist())
    ground = world.surface(x, z)
    world.fill((x - 15, x + 16), (40, 43), (z, z + 2), AIR)
    world.fill((x - 8, x + 9), (20, 23), (z - 8, z + 9), AIR)
    places = [
        Place("ground", (x, ground, z)),
        Place("air", (x, 100, z)),
        Place("tunnel", (x, 40, z)),
        Place("hall", (x, 20, z)),
    ]
    return world, places


def print_edits(times: int) -> None:
    """Measure edits and print a line for each."""
    world, places = prepare()
    print(f"{'place':>8} {'edit':>14} {'alone':>8} {'worst':>8} {'whole':>8} {'worst':>8}  µs")
    for place in places:
        for measure in (alone, whole):  # what is called first has to be loaded
            measure(world, place, TORCH), measure(world, place, AIR)
        taken = {
            measure: [[measure(world, place, block) for _, block in EDITS] for _ in range(times)]
            for measure in (alone, whole)
        }
        for number, (name, _) in enumerate(EDITS):
            columns = [[row[number] for row in taken[measure]] for measure in (alone, whole)]
            figures = " ".join(f"{median(column):8.1f} {max(column):8.1f}" for column in columns)
            print(f"{place.name:>8} {name:>14} {figures}", flush=True)
    print(f"at most {MOST_ALONE} and {MOST_WHOLE} for a torch, medians")
    x, _, z = places[0].at
    low, high = (x + 4, 70, z + 4), (x + 4 + FILL[0], 70 + FILL[1], z + 4 + FILL[2])
    for name, block in (("stone", STONE), ("air", AIR)):
        start = time.thread_time_ns()
        world.fill(*zip(low, high, strict=True), block)
        took = (time.thread_time_ns() - start) / 1e6
        print(f"a fill of {math.prod(FILL):,} blocks with {name}: {took:.1f} ms")


def print_frames(before: str | None, frames: int) -> None:
    """Measure frames, beside those of another commit if one is given."""
    trees = [Tree(ROOT)]
    try:
        if before is None:
            compare(trees, SCENES, frames)
            return
        with checkout(before) as root:
            trees.append(Tree(root))
            compare(trees, SCENES, frames)
            trees.pop().close()
    finally:
        for tree in trees:
            tree.close()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT", help="commit to compare frames with")
    parser.add_argument("--times", type=int, default=300, help="how often each edit is done")
    parser.add_argument("--frames", type=int, default=600, help="frames per scene and size")
    options = parser.parse_args()
    print_edits(options.times)
    print()
    print_frames(options.before, options.frames)


if __name__ == "__main__":
    main()
