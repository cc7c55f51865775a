"""The targets of an iteration: advantages, value targets, the proximal policy.

The fragments carry the behaviour policy's values and log-probabilities. These are exact if the
fragment was collected with the weights at the start of the iteration, so nothing is recomputed; all
other fragments get a forward pass with the current weights (`policy_learner.py`).

All arrays are in host memory. Axes: `b` sequence, `t` step.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rllib_minestudio.algorithms.learner.batch import SequenceBatch
from rllib_minestudio.algorithms.learner.gae import Advantages, compute_gae
from rllib_minestudio.algorithms.learner.gradient_step import AllReduce, Peers, single_learner
from rllib_minestudio.algorithms.learner.objective import (
    importance_weight,
    moments,
    normalise_advantage,
)
from rllib_minestudio.algorithms.options import DECOUPLED, PPOOptions
from rllib_minestudio.models.value_head import RunningStatistics

NO_CORRECTION = "none"
"""Value of `off_policy_correction` with which PPO's ratio is relative to the behaviour policy,
however old. Configs refuse it, except in benchmarks/staleness.py, which shows why."""


class Evaluation(NamedTuple):
    """Log-probabilities and values of sequences under some weights.

    Attributes:
        logp_bt: Log-probability of the actions taken, (B, T) float32.
        value_bt: Value of each observation, in units of return, (B, T) float32.
        bootstrap_value_bt: Value of the final observation after a truncated step, (B, T) float32;
            undefined elsewhere.
        last_value_b: Value of the observation after the last step, (B,) float32.
    """

    logp_bt: NDArray[np.float32]
    value_bt: NDArray[np.float32]
    bootstrap_value_bt: NDArray[np.float32]
    last_value_b: NDArray[np.float32]


Evaluate = Callable[[SequenceBatch], Evaluation]
"""A forward pass over sequences, without gradient."""


class Targets(NamedTuple):
    """The targets of an iteration's sequences.

    Attributes:
        usable_b: (B,) bool, whether a sequence may be trained on; if not, its numbers are 0.
        nonfinite_b: (B,) bool, whether a sequence was left out because a number, or the square of a
            value target, is NaN or infinite.
        value_bt: (B, T), the values from which the advantages were computed.
        value_target_bt: (B, T), in units of return.
        advantage_bt: (B, T), normalised over the usable steps of all learners.
        proximal_logp_bt: (B, T), log-probability under the proximal policy.
        weight_bt: (B, T), importance weights.
        num_evaluated: The number of sequences that needed a forward pass.
    """

    usable_b: Tensor
    nonfinite_b: Tensor
    value_bt: Tensor
    value_target_bt: Tensor
    advantage_bt: Tensor
    proximal_logp_bt: Tensor
    weight_bt: Tensor
    num_evaluated: int

    @property
    def usable_bt(self) -> Tensor:
        """(B, T) bool, whether a step may be trained on."""
        return self.usable_b[:, None].expand_as(self.value_bt)


def compute_targets(
    sequences: SequenceBatch,
    *,
    excluded: Sequence[bool],
    evaluate: Evaluate,
    current_version: int | None,
    options: PPOOptions,
    total: AllReduce = single_learner,
) -> Targets:
    """Compute advantages, value targets and the proximal policy of an iteration.

    Args:
        sequences: This learner's sequences.
        excluded: For each sequence, whether it must not be trained on.
        evaluate: Forward pass with the weights at the start of the iteration.
        current_version: The published version of those weights; None if they were never published,
            so that nothing was played with them.
        options: The options of off-policy correction and GAE.
        total: Sums over the learners that share the iteration.
    """
    is_stale = ~(np.array(excluded) | sequences.were_played_by(current_version))
    stale = np.flatnonzero(is_stale).tolist()
    evaluation = _evaluation(sequences, stale, evaluate, options)
    advantages = _advantages(sequences, evaluation, options)
    numbers = {
        "value_bt": torch.from_numpy(evaluation.value_bt),
        "value_target_bt": torch.from_numpy(advantages.value_target_bt),
        "advantage_bt": torch.from_numpy(advantages.advantage_bt),
        "proximal_logp_bt": torch.from_numpy(evaluation.logp_bt),
        "weight_bt": _weights(sequences, evaluation, options),
    }
    # The running statistics hold squares, in which an overflow would persist.
    fit = [*numbers.values(), numbers["value_target_bt"].square()]
    finite = torch.stack([number.isfinite().all(dim=1) for number in fit]).all(dim=0)
    finite &= torch.from_numpy(sequences.are_finite())
    included = ~torch.tensor(excluded)
    usable = included & finite
    kept = usable[:, None].expand_as(numbers["value_bt"])
    numbers = {name: torch.where(kept, number, 0.0) for name, number in numbers.items()}
    numbers["advantage_bt"] = normalise_advantage(numbers["advantage_bt"], kept, total=total)
    return Targets(
        usable_b=usable, nonfinite_b=included & ~finite, num_evaluated=len(stale), **numbers
    )


def _advantages(
    sequences: SequenceBatch, evaluation: Evaluation, options: PPOOptions
) -> Advantages:
    """Return GAE of all sequences; meaningless for those with NaN or infinite numbers."""
    with np.errstate(invalid="ignore", over="ignore"):
        return compute_gae(
            reward_bt=sequences.reward,
            value_bt=evaluation.value_bt,
            terminated_bt=sequences.terminated,
            truncated_bt=sequences.truncated,
            bootstrap_value_bt=evaluation.bootstrap_value_bt,
            last_value_b=evaluation.last_value_b,
            gamma=options.gamma,
            lambda_=options.lambda_,
        )


def _weights(sequences: SequenceBatch, evaluation: Evaluation, options: PPOOptions) -> Tensor:
    proximal_logp = torch.from_numpy(evaluation.logp_bt)
    if options.off_policy_correction != DECOUPLED:
        return torch.ones_like(proximal_logp)
    return importance_weight(
        proximal_logp,
        torch.from_numpy(sequences.logp),
        truncation=options.importance_weight_truncation,
    )


def _evaluation(
    sequences: SequenceBatch,
    stale: list[int],
    evaluate: Evaluate,
    options: PPOOptions,
) -> Evaluation:
    """Return the evaluations stored in the fragments, with fresh ones for stale sequences."""
    merged = Evaluation(
        logp_bt=sequences.logp.copy(),
        value_bt=sequences.value.copy(),
        bootstrap_value_bt=sequences.bootstrap_value.copy(),
        last_value_b=sequences.last_value.copy(),
    )
    if stale:
        fresh = evaluate(sequences.select(stale))
        for name, array in merged._asdict().items():
            if name != "logp_bt" or options.off_policy_correction != NO_CORRECTION:
                array[stale] = getattr(fresh, name)
    return merged


# ---------------------------------------------- the running statistics that normalise value targets


def enter_value_targets(
    statistics: RunningStatistics, targets: Targets, options: PPOOptions, *, total: AllReduce
) -> None:
    """Update the statistics with all learners' value targets, before training on an iteration.

    MineStudio (`scaled_mse_head.py`) updates them chunk by chunk, so that a chunk's normalised
    targets depend on the chunks before it. Here all targets enter at once, and count as many times
    as there are chunks, whichever learner trains on them.
    """
    usable = targets.usable_bt
    count, mean, variance = moments(targets.value_target_bt, usable, total=total)
    if count:
        own_sequences, num_steps = usable.shape
        num_sequences = int(total(torch.tensor(own_sequences)))
        minibatches = math.ceil(num_sequences / options.fragments_per_minibatch)
        chunks = math.ceil(num_steps / options.context_length)
        statistics.update(
            mean, variance + mean.square(), times=options.num_epochs * minibatches * chunks
        )


# ----- the usual size of rewards: rewards far beyond it are logged, counted, and clipped on request
# A single absurd reward spoils the values' statistics for thousands of iterations, and nothing
# else shows it. The scale is the root mean square of the rewards that are not 0, so that it is as
# meaningful for rare rewards as for frequent ones.

EXTREME = 100.0
"""A reward is extreme beyond this many times the scale."""

FEW = 100
"""With fewer rewards than this, the scale is at least the median of the current iteration's."""

_logger = logging.getLogger(__name__)


class JudgedRewards(NamedTuple):
    """The rewards of an iteration after the check.

    Attributes:
        reward_bt: (B, T) float32, clipped if configured.
        extreme: How many were extreme.
        clipped: How many were clipped.
    """

    reward_bt: NDArray[np.float32]
    extreme: int
    clipped: int


class RewardScale:
    """The running scale of all learners' rewards.

    Args:
        clip: Rewards are clipped to this many times the scale; None: never.
        peers: The learners that share the iterations.

    Attributes:
        told: The sentence logged about the first extreme reward; empty if there was none.
    """

    def __init__(self, clip: float | None, peers: Peers) -> None:
        self._clip = clip
        self._peers = peers
        self._count, self._squares = 0.0, 0.0
        self.told = ""

    def judge(self, sequences: SequenceBatch) -> JudgedRewards:
        """Find extreme rewards in an iteration, and update the scale.

        An extreme reward enters the scale as if it were exactly at the limit. So the next reward of
        this size is extreme as well, yet the scale follows if rewards become larger permanently.
        """
        reward = sequences.reward
        size = np.abs(reward[np.isfinite(reward) & (reward != 0)]).astype(np.float64)
        scale = self._scale(size)
        limit = EXTREME * scale
        extreme = np.isfinite(reward) & (np.abs(reward) > limit)
        entered = np.minimum(size, limit)
        sums = torch.tensor(
            [len(entered), np.square(entered).sum(), extreme.sum()], dtype=torch.float64
        )
        count, squares, all_extreme = self._peers.total(sums).tolist()
        self._count += count
        self._squares += squares
        if all_extreme and not self.told:
            self._tell(sequences, extreme, scale)
        bound = math.inf if self._clip is None else self._clip * scale
        clipped = np.isfinite(reward) & (np.abs(reward) > bound)
        if clipped.any():
            reward = np.where(clipped, np.sign(reward) * bound, reward).astype(np.float32)
        return JudgedRewards(reward, int(extreme.sum()), int(clipped.sum()))

    def get_state(self) -> dict[str, float]:
        """Return plain data for a checkpoint."""
        return {"count": self._count, "squares": self._squares}

    def set_state(self, state: dict[str, float]) -> None:
        """Restore from a checkpoint."""
        self._count, self._squares = state["count"], state["squares"]

    def _scale(self, size: NDArray[np.float64]) -> float:
        """Return the scale, the same for all learners; infinite until there was any reward."""
        known = math.sqrt(self._squares / self._count) if self._count else 0.0
        if self._count >= FEW:
            return known
        medians = self._peers.gather(float(np.median(size)) if len(size) else 0.0)
        return max(known, *medians) or math.inf

    def _tell(self, sequences: SequenceBatch, extreme: NDArray[np.bool_], scale: float) -> None:
        """Log once which episode paid the largest one, and share the sentence with all learners."""
        told = self._described(sequences, extreme, scale) if extreme.any() else ""
        self.told = next(filter(None, self._peers.gather(told)))
        if told == self.told:
            _logger.warning(
                "%s If that is not intended, fix the reward or set reward_clip=%g: it spoils the "
                "values' statistics for thousands of iterations. Others like it will be counted "
                "(extreme_rewards) and not logged.",
                told,
                EXTREME,
            )

    def _described(self, sequences: SequenceBatch, extreme: NDArray[np.bool_], scale: float) -> str:
        largest = int(np.where(extreme, np.abs(sequences.reward), 0).argmax())
        b, t = divmod(largest, sequences.num_steps)
        return (
            f"Environment {sequences.env_id[b]} (its env runner and its number there) paid a "
            f"reward of {sequences.reward[b, t]:g} in its episode {sequences.episode_of(b, t)}, "
            f"where rewards that are not 0 are of the size of {scale:.3g}."
        )
