"""What can be wrong with the options of MineStudioBC: one sentence per problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rllib_minestudio.algorithms.options.cloning import CloningOptions
from rllib_minestudio.algorithms.part_checks import env_problems, model_problems
from rllib_minestudio.algorithms.ranges import range_problems
from rllib_minestudio.option_checks import broken_rule

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.cloning.config import MineStudioBCConfig


def problems_of(config: MineStudioBCConfig) -> list[str]:
    """All problems of a config, or an empty list."""
    return [
        *_number_problems(config),
        *_data_problems(config),
        *_memory_problems(config),
        *model_problems(config),
        *_evaluation_problems(config),
    ]


def _number_problems(config: MineStudioBCConfig) -> list[str]:
    problems = range_problems(config)
    if config.dataset_num_iters_per_learner is None:
        problems.append(
            broken_rule("dataset_num_iters_per_learner", None, "must be an integer, at least 1")
        )
    if config.validation_fraction == 1:
        problems.append("validation_fraction is 1: nothing would be left to learn from.")
    if config.num_learners:
        problems.append(
            f"num_learners is {config.num_learners}: cloning has one learner, in the driver; use "
            "0, and num_gpus_per_learner: 1 to put it on a GPU."
        )
    return problems


def _data_problems(config: MineStudioBCConfig) -> list[str]:
    given = config.input_
    folders = given if isinstance(given, list) else [given]
    if given == "sampler" or not folders or not all(isinstance(f, str) and f for f in folders):
        return [
            broken_rule("input_", given, "must be a folder of recordings, or a list of such")
            + " `rllib record` makes some."
        ]
    return [
        f"input_ is {given!r}, but there is no folder {folder!r}; `rllib record` makes "
        "recordings, and --set input_=FOLDER says where they are."
        for folder in folders
        if not Path(folder).is_dir()
    ]


def _memory_problems(config: MineStudioBCConfig) -> list[str]:
    if not config.carry_memory:
        return []
    problems = []
    if config.burn_in:
        problems.append(
            f"burn_in is {config.burn_in}: with carry_memory, windows find the memory that those "
            "before them left, and need not rebuild it; leave burn_in out."
        )
    if config.shuffle_among != CloningOptions().shuffle_among:
        problems.append(
            f"shuffle_among is {config.shuffle_among}: with carry_memory, the windows of an "
            "episode stay in order; leave shuffle_among out."
        )
    return problems


def _evaluation_problems(config: MineStudioBCConfig) -> list[str]:
    if not config.evaluation_interval:
        return []
    problems = []
    if config.evaluation_num_env_runners:
        problems.append(
            f"evaluation_num_env_runners is {config.evaluation_num_env_runners}: clones are "
            "evaluated in the driver, in num_envs_per_env_runner environments side by side; use 0."
        )
    return problems + env_problems(config.env, config.env_config)
