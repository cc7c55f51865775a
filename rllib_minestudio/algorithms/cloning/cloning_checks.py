"""What can be wrong with the options of MineStudioBC: one sentence per problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rllib_minestudio.algorithms.envs import ENV_NAME, resolve_env
from rllib_minestudio.algorithms.ranges import integer_problem, range_problems
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.models.vpt.fine_tuning import freeze, parameter_groups
from rllib_minestudio.models.vpt.weight_loading import (
    blank_network,
    config_from_options,
    weights_problems,
)
from rllib_minestudio.models.vpt_rl_module import MODULE_OPTIONS

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.cloning.config import MineStudioBCConfig


def problems_of(config: MineStudioBCConfig) -> list[str]:
    """All problems of a config, or an empty list."""
    return [
        *_number_problems(config),
        *_data_problems(config),
        *_model_problems(config),
        *_evaluation_problems(config),
    ]


def _number_problems(config: MineStudioBCConfig) -> list[str]:
    problems = range_problems(config)
    if config.dataset_num_iters_per_learner is None:
        problems += integer_problem("dataset_num_iters_per_learner", None, 1)
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
            f"input_ is {given!r}: it must be a folder of recordings, or a list of such; "
            "`rllib record` makes some."
        ]
    return [
        f"input_ is {given!r}, but there is no folder {folder!r}; `rllib record` makes "
        "recordings, and --set input_=FOLDER says where they are."
        for folder in folders
        if not Path(folder).is_dir()
    ]


def _model_problems(config: MineStudioBCConfig) -> list[str]:
    options = config.model_config
    try:
        network_config = config_from_options(options, MODULE_OPTIONS)
        problems = []
        if options.get("weights") is not None:
            problems += weights_problems(network_config, options["weights"])
        network = blank_network(network_config)
        freeze(network, options.get("freeze", ()))
        parameter_groups(network, config.lr_factors)
        return problems
    except InvalidOptionsError as error:
        return error.problems
    except MineStudioError as error:
        return [str(error)]


def _evaluation_problems(config: MineStudioBCConfig) -> list[str]:
    if not config.evaluation_interval:
        return []
    problems = []
    if config.evaluation_num_env_runners:
        problems.append(
            f"evaluation_num_env_runners is {config.evaluation_num_env_runners}: clones are "
            "evaluated in the driver, in num_envs_per_env_runner environments side by side; use 0."
        )
    try:
        resolve_env(config.env)
        if config.env in (ENV_NAME, MineStudioEnv):
            MineStudioEnv.check_options(config.env_config)
    except InvalidOptionsError as error:
        problems += error.problems
    return problems
