"""A program that has the kernels compiled, runs all of them, and counts what it compiled itself."""

PROGRAM = """
from rllib_minestudio.env.voxel import kernel_cache, kernels
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.warmup_game import STAGES
lines = []
kernel_cache.warmup(lines.append)
assert kernel_cache.is_warm()
for name, stage in STAGES:
    stage()
engine = VoxelEngine()
engine.tick({"forward": 1})
engine.mobs_near(20.0), engine.info(), engine.biome(), engine.render()
print(kernels.count_compiled(), len(lines), sum("Compiling" in line for line in lines))
"""
"""Prints the kernels that it compiled, and how many lines it was told, all and of compiling."""
