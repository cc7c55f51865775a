"""What deciding a benchmark's task costs per step: `python benchmarks/judge.py`.

The judge is called with the info of a step, over and over: as it is, and after a block outside of
all boxes has changed, which makes the judge look at its boxes again. Times are CPU time of the
thread, medians of runs. A step of the environment itself takes from 90 (64x64) to 230 (128x128).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from rllib_minestudio.benchmark.judge import JudgeTaskCallback
from rllib_minestudio.benchmark.players import task_env_config
from rllib_minestudio.benchmark.task import BenchmarkTask, load_suite
from rllib_minestudio.env.minestudio_env import MineStudioEnv
from rllib_minestudio.env.voxel.world.blocks import AIR, STONE

SHIPPED = (
    ("tech-tree", "3000"),
    ("minestudio", "simple/collect_dirt"),
    ("minestudio", "simple/build_gate"),
    ("minestudio", "hard/build_dig3fill1"),
    ("memory", "sunken_chest"),
    ("memory", "four_towers"),
)
"""Suites and tasks; facts of the world grow in number downwards."""
FOUR_FACTS = (
    "placed:*_planks@near>=40 or block:bedrock@-3..3,0..4,-3..3>=1 or structure:gate>=1"
    " or chest:diamond>=3"
)
"""One fact of each kind, all of which are asked for at every step."""
SEED = 1
FAR_AWAY, LAYER = 60, 100
"""Blocks from the player, and the layer, of the block that changes."""
RUNS = 9


def tasks() -> list[tuple[str, BenchmarkTask]]:
    """The tasks to measure, by name."""
    shipped = [(f"{suite} {name}", load_suite(suite).task(name)) for suite, name in SHIPPED]
    return [*shipped, ("four kinds of facts", replace(shipped[1][1], success=FOUR_FACTS))]


def per_call(call: Callable[[], object], before: Callable[[], object], calls: int) -> float:
    """Median over runs of the CPU microseconds of a call; what precedes each does not count."""
    runs = []
    for _ in range(RUNS):
        taken = 0
        for _ in range(calls):
            before()
            start = time.thread_time_ns()
            call()
            taken += time.thread_time_ns() - start
        runs.append(taken / calls / 1e3)
    return median(runs)


def measure(task: BenchmarkTask, calls: int) -> tuple[float, float]:
    """CPU microseconds of a judge's step, and of one after a block has changed somewhere."""
    env = MineStudioEnv(task_env_config(task, {"obs_size": (16, 16)}))
    env.reset(seed=SEED)
    (judge,) = (known for known in env.sim.callbacks if isinstance(known, JudgeTaskCallback))
    obs, info = env.sim.obs, dict(env.sim.info)
    world = env.backend.engine._game.state.world
    x, z = int(info["player_pos"]["x"]) + FAR_AWAY, int(info["player_pos"]["z"])

    def change() -> None:
        block = AIR if world.block_at(x, LAYER, z) == STONE else STONE
        world.set_block(x, LAYER, z, block)

    def step() -> None:
        judge.after_step(env.sim, obs, 0.0, False, False, info)

    times = per_call(step, lambda: None, calls), per_call(step, change, calls)
    env.close()
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=300, help="steps per run")
    calls = parser.parse_args().calls
    print(f"{'task':>36} {'judged':>8} {'changed':>8}  µs CPU, medians of {RUNS} runs")
    for name, task in tasks():
        quiet, changed = measure(task, calls)
        print(f"{name:>36} {quiet:8.1f} {changed:8.1f}")


if __name__ == "__main__":
    main()
