"""The config that a checkpoint's policy was trained with, for whoever lets it play."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.algorithms.envs import known_spaces
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.checkpoint import MODULE_CLASS, MODULE_PATH, PLAYING_FILE
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)

logger = logging.getLogger(__name__)

"""Where RLlib keeps an algorithm's config (`Checkpointable.CLASS_AND_CTOR_ARGS_FILE_NAME`)."""


def played_config(checkpoint: Checkpoint) -> MineStudioPPOConfig:
    """Return the config that a checkpoint's policy was trained with.

    Raises:
        CheckpointMismatchError: It does not say.
        InvalidOptionsError: It is of another algorithm.
    """
    if checkpoint.playing is not None:
        return _config_of(checkpoint.playing, checkpoint)
    if (checkpoint.path / MODULE_PATH).is_dir():
        return _unpickled(checkpoint)
    raise CheckpointMismatchError(
        f"{checkpoint.name!r} holds weights, but does not say in which environment they played "
        f"(it has no {PLAYING_FILE}). Name them as model.weights in an experiment file, as "
        "tuned_examples/inference_vpt.yaml does, and evaluate that; or let them play a task: "
        f"rllib play TASK --agent {checkpoint.name}."
    )


def played_spaces(checkpoint: Checkpoint) -> dict[str, gym.Space] | None:
    """Return the spaces that a checkpoint's policy played in; nothing is unpickled.

    Returns:
        `observation_space` and `action_space`; None if it does not say, or only the environment
        itself can tell.

    Raises:
        CheckpointMismatchError: What it says is damaged.
    """
    facts = checkpoint.playing
    return None if facts is None else known_spaces(facts["env"], facts["env_config"])


def _config_of(facts: Mapping[str, Any], checkpoint: Checkpoint) -> MineStudioPPOConfig:
    """Return the config that a checkpoint's `playing.yaml` describes."""
    if str(facts["algorithm"]).rpartition(".")[2] not in ("MineStudioPPO", "MineStudioBC"):
        raise InvalidOptionsError(
            "Policies of MineStudioPPO and MineStudioBC can be evaluated, those of "
            f"{facts['algorithm']} cannot."
        )
    config = MineStudioPPOConfig().environment(facts["env"], env_config=dict(facts["env_config"]))
    try:
        config.env_runners(num_envs_per_env_runner=int(facts["num_envs_per_env_runner"]))
        config.debugging(seed=facts.get("seed"))
        prior = facts.get("prior")
        config.training(prior=prior, **({} if prior else {"kl_coeff": 0.0}))
        config.training(
            model={"weights": facts.get("weights")},
            prior_update_interval=facts.get("prior_update_interval", 0),
        )
        config.update_from_dict({"env_pool": dict(facts.get("env_pool") or {})})
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} does not say what its policy played: {error}."
        ) from error
    return config


def _unpickled(checkpoint: Checkpoint) -> MineStudioPPOConfig:
    """Return the config in RLlib's own pickle, which can run anything."""
    file = checkpoint.path / MODULE_CLASS
    logger.warning("%s is unpickled, which runs what its writer wanted: it must be trusted.", file)
    try:
        with file.open("rb") as stream:
            ((state, *_), _) = pickle.load(stream)["ctor_args_and_kwargs"]
        return playing_config(AlgorithmConfig.from_state(state))
    except MineStudioError:
        raise
    # A damaged pickle raises nearly anything.
    except Exception as error:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} is not a checkpoint of MineStudioPPO or MineStudioBC: "
            f"{file.name}: {error}."
        ) from error


def playing_config(config: AlgorithmConfig) -> MineStudioPPOConfig:
    """Return a copy of a training config that our env runners can play by.

    Raises:
        InvalidOptionsError: It is of an algorithm whose policy is another one.
    """
    if isinstance(config, MineStudioPPOConfig):
        return config.copy(copy_frozen=False)
    if not isinstance(config, MineStudioBCConfig):
        raise InvalidOptionsError(
            "Policies of MineStudioPPO and MineStudioBC can be evaluated, those of "
            f"{getattr(config.algo_class, '__name__', type(config).__name__)} cannot."
        )
    return (
        MineStudioPPOConfig()
        .environment(config.env, env_config=config.env_config)
        .env_runners(num_envs_per_env_runner=config.num_envs_per_env_runner)
        .training(
            module_class=config.policy_class, model=config.model_config, prior=None, kl_coeff=0.0
        )
        .debugging(seed=config.seed)
    )
