"""The MineStudioPPO objective of one chunk: the terms of `losses.py` put together.

loss = policy + vf_coeff * value + kl_coeff * KL(pi || prior) - entropy_coeff * entropy
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from rllib_minestudio.algorithms.learner import losses
from rllib_minestudio.algorithms.learner.batch import Tensors, TrainingBatch
from rllib_minestudio.algorithms.learner.schedule import LossCoefficients
from rllib_minestudio.algorithms.options.ppo import PPOOptions
from rllib_minestudio.models.action_distribution import ActionDistribution
from rllib_minestudio.models.value_head import ValueHead


class Objective(NamedTuple):
    """A chunk's part of the loss to minimise, and of its terms, which are without gradient."""

    loss: Tensor
    parts: Tensors


def objective(
    *,
    distribution: ActionDistribution,
    value: Tensor,
    batch: TrainingBatch,
    value_head: ValueHead,
    divergence: Callable[[ActionDistribution], Tensor] | None,
    coefficients: LossCoefficients,
    options: PPOOptions,
) -> Objective:
    """Compute the loss of one chunk.

    Args:
        distribution: Of the policy in training, (B, T), with gradient.
        value: Its values in normalised space, (B, T), with gradient.
        batch: The chunk.
        value_head: Whose statistics normalise the targets.
        divergence: From a policy's distribution to KL(policy || prior), (B, T); None without a
            prior.
        coefficients: Of this iteration.
        options: Those that do not change.
    """
    policy = losses.policy_loss(
        distribution.log_prob(batch.action),
        batch.proximal_logp,
        batch.advantage,
        batch.weight,
        batch.share,
        clip_param=options.clip_param,
        log_ratio_clamp=options.log_ratio_clamp,
    )
    value_target = value_head.normalize(batch.value_target)
    value_loss = losses.value_loss(value, value_target, batch.share)
    entropy = losses.shared_mean(distribution.entropy(), batch.share)
    loss = coefficients.policy * policy.loss + options.vf_coeff * value_loss
    if coefficients.entropy:
        loss = loss - coefficients.entropy * entropy
    parts = {
        "policy_loss": policy.loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "approximate_kl": policy.approximate_kl,
        "clip_fraction": policy.clip_fraction,
    }
    if divergence is not None:
        assert batch.kl_share is not None
        parts["kl_to_prior"] = losses.shared_mean(divergence(distribution), batch.kl_share)
        loss = loss + coefficients.kl * parts["kl_to_prior"]
    return Objective(loss, {name: part.detach() for name, part in parts.items()})
