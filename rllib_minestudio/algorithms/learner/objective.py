"""The objective: the losses of policy, value, KL and entropy, and their weighted sum.

loss = policy + vf_coeff * value + kl_coeff * KL(pi || prior) - entropy_coeff * entropy
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import Tensors, TrainingBatch
from rllib_minestudio.algorithms.learner.gradient_step import AllReduce, single_learner
from rllib_minestudio.algorithms.options import PPOOptions, Schedule, is_schedule
from rllib_minestudio.models.distributions import ActionDistribution
from rllib_minestudio.models.value_head import ValueHead

# ----------------------------------- the terms of the MineStudioPPO loss: pure functions of tensors
# Every function takes tensors of one shape, usually (B, T). Losses are sums over all elements of
# the term times `share`, the weight of each step in the mean over its optimizer step
# (`TrainingBatch.share`). It is 0 for a step that does not count, which may hold any finite
# numbers. `objective`, below, combines the terms.


class PolicyLoss(NamedTuple):
    """The clipped surrogate loss and its diagnostics; all are scalars."""

    loss: Tensor
    approximate_kl: Tensor
    clip_fraction: Tensor


def shared_mean(term: Tensor, share: Tensor) -> Tensor:
    """Return the steps' part of the mean over the optimizer step, a scalar."""
    return (term * share).sum()


def importance_weight(
    proximal_logp: Tensor, behaviour_logp: Tensor, *, truncation: float
) -> Tensor:
    """Return the truncated importance weight of the proximal against the behaviour policy.

    Truncation bounds the variance at the cost of a bias (Espeholt et al. 2018, "IMPALA",
    section 4.1).

    Args:
        proximal_logp: log pi_prox(a|s), any shape.
        behaviour_logp: log mu(a|s) as recorded when acting, same shape.
        truncation: Upper bound of the weight, > 0.

    Returns:
        min(pi_prox / mu, truncation), without gradient.
    """
    return (proximal_logp - behaviour_logp).exp().clamp(max=truncation).detach()


def policy_loss(
    logp: Tensor,
    proximal_logp: Tensor,
    advantage: Tensor,
    weight: Tensor,
    share: Tensor,
    *,
    clip_param: float,
    log_ratio_clamp: float,
) -> PolicyLoss:
    """Return PPO's decoupled clipped surrogate loss.

    Hilton, Cobbe and Schulman 2022, "Batch size-invariance for policy optimization", equation 2:
    the trust region is around the *proximal* policy (the one at the start of the iteration), while
    the importance weight corrects for the *behaviour* policy that collected the data. If both
    policies are equal, the weight is 1 and this is the surrogate of Schulman et al. 2017,
    equation 7.

    Args:
        logp: log pi(a|s) of the policy in training, with gradient.
        proximal_logp: log pi_prox(a|s).
        advantage: Normalised advantages.
        weight: From `importance_weight`; 1 where the data are on-policy.
        share: Weight of each step, see the module's docstring.
        clip_param: Half-width of the trust region for the ratio.
        log_ratio_clamp: Upper bound of log(pi / pi_prox), which keeps the ratio finite
            (MineStudio's `log_ratio_range`).

    Returns:
        The loss to minimise; the low-variance estimate of KL(pi_prox || pi) (Schulman 2020,
        "Approximating KL divergence", k3); the share of ratios outside the trust region.
    """
    log_ratio = (logp - proximal_logp).clamp(max=log_ratio_clamp)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_param, 1.0 + clip_param)
    loss = -shared_mean(weight * torch.minimum(advantage * ratio, advantage * clipped), share)
    with torch.no_grad():
        approximate_kl = shared_mean(ratio - 1.0 - log_ratio, share)
        clip_fraction = shared_mean(((ratio - 1.0).abs() > clip_param).float(), share)
    return PolicyLoss(loss, approximate_kl, clip_fraction)


def value_loss(value: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """Return half the mean squared error in the value head's normalised space.

    Args:
        value: Predictions in normalised space, with gradient.
        target: Targets normalised by the head's running statistics.
        share: Weight of each step, see the module's docstring.

    Returns:
        0.5 * mean((value - target)^2); MineStudio's `vf_loss`.
    """
    return 0.5 * shared_mean((value - target).square(), share)


def normalise_advantage(
    advantage: Tensor, usable: Tensor, *, total: AllReduce = single_learner, epsilon: float = 1e-8
) -> Tensor:
    """Normalise to zero mean and unit standard deviation over all usable elements, as MineStudio.

    Args:
        advantage: Any shape, finite.
        usable: Whether an element counts, same shape, bool; the result is 0 where it does not.
        total: Sums over the learners that share the iteration.
        epsilon: Added to the standard deviation.
    """
    count, mean, variance = moments(advantage, usable, total=total)
    unbiased = variance * count / (count - 1.0).clamp(min=1.0)
    normalised = (advantage - mean) / (unbiased.sqrt() + epsilon)
    return (normalised * usable).to(advantage.dtype)


def moments(
    x: Tensor, usable: Tensor, *, total: AllReduce = single_learner
) -> tuple[Tensor, Tensor, Tensor]:
    """Return count, mean and (biased) variance of all learners' usable elements, in float64.

    Args:
        x: Any shape, finite.
        usable: Whether an element counts, same shape, bool.
        total: Sums over the learners that share the iteration.
    """
    x, counts = x.double(), usable.double()
    count, total_x = total(torch.stack([counts.sum(), (x * counts).sum()]))
    mean = total_x / count.clamp(min=1.0)
    squares = total(((x - mean).square() * counts).sum())
    return count, mean, squares / count.clamp(min=1.0)


def explained_variance(
    value: Tensor, target: Tensor, usable: Tensor, *, total: AllReduce = single_learner
) -> Tensor:
    """Return 1 - Var(target - value) / Var(target): 1 is perfect, 0 no better than a constant.

    Args:
        value: Predictions, any shape, finite.
        target: Targets, same shape.
        usable: Whether an element counts, same shape, bool.
        total: Sums over the learners that share the iteration.

    Returns:
        A scalar; NaN where the targets do not vary.
    """
    variance = moments(target, usable, total=total)[2]
    residual = moments(target - value, usable, total=total)[2]
    return torch.where(variance > 0, 1.0 - residual / variance, torch.nan)


# --------------- the MineStudioPPO objective of one chunk, composed of the terms in `loss_terms.py`


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
    policy = policy_loss(
        distribution.log_prob(batch.action),
        batch.proximal_logp,
        batch.advantage,
        batch.weight,
        batch.share,
        clip_param=options.clip_param,
        log_ratio_clamp=options.log_ratio_clamp,
    )
    value_target = value_head.normalize(batch.value_target)
    value_part = value_loss(value, value_target, batch.share)
    entropy = shared_mean(distribution.entropy(), batch.share)
    loss = coefficients.policy * policy.loss + options.vf_coeff * value_part
    if coefficients.entropy:
        loss = loss - coefficients.entropy * entropy
    parts = {
        "policy_loss": policy.loss,
        "value_loss": value_part,
        "entropy": entropy,
        "approximate_kl": policy.approximate_kl,
        "clip_fraction": policy.clip_fraction,
    }
    if divergence is not None:
        assert batch.kl_share is not None
        parts["kl_to_prior"] = shared_mean(divergence(distribution), batch.kl_share)
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
