"""Programs that have the kernels compiled, run them, and count what they compiled themselves."""

WARM = """
from rllib_minestudio.env.voxel import kernel_cache, kernels
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.warmup_game import STAGES
lines = []
kernel_cache.warmup(lines.append)
assert kernel_cache.is_warm()
for name, stage in STAGES:
    stage()
"""
COUNT = """
print(kernels.count_compiled(), len(lines), sum("Compiling" in line for line in lines))
"""
"""Prints the kernels that it compiled, and how many lines it was told, all and of compiling."""

PROGRAM = f"""{WARM}
engine = VoxelEngine()
engine.tick({{"forward": 1}})
engine.mobs_near(20.0), engine.info(), engine.biome(), engine.render()
{COUNT}"""
"""Runs all kernels."""
