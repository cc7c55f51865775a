"""From what stands in `config.env` to something that makes environments."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from ray.rllib.env.env_context import EnvContext
from ray.tune.registry import ENV_CREATOR, _global_registry

from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError

ENV_NAME = "MineStudio"
"""The name under which `MineStudioEnv` can be given in YAML."""

EnvMaker = Callable[[EnvContext], gym.Env]


def resolve_env(env: Any) -> EnvMaker:
    """Find the constructor behind an environment specifier.

    It does not depend on what this process has registered, so it gives the same answer in every
    worker, except for names registered by the user.

    Args:
        env: A class or function of one argument, the `EnvContext`; `MineStudio`; a name given to
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
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InvalidOptionsError(
                f"env is {env!r}, which cannot be imported: {error}"
            ) from error
    raise InvalidOptionsError(
        f"env is {env!r}: it must be {ENV_NAME!r}, a class, a dotted path to a class, or a name "
        "registered with ray.tune.register_env."
    )
