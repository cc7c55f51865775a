"""The MineStudioPPO objective of one chunk, composed of the terms in `loss_terms.py`.

loss = policy + vf_coeff * value + kl_coeff * KL(pi || prior) - entropy_coeff * entropy
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from rllib_minestudio.algorithms.learner import loss_terms
from rllib_minestudio.algorithms.learner.batch import Tensors, TrainingBatch
from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.value_head import ValueHead


class Objective(NamedTuple):
    """A chunk's part of the loss to minimise, and of the loss's terms, without gradient."""

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
        distribution: The policy's action distribution, (B, T), with gradient.
        value: The policy's values in normalised space, (B, T), with gradient.
        batch: The chunk.
        value_head: Its statistics normalise the targets.
        divergence: Maps a policy's distribution to KL(policy || prior), (B, T); None without a
            prior.
        coefficients: The coefficients of this iteration.
        options: The options that do not change during training.
    """
    policy = loss_terms.policy_loss(
        distribution.log_prob(batch.action),
        batch.proximal_logp,
        batch.advantage,
        batch.weight,
        batch.share,
        clip_param=options.clip_param,
        log_ratio_clamp=options.log_ratio_clamp,
    )
    value_target = value_head.normalize(batch.value_target)
    value_loss = loss_terms.value_loss(value, value_target, batch.share)
    entropy = loss_terms.shared_mean(distribution.entropy(), batch.share)
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
        parts["kl_to_prior"] = loss_terms.shared_mean(divergence(distribution), batch.kl_share)
        loss = loss + coefficients.kl * parts["kl_to_prior"]
    return Objective(loss, {name: part.detach() for name, part in parts.items()})


# ---------------------------------------------------- schedules, as pure functions of the iteration
# They have no state that needs saving: a restored run continues because it knows its iteration.


def annealed(lr: float, iteration: int, iterations: int) -> float:
    """Return the learning rate of an iteration, which falls linearly from `lr` to 0.

    As MineStudio's `anneal_lr_linearly` (its `online/trainer/ppotrainer.py`).

    Args:
        lr: The rate in iteration 0.
        iteration: The number of finished iterations.
        iterations: The number of iterations after which the rate is and stays 0.
    """
    return lr * max(0.0, 1.0 - iteration / iterations)


class LossCoefficients(NamedTuple):
    """Weights of the loss terms in one iteration.

    Attributes:
        policy: 0 during value warmup, then 1. The term is multiplied by it rather than left out, so
            that every parameter stays in the graph, as distributed training requires.
        kl: Weight of KL(pi || prior).
        entropy: Weight of the entropy bonus; also 0 during value warmup, when only the KL term may
            act on the policy.
        publish: Whether the weights are published after this iteration.
    """

    policy: float
    kl: float
    entropy: float
    publish: bool


def loss_coefficients(iteration: int, options: PPOOptions) -> LossCoefficients:
    """Return the coefficients of an iteration, counted from 0.

    As in MineStudio's `online/trainer/ppotrainer.py`, the KL weight is
    `coef_rho * coef_rho_decay^iteration`, and 1 during value warmup, to hold the policy at the
    prior. The weight of the entropy bonus, constant in MineStudio, can decay in the same way.
    """
    if iteration < options.vf_warmup_iterations:
        return LossCoefficients(policy=0.0, kl=1.0, entropy=0.0, publish=False)
    return LossCoefficients(
        policy=1.0,
        kl=options.kl_coeff * options.kl_decay**iteration,
        entropy=options.entropy_coeff * options.entropy_decay**iteration,
        publish=True,
    )
