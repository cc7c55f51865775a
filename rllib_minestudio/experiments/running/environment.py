"""Builds, in this process, the environment that an AlgorithmConfig describes."""

from typing import Any

import gymnasium as gym
from ray.rllib.env.env_context import EnvContext

from rllib_minestudio.algorithms.envs import resolve_env
from rllib_minestudio.cli.warmup_command import compile_kernels
from rllib_minestudio.env import MineStudioEnv


def make_env(config: Any) -> gym.Env:
    """Build the environment as an env runner does, compiling the engine first if need be.

    Args:
        config: An AlgorithmConfig; its `env`, `env_config` and `seed` count.
    """
    make = resolve_env(config.env)
    options = {"seed": config.seed or 0, **(config.env_config or {})}
    if make is MineStudioEnv and options.get("engine", "voxel") == "voxel":
        compile_kernels()
    return make(EnvContext(options, worker_index=0))
