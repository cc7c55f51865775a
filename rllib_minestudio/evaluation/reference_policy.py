"""A frozen policy to compare with: where its weights are, and the divergence of ours from it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms.learner.learner import COMPONENT_PRIOR
from rllib_minestudio.algorithms.learner.prior import is_nowhere_else
from rllib_minestudio.algorithms.options import INITIAL_PRIOR
from rllib_minestudio.checkpoints import Checkpoint
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.evaluation_options import PRIOR
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.policy import RecurrentRLModule
from rllib_minestudio.models.strict_loading import refuse_damaged

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

LEARNER_STATE = Path("learner_group", "learner", "state.pkl")
"""Where a checkpoint keeps a prior that no other file holds."""


def open_prior(config: AlgorithmConfig, kl_to: str) -> Checkpoint | None:
    """Open the checkpoint with the weights that `kl_to` means.

    Args:
        config: A `MineStudioPPOConfig`.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The checkpoint; None if there is none beside the run's own.

    Raises:
        InvalidOptionsError: There is no such policy, or it is of another size than ours.
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
    blank = _blank(config)
    problems = [] if blank is None else blank.weights_problems(blank.network, checkpoint)
    if problems:
        raise InvalidOptionsError([f"evaluation: kl_to: {problem}" for problem in problems])
    return checkpoint


def load_prior(
    config: AlgorithmConfig, checkpoint: Path | None, kl_to: str | None
) -> dict[str, Any] | None:
    """Load the frozen policy that `kl_to` means.

    Args:
        config: Of the policy that is evaluated, as it was trained.
        checkpoint: Its folder; None if there is none.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The policy's state, parameter name -> array; None if `kl_to` is.

    Raises:
        InvalidOptionsError: There is no such policy.
        CheckpointMismatchError: Its weights cannot be read.
    """
    if kl_to is None:
        return None
    prior = open_prior(config, kl_to)
    if prior is None:
        return _kept(checkpoint)
    tensors = config.policy_class.read_weights(prior)
    refuse_damaged(tensors, f"weights {prior.name!r}")
    # NumPy has no bfloat16.
    return {
        name: (t.float() if t.dtype == torch.bfloat16 else t).numpy() for name, t in tensors.items()
    }


def _kept(checkpoint: Path | None) -> dict[str, Any]:
    if checkpoint is None:
        raise InvalidOptionsError(
            f"evaluation: kl_to is {PRIOR!r}, but only the checkpoints of this run hold its prior, "
            "which was drawn at random or follows the policy. Evaluate one of them, or name "
            "weights."
        )
    try:
        return pickle.loads((checkpoint / LEARNER_STATE).read_bytes())[COMPONENT_PRIOR]
    except (OSError, EOFError, pickle.UnpicklingError, KeyError) as error:
        raise CheckpointMismatchError(
            f"{str(checkpoint)!r} does not hold its prior: {LEARNER_STATE}: {error}."
        ) from error


def _blank(config: AlgorithmConfig) -> RecurrentRLModule | None:
    return config.policy_class.blank(config.model_config, config.known_spaces())


class ReferencePolicy:
    """A frozen policy that plays along: it sees what ours sees, and has a memory of its own."""

    def __init__(self, module: RecurrentRLModule, state: Mapping[str, Any], num_envs: int) -> None:
        """Lay out the frozen policy.

        Args:
            module: The policy, for its sizes and its device.
            state: Of the frozen one, parameter name -> array.
            num_envs: Environments side by side.
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
        """Take a step beside the policy; return KL(policy || reference) [B] in nats.

        Args:
            obs: What all environments show, nested, [B, ...] each.
            first_b: Whether it begins an episode.
            distribution: The policy's, [B].
            moving_n: As in `RolloutSession.act`.
        """
        own = self._session.act(obs, first_b, moving_n=moving_n, explore=False)
        return distribution.kl_divergence(own.distribution)
