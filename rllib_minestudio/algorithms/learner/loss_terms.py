"""The terms of the MineStudioPPO loss: pure functions of tensors.

Every function takes tensors of one shape, usually (B, T). Losses are sums over all elements of the
term times `share`, the weight of each step in the mean over its optimizer step
(`TrainingBatch.share`). It is 0 for a step that does not count, which may hold any finite numbers.
`objective.py` combines the terms.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rllib_minestudio.algorithms.learner.gradient_step import AllReduce, single_learner


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
