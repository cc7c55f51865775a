"""The usual size of rewards: rewards far beyond it are logged, counted, and clipped on request.

A single absurd reward spoils the values' statistics for thousands of iterations, and nothing else
shows it. The scale is the root mean square of the rewards that are not 0, so that it is as
meaningful for rare rewards as for frequent ones.
"""

from __future__ import annotations

import logging
import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rllib_minestudio.algorithms.learner.batch import SequenceBatch
from rllib_minestudio.algorithms.learner.gradient_step import Peers

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
