"""What an iteration trains towards: advantages, value targets, the proximal policy.

The behaviour policy's values and log-probabilities travel with the fragments. They are exact for
fragments collected with the weights that the iteration starts from, so nothing is computed twice
for those; only fragments that older weights collected get a forward pass with today's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rllib_minestudio.algorithms.fragment import Fragment
from rllib_minestudio.algorithms.learner.batch import FragmentBatch, TrainingBatch
from rllib_minestudio.algorithms.learner.distributed import Total, alone
from rllib_minestudio.algorithms.learner.gae import Advantages, compute_gae
from rllib_minestudio.algorithms.learner.losses import importance_weight, normalise_advantage

DECOUPLED, RECOMPUTE, NO_CORRECTION = "decoupled", "recompute", "none"
CORRECTIONS = (DECOUPLED, RECOMPUTE, NO_CORRECTION)
"""Values of `off_policy_correction`, see `MineStudioPPOConfig.training`."""


class TargetOptions(Protocol):
    """The options that targets depend on; `MineStudioPPOConfig` has them."""

    off_policy_correction: str
    importance_weight_truncation: float
    reuse_stored_values: bool
    gamma: float
    lambda_: float


class Evaluation(NamedTuple):
    """What today's weights say about some rows.

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
    """About an iteration's targets, for the metrics.

    Attributes:
        value: (B, T) values that the advantages were made from; finite.
        value_target: (B, T).
        weight: (B, T) importance weights.
        usable: (B, T) bool, which of the steps are trained on.
        nonfinite: (B,) bool, rows left out because something in them is NaN or infinite.
        evaluated_rows: Rows that needed a forward pass.
    """

    value: Tensor
    value_target: Tensor
    weight: Tensor
    usable: Tensor
    nonfinite: Tensor
    evaluated_rows: int


def add_targets(
    batch: FragmentBatch,
    fragments: Sequence[Fragment],
    *,
    excluded: Sequence[bool],
    prior_latent: Tensor | None,
    evaluate: Evaluate,
    weights_version: int,
    options: TargetOptions,
    total: Total = alone,
) -> tuple[TrainingBatch, TargetStatistics]:
    """Advantages, value targets and the proximal policy of a batch.

    A row that is excluded, or in which anything is not finite, stays in the batch, so that all
    learners have equally many, but with a mask of 0 and zeros for numbers.

    Args:
        batch: The stacked fragments.
        fragments: What it was stacked from, in the same order.
        excluded: For each row, whether it must not be trained on.
        prior_latent: Passed on.
        evaluate: Forward pass with the weights that the iteration starts from.
        weights_version: The version of those weights.
        options: How to treat what is stale, and of GAE.
        total: Sums over the learners that share the iteration.
    """
    device = batch.image.device
    evaluation, num_evaluated = _evaluation(batch, fragments, evaluate, weights_version, options)
    advantages = _advantages(fragments, evaluation, options)
    advantage = torch.from_numpy(advantages.advantage_bt).to(device)
    value_target = torch.from_numpy(advantages.value_target_bt).to(device)
    proximal_logp = evaluation.logp_bt
    if options.off_policy_correction == DECOUPLED:
        weight = importance_weight(
            proximal_logp, batch.logp, truncation=options.importance_weight_truncation
        )
    else:
        weight = torch.ones_like(proximal_logp)

    numbers = (advantage, value_target, proximal_logp, weight, batch.logp)
    usable = ~torch.tensor(excluded, device=device)
    nonfinite = usable & ~_all_finite((*numbers, *batch.state_in.values()))
    usable = usable & ~nonfinite
    kept = usable[:, None].expand_as(advantage)
    advantage, value_target, proximal_logp, weight, logp = (
        torch.where(kept, number, 0.0) for number in numbers
    )
    inherited = {field.name: getattr(batch, field.name) for field in fields(batch)}
    inherited["logp"] = logp
    inherited["state_in"] = {
        name: tensor.masked_fill(~usable.view(-1, *[1] * (tensor.dim() - 1)), 0)
        for name, tensor in batch.state_in.items()
    }
    targets = TrainingBatch(
        **inherited,
        mask=_mask(kept, total),
        proximal_logp=proximal_logp,
        weight=weight,
        advantage=normalise_advantage(advantage, kept, total=total),
        value_target=value_target,
        prior_latent=prior_latent,
    )
    value = torch.where(kept, evaluation.value_bt, 0.0)
    statistics = TargetStatistics(value, value_target, weight, kept, nonfinite, num_evaluated)
    return targets, statistics


def _mask(usable_bt: Tensor, total: Total) -> Tensor:
    """1 where usable, times all steps over the usable ones of all learners."""
    count, num_usable = total(
        torch.tensor([usable_bt.numel(), usable_bt.sum()], device=usable_bt.device)
    )
    return usable_bt * (count / num_usable.clamp(min=1)).float()


def _all_finite(tensors: Sequence[Tensor]) -> Tensor:
    """For each row, whether all numbers in it are finite: (B,) bool."""
    # A sum is finite only if all terms are; it is made in one pass without a copy.
    sums = [t.flatten(1).sum(dim=1).isfinite() for t in tensors]
    return torch.stack(sums).all(dim=0)


def _advantages(
    fragments: Sequence[Fragment], evaluation: Evaluation, options: TargetOptions
) -> Advantages:
    """GAE over rows, each of one or more contiguous fragments."""
    rows = len(evaluation.value_bt)

    def joined(name: str) -> NDArray:
        return np.stack([getattr(fragment, name) for fragment in fragments]).reshape(rows, -1)

    # Infinite rewards make NaNs here; those rows are left out afterwards.
    with np.errstate(invalid="ignore", over="ignore"):
        return compute_gae(
            reward_bt=joined("reward"),
            value_bt=evaluation.value_bt.cpu().numpy(),
            terminated_bt=joined("terminated"),
            truncated_bt=joined("truncated"),
            bootstrap_value_bt=joined("bootstrap_value"),
            last_value_b=evaluation.last_value_b.cpu().numpy(),
            gamma=options.gamma,
            lambda_=options.lambda_,
        )


def _evaluation(
    batch: FragmentBatch,
    fragments: Sequence[Fragment],
    evaluate: Evaluate,
    weights_version: int,
    options: TargetOptions,
) -> tuple[Evaluation, int]:
    """Stored evaluations where the weights are still the same, fresh ones elsewhere."""
    device = batch.image.device
    join = len(fragments) // len(batch)
    value = np.stack([f.value for f in fragments]).reshape(len(batch), -1)
    merged = Evaluation(
        logp_bt=batch.logp.clone(),
        value_bt=torch.from_numpy(value).to(device),
        last_value_b=torch.tensor([f.last_value for f in fragments[join - 1 :: join]]).to(device),
    )
    oldest = [
        min(f.weights_version_min for f in fragments[i : i + join])
        for i in range(0, len(fragments), join)
    ]
    stale = [row for row, version in enumerate(oldest) if version < weights_version]
    if options.reuse_stored_values or not stale:
        return merged, 0
    rows = torch.tensor(stale, device=device)
    last = [fragments[(row + 1) * join - 1] for row in stale]
    last_image = torch.from_numpy(np.stack([f.last_obs for f in last])).to(device)
    last_first = torch.tensor([f.last_first for f in last], device=device)
    fresh = evaluate(batch.select(rows), last_image, last_first)
    merged.value_bt[rows] = fresh.value_bt.to(merged.value_bt.dtype)
    merged.last_value_b[rows] = fresh.last_value_b.to(merged.last_value_b.dtype)
    if options.off_policy_correction != NO_CORRECTION:
        merged.logp_bt[rows] = fresh.logp_bt.to(merged.logp_bt.dtype)
    return merged, len(stale)
