"""Judges an experiment's `config` section: keys, types, each part, and the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm import Algorithm

from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.experiments.reading.config_keys import key_problems, type_problems
from rllib_minestudio.experiments.reading.experiment_file import DEFAULT_ALGORITHM, Experiment
from rllib_minestudio.experiments.reading.named_objects import load_object
from rllib_minestudio.experiments.reading.search_space import parse_search_space, variants

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

ALGORITHMS = {
    DEFAULT_ALGORITHM: "rllib_minestudio.algorithms.MineStudioPPO",
    "MineStudioBC": "rllib_minestudio.algorithms.MineStudioBC",
}
ENVIRONMENTS = {"MineStudioEnv": "rllib_minestudio.env.MineStudioEnv"}
CLASS_OPTIONS = ("callbacks", "env_runner_cls")
"""Options whose value is a class; YAML names it by its dotted path."""


def algorithm_of(experiment: Experiment, problems: list[str]) -> tuple[type | None, Any]:
    """Return the Algorithm class and its default config, or (None, None) with a problem noted."""
    path = f"{experiment.name}.run"
    if experiment.algorithm_config is not None:
        config = experiment.algorithm_config
        return config.algo_class, config
    try:
        algorithm = load_object(experiment.run, ALGORITHMS, "algorithm", path)
    except InvalidOptionsError as error:
        problems.extend(error.problems)
        return None, None
    if not _is_class_of(algorithm, Algorithm):
        problems.append(f"{path}: {experiment.run!r} is not an RLlib Algorithm class.")
        return None, None
    return algorithm, algorithm.get_default_config()


def search_space(
    experiment: Experiment, default_config: AlgorithmConfig, problems: list[str]
) -> dict[str, Any]:
    """Build Tune's parameter space out of the options that the author wrote.

    Args:
        experiment: The experiment.
        default_config: The algorithm's default AlgorithmConfig.
        problems: Receives one sentence per key, name or search that is wrong.
    """
    path = f"{experiment.name}.config"
    problems.extend(key_problems(experiment.config, default_config, path))
    space = parse_search_space(experiment.config, path, problems)
    if experiment.env is not None:
        if "env" in experiment.config:
            problems.append(f"{path}.env: `env`, beside config, says the same; say it once.")
        space["env"] = experiment.env
    if isinstance(space.get("env"), str):
        env_path = f"{experiment.name}.env"
        _replace_name(space, "env", ENVIRONMENTS, "environment", env_path, problems)
        if not isinstance(space["env"], str) and not _is_class_of(space["env"], gym.Env):
            problems.append(
                f"{env_path}: {experiment.env!r} is no class of gymnasium environments."
            )
    for key in CLASS_OPTIONS:
        if isinstance(space.get(key), str):
            _replace_name(space, key, {}, key, f"{path}.{key}", problems)
            if not isinstance(space[key], str) and not isinstance(space[key], type):
                problems.append(f"{path}.{key}: {experiment.config[key]!r} is no class.")
    if experiment.algorithm_config is not None:
        space = _merged(_as_options(experiment.algorithm_config), space)
    return space


def check_variants(
    experiment: Experiment,
    space: dict[str, Any],
    default_config: AlgorithmConfig,
    problems: list[str],
) -> Any:
    """Judge every concrete config of a space.

    Args:
        experiment: The experiment.
        space: What `search_space` returned.
        default_config: The algorithm's default AlgorithmConfig.
        problems: Receives one sentence per problem. If it holds some already, only the parts
            that can be judged on their own are.

    Returns:
        The first variant's AlgorithmConfig, or None if nothing could be built.
    """
    example = None
    fitted: set[str] = set()
    for variant in variants(space):
        found = _part_problems(experiment, variant, default_config)
        if not found and not problems:
            config = default_config.copy(copy_frozen=False)
            found = _whole_problems(config, variant, experiment.name)
            if not found and _is_ours(config) and (shape := _shape(config)) not in fitted:
                fitted.add(shape)
                found = _problems_of(partial(_check_fit, config), f"{experiment.name}.config")
            example = example or config
        problems.extend(found)
    return example


def _replace_name(
    space: dict[str, Any],
    key: str,
    known: Mapping[str, str],
    kind: str,
    path: str,
    problems: list[str],
) -> None:
    try:
        space[key] = load_object(space[key], known, kind, path)
    except InvalidOptionsError as error:
        problems.extend(error.problems)


def _is_class_of(found: Any, base: type) -> bool:
    """Whether what a file named is a class of the kind wanted: only then is it ever called."""
    return isinstance(found, type) and issubclass(found, base)


def _as_options(config: AlgorithmConfig) -> dict[str, Any]:
    """Turn an AlgorithmConfig into options that a YAML file could have given."""
    options = config.to_dict()
    if _is_ours(config):
        # `model` holds the defaults of RLlib's old API stack there.
        options["model"] = options.pop("_model_config")
    return options


def _merged(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Lay `extra` over `base`, mapping by mapping."""
    merged = dict(base)
    for key, value in extra.items():
        inner = merged.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(inner, value)
        else:
            merged[key] = value
    return merged


def _part_problems(
    experiment: Experiment, variant: dict[str, Any], default_config: AlgorithmConfig
) -> list[str]:
    """Judge the parts of one concrete config that can be judged on their own."""
    path = f"{experiment.name}.config"
    written = {key: value for key, value in variant.items() if key in experiment.config}
    problems = type_problems(written, default_config, path)
    model, env_config = written.get("model"), written.get("env_config")
    if isinstance(model, Mapping) and _is_ours(default_config):
        policy = written.get("module_class", default_config.module_class)
        problems += _problems_of(lambda: _check_model(policy, model), f"{path}.model")
    check_env_options = getattr(variant.get("env"), "check_options", None)
    if isinstance(env_config, Mapping) and check_env_options is not None:
        problems += _problems_of(lambda: check_env_options(env_config), f"{path}.env_config")
    return problems


def _check_model(policy: Any, options: Mapping[str, Any]) -> None:
    from rllib_minestudio.models.policies import find_policy

    find_policy(policy).check_options(options)


def _whole_problems(config: AlgorithmConfig, variant: dict[str, Any], name: str) -> list[str]:
    """Fill a whole AlgorithmConfig and let it judge what only the whole can tell."""

    def build() -> None:
        config.update_from_dict(variant)
        config.validate()

    return _problems_of(build, f"{name}.config")


def _is_ours(config: AlgorithmConfig) -> bool:
    """Return whether an AlgorithmConfig (a default or a concrete one) is of this package."""
    from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig

    return isinstance(config, MineStudioPPOConfig | MineStudioBCConfig)


def _shape(config: AlgorithmConfig) -> str:
    """Return what decides whether environment and model fit each other, as a key."""
    policy = config.policy_class
    return repr([config.env, config.env_config, policy, config.model_config, _prior(config)])


def _check_fit(config: AlgorithmConfig) -> None:
    """Build the environment and the model once, which shows whether they fit each other.

    It takes seconds for the largest models, and saves starting Ray only to fail: images of the
    wrong size, an environment that does not start, weights of another model.
    """
    from rllib_minestudio.algorithms.options.ppo import INITIAL_PRIOR
    from rllib_minestudio.experiments.running.environment import make_env

    env = make_env(config)
    try:
        module = config.policy_class(
            observation_space=env.observation_space,
            action_space=env.action_space,
            model_config=config.model_config,
        )
    finally:
        env.close()
    prior = _prior(config)
    if prior not in (None, INITIAL_PRIOR):
        module.load_weights(prior)


def _prior(config: AlgorithmConfig) -> str | None:
    """Return what the agent is held to; clones are held to nothing."""
    return getattr(config, "prior", None)


def _problems_of(check: Callable[[], Any], path: str) -> list[str]:
    """Run a check that raises, and return what it complained about, each led by its path."""
    try:
        check()
    except InvalidOptionsError as error:
        return [f"{path}: {problem}" for problem in error.problems]
    except MineStudioError as error:
        return [f"{path}: {error}"]
    except (
        ValueError,
        TypeError,
        AssertionError,
        AttributeError,
        LookupError,
        OverflowError,
    ) as error:
        return [f"{path}: {type(error).__name__}: {' '.join(str(error).split())}"]
    return []
