"""From `env` and `env_config` to constructors of environments, their spaces, and a policy for them.

`env` is what RLlib takes: a class, a function, or a name, which may be one of ours, one registered
with Tune, an id of gymnasium's registry, or the dotted path of a class.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Hashable, Mapping
from contextlib import closing
from functools import cache, partial
from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import ENV_CREATOR, _global_registry

from rllib_minestudio.algorithms.env_pool.base import EnvConfig
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.adapter import GymnasiumMaker, SpaceAdapter, make_adapted, require_single
from rllib_minestudio.env.env_options import VOXEL
from rllib_minestudio.env.voxel.contract import Looks, described, looks_of
from rllib_minestudio.errors import InvalidOptionsError, describe, did_you_mean
from rllib_minestudio.foundation.options import broken_rule, shown
from rllib_minestudio.models.policy_registry import AUTO, CONV_GRU, VPT, find_policy
from rllib_minestudio.models.rl_modules import has_spaces_of_vpt

ENV_NAME = "MineStudio"
"""The environment of a config that names none."""

OWN_NAMES = (ENV_NAME, "MineStudioEnv", "MineStudio-v0")
"""All names of `MineStudioEnv`: ours, its class's, and gymnasium's. The last one stands for the
environment itself, without the time limit that `gymnasium.make` adds, since tasks have their own.
"""

EnvMaker = Callable[[EnvConfig], gym.Env]

_logger = logging.getLogger(__name__)


def resolve_env(env: Any) -> EnvMaker:
    """Find the constructor for an environment specifier.

    The result is the same in every process, except for names registered by the user.

    Args:
        env: A class or function of one argument, the `EnvConfig`; one of `OWN_NAMES`; a name given
            to `ray.tune.register_env`; an id of gymnasium's registry, such as `CartPole-v1` or
            `module:Id-v0`; or a dotted path `package.module.Class`.

    Raises:
        InvalidOptionsError: If it is none of these, or several agents' or environments' class.
    """
    if isinstance(env, type) and issubclass(env, MultiAgentEnv | gym.vector.VectorEnv):
        raise InvalidOptionsError(_must_be_single(env))
    if callable(env):
        return env
    if not isinstance(env, str):
        raise InvalidOptionsError(_unknown(env))
    if env in OWN_NAMES:
        return MineStudioEnv
    if _global_registry.contains(ENV_CREATOR, env):
        return _global_registry.get(ENV_CREATOR, env)
    module, _, name = env.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        return GymnasiumMaker(env, gym.spec(name))
    except gym.error.Error as error:
        if "." not in env.replace(":", "."):
            hint = f" Gymnasium says: {error}" if "-v" in env else did_you_mean(env, OWN_NAMES)
            raise InvalidOptionsError(_unknown(env) + hint) from error
    except Exception as error:  # importing runs the module, which may raise anything
        raise InvalidOptionsError(f"env is {env!r}, which cannot be imported: {error}") from error
    return _class_at(env)


def _class_at(path: str) -> EnvMaker:
    """Return the environment class that a dotted path names.

    Raises:
        InvalidOptionsError: There is none, or it is no environment class.
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs the module, which may raise anything
        raise InvalidOptionsError(f"env is {path!r}, which cannot be imported: {error}") from error
    # An object named in a file is called only if it is an environment class.
    if not isinstance(found, type) or not issubclass(found, gym.Env):
        raise InvalidOptionsError(f"env is {path!r}, which is not an environment class.")
    return resolve_env(found)


def _unknown(env: Any) -> str:
    rule = (
        f"must be {ENV_NAME!r}, a class, a dotted path to a class, a name registered with "
        "ray.tune.register_env, or an id registered with gymnasium (in another process it is known "
        "as module:Id, which imports the module that registers it)"
    )
    return broken_rule("env", env, rule)


def _must_be_single(kind: type) -> str:
    return broken_rule(
        "env",
        kind,
        "must be a gymnasium environment of one agent; num_envs_per_env_runner says how many are "
        "played at a time",
    )


def is_minestudio(env: Any) -> bool:
    """Whether an environment specifier stands for `MineStudioEnv` itself, not a subclass."""
    try:
        return resolve_env(env) is MineStudioEnv
    except InvalidOptionsError:
        return False


def is_embedded(env: Any, env_config: Mapping[str, Any]) -> bool:
    """Whether an environment is `MineStudioEnv` with the embedded engine."""
    return is_minestudio(env) and env_config.get("engine", VOXEL) == VOXEL


def is_harmless(env: Any, env_config: Mapping[str, Any]) -> bool:
    """Whether an environment neither hangs nor crashes, so that it needs no process of its own.

    These are the embedded engine and the environments that come with gymnasium.
    """
    make = resolve_env(env)
    is_gymnasiums = isinstance(make, GymnasiumMaker) and make.is_gymnasiums_own
    return is_embedded(env, env_config) or is_gymnasiums


def looks_of_env(env: Any, env_config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the looks of an environment's frames; None if the embedded engine draws none there."""
    if not is_embedded(env, env_config):
        return None
    pack = env_config.get("resource_pack")
    return looks_of(pack if isinstance(pack, str) else None)  # `env_problems` reports others


def looks_of_built(env: gym.Env | gym.vector.VectorEnv) -> dict[str, Any] | None:
    """Return the looks of an environment that has been built; see `looks_of_env`."""
    first = next(iter(getattr(env, "envs", ())), env).unwrapped
    is_ours = isinstance(first, MineStudioEnv) and first.options.engine == VOXEL
    return looks_of(first.options.resource_pack) if is_ours else None


def tell_other_looks(name: str, then: Looks | None, now: Looks | None) -> None:
    """Warn, once per process, that a policy sees other frames than it was trained on.

    Args:
        name: Of its checkpoint.
        then: The looks that its checkpoint names, if it does.
        now: Those of the environment that it plays in, if that is the embedded engine.
    """
    if then is not None and now is not None and dict(then) != dict(now):
        _tell_other_looks(name, described(then), described(now))


@cache
def _tell_other_looks(name: str, then: str, now: str) -> None:
    _logger.warning(
        "%s was trained on frames of other looks (%s) than the engine draws here (%s), and may "
        "play worse: docs/embedded_engine.md#looks.",
        name,
        then,
        now,
    )


def given_options(make: EnvMaker, env_config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return what a constructor is given: `env_config`, with a `seed` unless gymnasium makes it.

    Environments of gymnasium's registry take their options as keyword arguments, of which `seed` is
    usually none; they get their seeds from `reset`, as all others do.
    """
    return dict(env_config) if isinstance(make, GymnasiumMaker) else {"seed": seed, **env_config}


def env_makers(
    config: AlgorithmConfig, worker_index: int, num_workers: int
) -> list[Callable[[], gym.Env]]:
    """Return one constructor per environment of an env runner."""
    make = resolve_env(config.env)
    options = given_options(make, config.env_config, config.seed or 0)
    return [
        partial(
            make_adapted,
            make,
            EnvConfig(options, worker_index=worker_index, vector_index=i, num_workers=num_workers),
        )
        for i in range(config.num_envs_per_env_runner)
    ]


def episodes_seed(config: AlgorithmConfig) -> int:
    """Return the seed of all episodes: the environment's option `seed`, or else the algorithm's."""
    own = config.env_config.get("seed")
    return own if isinstance(own, int) and own >= 0 else config.seed or 0


# ------------------------------------------------------- spaces, before any environment is started
# The spaces of `MineStudioEnv` follow from its options. Any other environment is built once in this
# process, and closed, so that a config can be checked before processes start.


def known_spaces(env: Any, env_config: Mapping[str, Any]) -> dict[str, gym.Space] | None:
    """Return an environment's spaces as policies see them.

    Returns:
        `observation_space` and `action_space`; None if they cannot be known here, or if the
        environment or one of its options is invalid, which `env_problems` reports.
    """
    try:
        adapter = known_adapter(env, env_config)
    except InvalidOptionsError:
        return None
    return None if adapter is None else adapter.module_spaces


def known_adapter(env: Any, env_config: Mapping[str, Any]) -> SpaceAdapter | None:
    """Return the adapter of an environment.

    Returns:
        None if the environment cannot be built here, perhaps because only the machines of the env
        runners can.

    Raises:
        InvalidOptionsError: There is no such environment, it refuses its options, it is one of
            gymnasium's registry and cannot be built, or its spaces are of a kind that no policy
            can play.
    """
    make = resolve_env(env)
    if isinstance(make, type) and issubclass(make, MineStudioEnv):
        return SpaceAdapter.unchanged(**make.spaces_of(env_config))
    key = (make, repr(env_config)) if isinstance(make, Hashable) else None
    if key is None or key not in _adapters:
        found = _adapter_of_built(make, env, env_config)
        if key is None:
            return found
        _adapters[key] = found
    return _adapters[key]


_adapters: dict[Any, SpaceAdapter | None] = {}
"""(constructor, options as text) -> what was found."""


def _adapter_of_built(
    make: EnvMaker, env: Any, env_config: Mapping[str, Any]
) -> SpaceAdapter | None:
    options = given_options(make, env_config, 0)
    try:
        built = make(EnvConfig(options, worker_index=0, vector_index=0, num_workers=0))
    except InvalidOptionsError:
        raise
    except Exception as error:  # the user's code may raise anything
        if isinstance(make, GymnasiumMaker):
            raise InvalidOptionsError(
                f"env is {env!r}, which cannot be built with env_config={shown(dict(env_config))}, "
                f"its keyword arguments: {describe(error)}"
            ) from error
        return None
    with closing(built):
        if isinstance(built, MultiAgentEnv):
            raise InvalidOptionsError(_must_be_single(type(built)))
        require_single(built)
        return SpaceAdapter.of(built)


# ----------------------------------------------------------------- the policy for an environment


def default_policy(env: Any, env_config: Mapping[str, Any]) -> str | None:
    """Return the name of the policy for an environment whose user names none.

    It is VPT for `MineStudioEnv` and for any other environment with its frames and tokens, or whose
    spaces are not known; for all others, it is ConvGRU.

    Returns:
        None if no policy can play the environment, which `env_problems` reports.
    """
    if is_minestudio(env):
        return VPT
    try:
        adapter = known_adapter(env, env_config)
    except InvalidOptionsError:
        return None
    is_vpts = adapter is None or has_spaces_of_vpt(**adapter.module_spaces)
    return VPT if is_vpts else CONV_GRU


@cache  # once per process, not once per copy of a config
def tell_default_policy(env: str, policy: str) -> None:
    """Tell which policy was chosen for an environment of another kind than MineStudio's."""
    _logger.warning(
        "module_class is not given, and env %s has no frames and tokens of MineStudio's, so the "
        "policy is %s: docs/policies.md.",
        env,
        policy,
    )


def suited_env_config(
    env: Any, env_config: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an environment's options, with a policy's defaults for those not given.

    Args:
        env: An environment specifier; policies have defaults for `MineStudioEnv` only.
        env_config: The options given by the user.
        defaults: The policy's defaults, see `RecurrentRLModule.env_defaults`.
    """
    return {**(defaults if is_minestudio(env) else {}), **env_config}


def suited_env_options(env: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `env_config` in a trial's options, with its policy's defaults."""
    env_config = options.get("env_config") or {}
    if not is_minestudio(env):
        return dict(env_config)
    name = options.get("module_class", AUTO)
    policy = find_policy(VPT if name == AUTO else name)
    return suited_env_config(env, env_config, policy.env_defaults(options.get("model") or {}))
