"""From a checkpoint of any form to its policy, without running anything in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium as gym

from rllib_minestudio import checkpoints
from rllib_minestudio.checkpoints import Checkpoint, Source
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.played_config import played_spaces
from rllib_minestudio.models.policies import policy_of_checkpoint
from rllib_minestudio.models.recurrent_rl_module import MODULE_OPTIONS, RecurrentRLModule
from rllib_minestudio.models.strict_loading import load_strictly
from rllib_minestudio.models.vpt.weight_loading import (
    config_from_checkpoint,
    load_weights,
    weights_problems,
)
from rllib_minestudio.models.vpt_rl_module import VPTRLModule, spaces_of


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
        return _load_other(checkpoint, *checkpoint.other_policy, spaces)
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


def _load_other(
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
