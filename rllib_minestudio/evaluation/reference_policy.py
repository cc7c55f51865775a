"""A frozen policy to compare with: where its weights are, and the divergence of ours from it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rllib_minestudio.algorithms.learner.extra_state import COMPONENT_PRIOR
from rllib_minestudio.algorithms.learner.prior import is_nowhere_else
from rllib_minestudio.algorithms.options.ppo import INITIAL_PRIOR
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.evaluation.evaluation_options import PRIOR
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.heads import kl_divergence
from rllib_minestudio.models.vpt.rollout_session import RolloutSession
from rllib_minestudio.models.vpt.weight_loading import (
    config_from_options,
    load_strictly,
    load_weights,
    weights_problems,
)
from rllib_minestudio.models.vpt_rl_module import MODULE_OPTIONS

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

LEARNER_STATE = Path("learner_group", "learner", "state.pkl")
"""Where a checkpoint keeps a prior that no other file holds."""


def prior_file(config: AlgorithmConfig, kl_to: str) -> str | None:
    """Find the file with the weights that `kl_to` means.

    Args:
        config: A `MineStudioPPOConfig`.
        kl_to: As in `EvaluationOptions`.

    Returns:
        A source of weights; None if there is none beside the run's own checkpoints.

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
    problems = weights_problems(_sizes(config), kl_to)
    if problems:
        raise InvalidOptionsError([f"evaluation: kl_to: {problem}" for problem in problems])
    return kl_to


def load_prior(
    config: AlgorithmConfig, checkpoint: Path | None, kl_to: str | None
) -> dict[str, Any] | None:
    """Load the frozen policy that `kl_to` means.

    Args:
        config: Of the policy that is evaluated, as it was trained.
        checkpoint: Its folder; None if there is none.
        kl_to: As in `EvaluationOptions`.

    Returns:
        The network's state, parameter name -> array; None if `kl_to` is.

    Raises:
        InvalidOptionsError: There is no such policy.
        CheckpointMismatchError: Its weights cannot be read.
    """
    if kl_to is None:
        return None
    source = prior_file(config, kl_to)
    if source is None:
        return _kept(checkpoint)
    network = VPTNetwork(_sizes(config))
    load_weights(network, source)
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


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


def _sizes(config: AlgorithmConfig) -> VPTConfig:
    return config_from_options(config.model_config, MODULE_OPTIONS)


class ReferencePolicy:
    """A frozen policy that plays along: it sees the same frames, and has a memory of its own."""

    def __init__(self, network: VPTNetwork, state: Mapping[str, Any], num_envs: int) -> None:
        """Lay out the frozen network.

        Args:
            network: The policy's, for its sizes and its device.
            state: Of the frozen one, parameter name -> array.
            num_envs: Environments side by side.
        """
        network = copy.deepcopy(network)
        tensors = {name: torch.as_tensor(array) for name, array in state.items()}
        load_strictly(network, tensors, source="The prior's weights")
        self._session = RolloutSession(network, num_envs)

    def divergence(
        self,
        image_bhwc: Tensor,
        first_b: Tensor,
        logits: Mapping[str, Tensor],
        moving_n: Tensor | None = None,
    ) -> Tensor:
        """Take a step beside the policy; return KL(policy || reference) [B] in nats.

        Args:
            image_bhwc: What all environments show, [B, H, W, 3] uint8.
            first_b: Whether it begins an episode.
            logits: The policy's, per head [B, N], up to a constant per row.
            moving_n: As in `RolloutSession.act`.
        """
        own = self._session.act(image_bhwc, first_b, moving_n=moving_n, explore=False).logits
        return kl_divergence(_normalized(logits), _normalized(own))


def _normalized(logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: scores.float().log_softmax(-1) for name, scores in logits.items()}
