"""What can be wrong with the options of MineStudioPPO: one sentence per problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rllib_minestudio.algorithms.part_checks import (
    env_problems,
    model_problems,
    recorded_parts_problems,
)
from rllib_minestudio.algorithms.ranges import range_problems
from rllib_minestudio.demonstrations import find_episodes, open_episode
from rllib_minestudio.errors import RecordingError
from rllib_minestudio.option_checks import broken_rule

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.config import MineStudioPPOConfig


def problems_of(config: MineStudioPPOConfig) -> list[str]:
    """All problems of a config, or an empty list."""
    problems = [
        *range_problems(config),
        *_recordings_problems(config.behaviour_cloning.get("recordings")),
        *_contradictions(config),
        *model_problems(config, prior=config.prior, ema_decay=config.ema_decay),
        *env_problems(config.env, config.env_config),
    ]
    return problems or [*_size_problems(config), *_missing_parts(config)]


def _missing_parts(config: MineStudioPPOConfig) -> list[str]:
    folder = config.behaviour_cloning.get("recordings")
    if folder is None:
        return []
    problems = recorded_parts_problems(config, find_episodes(folder))
    return [f"behaviour_cloning.recordings is {folder!r}: {problem}" for problem in problems]


def _recordings_problems(folder: Any) -> list[str]:
    if not isinstance(folder, str):
        return []
    try:
        steps = sum(len(open_episode(path)) for path in find_episodes(folder))
    except RecordingError as error:
        return [f"behaviour_cloning.recordings is {folder!r}: {error}"]
    if steps == 0:
        return [
            f"behaviour_cloning.recordings is {folder!r}, where there is no recorded episode: "
            "give the folder that `rllib record` wrote, or leave it out."
        ]
    return []


def _contradictions(config: MineStudioPPOConfig) -> list[str]:
    problems = []
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
    return problems


def _size_problems(config: MineStudioPPOConfig) -> list[str]:
    """Problems between options that are each right on their own."""
    problems = []
    num_envs, batch = config.num_envs_per_env_runner, config.env_pool["inference_batch_size"]
    if batch > num_envs:
        problems.append(
            broken_rule(
                "env_pool.inference_batch_size",
                batch,
                f"must be an integer from 1 to num_envs_per_env_runner={num_envs}",
            )
        )
    num_envs *= max(1, config.num_env_runners)
    collected = num_envs * config.fragments_per_sequence
    capacity = config.buffer_capacity
    if capacity < config.fragments_per_iteration + collected:
        problems.append(
            f"replay_buffer.max_fragments is {capacity}, too few for fragments_per_iteration="
            f"{config.fragments_per_iteration} while the environments add a chunk of fragments "
            f"each, {collected} in all: make it at least "
            f"{config.fragments_per_iteration + collected}."
        )
    return problems + _sharing_problems(config)


def _sharing_problems(config: MineStudioPPOConfig) -> list[str]:
    """Problems with dividing an iteration into sequences, learners and minibatches."""
    learners, join = max(1, config.num_learners), config.fragments_per_sequence
    problems = []
    least = config.fragments_per_minibatch * join * learners
    if config.fragments_per_iteration % (learners * join):
        problems.append(
            broken_rule(
                "fragments_per_iteration",
                config.fragments_per_iteration,
                f"must be a multiple of num_learners={learners} times "
                f"replay_buffer.fragments_per_chunk={join}, so that all learners get equally "
                f"many, such as {_next(config.fragments_per_iteration, learners * join)}",
            )
        )
    if config.gradient_accumulation % learners:
        problems.append(
            broken_rule(
                "gradient_accumulation",
                config.gradient_accumulation,
                "must, as it counts the minibatches of all learners in one optimizer step, be a "
                f"multiple of num_learners={learners}, such as "
                f"{_next(config.gradient_accumulation, learners)}",
            )
        )
    if least > config.fragments_per_iteration:
        problems.append(
            f"fragments_per_minibatch is {config.fragments_per_minibatch}, more than "
            f"fragments_per_iteration={config.fragments_per_iteration} holds: {learners} "
            f"learner(s) with so many sequences of {join} fragment(s) each need at least {least}."
        )
    return problems


def _next(number: int, step: int) -> int:
    """The smallest multiple of `step` that is not below `number`."""
    return -(-number // step) * step
