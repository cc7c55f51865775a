"""What fire costs: `python benchmarks/fire.py`.

For some fires on netherrack, which never go out, and animals beside them: the part of a tick that
harms who is in them (a median), and their scheduled ticks (a mean, as each fire has one in 30 to 39
ticks), in microseconds.
"""

from __future__ import annotations

import argparse
import time
from statistics import fmean, median

from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.entities.mobs import IN_LAVA, MOB_BURNS, rare_conditions
from rllib_minestudio.env.voxel.game import fire
from rllib_minestudio.env.voxel.world.blocks import AIR, BLOCK_ID, STONE

SCENES = ((0, 10), (1, 10), (20, 10), (20, 60))
"""Numbers of fires and of animals."""
FLOOR, TICKS = 100, 400


def scene(fires: int, animals: int) -> VoxelEngine:
    """Return a game on a stone floor, with fires and animals."""
    engine = VoxelEngine(frame_size=(32, 32))
    engine.reset(1, "plains")
    engine.execute(f"/tp @p 0 {FLOOR} 0")
    world = engine._game.state.world
    world.fill((-30, 30), (FLOOR - 1, FLOOR), (-30, 30), STONE)
    world.fill((-30, 30), (FLOOR, FLOOR + 8), (-30, 30), AIR)
    for _ in range(animals):
        engine.execute(f"/summon cow 20 {FLOOR} 20")
    for number in range(fires):
        x, z = number % 10, 5 + number // 10
        world.set_block(x, FLOOR - 1, z, BLOCK_ID["netherrack"])
        fire.set_fire(engine._game.state, (x, FLOOR, z), 0)
    return engine


def measure(engine: VoxelEngine) -> tuple[float, float]:
    """Return microseconds of a tick's harm, and of the scheduled ticks in it."""
    state = engine._game.state
    mobs = state.mobs.records, state.mobs.count
    harm, burning = [], []
    for _ in range(TICKS):
        start = time.perf_counter()
        conditions = rare_conditions(state.world.blocks, state.player.position, *mobs)
        fire.tick(state, bool(conditions & IN_LAVA), bool(conditions & MOB_BURNS))
        middle = time.perf_counter()
        for _, places in state.block_ticks.advance(state.world):
            fire.burn(state, places)
        harm.append(middle - start)
        burning.append(time.perf_counter() - middle)
    return 1e6 * median(harm), 1e6 * fmean(burning)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print("fires  animals  harm, us  scheduled, us")
    for fires, animals in SCENES:
        harm, burning = measure(scene(fires, animals))
        print(f"{fires:5}  {animals:7}  {harm:8.1f}  {burning:13.1f}")


if __name__ == "__main__":
    main()
