"""Builds, in this process, the environment that an AlgorithmConfig describes."""

from typing import Any

import gymnasium as gym
from ray.rllib.env.env_context import EnvContext

from rllib_minestudio.algorithms.envs import resolve_env
from rllib_minestudio.env import MineStudioEnv


def make_env(config: Any) -> gym.Env:
    """Build the environment as an env runner does.

    Args:
        config: An AlgorithmConfig; its `env`, `env_config` and `seed` count.
    """
    options = {"seed": config.seed or 0, **(config.env_config or {})}
    return resolve_env(config.env)(EnvContext(options, worker_index=0))


def uses_embedded_engine(config: Any) -> bool:
    """Return whether the environment plays in the embedded engine, whose kernels are compiled."""
    if resolve_env(config.env) is not MineStudioEnv:
        return False
    return (config.env_config or {}).get("engine", "voxel") == "voxel"
