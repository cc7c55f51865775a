"""Speed of the embedded engine on one core: `python benchmarks/engine.py`.

A player walks and looks around on plains among ten cows. Every step is a tick, a frame into a
reused buffer and an info dict, as an environment needs them. Times are CPU time of the thread,
medians over all steps, so other load on the machine disturbs them little.

The last column relates a step to the *calibration*: a plain float32 DDA (Amanatides and Woo 1987)
that only finds the block behind every pixel of one such frame, measured in the same run. Compare
machines by that ratio, not by steps per second.

A second table has what costs more than an ordinary step: loading a chunk row, mobs in view,
changing blocks, a new item in hand, a changed display, and screens. It says how much more, in the
median and at worst, and the median as a share of a step at 128x128 in an empty field.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np
from numba import float32, int32, njit, uint32

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
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
from rllib_minestudio.env.voxel.view_options import AVERAGE, SAMPLES
from rllib_minestudio.env.voxel.world.blocks import AIR, STONE

FRAMES = (
    ((64, 64), AVERAGE),
    ((128, 128), AVERAGE),
    ((128, 128), SAMPLES),
    ((640, 360), AVERAGE),
)
"""Sizes, and how the frame is made."""
COWS = 10
SEED = 7
MOBS = 60
RINGS = ((2, 6), (5, 20))
"""Distances, in blocks, between which the mobs stand before the player."""
TOWER = 120
ENGINES = 9
"""New engines of which each opens a screen for the first time."""
FILL = (31, 32, 32)
"""Layers and columns of a fill of 31,744 blocks."""


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


class Spike(NamedTuple):
    """What something costs more than an ordinary step, in microseconds of CPU time.

    `beside` is the ordinary step measured just before; None for the one that heads the table.
    """

    name: str
    typical: float
    worst: float
    beside: float | None = None


def timed(call: Callable[[], object]) -> float:
    """CPU microseconds of a call."""
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1e3


def empty_field() -> VoxelEngine:
    """An engine on plains without mobs, when whatever follows a reset is over."""
    engine = VoxelEngine(frame_size=(128, 128))
    engine.reset(SEED, biome="plains")
    for _ in range(200):
        engine.tick({})
    return engine


def step(engine: VoxelEngine, frame: np.ndarray) -> float:
    """CPU microseconds of a step in which the player stands still."""
    return timed(lambda: (engine.tick({}), engine.render(frame), engine.info()))


def chunk_rows(ticks: int) -> list[Spike]:
    """Ticks of a sprint: those that load a chunk row, and the others, which may make land ahead."""
    engine = empty_field()
    loading, others = [], []
    stuck = 0
    for _ in range(ticks):
        before = engine.player.position.tolist()
        keys = {"forward": 1, "sprint": 1, "jump": 1, "camera": (0.0, 40.0 * (stuck > 5))}
        taken = timed(lambda keys=keys: engine.tick(keys))
        after = engine.player.position.tolist()
        stuck = stuck + 1 if math.dist(before, after) < 0.05 else 0
        entered = any(before[axis] // 16 != after[axis] // 16 for axis in (0, 2))
        (loading if entered else others).append(taken)
    quiet = float(np.percentile(others, 10))  # a tick that makes no land
    return [
        Spike(
            f"chunk row while sprinting, of {len(loading)}",
            median(loading) - quiet,
            max(loading) - quiet,
        ),
        Spike("tick between two of them", median(others) - quiet, max(others) - quiet),
    ]


def crowd(steps: int, ring: tuple[int, int]) -> Spike:
    """Steps with mobs in view, in turns with steps of the same field without."""
    empty, full = empty_field(), empty_field()
    for engine in (empty, full):
        engine.execute("/tp @p ~ ~ ~ 0 10")
    places = np.random.default_rng(SEED).uniform((ring[0], -0.7), (ring[1], 0.7), (MOBS, 2))
    for number, (distance, angle) in enumerate(places.tolist()):
        x, z = distance * math.sin(angle), distance * math.cos(angle)
        kind = ("cow", "sheep", "pig")[number % 3]
        full.execute(f"/execute as @p at @p run summon {kind} ~{x:.2f} ~ ~{z:.2f}")
    frame = np.empty((128, 128, 3), np.uint8)
    for engine in (empty, full):  # what is called first has to be loaded
        step(engine, frame)
    times = [(step(empty, frame), step(full, frame)) for _ in range(steps)]
    alone = median(time for time, _ in times)
    more = [time - alone for _, time in times]
    return Spike(f"{MOBS} mobs at {ring[0]} to {ring[1]} blocks", median(more), max(more))


def edits(times: int) -> list[Spike]:
    """`set_block` on the ground and in the air, before and after a tower was built; `/fill`."""
    engine = empty_field()
    world = engine._game.state.world
    x, y, z = (math.floor(value) for value in engine.player.position.tolist())
    spikes = []
    for block in (STONE, AIR):  # what is called first has to be loaded
        world.set_block(x + 4, y, z + 4, block)
    for built in ("", f", after building to y {TOWER}"):
        if built:
            for layer in range(y, TOWER):
                world.set_block(x + 6, layer, z + 6, STONE)
        for name, layer in (("on the ground", y), ("in the air", 100)):
            taken = [
                timed(lambda at=(x + 4, layer, z + 4, block): world.set_block(*at))
                for _ in range(times)
                for block in (STONE, AIR)
            ]
            spikes.append(Spike(f"set_block {name}{built}", median(taken), max(taken)))
    layers, length, width = FILL
    corners = f"~4 ~2 ~4 ~{3 + length} ~{1 + layers} ~{3 + width}"
    taken = [
        timed(lambda command=f"/fill {corners} {block}": engine.execute(command))
        for _ in range(max(times // 10, 2))
        for block in ("stone", "air")
    ]
    spikes.append(Spike(f"/fill of {math.prod(FILL):,} blocks", median(taken), max(taken)))
    return spikes


HELD = ("iron_sword", "oak_log", "diamond_pickaxe", "apple", "crafting_table", "bow")


def overlays(times: int) -> list[Spike]:
    """Frames in which the display or the hand changes, beyond frames in which nothing does."""
    engine = empty_field()
    state, frame = engine._game.state, np.empty((128, 128, 3), np.uint8)
    inventory = state.player.inventory
    quiet = median(timed(lambda: engine.render(frame)) for _ in range(times))
    spikes = []

    def measure_changes(name: str, changes: list[Callable[[], object]]) -> None:
        taken = []
        for change in changes:
            change()
            taken.append(timed(lambda: engine.render(frame)) - quiet)
        spikes.append(Spike(name, median(taken), max(taken)))

    new = [lambda item=item: inventory.set(0, ITEM_ID[item], 1) for item in HELD]
    measure_changes("new item in hand", new)
    poses = [
        lambda pose=pose: state.player.records.__setitem__("swing_ticks", pose)
        for pose in range(1, 6)
    ]
    measure_changes("new pose of a swing", poses)
    state.player.records["swing_ticks"] = 0
    counts = [
        lambda count=count: inventory.set(1, ITEM_ID["dirt"], count) for count in range(2, 65)
    ]
    measure_changes("changed count", counts)
    hearts = [
        lambda points=points: setattr(state.player, "health", points) for points in range(1, 20)
    ]
    measure_changes("changed heart", hearts)
    return spikes


def screens(times: int) -> list[Spike]:
    """Steps with the inventory open, and those that open it, beyond steps without a screen."""
    engines = [openings(100, 1) for _ in range(ENGINES)]
    first, beside = [opening[0] for _, opening, _ in engines], median(own for own, _, _ in engines)
    quiet, opening, moving = openings(times, max(times // 20, 5))
    return [
        Spike(f"first opening of a screen, of {ENGINES}", median(first), max(first), beside),
        Spike("opening a screen", median(opening[1:]), max(opening[1:]), quiet),
        Spike("cursor moving in an open screen", median(moving), max(moving), quiet),
    ]


def openings(quiet_steps: int, times: int) -> tuple[float, list[float], list[float]]:
    """A full inventory opened `times` times in a new engine.

    Returns:
        A step without a screen; what the steps that open it take beyond that, and those of a
        cursor that moves in it.
    """
    engine, frame = empty_field(), np.empty((128, 128, 3), np.uint8)
    for slot in range(36):
        item = HELD[slot % len(HELD)]
        engine.player.inventory.set(slot, ITEM_ID[item], 1 + slot % ITEMS[ITEM_ID[item]].max_stack)
    quiet = median(step(engine, frame) for _ in range(quiet_steps))
    opening, open_steps = [], []
    for _ in range(times):
        for inventory in (1, 0):
            keys = {"inventory": inventory, "camera": (0.0, 0.0)}
            taken = timed(
                lambda keys=keys: (engine.tick(keys), engine.render(frame), engine.info())
            )
            if inventory:
                opening.append(taken - quiet)
        for turn in range(8):
            keys = {"camera": (1.0, 3.0 - turn)}
            taken = timed(
                lambda keys=keys: (engine.tick(keys), engine.render(frame), engine.info())
            )
            open_steps.append(taken - quiet)
        engine.tick({"inventory": 1})
        engine.tick({})
    return quiet, opening, open_steps


def print_spikes(steps: int) -> None:
    """Print the second table."""
    engine, frame = empty_field(), np.empty((128, 128, 3), np.uint8)
    ordinary = median(step(engine, frame) for _ in range(steps))
    print(f"\n{'beyond an ordinary step of':>45} {ordinary:8.1f}  µs CPU, medians; worst; share")
    spikes = [*chunk_rows(5 * steps), *(crowd(steps, ring) for ring in RINGS), *edits(steps // 4)]
    spikes += [*overlays(steps), *screens(steps)]
    for name, typical, worst, beside in spikes:
        share = typical / (beside or ordinary)
        print(f"{name:>45} {typical:8.1f} {worst:8.1f} {share:6.2f}")


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
