"""What can be wrong with the options of MineStudioPPO: one sentence per problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rllib_minestudio.algorithms.env_pool.options import env_pool_problems
from rllib_minestudio.algorithms.envs import ENV_NAME, resolve_env
from rllib_minestudio.algorithms.learner.behaviour_cloning import behaviour_cloning_problems
from rllib_minestudio.algorithms.learner.targets import CORRECTIONS, NO_CORRECTION
from rllib_minestudio.algorithms.ranges import integer_problem, range_problems
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError, did_you_mean
from rllib_minestudio.models.vpt.fine_tuning import WeightAverage, freeze, parameter_groups
from rllib_minestudio.models.vpt.weight_loading import (
    blank_network,
    config_from_options,
    weights_problems,
)
from rllib_minestudio.models.vpt_rl_module import MODULE_OPTIONS

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.config import MineStudioPPOConfig

_BOOLEANS = (
    "carry_prior_state",
    "reuse_stored_values",
    "vf_warmup_head_only",
    "zero_init_value_head",
)
_REPLAY_BUFFER = {
    "max_fragments": 1,
    "max_reuse": 1,
    "max_staleness": 0,
    "fragments_per_chunk": 1,
}


def problems_of(config: MineStudioPPOConfig) -> list[str]:
    """All problems of a config, or an empty list."""
    problems = [
        *_number_problems(config),
        *_replay_buffer_problems(config.replay_buffer),
        *env_pool_problems(config.env_pool, config.num_envs_per_env_runner),
        *behaviour_cloning_problems(config.behaviour_cloning),
        *_choice_problems(config),
        *_model_problems(config),
        *_env_problems(config),
    ]
    return problems or _size_problems(config)


def _number_problems(config: MineStudioPPOConfig) -> list[str]:
    problems = range_problems(config)
    for name in _BOOLEANS:
        if not isinstance(getattr(config, name), bool):
            problems.append(f"{name} is {getattr(config, name)!r}: it must be true or false.")
    return problems


def _replay_buffer_problems(options: dict[str, Any]) -> list[str]:
    problems = []
    for name, value in options.items():
        if name not in _REPLAY_BUFFER:
            problems.append(
                f"replay_buffer.{name} is unknown.{did_you_mean(name, _REPLAY_BUFFER)} "
                f"The options are {', '.join(_REPLAY_BUFFER)}."
            )
        else:
            problems += integer_problem(f"replay_buffer.{name}", value, _REPLAY_BUFFER[name])
    return problems


def _choice_problems(config: MineStudioPPOConfig) -> list[str]:
    problems = []
    if config.off_policy_correction not in CORRECTIONS:
        problems.append(
            f"off_policy_correction is {config.off_policy_correction!r}: it must be one of "
            f"{', '.join(CORRECTIONS)}.{did_you_mean(config.off_policy_correction, CORRECTIONS)}"
        )
    if config.prior is not None and not isinstance(config.prior, str):
        problems.append(
            f"prior is {config.prior!r}: it must be 'initial', a path to weights, or null."
        )
    if config.prior is None and config.kl_coeff:
        problems.append(
            f"prior is null but kl_coeff is {config.kl_coeff}: set kl_coeff to 0, or prior to "
            "'initial' or a path to weights."
        )
    if config.lr_annealing_iterations is not None and not isinstance(config.lr, int | float):
        problems.append(
            f"lr_annealing_iterations is {config.lr_annealing_iterations!r}, but lr is the "
            f"schedule {config.lr!r}: give a number as lr, or leave the iterations out."
        )
    if config.prior is None and config.prior_update_interval:
        problems.append(
            f"prior_update_interval is {config.prior_update_interval} but prior is null: there is "
            "nothing to update; set prior to 'initial', or leave the interval out."
        )
    if config.reuse_stored_values and config.off_policy_correction != NO_CORRECTION:
        problems.append(
            f"reuse_stored_values is {config.reuse_stored_values!r}, which saves nothing with "
            f"off_policy_correction {config.off_policy_correction!r}: the forward pass that gives "
            f"today's log-probabilities gives the values, too. Set the correction to "
            f"{NO_CORRECTION!r} or leave it out."
        )
    return problems


def _model_problems(config: MineStudioPPOConfig) -> list[str]:
    """Problems of the network's options, and of weights and patterns that do not fit it."""
    options = config.model_config
    try:
        network_config = config_from_options(options, MODULE_OPTIONS)
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]
    problems = []
    for weights in (options.get("weights"), config.prior):
        if weights not in (None, "initial"):
            problems += weights_problems(network_config, weights)
    network = blank_network(network_config)
    if (decay := config.ema_decay) is not None:
        problems += _caught(lambda: WeightAverage(network, decay))
    problems += _caught(lambda: freeze(network, options.get("freeze", ())))
    problems += _caught(lambda: parameter_groups(network, config.lr_factors))
    return problems


def _env_problems(config: MineStudioPPOConfig) -> list[str]:
    problems = _caught(lambda: resolve_env(config.env))
    if config.env in (ENV_NAME, MineStudioEnv):
        problems += _caught(lambda: MineStudioEnv.check_options(config.env_config))
    return problems


def _size_problems(config: MineStudioPPOConfig) -> list[str]:
    """Problems between options that are each right on their own."""
    problems = []
    num_envs = config.num_envs_per_env_runner * max(1, config.num_env_runners)
    collected = num_envs * config.fragments_per_chunk
    capacity = config.replay_buffer["max_fragments"]
    if capacity < config.fragments_per_iteration + collected:
        problems.append(
            f"replay_buffer.max_fragments is {capacity}, too few for fragments_per_iteration="
            f"{config.fragments_per_iteration} while the environments add a chunk of fragments "
            f"each, {collected} in all: make it at least "
            f"{config.fragments_per_iteration + collected}."
        )
    return problems + _sharing_problems(config)


def _sharing_problems(config: MineStudioPPOConfig) -> list[str]:
    """Problems with dividing an iteration into rows, learners and minibatches."""
    learners, join = max(1, config.num_learners), config.fragments_per_chunk
    problems = []
    least = config.fragments_per_minibatch * join * learners
    if config.fragments_per_iteration % (learners * join):
        problems.append(
            f"fragments_per_iteration is {config.fragments_per_iteration}: it must be a multiple "
            f"of num_learners={learners} times replay_buffer.fragments_per_chunk={join}, so that "
            "all learners get equally many, such as "
            f"{_next(config.fragments_per_iteration, learners * join)}."
        )
    if config.gradient_accumulation % learners:
        problems.append(
            f"gradient_accumulation is {config.gradient_accumulation}: it counts the minibatches "
            f"of all learners in one optimizer step and must be a multiple of "
            f"num_learners={learners}, such as {_next(config.gradient_accumulation, learners)}."
        )
    if least > config.fragments_per_iteration:
        problems.append(
            f"fragments_per_minibatch is {config.fragments_per_minibatch}, more than "
            f"fragments_per_iteration={config.fragments_per_iteration} holds: {learners} "
            f"learner(s) with so many rows of {join} fragment(s) each need at least {least}."
        )
    return problems


def _next(number: int, step: int) -> int:
    """The smallest multiple of `step` that is not below `number`."""
    return -(-number // step) * step


def _caught(check: Callable[[], Any]) -> list[str]:
    """The problems that `check` raises, or none."""
    try:
        check()
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]
    return []
