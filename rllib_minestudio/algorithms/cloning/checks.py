"""What can be wrong with the options of MineStudioBC: one sentence per problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_minestudio.algorithms.envs import ENV_NAME, resolve_env
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from rllib_minestudio.models.vpt.checkpoint import (
    blank_network,
    config_from_options,
    weights_problems,
)
from rllib_minestudio.models.vpt.fine_tuning import freeze, parameter_groups
from rllib_minestudio.models.vpt_rl_module import MODULE_OPTIONS

if TYPE_CHECKING:
    from rllib_minestudio.algorithms.cloning.config import MineStudioBCConfig

_INTEGERS = {
    "dataset_num_iters_per_learner": 1,
    "window_length": 1,
    "context_length": 1,
    "windows_per_batch": 1,
    "shuffle_among": 0,
    "num_readers": 1,
    "validation_interval": 1,
    "num_envs_per_env_runner": 1,
    "max_nonfinite_minibatches": 1,
}


def problems_of(config: MineStudioBCConfig) -> list[str]:
    """All problems of a config, or an empty list."""
    return [
        *_number_problems(config),
        *_data_problems(config),
        *_model_problems(config),
        *_evaluation_problems(config),
    ]


def _is_integer(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _number_problems(config: MineStudioBCConfig) -> list[str]:
    problems = [
        f"{name} is {getattr(config, name)!r}: it must be an integer, at least {least}."
        for name, least in _INTEGERS.items()
        if not _is_integer(getattr(config, name), least)
    ]
    if config.burn_in is not None and not _is_integer(config.burn_in, 0):
        problems.append(
            f"burn_in is {config.burn_in!r}: it must be an integer, at least 0, or null for the "
            "length of the network's memory."
        )
    fraction = config.validation_fraction
    if not isinstance(fraction, (int, float)) or not 0 <= fraction < 1:
        problems.append(
            f"validation_fraction is {fraction!r}: it must be a number from 0 to below 1."
        )
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
