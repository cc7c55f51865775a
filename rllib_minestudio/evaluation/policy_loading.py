"""From an algorithm's checkpoint to what an evaluation of it needs."""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.checkpoint_policy import read_playing
from rllib_minestudio.algorithms.checkpoint_record import check_digests
from rllib_minestudio.algorithms.cloning import MineStudioBCConfig
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.policies import check_is_of_algorithm, load_module
from rllib_minestudio.models.policies import policy_of_checkpoint
from rllib_minestudio.models.strict_loading import check_strictly
from rllib_minestudio.models.vpt.checkpoint_files import CheckpointFiles, find_checkpoint

ANY_NUMBER = 10**9
"""Fragments of a buffer that is never filled."""

logger = logging.getLogger(__name__)

_CONSTRUCTOR_FILE = "class_and_ctor_args.pkl"
"""Where RLlib keeps an algorithm's config (`Checkpointable.CLASS_AND_CTOR_ARGS_FILE_NAME`)."""


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy, and the config that it was trained with.

    Attributes:
        config: A copy that may be changed.
        weights: The module's state, parameter name -> array.
        identity: What summaries and recordings say about it, plain.
        checkpoint: Its folder; None if it is of an experiment file.
    """

    config: MineStudioPPOConfig
    weights: Mapping[str, Any]
    identity: dict[str, Any]
    checkpoint: Path | None = None


def load_policy(checkpoint: str | Path) -> LoadedPolicy:
    """Load policy and config from an Algorithm checkpoint; neither learner nor prior is needed.

    Nothing in it is run, but for checkpoints without `policy/playing.yaml`: those written before
    there was one, and those of environments with options that are objects. Their config is in one
    of RLlib's pickles, which runs what its writer wanted; one log line says so.

    Args:
        checkpoint: Folder that `Algorithm.save_to_path` or a Tune run wrote.

    Raises:
        CheckpointMismatchError: The folder holds no such policy.
        InvalidOptionsError: It holds one of another algorithm.
    """
    check_is_of_algorithm(checkpoint)
    files = find_checkpoint(str(checkpoint))
    if files.other_policy is None:
        module = load_module(checkpoint)
        # In full, whatever file once decided the sizes.
        config = _read_config(Path(checkpoint)).training(model=module.model_config)
        weights: Mapping[str, Any] = module.get_state()
    else:
        config, weights = _load_other(Path(checkpoint), files)
    identity = {"checkpoint": str(checkpoint), "weights": weights_digest(weights)}
    return LoadedPolicy(config, weights, identity, Path(checkpoint))


def _load_other(
    checkpoint: Path, files: CheckpointFiles
) -> tuple[MineStudioPPOConfig, dict[str, Any]]:
    """Load a policy of another class than VPT: its config and its weights.

    Raises:
        CheckpointMismatchError: It is none, or has other weights than it says.
    """
    assert files.other_policy is not None
    name, options = files.other_policy
    check_digests(checkpoint)
    kind = policy_of_checkpoint(checkpoint, name)
    tensors = files.tensors()
    config = _read_config(checkpoint).training(module_class=name, model=options)
    try:
        blank = kind.blank(options, config.known_spaces())
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(f"{str(checkpoint)!r} cannot be loaded: {error}") from error
    if blank is not None:
        check_strictly(blank.network.state_dict(), tensors, f"weights {str(checkpoint)!r}")
    # NumPy has no bfloat16.
    halves = {name: t.float() for name, t in tensors.items() if t.dtype == torch.bfloat16}
    return config, {name: tensor.numpy() for name, tensor in {**tensors, **halves}.items()}


def _read_config(checkpoint: Path) -> MineStudioPPOConfig:
    """Return the config that a checkpoint's policy was trained with."""
    facts = read_playing(checkpoint)
    return _unpickled(checkpoint) if facts is None else _config_of(facts, checkpoint)


def _config_of(facts: Mapping[str, Any], checkpoint: str | Path) -> MineStudioPPOConfig:
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
            f"{str(checkpoint)!r} does not say what its policy played: {error}."
        ) from error
    return config


def _unpickled(checkpoint: Path) -> MineStudioPPOConfig:
    """Return the config in RLlib's own pickle, which can run anything."""
    file = checkpoint / _CONSTRUCTOR_FILE
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
            f"{str(checkpoint)!r} is not a checkpoint of MineStudioPPO or MineStudioBC: "
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


def evaluation_config(
    config: MineStudioPPOConfig,
    *,
    num_env_runners: int,
    num_envs: int | None = None,
    num_gpus: float | None = None,
) -> MineStudioPPOConfig:
    """Return a copy of a training config for env runners that evaluate.

    Args:
        config: What the policy was trained with; its environment is the one evaluated on.
        num_env_runners: Remote env runners; 0 plays in this process.
        num_envs: Environments per env runner; None keeps the training's.
        num_gpus: GPUs per env runner; None keeps the training's.
    """
    chosen = config.copy(copy_frozen=False)
    chosen.env_runners(env_runner_cls=EvaluationEnvRunner, num_env_runners=num_env_runners)
    if num_envs is not None:
        chosen.env_runners(num_envs_per_env_runner=num_envs)
    if num_gpus is not None:
        chosen.env_runners(num_gpus_per_env_runner=num_gpus)
    # The policy's weights come from the checkpoint; the files that training started from may be
    # anywhere by now.
    chosen.training(model={"weights": None}, prior=None, kl_coeff=0.0)
    # Nothing is collected to be trained on, so any number of environments fits.
    chosen.training(replay_buffer={"max_fragments": ANY_NUMBER})
    chosen.validate()
    return chosen


def weights_digest(weights: Mapping[str, Any]) -> str:
    """Return a short name of a module's state: equal weights have equal names."""
    found = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        found.update(f"{name}{array.dtype}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()[:16]
