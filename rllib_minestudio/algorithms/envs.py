"""From what stands in `config.env` to something that makes environments."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import ray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.tune.registry import ENV_CREATOR, _global_registry

from rllib_minestudio.algorithms.env_pool import EnvPool, EnvPoolOptions, InlineEnvs, ProcessEnvs
from rllib_minestudio.algorithms.env_pool.env_config import EnvConfig
from rllib_minestudio.algorithms.options.env_pool import AUTO, INLINE, PROCESS
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.models.policies import VPT, find_policy
from rllib_minestudio.option_checks import broken_rule

ENV_NAME = "MineStudio"
"""The name under which `MineStudioEnv` can be given in YAML."""


EnvMaker = Callable[[EnvConfig], gym.Env]


def resolve_env(env: Any) -> EnvMaker:
    """Find the constructor behind an environment specifier.

    It does not depend on what this process has registered, so it gives the same answer in every
    worker, except for names registered by the user.

    Args:
        env: A class or function of one argument, the `EnvConfig`; `MineStudio`; a name given to
            `ray.tune.register_env`; or a dotted path `package.module.Class`.

    Raises:
        InvalidOptionsError: If it is none of these.
    """
    if callable(env):
        return env
    if env == ENV_NAME:
        return MineStudioEnv
    if isinstance(env, str) and _global_registry.contains(ENV_CREATOR, env):
        return _global_registry.get(ENV_CREATOR, env)
    if isinstance(env, str) and "." in env:
        module, _, name = env.replace(":", ".").rpartition(".")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidOptionsError(
                f"env is {env!r}, which cannot be imported: {error}"
            ) from error
        # What a file names is called only if it is what it should be.
        if not isinstance(found, type) or not issubclass(found, gym.Env):
            raise InvalidOptionsError(f"env is {env!r}, which is no class of environments.")
        return found
    raise InvalidOptionsError(
        broken_rule(
            "env",
            env,
            f"must be {ENV_NAME!r}, a class, a dotted path to a class, or a name registered with "
            "ray.tune.register_env",
        )
    )


def known_spaces(env: Any, env_config: Mapping[str, Any]) -> dict[str, gym.Space] | None:
    """Return the spaces of an environment as far as they are known without building one.

    Returns:
        `observation_space` and `action_space`; None if only the environment can tell, or if it or
        an option is wrong, which is for others to report.
    """
    try:
        found = resolve_env(env)
        if isinstance(found, type) and issubclass(found, MineStudioEnv):
            return dict(found.spaces_of(env_config))
    except InvalidOptionsError:
        pass
    return None


def suited_env_config(
    env: Any, env_config: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options of an environment, with a policy's defaults for what they leave open.

    Args:
        env: An environment specifier; only `MineStudioEnv` has options that policies know of.
        env_config: What the user gave.
        defaults: Of the policy, see `RecurrentPolicy.env_defaults`.
    """
    return {**(defaults if env in (ENV_NAME, MineStudioEnv) else {}), **env_config}


def suited_env_options(env: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `env_config` of a config as a trial has it, with its policy's defaults.

    Args:
        env: The environment specifier.
        options: Name of a config's option -> value.
    """
    policy = find_policy(options.get("module_class", VPT))
    defaults = policy.env_defaults(options.get("model") or {})
    return suited_env_config(env, options.get("env_config") or {}, defaults)


def episodes_seed(config: AlgorithmConfig) -> int:
    """What episodes derive from: the environment's own option `seed`, or else the algorithm's."""
    own = config.env_config.get("seed")
    return own if isinstance(own, int) and own >= 0 else config.seed or 0


def env_makers(
    config: AlgorithmConfig, worker_index: int, num_workers: int
) -> list[Callable[[], gym.Env]]:
    """One constructor per environment of an env runner.

    Args:
        config: Says which environment, with which options, and how many.
        worker_index: Of the env runner.
        num_workers: How many remote env runners there are.
    """
    maker = resolve_env(config.env)
    options = {"seed": config.seed or 0, **config.env_config}
    return [
        partial(
            maker,
            EnvConfig(options, worker_index=worker_index, vector_index=i, num_workers=num_workers),
        )
        for i in range(config.num_envs_per_env_runner)
    ]


def make_pool(
    env: Any,
    env_config: Mapping[str, Any],
    make_envs: Sequence[Callable[[], gym.Env]],
    *,
    options: EnvPoolOptions,
    **arguments: Any,
) -> EnvPool:
    """Build the kind of pool that the options ask for.

    Args:
        env: What stands in `config.env`.
        env_config: Its options.
        make_envs: One constructor per environment.
        options: With `auto`, our environment with the embedded engine runs inline: it neither
            hangs nor crashes, and its steps are shorter than the way to another process.
        arguments: Of the pool.
    """
    mode = options.mode
    if mode == AUTO:
        embedded = resolve_env(env) is MineStudioEnv and env_config.get("engine", VOXEL) == VOXEL
        mode = INLINE if embedded else PROCESS
    pool = InlineEnvs if mode == INLINE else ProcessEnvs
    return pool(make_envs, options=options, **arguments)


def was_reconstructed() -> bool:
    """Whether Ray started this actor anew after it was lost."""
    if not ray.is_initialized():
        return False
    context = ray.get_runtime_context()
    return context.get_actor_id() is not None and context.was_current_actor_reconstructed
