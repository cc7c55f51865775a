"""Loading a policy and its config from a checkpoint, for evaluation and inference."""

from __future__ import annotations

import hashlib
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
from rllib_minestudio.algorithms.environments import (
    OWN_NAMES,
    known_adapter,
    looks_of_env,
    tell_other_looks,
)
from rllib_minestudio.checkpoints import Checkpoint, Source
from rllib_minestudio.checkpoints.checkpoint import MODULE_CLASS, MODULE_PATH, PLAYING_FILE, VPT
from rllib_minestudio.checkpoints.trust import refuse_untrusted
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.adapter import SpaceAdapter
from rllib_minestudio.env.env_options import requests_beyond_data
from rllib_minestudio.errors import (
    CheckpointMismatchError,
    InvalidOptionsError,
    MineStudioError,
)
from rllib_minestudio.evaluation.env_runner import EvaluationEnvRunner
from rllib_minestudio.foundation.options import shown
from rllib_minestudio.models.policy import MODULE_OPTIONS, RecurrentRLModule
from rllib_minestudio.models.policy_registry import class_requests, policy_of_checkpoint
from rllib_minestudio.models.rl_modules import VPTRLModule, spaces_of
from rllib_minestudio.models.strict_loading import check_strictly, load_strictly
from rllib_minestudio.models.vpt.weights import (
    config_from_checkpoint,
    load_weights,
    weights_problems,
)


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy, and the config that it was trained with.

    Attributes:
        config: A copy of the config, which may be changed.
        weights: The module's state, parameter name -> array.
        identity: Its description in summaries and recordings, as plain data.
        checkpoint: Its checkpoint; None for the policy of an experiment file.
    """

    config: MineStudioPPOConfig
    weights: Mapping[str, Any]
    identity: dict[str, Any]
    checkpoint: Checkpoint | None = None


def load_policy(
    source: str | Path, *, options: Mapping[str, Any] | None = None, trust: bool = False
) -> LoadedPolicy:
    """Load policy and config from an Algorithm checkpoint; neither learner nor prior is needed.

    A checkpoint that somebody else wrote is data: no class that it names is imported, and no path
    used. One without `policy/playing.yaml`, because options of its environment are objects, has its
    config in RLlib's pickle, which can run anything.

    Args:
        source: What `checkpoints.open` takes: a folder that `Algorithm.save_to_path` or a Tune run
            wrote, a folder that contains some of these, or a prior that comes with the package.
        options: Options of the policy to change, of those in its `acting_options`.
        trust: Whether to do all that the checkpoint asks for, whoever wrote it.

    Raises:
        CheckpointMismatchError: There is no such policy, or its environment is unknown.
        InvalidOptionsError: The policy belongs to another algorithm, or an option cannot be
            changed.
        UntrustedError: Somebody else wrote the checkpoint, and it asks for more than data.
    """
    checkpoint = checkpoints.open(source, verified=True, trust=trust)
    if not checkpoint.trusted:
        requests = [*class_requests(checkpoint), *_playing_requests(checkpoint)]
        refuse_untrusted(checkpoint.name, requests)
    if checkpoint.other_policy is not None:
        config, weights = _load_other(checkpoint, *checkpoint.other_policy)
    else:
        module = load_module(checkpoint)
        # All sizes in full, whatever file once decided them.
        config = played_config(checkpoint).training(module_class=VPT, model=module.model_config)
        weights = module.get_state()
    identity: dict[str, Any] = {"checkpoint": checkpoint.name, "weights": weights_digest(weights)}
    if options:
        config.training(model=acting_options(checkpoint, options))
        identity["changed"] = dict(options)
    return LoadedPolicy(config, weights, identity, checkpoint)


def tell_of_looks(policy: LoadedPolicy) -> None:
    """Warn if a policy is to play on other frames than it was trained on."""
    if policy.checkpoint is not None:
        now = looks_of_env(policy.config.env, policy.config.env_config)
        tell_other_looks(policy.checkpoint.name, policy.checkpoint.looks, now)


def acting_options(checkpoint: Checkpoint, options: Mapping[str, Any]) -> dict[str, Any]:
    """Check options of a policy that are to be changed although its weights are given.

    Raises:
        InvalidOptionsError: An option cannot be changed, or its value is invalid.
        CheckpointMismatchError: The policy's class cannot be imported.
    """
    kind = policy_of_checkpoint(checkpoint)
    can = ", ".join(kind.acting_options) or "none"
    reasons = {
        "weights": "they are the policy that plays; name others in its place",
        **dict.fromkeys(("freeze", "zero_init_value_head"), "it matters to training only"),
    }
    problems = [
        f"model.{name} cannot be changed for {checkpoint.name!r}: "
        f"{reasons.get(name, 'its weights decide the network')}. Options that can: {can}."
        for name in options
        if name not in kind.acting_options
    ]
    if problems:
        raise InvalidOptionsError(problems)
    kind.check_options(options)
    return dict(options)


def env_defaults(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the defaults of a checkpoint's policy for options of the environment."""
    if checkpoint.other_policy is None:
        return VPTRLModule.env_defaults({"weights": checkpoint})
    return policy_of_checkpoint(checkpoint).env_defaults(checkpoint.other_policy[1])


def _load_other(
    checkpoint: Checkpoint, name: str, options: dict[str, Any]
) -> tuple[MineStudioPPOConfig, dict[str, Any]]:
    """Load config and weights of a policy of another class than VPT.

    Raises:
        CheckpointMismatchError: Its options are invalid, or its weights do not match them.
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
        config: The config of the training, whose environment is evaluated on.
        num_env_runners: Remote env runners; 0 plays in this process.
        num_envs: Environments per env runner; None keeps the training's number.
        num_gpus: GPUs per env runner; None keeps the training's number.
    """
    chosen = config.copy(copy_frozen=False)
    chosen.env_runners(env_runner_cls=EvaluationEnvRunner, num_env_runners=num_env_runners)
    if num_envs is not None:
        chosen.env_runners(num_envs_per_env_runner=num_envs)
    if num_gpus is not None:
        chosen.env_runners(num_gpus_per_env_runner=num_gpus)
    # The weights come from the checkpoint; the files that training started from may be gone.
    chosen.training(model={"weights": None}, prior=None, kl_coeff=0.0, kl_target=None)
    # Nothing is collected for training, so any number of environments is allowed.
    chosen.training(replay_buffer={"max_fragments": None})
    chosen.validate()
    return chosen


def weights_digest(weights: Mapping[str, Any]) -> str:
    """Return a digest of a module's state."""
    found = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        found.update(f"{name}{array.dtype}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()[:16]


# --------------------------------- loads the module of any checkpoint, without running code from it


def load_module(
    source: Source | Checkpoint,
    env: gym.Env | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> RecurrentRLModule:
    """Load a policy's module from a checkpoint, without running code from it.

    A class of the user's own is imported by its name if the checkpoint is trusted.

    Args:
        source: What `checkpoints.open` takes. A training checkpoint is verified against its record
            before it is loaded.
        env: The environment, or a vector environment, to play in. None takes the spaces from the
            checkpoint if it records them.
        options: Options of the policy to change, of those in its `acting_options`.
        trust: Whether to import a class that the checkpoint names, whoever wrote it.

    Raises:
        CheckpointMismatchError: There is no such policy, it cannot be loaded, or its spaces are
            unknown because neither `env` nor the checkpoint provides them.
        CheckpointError: The checkpoint is damaged.
        InvalidOptionsError: VPT does not fit the environment, or an option cannot be changed.
        UntrustedError: Somebody else wrote the checkpoint, and it names a class.
    """
    checkpoint = checkpoints.open(source, verified=True, trust=trust)
    spaces = None if env is None else SpaceAdapter.of(env).module_spaces
    changed = acting_options(checkpoint, options or {})
    if checkpoint.other_policy is not None:
        name, own = checkpoint.other_policy
        return _load_module_of_other_class(checkpoint, name, {**own, **changed}, spaces)
    config = config_from_checkpoint(checkpoint)
    for problem in weights_problems(config, checkpoint):
        raise CheckpointMismatchError(problem)
    described = {**asdict(config), **changed}
    module = VPTRLModule(model_config=described, **(spaces or spaces_of(config)))
    load_weights(module.network, checkpoint)
    return module


def _load_module_of_other_class(
    checkpoint: Checkpoint,
    name: str,
    options: Mapping[str, Any],
    spaces: Mapping[str, gym.Space] | None,
) -> RecurrentRLModule:
    """Load a policy of another class than VPT.

    Raises:
        CheckpointMismatchError: Its options are invalid, its weights do not match them, or its
            spaces are neither given nor recorded in the checkpoint.
    """
    kind = policy_of_checkpoint(checkpoint)
    if spaces is None and (played := played_adapter(checkpoint)) is not None:
        spaces = played.module_spaces
    if spaces is None:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} holds a policy of the class {name}, which needs to know the "
            "environment that it plays in: Policy.load(source, env)."
        )
    # Initial weights and freezing do not matter to a policy that only plays.
    own = {key: value for key, value in options.items() if key not in MODULE_OPTIONS}
    try:
        blank = kind.blank(own, spaces)
        # Check before building: the options may claim any size.
        for problem in kind.weights_problems(blank.network, checkpoint) if blank else ():
            raise CheckpointMismatchError(problem)
        module = kind(model_config=own, **spaces)
    except InvalidOptionsError as error:
        raise CheckpointMismatchError(f"{checkpoint.name!r} cannot be loaded: {error}") from error
    # Not with `read_weights`, which translates foreign files: these names are the network's own.
    load_strictly(module.network, checkpoint.tensors(), f"weights {checkpoint.name!r}")
    return module


# ------------------------------------------- the config that a checkpoint's policy was trained with

OWN_ENVIRONMENTS = (*OWN_NAMES, f"{MineStudioEnv.__module__}.{MineStudioEnv.__qualname__}")
"""The names of this package's environment in a `playing.yaml`."""


def played_config(checkpoint: Checkpoint) -> MineStudioPPOConfig:
    """Return the config that a checkpoint's policy was trained with.

    Raises:
        CheckpointMismatchError: The checkpoint does not contain it.
        InvalidOptionsError: It belongs to another algorithm.
        UntrustedError: Somebody else wrote the checkpoint, and it asks for more than data.
    """
    if not checkpoint.trusted:
        refuse_untrusted(checkpoint.name, _playing_requests(checkpoint))
    if checkpoint.playing is not None:
        return _config_of(checkpoint.playing, checkpoint)
    if (checkpoint.path / MODULE_PATH).is_dir():
        return _unpickled(checkpoint)
    raise CheckpointMismatchError(
        f"{checkpoint.name!r} holds weights, but does not say in which environment they played "
        f"(it has no {PLAYING_FILE}). Name an experiment file that does, such as "
        "tuned_examples/cow_from_vpt.yaml, and these as its weights: FILE --set "
        f"model.weights={checkpoint.name}; or let them play a task: rllib play TASK --agent "
        f"{checkpoint.name}."
    )


def played_adapter(checkpoint: Checkpoint) -> SpaceAdapter | None:
    """Return the adapter of a checkpoint's environment, without unpickling anything.

    Returns:
        None if the checkpoint does not name the environment, or it cannot be built here.

    Raises:
        CheckpointMismatchError: The description of the environment is damaged.
    """
    facts = checkpoint.playing
    if facts is None:
        return None
    if not checkpoint.trusted:
        refuse_untrusted(checkpoint.name, _playing_requests(checkpoint))
    try:
        return known_adapter(facts["env"], facts["env_config"])
    except InvalidOptionsError:
        return None


def _playing_requests(checkpoint: Checkpoint) -> list[str]:
    """Return what a checkpoint's description of the environment asks for beyond data, in words.

    Weights and prior are paths, too, but read only for `kl_to`, which refuses them itself.
    """
    facts = checkpoint.playing
    if facts is None:
        is_pickle = (checkpoint.path / MODULE_PATH).is_dir()
        return [f"{MODULE_CLASS} (a pickle, which can run any program)"] if is_pickle else []
    env = facts["env"]
    is_plain = env in OWN_ENVIRONMENTS or "." not in env.replace(":", ".")
    requests = [] if is_plain else [f"env {shown(env)} (a class to import and run)"]
    return requests + requests_beyond_data(facts["env_config"])


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
    """Return the config in RLlib's own pickle, which can run arbitrary code."""
    file = checkpoint.path / MODULE_CLASS
    try:
        with file.open("rb") as stream:
            ((state, *_), _) = pickle.load(stream)["ctor_args_and_kwargs"]
        return playing_config(AlgorithmConfig.from_state(state))
    except MineStudioError:
        raise
    # A damaged pickle can raise any exception.
    except Exception as error:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} is not a checkpoint of MineStudioPPO or MineStudioBC: "
            f"{file.name}: {error}."
        ) from error


def playing_config(config: AlgorithmConfig) -> MineStudioPPOConfig:
    """Return a copy of a training config in the form that our env runners play with.

    Raises:
        InvalidOptionsError: It belongs to an algorithm other than MineStudioPPO and MineStudioBC.
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
