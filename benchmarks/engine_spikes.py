"""What costs the embedded engine more than an ordinary step; the second table of `engine.py`.

A reset, loading a chunk row, mobs in view, changing blocks, a new item in hand, a changed display,
and screens: how much more, in the median and at worst, and the median as a share of a step at
128x128 in an empty field.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.items.items import ITEM_ID, ITEMS
from rllib_minestudio.env.voxel.world.blocks import AIR, STONE

SEED, WORLDS_APART = 7, 104729
MOBS = 60
RINGS = ((2, 6), (5, 20))
"""Distances, in blocks, between which the mobs stand before the player."""
TOWER = 120
ENGINES = 9
"""New engines of which each opens a screen for the first time."""
FILL = (31, 32, 32)
"""Layers and columns of a fill of 31,744 blocks."""
HELD = ("iron_sword", "oak_log", "diamond_pickaxe", "apple", "crafting_table", "bow")


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


def resets(times: int) -> Spike:
    """New worlds, each of another seed."""
    engine = empty_field()
    taken = [
        timed(lambda seed=seed: engine.reset(seed * WORLDS_APART, biome="plains"))
        for seed in range(times)
    ]
    return Spike(f"reset, of {times}", median(taken), max(taken))


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
    """Measure, and print the table."""
    engine, frame = empty_field(), np.empty((128, 128, 3), np.uint8)
    ordinary = median(step(engine, frame) for _ in range(steps))
    print(f"\n{'beyond an ordinary step of':>45} {ordinary:8.1f}  µs CPU, medians; worst; share")
    spikes = [
        resets(max(steps // 25, 5)),
        *chunk_rows(5 * steps),
        *(crowd(steps, ring) for ring in RINGS),
        *edits(steps // 4),
    ]
    spikes += [*overlays(steps), *screens(steps)]
    for name, typical, worst, beside in spikes:
        share = typical / (beside or ordinary)
        print(f"{name:>45} {typical:8.1f} {worst:8.1f} {share:6.2f}")
