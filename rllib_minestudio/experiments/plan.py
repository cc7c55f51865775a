"""A validated experiment in Ray Tune's terms, and the validation of its `config` section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import DEPRECATED_VALUE
from ray.tune.registry import ENV_CREATOR, _global_registry
from ray.tune.search.sample import Domain
from ray.tune.search.variant_generator import generate_variants

from rllib_minestudio.algorithms.rllib_settings import OTHER_NAMES
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError, did_you_mean
from rllib_minestudio.experiments.experiment_file import (
    DEFAULT_ALGORITHM,
    Experiment,
    load_experiments,
    load_object,
    name_here,
)
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
    """A validated experiment, ready to run.

    Attributes:
        name: Name of its results folder.
        algorithm: The Algorithm class.
        space: Tune's parameter space: the options in the file, with searches as Tune's objects.
        searched: Paths of the searched options in `space`.
        example: One concrete, validated AlgorithmConfig from the space.
        stop: Metric (slashes for nesting) -> value; the first one reached ends a trial.
        num_samples: How often Tune repeats the space.
        scheduler: Which trials are stopped early, as `make_scheduler` takes it.
        checkpoints: When to save, and what to keep.
        record_video_interval: Iterations between videos of the agent; None records none.
        trackers: The experiment's validated section `trackers`.
        summary: What to measure before and after the run.
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
    """Validate an experiment before Ray starts, and turn it into a plan.

    Raises:
        InvalidOptionsError: Something is wrong; lists all problems by their dotted paths.
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


def config_of_example(name: str, config_class: type[AlgorithmConfig]) -> Any:
    """Return the AlgorithmConfig of an experiment file, for a loop of the user's own.

    Values are validated together when an algorithm is built, after the user's changes.

    Args:
        name: Name of an example in the package, or path of a file.
        config_class: Class of the result.

    Raises:
        ExperimentFileError: There is no such file, or it cannot be read.
        InvalidOptionsError: Something in it is wrong, or it has no config of this class.
    """
    experiments = load_experiments(Path(name))
    if len(experiments) > 1:
        rule = "must hold one experiment"
        raise InvalidOptionsError(broken_rule(name, [e.name for e in experiments], rule))
    problems: list[str] = []
    (experiment,) = experiments
    experiment = replace(experiment, config=with_evaluation(experiment, problems))
    algorithm, default_config = algorithm_of(experiment, problems)
    if algorithm is None:
        raise InvalidOptionsError(problems)
    if not issubclass(config_class, type(default_config)):
        right = type(default_config)
        way_out = (
            f"use {right.__name__}.from_example({name!r})"
            if _is_ours(default_config)
            else (f"set the options of a {right.__name__} instead")
        )
        raise InvalidOptionsError(
            f"{name!r} is an experiment of {algorithm.__name__}, which has no "
            f"{config_class.__name__}: {way_out}."
        )
    space = search_space(experiment, default_config, problems)
    if searched := searched_paths(space):
        paths = ", ".join(".".join(map(str, path)) for path in searched)
        problems.append(
            f"{name!r} searches over {paths}, of which a config has one value each: run the search "
            f"with `rllib train file {name}`, or start from another example."
        )
    problems = problems or _part_problems(experiment, space, default_config)
    if problems:
        raise InvalidOptionsError(problems)
    return config_class().update_from_dict(space)


# ------------------------------------------------------------------- validates the section `config`
# Checks the keys, types, each part, and the whole.

ALGORITHMS = {
    DEFAULT_ALGORITHM: "rllib_minestudio.algorithms.MineStudioPPO",
    "MineStudioBC": "rllib_minestudio.algorithms.MineStudioBC",
}
CLASS_OPTIONS = ("callbacks", "env_runner_cls")
"""Options whose values are classes, named in YAML by their dotted paths."""


def algorithm_of(experiment: Experiment, problems: list[str]) -> tuple[type | None, Any]:
    """Return the Algorithm class and its default config, or (None, None) and add a problem."""
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
    """Build Tune's parameter space from the options in the file.

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
            problems.append(f"{path}.env: the experiment's own `env` is the same option; give one.")
        space["env"] = experiment.env
    if isinstance(space.get("env"), str):
        try:
            space["env"] = environment_of(space["env"], _is_ours(default_config))
        except InvalidOptionsError as error:
            problems.extend(f"{experiment.name}: {problem}" for problem in error.problems)
    for key in CLASS_OPTIONS:
        if isinstance(space.get(key), str):
            _replace_name(space, key, {}, key, f"{path}.{key}", problems)
            if not isinstance(space[key], str) and not isinstance(space[key], type):
                problems.append(f"{path}.{key}: {experiment.config[key]!r} is not a class.")
    if experiment.algorithm_config is not None:
        space = _merged(_as_options(experiment.algorithm_config), space)
    return space


def environment_of(name: str, is_for_ours: bool) -> Any:
    """Return the environment class that a name in a file stands for; other names as they are.

    Args:
        name: As in the file.
        is_for_ours: Whether the algorithm is of this package. To all others, a name registered with
            Tune means what is registered: `MineStudio` is `FlatSpaces` to them.

    Raises:
        InvalidOptionsError: There is no such environment.
    """
    from rllib_minestudio.algorithms.environments import resolve_env

    found = resolve_env(name)
    is_registered = _global_registry.contains(ENV_CREATOR, name)
    return found if isinstance(found, type) and (is_for_ours or not is_registered) else name


def check_variants(
    experiment: Experiment,
    space: dict[str, Any],
    default_config: AlgorithmConfig,
    problems: list[str],
) -> Any:
    """Validate every concrete config of a space.

    Args:
        experiment: The experiment.
        space: The result of `search_space`.
        default_config: The algorithm's default AlgorithmConfig.
        problems: Receives one sentence per problem. If it is not empty, only the parts that can be
            checked on their own are.

    Returns:
        The first variant's AlgorithmConfig, or None if nothing could be built.
    """
    example = None
    films = bool(experiment.record_video_interval)
    fitted: set[str] = set()
    for variant in variants(space):
        found = _part_problems(experiment, variant, default_config)
        if not found and not problems:
            config = default_config.copy(copy_frozen=False)
            found = _whole_problems(config, variant, experiment.name)
            if not found and _is_ours(config) and (shape := _shape(config)) not in fitted:
                fitted.add(shape)
                found = _problems_of(
                    partial(_check_fit, config, films), f"{experiment.name}.config"
                )
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
    """Return whether an object is a subclass of `base`; only then may it be called."""
    return isinstance(found, type) and issubclass(found, base)


def _as_options(config: AlgorithmConfig) -> dict[str, Any]:
    """Turn an AlgorithmConfig into options as in a YAML file."""
    options = config.to_dict()
    if _is_ours(config):
        # There, `model` contains the defaults of RLlib's old API stack.
        options["model"] = options.pop("_model_config")
    return options


def _merged(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `extra` into a copy of `base`, recursively."""
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
    """Return the problems of a concrete config's parts that can be checked on their own."""
    path = f"{experiment.name}.config"
    written = {key: value for key, value in variant.items() if key in experiment.config}
    problems = type_problems(written, default_config, path)
    model, env_config = written.get("model"), written.get("env_config")
    if isinstance(model, Mapping) and _is_ours(default_config):
        chosen = {**vars(default_config), **variant}
        problems += _problems_of(lambda: _check_model(chosen, model), f"{path}.model")
    check_env_options = getattr(variant.get("env"), "check_options", None)
    if isinstance(env_config, Mapping) and check_env_options is not None:
        problems += _problems_of(lambda: check_env_options(env_config), f"{path}.env_config")
    return problems


def _check_model(chosen: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    from rllib_minestudio.algorithms.environments import default_policy
    from rllib_minestudio.models.policy_registry import AUTO, VPT, find_policy

    policy = chosen["module_class"]
    if policy == AUTO:
        policy = default_policy(chosen["env"], chosen["env_config"]) or VPT
    find_policy(policy).check_options(options)


def _whole_problems(config: AlgorithmConfig, variant: dict[str, Any], name: str) -> list[str]:
    """Return the problems that only show in the whole AlgorithmConfig."""

    def build() -> None:
        config.update_from_dict(variant)
        config.validate()

    return _problems_of(build, f"{name}.config")


def _is_ours(config: AlgorithmConfig) -> bool:
    """Return whether an AlgorithmConfig is a class of this package."""
    from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig

    return isinstance(config, MineStudioPPOConfig | MineStudioBCConfig)


def _shape(config: AlgorithmConfig) -> str:
    """Return a key of everything that decides whether environment and model fit each other."""
    policy = config.policy_class
    return repr([config.env, config.env_config, policy, config.model_config, _prior(config)])


def _check_fit(config: AlgorithmConfig, films: bool) -> None:
    """Build the environment and the model once, to check that they fit each other.

    This takes seconds for the largest models, but finds images of the wrong size, environments that
    do not start or have no frames to film, and weights of another model before Ray is started.
    """
    from rllib_minestudio.algorithms.options import INITIAL_PRIOR
    from rllib_minestudio.experiments.environment import make_env
    from rllib_minestudio.experiments.videos import NO_FRAMES

    env = make_env(config)
    try:
        if films and env.render_mode != "rgb_array":
            raise InvalidOptionsError(f"record_video_interval makes videos, and {NO_FRAMES}")
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
    """Return the config's prior; MineStudioBC has none."""
    return getattr(config, "prior", None)


def _problems_of(check: Callable[[], Any], path: str) -> list[str]:
    """Run a check, and return the problems it raised, each prefixed with `path`."""
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


# ---------------------------------------------- the keys of `config`, and the types of their values
# RLlib's own `update_from_dict` silently accepts any key, so a typo would train with the default
# for hours. The valid keys are those of the algorithm's default config object, plus the aliases
# that RLlib translates, minus the keys that have no effect.

ALIASES = {"callbacks": "callbacks_class", "framework": "framework_str", "lambda": "lambda_"}
"""Names in RLlib's setters -> attributes of the config object."""


def valid_keys(default_config: AlgorithmConfig) -> list[str]:
    """Return the keys that an algorithm accepts in `config`.

    Args:
        default_config: The result of the algorithm class's `get_default_config()`.
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
    """Return one sentence per key of `config` that is unknown or has no effect."""
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
            hint = did_you_mean(key, valid) or " No valid key is close to it."  # there are hundreds
            problems.append(unknown_name("key", key, (), path) + hint)
    return problems


_SHARES = ("num_cpus_per_env_runner", "num_gpus_per_env_runner", "num_gpus_per_learner")
"""Resources that Ray also allots in fractions, although their defaults are integers."""


def type_problems(
    config: Mapping[str, Any], default_config: AlgorithmConfig, path: str
) -> list[str]:
    """Return one sentence per value whose type differs from its default's.

    A default of None does not determine a type, and None ("switched off") is accepted everywhere;
    both are left to the config's own `validate()`.
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
"""(does the row apply to the default?, is the value right?, wording); the first match applies.

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
"""Most members of a grid that are validated; the rest of a larger grid is not."""


def parse_search_space(value: Any, path: str, problems: list[str]) -> Any:
    """Replace every search in `value` by Tune's object, at any depth.

    Args:
        value: Plain data, as read from YAML.
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
    """Yield the concrete configs of a search space: the grid's members, with sampled values."""
    for _, variant in islice(generate_variants(dict(space)), MAX_VARIANTS):
        yield variant


def searched_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all searches in a space from `parse_search_space`."""
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
    domain.sample()  # an impossible range only fails when sampled
    return domain
