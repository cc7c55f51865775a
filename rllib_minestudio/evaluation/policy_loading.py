"""From an algorithm's checkpoint to what an evaluation of it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.evaluation.module_loading import load_module
from rllib_minestudio.evaluation.played_config import played_config
from rllib_minestudio.models.policies import policy_of_checkpoint
from rllib_minestudio.models.strict_loading import check_strictly


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


def load_policy(source: str | Path) -> LoadedPolicy:
    """Load policy and config from an Algorithm checkpoint; neither learner nor prior is needed.

    Nothing in it is run, but for checkpoints without `policy/playing.yaml`: those of environments
    with options that are objects. Their config is in one of RLlib's pickles, which runs what its
    writer wanted; one log line says so.

    Args:
        source: What `checkpoints.open` takes: a folder that `Algorithm.save_to_path` or a Tune run
            wrote, one with some of these, or a prior that comes with the package.

    Raises:
        CheckpointMismatchError: There is no such policy, or it does not say what it played.
        InvalidOptionsError: It is one of another algorithm.
    """
    checkpoint = checkpoints.open(source, verified=True)
    if checkpoint.other_policy is not None:
        config, weights = _load_other(checkpoint, *checkpoint.other_policy)
    else:
        module = load_module(checkpoint)
        # In full, whatever file once decided the sizes.
        config = played_config(checkpoint).training(model=module.model_config)
        weights = module.get_state()
    identity = {"checkpoint": checkpoint.name, "weights": weights_digest(weights)}
    return LoadedPolicy(config, weights, identity, checkpoint.path)


def _load_other(
    checkpoint: Checkpoint, name: str, options: dict[str, Any]
) -> tuple[MineStudioPPOConfig, dict[str, Any]]:
    """Load a policy of another class than VPT: its config and its weights.

    Raises:
        CheckpointMismatchError: It is none, or has other weights than it says.
    """
    kind, tensors = policy_of_checkpoint(checkpoint), checkpoint.tensors()
    config = played_config(checkpoint).training(module_class=name, model=options)
    try:
        blank = kind.blank(options, config.known_spaces())
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(f"{checkpoint.name!r} cannot be loaded: {error}") from error
    if blank is not None:
        check_strictly(blank.network.state_dict(), tensors, f"weights {checkpoint.name!r}")
    # NumPy has no bfloat16.
    halves = {name: t.float() for name, t in tensors.items() if t.dtype == torch.bfloat16}
    return config, {name: tensor.numpy() for name, tensor in {**tensors, **halves}.items()}


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
    chosen.training(replay_buffer={"max_fragments": None})
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
