"""Python time of our env over the game against MineStudio's bare simulator, on one machine.

    python benchmarks/minecraft_overhead.py

Needs the package minestudio; the embedded engine is the game of both, each in a process of its
own. Both play the same agent actions with the callbacks of MineStudio's quick start (ours are
written anew, so the difference is theirs too) and without any. The sides take turns in blocks of
steps. What is compared is CPU time of this process per step, the medians over the blocks: the game
itself, which is the same for both, does not count. Exit status 1 if ours costs more than 5 % more.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.backends.minecraft.prerequisites import import_minestudio
from rllib_minestudio.env.voxel.server import launcher

ALLOWED = 1.05
SIZES = (((128, 128), (128, 128)), ((640, 360), (128, 128)))
"""(what the game draws, what is observed), each (width, height)."""

_REWARD = {
    "event": "kill_entity",
    "objects": ["cow"],
    "reward": 1.0,
    "identity": "kill cow",
    "max_reward_times": 30,
}
_COWS = {"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}
QUICK_START: list[tuple[str, dict[str, Any]]] = [
    ("SummonMobs", {"mobs": [_COWS]}),
    ("MaskActions", {"inventory": 0}),
    ("Rewards", {"reward_cfg": [_REWARD]}),
    ("Commands", {"commands": ["/give @p minecraft:iron_sword 1"]}),
    ("FastReset", {"biomes": ["plains"], "random_tp_range": 1000}),
    ("JudgeReset", {"time_limit": 10**6}),
]

Step = Callable[[dict[str, np.ndarray]], Any]


def bare(callbacks: list[tuple[str, dict[str, Any]]], **options: Any) -> tuple[Any, Step]:
    """MineStudio's simulator with its own callbacks, reset."""
    from minestudio.simulator import MinecraftSim
    from minestudio.simulator import callbacks as shipped

    built = [getattr(shipped, f"{name}Callback")(**arguments) for name, arguments in callbacks]
    sim = MinecraftSim(action_type="agent", callbacks=built, **options)
    sim.reset()
    return sim, sim.step


def ours(callbacks: list[tuple[str, dict[str, Any]]], **options: Any) -> tuple[Any, Step]:
    """Our env with our callbacks, reset."""
    specs = [{name: arguments} for name, arguments in callbacks]
    env = MineStudioEnv(options, engine="minecraft", callbacks=specs)
    env.reset()
    return env, env.step


def actions(count: int) -> Iterator[dict[str, np.ndarray]]:
    """Agent actions, the same for every call."""
    generator = np.random.default_rng(0)
    for _ in range(count):
        yield {
            "buttons": generator.integers(8640, size=1),  # all but the inventory
            "camera": generator.integers(121, size=1),
        }


def block_us(step: Step, count: int) -> float:
    """Microseconds of CPU time of this process for one of `count` steps."""
    prepared = list(actions(count))
    started = time.process_time_ns()
    for action in prepared:
        step(action)
    return (time.process_time_ns() - started) / count / 1e3


def compare(
    render_size: tuple[int, int],
    obs_size: tuple[int, int],
    callbacks: list[tuple[str, dict[str, Any]]],
    blocks: int,
    steps: int,
) -> tuple[float, float]:
    """Return microseconds a step of MineStudio's simulator and of our env."""
    options = {"render_size": render_size, "obs_size": obs_size, "num_empty_frames": 20}
    sides = [bare(callbacks, **options), ours(callbacks, **options)]
    times: list[list[float]] = [[], []]
    for step in (step for _, step in sides):
        block_us(step, steps)  # warm up
    for _ in range(blocks):
        for of_side, (_, step) in zip(times, sides, strict=True):
            of_side.append(block_us(step, steps))
    for owner, _ in sides:
        owner.close()
    theirs, mine = map(median, times)
    return theirs, mine


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=9, help="blocks of each side")
    parser.add_argument("--steps", type=int, default=150, help="steps of a block")
    given = parser.parse_args()
    worst = 0.0
    print("| game's frame | observation | callbacks | MinecraftSim, µs | ours, µs | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        launcher.install(directory)
        os.environ.update(launcher.environment(directory))
        os.environ["MALMO_MINECRAFT_OUTPUT_LOGDIR"] = folder  # MineStudio's logs, else in ./logs
        import_minestudio(directory)
        for render_size, obs_size in SIZES:
            for name, callbacks in (("none", []), ("quick start", QUICK_START)):
                with contextlib.redirect_stdout(io.StringIO()):  # MineStudio's reports
                    theirs, mine = compare(
                        render_size, obs_size, callbacks, given.blocks, given.steps
                    )
                worst = max(worst, mine / theirs)
                sizes = " | ".join("x".join(map(str, size)) for size in (render_size, obs_size))
                row = f"| {sizes} | {name} | {theirs:.0f} | {mine:.0f} | {mine / theirs:.2f} |"
                print(row, flush=True)
    return int(worst > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
