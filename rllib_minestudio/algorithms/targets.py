"""What an iteration trains towards: advantages, value targets, the proximal policy.

The behaviour policy's values and log-probabilities travel with the fragments. They are exact for
fragments collected with the weights that the iteration starts from, so nothing is computed twice
for those; only fragments that older weights collected get a forward pass with today's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rllib_minestudio.algorithms.batch import FragmentBatch, TrainingBatch
from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.gae import compute_gae
from rllib_minestudio.algorithms.losses import importance_weight, normalise_advantage


class Evaluation(NamedTuple):
    """What today's weights say about some fragments.

    Attributes:
        logp_bt: Log-probability of the actions taken, (B, T).
        value_bt: Value of each observation, in units of return, (B, T).
        last_value_b: Value of the observation after the last step, (B,).
    """

    logp_bt: Tensor
    value_bt: Tensor
    last_value_b: Tensor


Evaluate = Callable[[FragmentBatch, Tensor, Tensor], Evaluation]
"""(batch, last_image (B, H, W, 3), last_first (B,)) -> Evaluation, without gradient."""


class TargetStatistics(NamedTuple):
    """Scalars about an iteration's targets, for the metrics."""

    value: Tensor
    value_target: Tensor
    importance_weight_mean: float
    recomputed_fragments: int


def add_targets(
    batch: FragmentBatch,
    fragments: Sequence[Fragment],
    *,
    prior_latent: Tensor | None,
    evaluate: Evaluate,
    weights_version: int,
    correction: str,
    truncation: float,
    gamma: float,
    lambda_: float,
) -> tuple[TrainingBatch, TargetStatistics]:
    """Advantages, value targets and the proximal policy of a batch.

    Args:
        batch: The stacked fragments.
        fragments: What it was stacked from, in the same order.
        prior_latent: Passed on.
        evaluate: Forward pass with the weights that the iteration starts from.
        weights_version: The version of those weights.
        correction: `decoupled` keeps the behaviour policy and weighs by importance; `recompute`
            is MineStudio's way: today's log-probabilities stand in for the behaviour policy's.
        truncation: Upper bound of the importance weights.
        gamma: Discount per step.
        lambda_: Decay of the GAE trace.
    """
    device = batch.image.device
    evaluation, num_stale = _evaluate_stale(batch, fragments, evaluate, weights_version)
    advantages = compute_gae(
        reward_bt=np.stack([f.reward for f in fragments]),
        value_bt=evaluation.value_bt.cpu().numpy(),
        terminated_bt=np.stack([f.terminated for f in fragments]),
        truncated_bt=np.stack([f.truncated for f in fragments]),
        bootstrap_value_bt=np.stack([f.bootstrap_value for f in fragments]),
        last_value_b=evaluation.last_value_b.cpu().numpy(),
        gamma=gamma,
        lambda_=lambda_,
    )
    proximal_logp = evaluation.logp_bt
    if correction == "decoupled":
        weight = importance_weight(proximal_logp, batch.logp, truncation=truncation)
    else:
        weight = torch.ones_like(proximal_logp)
    value_target = torch.from_numpy(advantages.value_target_bt).to(device)
    targets = TrainingBatch(
        **{field.name: getattr(batch, field.name) for field in fields(batch)},
        proximal_logp=proximal_logp,
        weight=weight,
        advantage=normalise_advantage(torch.from_numpy(advantages.advantage_bt).to(device)),
        value_target=value_target,
        prior_latent=prior_latent,
    )
    statistics = TargetStatistics(
        value=evaluation.value_bt,
        value_target=value_target,
        importance_weight_mean=float(weight.mean()),
        recomputed_fragments=num_stale,
    )
    return targets, statistics


def _evaluate_stale(
    batch: FragmentBatch,
    fragments: Sequence[Fragment],
    evaluate: Evaluate,
    weights_version: int,
) -> tuple[Evaluation, int]:
    """Stored evaluations where the weights are still the same, fresh ones elsewhere."""
    device = batch.image.device
    merged = Evaluation(
        logp_bt=batch.logp.clone(),
        value_bt=torch.from_numpy(np.stack([f.value for f in fragments])).to(device),
        last_value_b=torch.tensor([f.last_value for f in fragments], device=device),
    )
    stale = [i for i, f in enumerate(fragments) if f.weights_version_min < weights_version]
    if stale:
        rows = torch.tensor(stale, device=device)
        last_image = torch.from_numpy(np.stack([fragments[i].last_obs for i in stale])).to(device)
        last_first = torch.tensor([fragments[i].last_first for i in stale], device=device)
        fresh = evaluate(batch.select(rows), last_image, last_first)
        for kept, new in zip(merged, fresh, strict=True):
            kept[rows] = new.to(kept.dtype)
    return merged, len(stale)
