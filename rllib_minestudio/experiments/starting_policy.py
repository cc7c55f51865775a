"""The untrained policy of an experiment file, with the weights that training would start from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.policy_loading import LoadedPolicy, playing_config, weights_digest
from rllib_minestudio.experiments.environment import make_env
from rllib_minestudio.experiments.file import load_experiments
from rllib_minestudio.experiments.plan import make_plan


def load_starting_policy(path: Path, overrides: Sequence[str] = ()) -> LoadedPolicy:
    """Build the policy that an experiment file describes.

    Args:
        path: A file with one experiment, without searches.
        overrides: `key=value` changes of the experiment, as in `rllib train file`.

    Raises:
        InvalidOptionsError: The file contains several experiments, a search, or wrong options.
        ExperimentFileError: The file is missing or not readable.
    """
    experiments = load_experiments(path, overrides)
    plans = [make_plan(experiment) for experiment in experiments]
    if len(plans) != 1 or plans[0].searched:
        raise InvalidOptionsError(
            f"{path}: to be evaluated, a file must hold one experiment without searches."
        )
    config = playing_config(plans[0].example)
    spaces = config.known_spaces() or _spaces_of_env(config)
    module = config.policy_class(**spaces, model_config=config.model_config)
    # All sizes in full, since the weights that may have decided them are not read again.
    config.training(model=module.model_config)
    weights = module.get_state()
    identity = {"checkpoint": str(path), "weights": weights_digest(weights)}
    return LoadedPolicy(config, weights, identity)


def _spaces_of_env(config: MineStudioPPOConfig) -> dict[str, gym.Space]:
    """Build the environment to get its spaces."""
    env = make_env(config)
    try:
        return {"observation_space": env.observation_space, "action_space": env.action_space}
    finally:
        env.close()
