"""An experiment found to be in order, in Ray Tune's terms: its config judged, its searches read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE
from ray.tune.search.sample import Domain
from ray.tune.search.variant_generator import generate_variants

from rllib_minestudio.algorithms.rllib_settings import OTHER_NAMES
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError, did_you_mean
from rllib_minestudio.experiments.file import DEFAULT_ALGORITHM, Experiment, load_object, name_here
from rllib_minestudio.experiments.sections import (
    CheckpointOptions,
    SummaryOptions,
    checkpoint_options,
    is_count,
    scheduler_options,
    stop_criteria,
    summary_options,
    video_interval,
    with_evaluation,
)
from rllib_minestudio.experiments.trackers import tracker_problems
from rllib_minestudio.foundation.options import broken_rule, is_integer, unknown_name

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

_MOST_TRIALS = 100_000


@dataclass(frozen=True)
class Plan:
    """What will be run.

    Attributes:
        name: Name of its results folder.
        algorithm: The Algorithm class.
        space: Tune's parameter space: the options the author wrote, with searches in place.
        searched: Paths of the searched options in `space`.
        example: One concrete, validated AlgorithmConfig out of the space.
        stop: Metric (slashes for nesting) -> value; the first one reached ends a trial.
        num_samples: How often Tune repeats the space.
        scheduler: Which trials are stopped early, as `scheduler.make_scheduler` takes it.
        checkpoints: When to save, and what to keep.
        record_video_interval: Iterations between two videos of the agent; None for none.
        trackers: Where results go besides; the experiment's section, found to be in order.
        summary: What to measure around the run.
    """

    name: str
    algorithm: type
    space: dict[str, Any]
    searched: list[tuple[Any, ...]]
    example: Any
    stop: dict[str, float]
    num_samples: int
    scheduler: dict[str, Any]
    checkpoints: CheckpointOptions
    record_video_interval: int | None
    trackers: dict[str, Any]
    summary: SummaryOptions


def make_plan(experiment: Experiment) -> Plan:
    """Judge an experiment, before Ray starts, and turn it into a plan.

    Raises:
        InvalidOptionsError: Anything at all is wrong; it lists every problem by its dotted path.
    """
    problems: list[str] = []
    stop = stop_criteria(experiment, problems)
    checkpoints = checkpoint_options(experiment, problems)
    videos = video_interval(experiment, checkpoints, problems)
    summary = summary_options(experiment, problems)
    scheduler = scheduler_options(experiment, problems)
    problems += tracker_problems(experiment.trackers, f"{experiment.name}.trackers")
    if not is_count(experiment.num_samples, 1) or experiment.num_samples > _MOST_TRIALS:
        rule = f"must be a whole number from 1 to {_MOST_TRIALS}"
        problems.append(broken_rule(f"{experiment.name}.num_samples", experiment.num_samples, rule))
    experiment = replace(experiment, config=with_evaluation(experiment, problems))
    algorithm, default_config = algorithm_of(experiment, problems)
    space: dict[str, Any] = {}
    example = None
    if default_config is not None:
        space = search_space(experiment, default_config, problems)
        example = check_variants(experiment, space, default_config, problems)
    if problems or algorithm is None:
        raise InvalidOptionsError(list(dict.fromkeys(problems)))
    return Plan(
        name=experiment.name,
        algorithm=algorithm,
        space=space,
        searched=searched_paths(space),
        example=example,
        stop=stop,
        num_samples=experiment.num_samples,
        scheduler=scheduler,
        checkpoints=checkpoints,
        record_video_interval=videos,
        trackers=experiment.trackers,
        summary=summary,
    )


# ---------------------------------------------------------- judges an experiment's `config` section
# Keys, types, each part, and the whole.

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
    from rllib_minestudio.algorithms.options import INITIAL_PRIOR
    from rllib_minestudio.experiments.environment import make_env

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


# -------------------- which keys an algorithm's `config:` may hold, and of which type each value is
# RLlib's own `update_from_dict` takes any key in silence, so a typo would train the default for
# hours. The truth about keys is the algorithm's default config object; this module adds the aliases
# that RLlib translates and the keys that look alive but do nothing.

ALIASES = {"callbacks": "callbacks_class", "framework": "framework_str", "lambda": "lambda_"}
"""Names RLlib's setters use -> attribute of the config object."""


def valid_keys(default_config: AlgorithmConfig) -> list[str]:
    """List the keys that `config:` may hold for an algorithm.

    Args:
        default_config: What the algorithm class's `get_default_config()` returned.
    """
    alive = [
        name
        for name, value in vars(default_config).items()
        if not name.startswith("_") and value is not DEPRECATED_VALUE
    ]
    return sorted({*alive, *ALIASES} - set(OTHER_NAMES))


def key_problems(
    config: Mapping[str, Any], default_config: AlgorithmConfig, path: str
) -> list[str]:
    """Return one sentence per key of `config` that the algorithm does not have or not heed."""
    valid = valid_keys(default_config)
    own_attributes = vars(default_config)
    problems = []
    for key in config:
        if key in valid:
            continue
        if key in OTHER_NAMES:
            problems.append(f"{path}.{key}: has no effect here; {OTHER_NAMES[key]}.")
        elif key in own_attributes:
            problems.append(f"{path}.{key}: is deprecated in RLlib and has no effect.")
        elif (here := name_here(str(key))) is not None:
            problems.append(f"{path}.{key}: is MineStudio's name of it; use {here}.")
        else:
            hint = did_you_mean(key, valid) or " No valid key is close to it."  # they are hundreds
            problems.append(unknown_name("key", key, (), path) + hint)
    return problems


_SHARES = ("num_cpus_per_env_runner", "num_gpus_per_env_runner", "num_gpus_per_learner")
"""Resources of which Ray gives out fractions; their defaults are whole numbers all the same."""


def type_problems(
    config: Mapping[str, Any], default_config: AlgorithmConfig, path: str
) -> list[str]:
    """Return one sentence per value whose type differs from its default's.

    A default of None says nothing about the type, and None ("switched off") is accepted
    anywhere; both are left to the config's own `validate()`.
    """
    problems = []
    for key, value in config.items():
        default = getattr(default_config, ALIASES.get(key, key), None)
        if key in _SHARES and default is not None:
            default = float(default)
        rule = _broken_rule(value, default)
        if rule:
            problems.append(broken_rule(f"{path}.{key}", value, f"must be {rule}"))
    return problems


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_RULES: tuple[tuple[Callable[[Any], bool], Callable[[Any], bool], str], ...] = (
    (lambda default: isinstance(default, bool), lambda v: isinstance(v, bool), "true or false"),
    (is_integer, lambda v: is_integer(v) or v == "auto", "a whole number"),
    (_is_number, lambda v: _is_number(v) or isinstance(v, list), "a number"),
    (
        lambda default: isinstance(default, Mapping),
        lambda v: isinstance(v, Mapping),
        "a mapping",
    ),
    (
        lambda default: isinstance(default, list | tuple),
        lambda v: isinstance(v, list | tuple),
        "a list",
    ),
)
"""(does this row apply to the default?, is the value right?, how to say it); first match wins.

"auto" stands for a number in several of RLlib's options, and a list for a schedule.
"""


def _broken_rule(value: Any, default: Any) -> str | None:
    if value is None:
        return None
    for applies, is_right, rule in _RULES:
        if applies(default):
            return None if is_right(value) else rule
    return None


# ---------------------------------------------------------------------------- search spaces in YAML
# How `{grid_search: [...]}` and its kin become Ray Tune's objects.
#
# A mapping with exactly one key, one of `SEARCHES`, and a list as its value is a search:
#
#     lr: {grid_search: [1e-5, 3e-5]}       # every value, once per sample
#     lr: {loguniform: [1e-5, 1e-4]}        # the arguments of ray.tune.loguniform
#     entropy_coeff: {choice: [0, 1e-3]}    # one of them, at random

TAKES_ONE_LIST = {"grid_search": tune.grid_search, "choice": tune.choice}
TAKES_ARGUMENTS = {
    name: getattr(tune, name)
    for name in (
        "uniform",
        "quniform",
        "loguniform",
        "qloguniform",
        "randn",
        "randint",
        "qrandint",
        "lograndint",
    )
}
SEARCHES = (*TAKES_ONE_LIST, *TAKES_ARGUMENTS)

MAX_VARIANTS = 64
"""How many members of a grid are validated; a larger one is validated in part."""


def parse_search_space(value: Any, path: str, problems: list[str]) -> Any:
    """Replace every search written in `value` by Tune's object, at any depth.

    Args:
        value: A plain container, as read from YAML.
        path: Dotted path of `value`, for messages.
        problems: Receives one sentence per search whose arguments Tune refuses.
    """
    if isinstance(value, list):
        return [parse_search_space(v, f"{path}.{i}", problems) for i, v in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    name = next(iter(value), None) if len(value) == 1 else None
    if name in SEARCHES:
        try:
            return _build(str(name), value[name])
        except (TypeError, ValueError, AssertionError) as error:
            reason = str(error).rstrip(".")
            problems.append(f"{path}: {name} does not take {value[name]!r}: {reason}.")
            return None
    return {k: parse_search_space(v, f"{path}.{k}", problems) for k, v in value.items()}


def variants(space: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield concrete configs of a search space: the grid's members, with sampled values drawn."""
    for _, variant in islice(generate_variants(dict(space)), MAX_VARIANTS):
        yield variant


def searched_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all searches in a space that `parse_search_space` returned."""
    if isinstance(value, Domain) or (isinstance(value, Mapping) and "grid_search" in value):
        return [path]
    if isinstance(value, Mapping):
        children = list(value.items())
    elif isinstance(value, list | tuple):
        children = list(enumerate(value))
    else:
        return []
    return [found for key, child in children for found in searched_paths(child, (*path, key))]


def _build(name: str, arguments: Any) -> Any:
    if not isinstance(arguments, list) or not arguments:
        raise ValueError("a list of values is expected")
    if name in TAKES_ONE_LIST:
        return TAKES_ONE_LIST[name](arguments)
    domain = TAKES_ARGUMENTS[name](*arguments)
    domain.sample()  # an impossible range is only noticed when drawing from it
    return domain
