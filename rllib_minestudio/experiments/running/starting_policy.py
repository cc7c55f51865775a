"""The policy that training would start from: an experiment file's weights, untouched."""

from __future__ import annotations

from pathlib import Path

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.played_config import playing_config
from rllib_minestudio.evaluation.policy_loading import LoadedPolicy, weights_digest
from rllib_minestudio.experiments.reading.experiment_file import load_experiments
from rllib_minestudio.experiments.reading.tune_plan import make_plan
from rllib_minestudio.experiments.running.environment import make_env


def load_starting_policy(path: Path) -> LoadedPolicy:
    """Build the policy that an experiment file describes.

    Args:
        path: A file with one experiment, without searches.

    Raises:
        InvalidOptionsError: It holds several, or a search, or options that are wrong.
        ExperimentFileError: It is missing or not readable.
    """
    experiments = load_experiments(path)
    plans = [make_plan(experiment) for experiment in experiments]
    if len(plans) != 1 or plans[0].searched:
        raise InvalidOptionsError(
            f"{path}: to be evaluated, a file must hold one experiment without searches."
        )
    config = playing_config(plans[0].example)
    env = make_env(config)
    try:
        module = config.policy_class(
            observation_space=env.observation_space,
            action_space=env.action_space,
            model_config=config.model_config,
        )
    finally:
        env.close()
    # The sizes in full: from here on the weights that may have decided them are not looked at.
    config.training(model=module.model_config)
    weights = module.get_state()
    identity = {"checkpoint": str(path), "weights": weights_digest(weights)}
    return LoadedPolicy(config, weights, identity)
