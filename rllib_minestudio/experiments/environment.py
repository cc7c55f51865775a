"""Builds, in this process, the environment that an AlgorithmConfig describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from ray.rllib.env.env_context import EnvContext

from rllib_minestudio.algorithms.env_runner import resolve_env
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.experiments.ray_session import compile_kernels

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def make_env(config: AlgorithmConfig) -> gym.Env:
    """Build the environment as an env runner does, compiling the engine first if need be.

    Args:
        config: An AlgorithmConfig; its `env`, `env_config` and `seed` count.
    """
    return build_env(config.env, config.env_config or {}, config.seed or 0)


def build_env(env: Any, env_config: Mapping[str, Any], seed: int) -> gym.Env:
    """Build an environment as an env runner does, compiling the engine first if need be.

    Args:
        env: As an AlgorithmConfig's `env`.
        env_config: Its options; a `seed` among them takes precedence.
        seed: Of its worlds.
    """
    make = resolve_env(env)
    options = {"seed": seed, **env_config}
    if make is MineStudioEnv and options.get("engine", VOXEL) == VOXEL:
        compile_kernels()
    return make(EnvContext(options, worker_index=0))
