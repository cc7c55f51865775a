"""Building the environment of an AlgorithmConfig in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from ray.rllib.env.env_context import EnvContext

from rllib_minestudio.algorithms.environments import given_options, is_embedded, resolve_env
from rllib_minestudio.env.adapter import make_adapted
from rllib_minestudio.experiments.ray_session import compile_kernels

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def make_env(config: AlgorithmConfig) -> gym.Env:
    """Build the environment of a config as an env runner does, compiling the engine if necessary.

    Args:
        config: An AlgorithmConfig, of which `env`, `env_config` and `seed` are used.
    """
    return build_env(config.env, config.env_config or {}, config.seed or 0)


def build_env(env: Any, env_config: Mapping[str, Any], seed: int) -> gym.Env:
    """Build an environment as an env runner does, compiling the engine if necessary.

    Args:
        env: As `env` in an AlgorithmConfig.
        env_config: Its options; a `seed` among them takes precedence.
        seed: Seed of its worlds.
    """
    make = resolve_env(env)
    options = given_options(make, env_config, seed)
    if is_embedded(env, env_config):
        compile_kernels()
    return make_adapted(make, EnvContext(options, worker_index=0))
