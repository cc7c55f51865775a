"""The MineStudioPPO objective of one chunk: the terms of `losses.py` put together.

loss = policy + vf_coeff * value + kl_coeff * KL(pi || prior) - entropy_coeff * entropy
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from rllib_minestudio.algorithms.learner import losses
from rllib_minestudio.algorithms.learner.batch import Tensors, TrainingBatch
from rllib_minestudio.algorithms.options import PPOOptions
from rllib_minestudio.models.distributions import ActionDistribution
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


# --------------------- what changes from iteration to iteration, as pure functions of the iteration
# Nothing here has state, so nothing needs saving: a restored run is at the same point because it is
# at the same iteration.


def annealed(lr: float, iteration: int, iterations: int) -> float:
    """The learning rate of an iteration, linear from `lr` in the first to 0 after the last.

    MineStudio's `anneal_lr_linearly` (its `online/trainer/ppotrainer.py`).

    Args:
        lr: Of iteration 0.
        iteration: Training iterations finished so far.
        iterations: After how many it is 0, and stays so.
    """
    return lr * max(0.0, 1.0 - iteration / iterations)


class LossCoefficients(NamedTuple):
    """Weights of the loss terms in one iteration.

    Attributes:
        policy: 0 while the value function warms up, then 1. Multiplied in rather than left out,
            so that every parameter stays in the graph (distributed training needs that).
        kl: Of KL(pi || prior).
        entropy: Of the entropy bonus; 0 as well while the value function warms up, when nothing
            but the KL term may move the policy.
        publish: Whether the rollout policy gets the weights after this iteration.
    """

    policy: float
    kl: float
    entropy: float
    publish: bool


def loss_coefficients(iteration: int, options: PPOOptions) -> LossCoefficients:
    """The coefficients of an iteration, counted from 0.

    MineStudio's `online/trainer/ppotrainer.py`: `coef_rho * coef_rho_decay^iteration`; while the
    value function warms up the policy is held at the prior with a KL weight of 1. The entropy
    bonus, which MineStudio keeps as it is, may fall in the same way.
    """
    if iteration < options.vf_warmup_iterations:
        return LossCoefficients(policy=0.0, kl=1.0, entropy=0.0, publish=False)
    return LossCoefficients(
        policy=1.0,
        kl=options.kl_coeff * options.kl_decay**iteration,
        entropy=options.entropy_coeff * options.entropy_decay**iteration,
        publish=True,
    )
