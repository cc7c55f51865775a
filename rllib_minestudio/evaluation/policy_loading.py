"""From an algorithm's checkpoint to what an evaluation of it needs."""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.algorithms.env_runner import known_spaces
from rllib_minestudio.checkpoints import Checkpoint, Source
from rllib_minestudio.checkpoints.checkpoint import MODULE_CLASS, MODULE_PATH, PLAYING_FILE
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.models.policies import policy_of_checkpoint
from rllib_minestudio.models.policy import MODULE_OPTIONS, RecurrentRLModule
from rllib_minestudio.models.strict_loading import check_strictly, load_strictly
from rllib_minestudio.models.vpt.weights import (
    config_from_checkpoint,
    load_weights,
    weights_problems,
)
from rllib_minestudio.models.vpt_rl_module import VPTRLModule, spaces_of


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


# ---------------------- from a checkpoint of any form to its policy, without running anything in it


def load_module(source: Source | Checkpoint, env: gym.Env | None = None) -> RecurrentRLModule:
    """Load a policy's module from a checkpoint, without running anything in it.

    The class of a policy that is not VPT is imported by its name.

    Args:
        source: What `checkpoints.open` takes. A checkpoint of training is compared with its record
            before it is loaded.
        env: What it plays in, or several of it side by side. None takes the spaces from the
            checkpoint, as far as it tells them.

    Raises:
        CheckpointMismatchError: There is no such policy, or it does not load, or only its
            environment, which is missing, could tell its spaces.
        CheckpointError: It is damaged.
        InvalidOptionsError: VPT does not fit the environment.
    """
    checkpoint = checkpoints.open(source, verified=True)
    spaces = None if env is None else _spaces_of_env(env)
    if checkpoint.other_policy is not None:
        return _load_module_of_other_class(checkpoint, *checkpoint.other_policy, spaces)
    config = config_from_checkpoint(checkpoint)
    for problem in weights_problems(config, checkpoint):
        raise CheckpointMismatchError(problem)
    module = VPTRLModule(model_config=asdict(config), **(spaces or spaces_of(config)))
    load_weights(module.network, checkpoint)
    return module


def _spaces_of_env(env: Any) -> dict[str, gym.Space]:
    """Return the spaces of an environment, or of one of those that a vector environment has."""
    return {
        name: getattr(env, f"single_{name}", None) or getattr(env, name)
        for name in ("observation_space", "action_space")
    }


def _load_module_of_other_class(
    checkpoint: Checkpoint,
    name: str,
    options: Mapping[str, Any],
    spaces: Mapping[str, gym.Space] | None,
) -> RecurrentRLModule:
    """Load a policy of another class than VPT.

    Raises:
        CheckpointMismatchError: It is none, or has other weights than it says, or its spaces are
            neither given nor told by the checkpoint.
    """
    kind = policy_of_checkpoint(checkpoint)
    spaces = spaces or played_spaces(checkpoint)
    if spaces is None:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} holds a policy of the class {name}, which needs to know the "
            "environment that it plays in: Policy.load(source, env)."
        )
    # What training starts from and what it freezes does not matter to a policy that only plays.
    own = {key: value for key, value in options.items() if key not in MODULE_OPTIONS}
    try:
        blank = kind.blank(own, spaces)
        # Before it is built: options can claim any size.
        for problem in kind.weights_problems(blank.network, checkpoint) if blank else ():
            raise CheckpointMismatchError(problem)
        module = kind(model_config=own, **spaces)
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(f"{checkpoint.name!r} cannot be loaded: {error}") from error
    # Not by `read_weights`: the names are the network's own, whatever others' files it translates.
    load_strictly(module.network, checkpoint.tensors(), f"weights {checkpoint.name!r}")
    return module


# ----------------- the config that a checkpoint's policy was trained with, for whoever lets it play

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
