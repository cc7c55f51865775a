"""The frozen policy to which recordings show the KL divergence (option `kl_to`)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.environments import looks_of_env, tell_other_looks
from rllib_minestudio.algorithms.learner.learner import COMPONENT_PRIOR
from rllib_minestudio.algorithms.learner.prior import is_nowhere_else
from rllib_minestudio.algorithms.options import INITIAL_PRIOR
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.checkpoints.lookup import is_hub_id, is_shipped
from rllib_minestudio.checkpoints.trust import refuse_untrusted
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.evaluation_options import PRIOR
from rllib_minestudio.foundation.options import shown
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.strict_loading import refuse_damaged

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

LEARNER_STATE = Path("learner_group", "learner", "state.pkl")
"""File of a checkpoint that holds a prior which is in no other file."""


def open_prior(config: AlgorithmConfig, kl_to: str) -> Checkpoint | None:
    """Open the checkpoint with the weights that `kl_to` names.

    Args:
        config: A `MineStudioPPOConfig`.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The checkpoint; None if only the run's own checkpoints hold the prior.

    Raises:
        InvalidOptionsError: There is no such policy, or its size differs from ours.
    """
    if kl_to == PRIOR:
        if config.prior is None:
            raise InvalidOptionsError(
                f"evaluation: kl_to is {PRIOR!r}, but the policy was trained without one. Name "
                "weights to compare with, or leave kl_to out."
            )
        if is_nowhere_else(config):
            return None
        initial = config.prior == INITIAL_PRIOR
        kl_to = str(config.model_config["weights"] if initial else config.prior)
    try:
        checkpoint = checkpoints.open(kl_to)
    except CheckpointMismatchError as error:
        raise InvalidOptionsError([f"evaluation: kl_to: {error}"]) from error
    now = looks_of_env(config.env, config.env_config)
    tell_other_looks(checkpoint.name, checkpoint.looks, now)
    blank = _blank(config)
    problems = [] if blank is None else blank.weights_problems(blank.network, checkpoint)
    if problems:
        raise InvalidOptionsError([f"evaluation: kl_to: {problem}" for problem in problems])
    return checkpoint


def load_prior(
    config: AlgorithmConfig, checkpoint: Checkpoint | None, kl_to: str | None
) -> dict[str, Any] | None:
    """Load the frozen policy that `kl_to` names.

    Args:
        config: Training config of the evaluated policy.
        checkpoint: The evaluated policy's, or None.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The frozen policy's state, parameter name -> array; None if `kl_to` is None.

    Raises:
        InvalidOptionsError: There is no such policy.
        CheckpointMismatchError: Its weights cannot be read.
        UntrustedError: The evaluated policy is from elsewhere, and its prior is a path or a pickle.
    """
    if kl_to is None:
        return None
    if kl_to == PRIOR and checkpoint is not None and not checkpoint.trusted:
        refuse_untrusted(checkpoint.name, _prior_requests(config))
    prior = open_prior(config, kl_to)
    if prior is None:
        return _kept(checkpoint)
    tensors = config.policy_class.read_weights(prior)
    refuse_damaged(tensors, f"weights {prior.name!r}")
    # NumPy has no bfloat16.
    return {
        name: (t.float() if t.dtype == torch.bfloat16 else t).numpy() for name, t in tensors.items()
    }


def _prior_requests(config: AlgorithmConfig) -> list[str]:
    """Return what the prior that a config names asks for beyond data, in words."""
    if config.prior is not None and is_nowhere_else(config):
        return [f"{LEARNER_STATE} (a pickle, which can run any program)"]
    initial = config.prior == INITIAL_PRIOR
    source = config.model_config.get("weights") if initial else config.prior
    is_name = source is None or is_shipped(source) or is_hub_id(str(source))
    return [] if is_name else [f"prior {shown(source)} (a path)"]


def _kept(checkpoint: Checkpoint | None) -> dict[str, Any]:
    if checkpoint is None:
        raise InvalidOptionsError(
            f"evaluation: kl_to is {PRIOR!r}, but only the checkpoints of this run hold its prior, "
            "which was drawn at random or follows the policy. Evaluate one of them, or name "
            "weights."
        )
    try:
        return pickle.loads((checkpoint.path / LEARNER_STATE).read_bytes())[COMPONENT_PRIOR]
    except (OSError, EOFError, pickle.UnpicklingError, KeyError) as error:
        raise CheckpointMismatchError(
            f"{checkpoint.name!r} does not hold its prior: {LEARNER_STATE}: {error}."
        ) from error


def _blank(config: AlgorithmConfig) -> RecurrentRLModule | None:
    return config.policy_class.blank(config.model_config, config.known_spaces())


class ReferencePolicy:
    """A frozen policy that sees the same observations as the evaluated one, with its own memory."""

    def __init__(self, module: RecurrentRLModule, state: Mapping[str, Any], num_envs: int) -> None:
        """Build the frozen policy.

        Args:
            module: The evaluated policy, for its sizes and device.
            state: The frozen policy's state, parameter name -> array.
            num_envs: Number of environments.
        """
        module = copy.deepcopy(module)
        module.set_state(state)
        self._session = module.make_rollout_session(num_envs)

    def divergence(
        self,
        obs: Mapping[str, Any],
        first_b: Tensor,
        distribution: ActionDistribution,
        moving_n: Tensor | None = None,
    ) -> Tensor:
        """Advance by a step and return KL(policy || reference) [B] in nats.

        Args:
            obs: Observations of all environments, nested, [B, ...] each.
            first_b: [B] whether they begin an episode.
            distribution: The evaluated policy's action distribution, [B].
            moving_n: As in `RolloutSession.act`.
        """
        own = self._session.act(obs, first_b, moving_n=moving_n, explore=False)
        return distribution.kl_divergence(own.distribution)
