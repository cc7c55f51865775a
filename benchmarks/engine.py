"""Speed of the embedded engine on one core: `python benchmarks/engine.py`.

A player walks and looks around on plains among ten cows. Every step is a tick, a frame into a
reused buffer and an info dict, as an environment needs them. Times are CPU time of the thread,
medians over all steps, so other load on the machine disturbs them little.

The last column relates a step to the *calibration*: a plain float32 DDA (Amanatides and Woo 1987)
that only finds the block behind every pixel of one such frame, measured in the same run. Compare
machines by that ratio, not by steps per second.

A second table has what costs more than an ordinary step (`engine_spikes.py`).
"""

from __future__ import annotations

import argparse
import math
import time
from statistics import median
from typing import NamedTuple

import numpy as np
from engine_spikes import SEED, print_spikes
from numba import float32, int32, njit, uint32

from rllib_minestudio.env.voxel import AVERAGE, SAMPLES
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.render.camera import (
    EYE_X,
    EYE_Y,
    EYE_Z,
    FORWARD,
    RIGHT,
    STEP_X,
    STEP_Y,
    UP,
    VIEW,
)

FRAMES = (
    ((64, 64), AVERAGE),
    ((128, 128), AVERAGE),
    ((128, 128), SAMPLES),
    ((640, 360), AVERAGE),
)
"""Sizes, and how the frame is made."""
COWS = 10


class Row(NamedTuple):
    """Medians in microseconds of CPU time."""

    size: tuple[int, int]
    sampling: str
    tick: float
    render: float
    info: float
    step: float
    dda: float


@njit(nogil=True, fastmath=True, error_model="numpy")
def plain_dda(blocks, camera, column_x, column_z, width, height, hits):
    """Index of the block each pixel sees, or -1, without any acceleration structure."""
    for py in range(height):
        sy = (float32(height) / 2 - float32(py) - float32(0.5)) * camera[STEP_Y]
        for px in range(width):
            sx = (float32(px) + float32(0.5) - float32(width) / 2) * camera[STEP_X]
            dx = camera[FORWARD] + sx * camera[RIGHT] + sy * camera[UP]
            dy = camera[FORWARD + 1] + sx * camera[RIGHT + 1] + sy * camera[UP + 1]
            dz = camera[FORWARD + 2] + sx * camera[RIGHT + 2] + sy * camera[UP + 2]
            t_max = camera[VIEW] / np.sqrt(dx * dx + dy * dy + dz * dz)
            x, y, z = int32(column_x), int32(camera[EYE_Y]), int32(column_z)
            step_x, step_y, step_z = np.sign(dx), np.sign(dy), np.sign(dz)
            per_x, per_y, per_z = (
                1 / max(abs(dx), 1e-6),
                1 / max(abs(dy), 1e-6),
                1 / max(abs(dz), 1e-6),
            )
            fx, fy, fz = camera[EYE_X], camera[EYE_Y] - float32(y), camera[EYE_Z]
            tx = float32((1 - fx if dx > 0 else fx) * per_x)
            ty = float32((1 - fy if dy > 0 else fy) * per_y)
            tz = float32((1 - fz if dz > 0 else fz) * per_z)
            hit = -1
            while True:
                if tx < ty and tx < tz:
                    t, x, tx = tx, x + int32(step_x), tx + float32(per_x)
                elif ty < tz:
                    t, y, ty = ty, y + int32(step_y), ty + float32(per_y)
                else:
                    t, z, tz = tz, z + int32(step_z), tz + float32(per_z)
                if t > t_max or uint32(y) >= uint32(128):
                    break
                cell = uint32(x & 255) << uint32(15) | uint32(z & 255) << uint32(7) | uint32(y)
                if blocks[cell] != 0:
                    hit = int32(cell)
                    break
            hits[py * width + px] = hit


def action_at(step: int) -> dict[str, object]:
    """A player that walks, turns, looks up and down, and sometimes jumps or hits."""
    return {
        "forward": 1,
        "jump": int(step % 23 == 0),
        "attack": int(step % 11 == 0),
        "camera": np.array([2 * math.cos(step / 9), 6.0 * math.sin(step / 40)]),
    }


def new_engine(size: tuple[int, int], sampling: str) -> VoxelEngine:
    """An engine on plains with a sword in hand and cows around."""
    engine = VoxelEngine(frame_size=size, sampling=sampling)
    engine.reset(SEED, biome="plains")
    engine.execute("/give @p iron_sword")
    for cow in range(COWS):
        angle = cow / COWS * 2 * math.pi
        x, z = 6 * math.sin(angle), 6 * math.cos(angle)
        engine.execute(f"/execute as @p at @p run summon cow ~{x:.2f} ~ ~{z:.2f}")
    return engine


def calibrate(engine: VoxelEngine, size: tuple[int, int], repeats: int) -> float:
    """Median CPU microseconds of `plain_dda` over the engine's present view."""
    engine.render(frame_size=size)
    renderer, world = engine._renderers[size], engine._game.state.world
    camera = renderer.camera
    hits = np.empty(size[0] * size[1], np.int32)
    arguments = (camera.vector, camera.column_x & 255, camera.column_z & 255, *size, hits)
    plain_dda(world.blocks, *arguments)
    times = []
    for _ in range(repeats):
        start = time.thread_time_ns()
        plain_dda(world.blocks, *arguments)
        times.append(time.thread_time_ns() - start)
    return median(times) / 1e3


def measure(size: tuple[int, int], sampling: str, steps: int) -> Row:
    """Time `steps` steps at one frame size."""
    engine = new_engine(size, sampling)
    frame = np.empty((size[1], size[0], 3), np.uint8)
    # The calibration's rays are those of a frame whose every pixel has one.
    dda = calibrate(new_engine(size, AVERAGE), size, max(5, steps // 100))
    parts: list[tuple[int, int, int]] = []
    for step in range(steps):
        action = action_at(step)
        start = time.thread_time_ns()
        engine.tick(action)
        ticked = time.thread_time_ns()
        engine.render(frame)
        rendered = time.thread_time_ns()
        engine.info()
        informed = time.thread_time_ns()
        parts.append((ticked - start, rendered - ticked, informed - rendered))
    tick, render, info = (median(column) / 1e3 for column in zip(*parts, strict=True))
    return Row(size, sampling, tick, render, info, median(map(sum, parts)) / 1e3, dda)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000, help="steps per frame size")
    steps = parser.parse_args().steps
    print(f"{'frame':>16} {'tick':>7} {'render':>8} {'info':>6} {'step':>8}  µs CPU, medians")
    for size, sampling in FRAMES:
        row = measure(size, sampling, steps if size[0] < 256 else max(steps // 5, 1))
        print(
            f"{row.size[0]:>4}x{row.size[1]:<3} {row.sampling:>7} {row.tick:7.1f}"
            f" {row.render:8.1f} {row.info:6.1f} {row.step:8.1f}"
            f"  {1e6 / row.step:7.0f} steps/s/core"
            f"  calibration {row.dda:8.0f} µs  step/calibration {row.step / row.dda:.3f}"
        )
    print_spikes(steps)


if __name__ == "__main__":
    main()
