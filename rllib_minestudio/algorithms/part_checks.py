"""What can be wrong with a config's model and environment, whatever the algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.envs import ENV_NAME, resolve_env
from rllib_minestudio.algorithms.options.ppo import INITIAL_PRIOR
from rllib_minestudio.algorithms.options.shared import SharedOptions
from rllib_minestudio.algorithms.policy_windows import unreadable_parts
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.models.fine_tuning import WeightAverage, freeze, parameter_groups
from rllib_minestudio.models.policies import VPT, class_problems, find_policy
from rllib_minestudio.option_checks import shown
from rllib_minestudio.recordings.layout import TOKEN_COLUMNS

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.policy_config import PolicyAlgorithmConfig


def model_problems(
    config: PolicyAlgorithmConfig,
    *,
    prior: str | None = None,
    ema_decay: float | None = None,
) -> list[str]:
    """Say what is wrong with the policy's options, and what does not fit the policy.

    Args:
        config: Names the policy, its options, and the learning rates of its parts.
        prior: What stands in the option of that name.
        ema_decay: Of the moving average of the weights; None: there is none.

    Returns:
        One sentence per problem.
    """
    options = config.model_config
    if not isinstance(config.module_class, str | type):
        return []  # as the option's own check says
    given = [options.get("weights"), None if prior == INITIAL_PRIOR else prior]
    sources = {str(source): source for source in given if source is not None}
    opened: dict[str, Checkpoint] = {}
    try:
        policy = config.policy_class
        problems = _disagreement(config)
        for name, source in sources.items():
            try:
                opened[name] = checkpoints.open(source)
                problems += class_problems(policy, opened[name])
            except CheckpointMismatchError as error:
                problems.append(str(error))
        if problems:
            return problems
        if options.get("weights") is not None:
            options = {**options, "weights": opened[str(options["weights"])]}
        blank = policy.blank(options, config.known_spaces())
        if blank is None:  # at least what can be told without the spaces
            policy.check_options(config.model_config)
            return []
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]
    network = blank.network
    for checkpoint in opened.values():
        problems += policy.weights_problems(network, checkpoint)
    if ema_decay is not None:
        problems += _problems_of(lambda: WeightAverage(network, ema_decay))
    problems += _problems_of(lambda: freeze(network, options.get("freeze", ())))
    problems += _problems_of(lambda: parameter_groups(network, config.lr_factors))
    return problems


def recorded_parts_problems(config: SharedOptions, recordings: Iterable[str | Path]) -> list[str]:
    """Say why the policy cannot learn from recordings; at most one sentence."""
    policy = config.policy_class.blank(config.model_config, config.known_spaces())
    if policy is None:
        return []
    heads = list(policy.action_space)
    if set(heads) != set(TOKEN_COLUMNS):
        return [
            f"recordings have {' and '.join(TOKEN_COLUMNS)}, but the policy's actions are "
            f"{', '.join(heads)}: only policies that act in MineStudio's tokens can be cloned."
        ]
    return unreadable_parts(policy.observation_parts, recordings)


def env_problems(env: Any, env_config: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with a config's environment and its options, one sentence per problem."""
    problems = _problems_of(lambda: resolve_env(env))
    if env in (ENV_NAME, MineStudioEnv):
        problems += _problems_of(lambda: MineStudioEnv.check_options(env_config))
    return problems


def _disagreement(config: PolicyAlgorithmConfig) -> list[str]:
    """Say if two policies are asked for: that of the default is asked for by nobody."""
    policy, name = config.policy_class, config.module_class
    if name == VPT or find_policy(name) is policy:
        return []
    return [
        f"module_class is {shown(name)}, but rl_module_spec.module_class is {policy.__name__}: "
        "leave out one of them."
    ]


def _problems_of(check: Callable[[], Any]) -> list[str]:
    """Return the problems that `check` raises, or none."""
    try:
        check()
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]
    return []
