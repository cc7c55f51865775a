"""What a command plays: the policy of a checkpoint or an experiment file, and a task; `--set`.

`rllib evaluate`, `play`, `benchmark run` and `record` take the same two kinds of `--set`:
`env_config.*` changes the environment, `model.*` the policy. Of an experiment file, any option of
the policy can be changed, such as the weights to start from; of a checkpoint, only how its weights
act.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.checkpoints.lookup import EXPERIMENT_SUFFIXES
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.experiment_file import (
    Experiment,
    load_experiments,
    parse_assignments,
)

if TYPE_CHECKING:
    import gymnasium as gym

    from rllib_minestudio.algorithms import MineStudioPPOConfig
    from rllib_minestudio.checkpoints import Checkpoint
    from rllib_minestudio.evaluation.policy_loading import LoadedPolicy
    from rllib_minestudio.models.policy import RecurrentRLModule

# ------------------------------------------------------------------------------------- `--set`

ENVIRONMENT, MODEL = "env_config", "model"


def is_experiment_file(source: str | None) -> bool:
    """Return whether a source names an experiment file rather than a checkpoint."""
    return source is not None and Path(source).suffix in EXPERIMENT_SUFFIXES


def of_environment(overrides: Sequence[str]) -> list[str]:
    """Return the changes of the environment among `key=value` changes.

    Raises:
        InvalidOptionsError: A change is of neither environment nor policy, or malformed.
    """
    return [text for text in overrides if _root(text) == ENVIRONMENT]


def of_model(overrides: Sequence[str]) -> list[str]:
    """Return the changes of the policy among `key=value` changes.

    Raises:
        InvalidOptionsError: A change is of neither environment nor policy, or malformed.
    """
    return [text for text in overrides if _root(text) == MODEL]


def _root(override: str) -> str:
    """Return which part of an experiment's `config` a change is of.

    Raises:
        InvalidOptionsError: It is neither, or malformed.
    """
    (path,) = parse_assignments([override], "--set")
    option = path.removeprefix("config.")
    root, _, names = option.partition(".")
    if root not in (ENVIRONMENT, MODEL) or not names:
        raise InvalidOptionsError(
            f"--set {path}: only options of the environment and of the policy change what is "
            f"played. Write them in full, such as --set env_config.{option}=VALUE or "
            f"--set model.{option}=VALUE, if that is meant."
        )
    return root


def overridden(env_config: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Apply the changes of the environment to its options; paths start at `config`, as everywhere.

    Raises:
        InvalidOptionsError: A change cannot be applied.
    """
    merged = dict(env_config)
    for path, value in parse_assignments(of_environment(overrides), "--set").items():
        _, *names = path.removeprefix("config.").split(".")
        *parents, last = (int(name) if name.isdigit() else name for name in names)
        place: Any = merged
        try:
            for name in parents:
                inner = place[name]
                place[name] = inner.copy() if isinstance(inner, (dict, list)) else inner
                place = place[name]
            place[last] = value
        except (LookupError, TypeError, AttributeError) as error:
            raise InvalidOptionsError(
                f"--set {path}: the environment has no such option to change ({error})."
            ) from error
    return merged


def refuse_model_changes(overrides: Sequence[str], player: str) -> None:
    """Refuse changes of a policy where something else plays.

    Args:
        overrides: `key=value` changes.
        player: The name of who plays.

    Raises:
        InvalidOptionsError: There is such a change, or one of neither environment nor policy.
    """
    for change in of_model(overrides):
        raise InvalidOptionsError(
            f"--set {change}: {player!r} is no policy with such options; name the policy that is "
            "to play in its place."
        )


def _acting_options(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the changes of a policy as options of `model_config`."""
    changes = parse_assignments(of_model(overrides), "--set")
    return {path.removeprefix("config.").partition(".")[2]: v for path, v in changes.items()}


# ------------------------------------------------------------------------------------ policies


def load_policy_of(
    source: str, overrides: Sequence[str] = (), *, trust: bool = False
) -> LoadedPolicy:
    """Load the policy of a checkpoint, or the one that an experiment file starts from.

    Args:
        source: A checkpoint or a file.
        overrides: `key=value` changes of environment and policy.
        trust: Whether to do all that a checkpoint asks for, whoever wrote it.

    Raises:
        MineStudioError: There is no such policy, it is not trusted, or a change does not fit it.
    """
    from rllib_minestudio.evaluation.policy_loading import load_policy, tell_of_looks

    if is_experiment_file(source):
        return load_starting_policy(Path(source), overrides)
    policy = load_policy(source, options=_acting_options(overrides), trust=trust)
    policy.config.environment(env_config=overridden(policy.config.env_config, overrides))
    tell_of_looks(policy)
    return policy


def load_starting_policy(path: Path, overrides: Sequence[str] = ()) -> LoadedPolicy:
    """Build the policy that an experiment file describes, as training would start with it.

    Args:
        path: A file with one experiment, without searches.
        overrides: `key=value` changes of environment and policy.

    Raises:
        InvalidOptionsError: The file contains several experiments, a search, or wrong options.
        ExperimentFileError: The file is missing or not readable.
    """
    from rllib_minestudio.evaluation.policy_loading import LoadedPolicy, weights_digest

    config = _starting_config(path, overrides)
    module = _starting_module(config, config.known_spaces() or _spaces_of_env(config))
    # All sizes in full, since the weights that may have decided them are not read again.
    config.training(model=module.model_config)
    weights = module.get_state()
    identity = {"checkpoint": str(path), "weights": weights_digest(weights)}
    return LoadedPolicy(config, weights, identity)


def _starting_config(path: Path, overrides: Sequence[str]) -> MineStudioPPOConfig:
    from rllib_minestudio.evaluation.policy_loading import playing_config
    from rllib_minestudio.experiments.plan import make_plan

    changes = [*of_environment(overrides), *of_model(overrides)]
    plans = [make_plan(experiment) for experiment in load_experiments(path, changes)]
    if len(plans) != 1 or plans[0].searched:
        raise InvalidOptionsError(
            f"{path}: to be evaluated, a file must hold one experiment without searches."
        )
    return playing_config(plans[0].example)


def _starting_module(
    config: MineStudioPPOConfig, spaces: Mapping[str, gym.Space]
) -> RecurrentRLModule:
    return config.policy_class(**spaces, model_config=config.model_config)


def _spaces_of_env(config: MineStudioPPOConfig) -> dict[str, gym.Space]:
    """Build the environment to get its spaces."""
    from rllib_minestudio.experiments.environment import make_env

    env = make_env(config)
    try:
        return _spaces(env)
    finally:
        env.close()


def _spaces(env: gym.Env) -> dict[str, gym.Space]:
    return {"observation_space": env.observation_space, "action_space": env.action_space}


@dataclass(frozen=True)
class TaskPolicy:
    """A policy that is to play a task that it was not necessarily trained on.

    Attributes:
        env_defaults: Its defaults for options of the environment; see
            `RecurrentRLModule.env_defaults`.
        load: Returns its module for an environment.
    """

    env_defaults: Mapping[str, Any]
    load: Callable[[gym.Env], RecurrentRLModule]


def task_policy(source: str | Checkpoint, overrides: Sequence[str] = ()) -> TaskPolicy:
    """Open the policy of a checkpoint, or the one that an experiment file starts from.

    Args:
        source: An open checkpoint, or the path of a file.
        overrides: `key=value` changes, of which those of the policy are applied.

    Raises:
        MineStudioError: There is no such policy, or a change does not fit it.
    """
    from rllib_minestudio.algorithms.environments import looks_of_built, tell_other_looks
    from rllib_minestudio.evaluation.policy_loading import env_defaults, load_module

    if isinstance(source, str):
        config = _starting_config(Path(source), of_model(overrides))
        defaults = config.policy_class.env_defaults(config.model_config)
        return TaskPolicy(defaults, lambda env: _starting_module(config, _spaces(env)))
    options = _acting_options(overrides)

    def load(env: gym.Env) -> RecurrentRLModule:
        tell_other_looks(source.name, source.looks, looks_of_built(env))
        return load_module(source, env, options=options)

    return TaskPolicy(env_defaults(source), load)


# --------------------------------------------------------------------------------------- tasks


def task_of(experiment: Experiment) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return an experiment's environment, without checking its algorithm and its policy.

    Returns:
        The environment as `env` in an AlgorithmConfig; its options and those of the policy, as the
        file has them. Of a search, the first variant.

    Raises:
        InvalidOptionsError: The environment cannot be imported.
    """
    from rllib_minestudio.env import MineStudioEnv
    from rllib_minestudio.experiments.plan import environment_of, parse_search_space, variants

    config = experiment.algorithm_config
    env: Any = experiment.env or getattr(config, "env", None) or MineStudioEnv
    if isinstance(env, str):
        env = environment_of(env, is_for_ours=True)
    written = next(variants(parse_search_space(experiment.config, experiment.name, [])))
    base = getattr(config, "env_config", None) or {}
    return env, {**base, **(written.get("env_config") or {})}, dict(written.get("model") or {})
