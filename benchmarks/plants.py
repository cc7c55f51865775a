"""What plants cost a frame: `python benchmarks/plants.py`.

A player walks through a meadow, a forest and a desert, and looks around. Each frame is drawn three
times in turn: without plants, with those within 16 blocks of the eye, and with those as far as they
are drawn. Times are CPU time of the thread that draws; a ratio is the median over frames drawn one
after the other. It also prints what plants cost when a chunk is made.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.render import plants
from rllib_minestudio.env.voxel.render.plants import FARTHEST, Plants
from rllib_minestudio.env.voxel.world import caves, cell_bits, climate, tunnels, worldgen
from rllib_minestudio.env.voxel.world.box_field import CHUNK
from rllib_minestudio.env.voxel.world.climate import BIOMES
from rllib_minestudio.env.voxel.world.land import Land

SIZES = ((64, 64), (128, 128), (640, 360))
SEED, FRAMES, WARM = 7, 400, 20
NONE, NEAR = 0, 16
BOUND = 1.3


def frame_times(biome: str, size: tuple[int, int], farthest: tuple[int, ...]) -> list[list[float]]:
    """CPU microseconds of each frame of a walk, for each distance to which plants are drawn."""
    engine = VoxelEngine(frame_size=size)
    engine.reset(SEED, biome=biome)
    draw: Callable[..., None] = Plants.draw
    times: list[list[float]] = [[] for _ in farthest]
    frame = np.empty((size[1], size[0], 3), np.uint8)
    for step in range(FRAMES):
        walk = {"forward": int(step % 40 < 25), "jump": int(step % 23 == 0)}
        engine.tick({**walk, "camera": (2 * math.cos(step / 9), 6.0 * math.sin(step / 40))})
        engine.render(frame)  # what the tick has displaced from the processor's caches
        for turn in range(len(farthest)):
            which = (step + turn) % len(farthest)
            plants.FARTHEST = farthest[which]
            if farthest[which] == NONE:
                Plants.draw = lambda *_: None  # type: ignore[assignment, method-assign]
            start = time.thread_time_ns()
            engine.render(frame)
            times[which].append((time.thread_time_ns() - start) / 1e3)
            Plants.draw = draw  # type: ignore[method-assign]
    plants.FARTHEST = FARTHEST
    return [of[WARM:] for of in times]


def chunk_times(biome: str) -> tuple[float, float]:
    """Median microseconds to make a chunk without plants, and with them."""
    land, place = Land(), np.zeros(2, np.int64)
    window = land.blocks, land.top, land.tints, land.hollow
    arrays = *window, tunnels.new_burrows(), caves.find_shapes()
    climate.find_biome(BIOMES.index(biome), 0, 0, SEED, place)
    chunk_x, chunk_z = (place // CHUNK).tolist()
    times: tuple[list[float], list[float]] = [], []
    for has_plants in (False, True, False, True):  # the tunnels around are walked once
        for x in range(chunk_x - 4, chunk_x + 5):
            for z in range(chunk_z - 4, chunk_z + 5):
                start = time.thread_time_ns()
                low, high, *_ = worldgen.make_chunk(*arrays, x, z, SEED, has_plants)
                if has_plants:
                    at = x * CHUNK, z * CHUNK
                    cell_bits.enter_thin(land.blocks, land.thin, *at, low, high + 1)
                times[has_plants].append((time.thread_time_ns() - start) / 1e3)
    return median(times[False]), median(times[True])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", help="widths of the frames to measure")
    options = parser.parse_args()
    farthest = tuple(sorted({NONE, NEAR, FARTHEST}))
    distances = ", ".join(map(str, farthest))
    print(f"us per frame, plants drawn to {distances} blocks; ratios to the first, at most {BOUND}")
    for biome in BIOMES:
        for size in SIZES:
            if options.sizes and size[0] not in options.sizes:
                continue
            without, *others = frame_times(biome, size, farthest)
            ratios = [median(np.divide(times, without).tolist()) for times in others]
            print(
                f"{biome:7} {size[0]:3}x{size[1]:<3}",
                *(f"{median(times):7.0f}" for times in (without, *others)),
                *(f"{ratio:6.2f}" for ratio in ratios),
                flush=True,
            )
    for biome in BIOMES:
        bare, grown = chunk_times(biome)
        print(f"{biome:7} chunk, us: {bare:.0f} bare, {grown:.0f} grown, ratio {grown / bare:.2f}")


if __name__ == "__main__":
    main()
