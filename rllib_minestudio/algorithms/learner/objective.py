"""The MineStudioPPO objective of one chunk, composed of the terms in `loss_terms.py`.

loss = policy + vf_coeff * value + kl_coeff * KL(pi || prior) - entropy_coeff * entropy
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import Tensor

from rllib_minestudio.algorithms.learner import loss_terms
from rllib_minestudio.algorithms.learner.batch import Tensors, TrainingBatch
from rllib_minestudio.algorithms.options import PPOOptions, Schedule, is_schedule
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
        parts["prior_known"] = batch.kl_share.sum()
        loss = loss + coefficients.kl * parts["kl_to_prior"]
    return Objective(loss, {name: part.detach() for name, part in parts.items()})


# ----------------------------------------- rates and coefficients that change from one iteration to
# the next, as pure functions of the iteration, the environment steps and the KL to the prior. Only
# the factor of an adaptive KL coefficient is a state that has to be saved.


def annealed(lr: float, iteration: int, iterations: int) -> float:
    """Return the learning rate of an iteration, which falls linearly from `lr` to 0.

    As MineStudio's `anneal_lr_linearly` (its `online/trainer/ppotrainer.py`).

    Args:
        lr: The rate in iteration 0.
        iteration: The number of finished iterations.
        iterations: The number of iterations after which the rate is and stays 0.
    """
    return lr * max(0.0, 1.0 - iteration / iterations)


def scheduled(value: Schedule, env_steps: float) -> float:
    """Return a number, or what a schedule reaches after so many environment steps.

    As RLlib's `PiecewiseSchedule`: linear between two points, and constant after the last one.
    """
    if isinstance(value, int | float):
        return value
    steps, numbers = zip(*value, strict=True)
    return float(np.interp(env_steps, steps, numbers))


KL_ERROR_BOUND = 0.2
"""Bound of the KL's relative error in `adapted`."""
KL_FACTOR_BOUND = 1e3
"""An adaptive coefficient stays within this factor of `kl_coeff`, on either side, so that it does
not take as long to return as the KL was far from its target."""


def adapted(factor: float, kl: float, target: float, rate: float) -> float:
    """Return the factor of an adaptive KL coefficient for the next iteration.

    The proportional controller of Ziegler et al. 2019, "Fine-Tuning Language Models from Human
    Preferences", section 2.2: the coefficient is multiplied by 1 + rate * e, where e is the KL's
    relative error (KL - target) / target within +-0.2.

    Args:
        factor: The factor of this iteration.
        kl: This iteration's mean KL(policy || prior), in nats per step; NaN if it is unknown, which
            leaves the factor as it is.
        target: What it should be.
        rate: Ziegler et al.'s K_beta, in (0, 1].
    """
    if math.isnan(kl):
        return factor
    error = min(max(kl / target - 1.0, -KL_ERROR_BOUND), KL_ERROR_BOUND)
    return min(max(factor * (1.0 + rate * error), 1.0 / KL_FACTOR_BOUND), KL_FACTOR_BOUND)


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


def loss_coefficients(
    iteration: int, options: PPOOptions, *, env_steps: float = 0.0, kl_factor: float = 1.0
) -> LossCoefficients:
    """Return the coefficients of an iteration.

    As in MineStudio's `online/trainer/ppotrainer.py`, the KL weight is
    `coef_rho * coef_rho_decay^iteration`, and 1 during value warmup, to hold the policy at the
    prior. The weight of the entropy bonus, constant in MineStudio, can decay in the same way.
    Schedules and a `kl_target` take the place of these decays.

    Args:
        iteration: Counted from 0.
        options: The algorithm's options.
        env_steps: The environment steps sampled so far, for schedules.
        kl_factor: What `adapted` returned last, for a `kl_target`.
    """
    if iteration < options.vf_warmup_iterations:
        return LossCoefficients(policy=0.0, kl=1.0, entropy=0.0, publish=False)
    kl = scheduled(options.kl_coeff, env_steps)
    if options.kl_target is not None:
        kl *= kl_factor
    elif not is_schedule(options.kl_coeff):
        kl *= options.kl_decay**iteration
    entropy = scheduled(options.entropy_coeff, env_steps)
    if not is_schedule(options.entropy_coeff):
        entropy *= options.entropy_decay**iteration
    return LossCoefficients(policy=1.0, kl=kl, entropy=entropy, publish=True)
