"""Aggregates of scores over many tasks, as Agarwal et al. 2021 define them.

"Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv 2108.13264) and its
library rliable take a matrix of scores, runs by tasks. Here a run of a task is an episode, and
tasks may have different numbers of them. Intervals are percentiles of a bootstrap that is
stratified by task: each resample draws as many scores of a task as the task has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.evaluation.summary import CONFIDENCE, Summary, paired_episodes
from rllib_minestudio.foundation.console import Aligned
from rllib_minestudio.foundation.files import whole_file

Scores = Sequence[NDArray[np.float64]]
"""The scores of one player: for each task those of its episodes, (episodes,) float64."""

Interval = tuple[float, float]

RESAMPLES = 2000
_AT_ONCE = 2_000_000
"""Most scores that are drawn at the same time."""
LEVELS = (0.25, 0.5, 0.75)
"""Parts of the range between the lowest and the highest score at which profiles are printed."""


def interquartile_mean(scores: Scores) -> float:
    """Return the mean of the middle half of all scores: rliable's `aggregate_iqm`."""
    return float(_trimmed_means(np.concatenate(scores)[None])[0])


def probability_of_improvement(x: Scores, y: Scores) -> float:
    """Return the mean over tasks of P(X > Y) + P(X = Y) / 2: rliable's function of that name."""
    return float(np.mean([_wins(a, b).mean() for a, b in zip(x, y, strict=True)]))


def performance_profile(scores: Scores, levels: Sequence[float]) -> NDArray[np.float64]:
    """Return the share of all scores above each level: rliable's run-score distribution."""
    return (np.concatenate(scores) > np.asarray(levels)[:, None]).mean(axis=1)


def _trimmed_means(scores_rn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (R,) means over the middle of each row, as `scipy.stats.trim_mean` cuts it off."""
    cut = int(0.25 * scores_rn.shape[1])
    middle: NDArray[np.float64] = np.sort(scores_rn, axis=1)[:, cut : scores_rn.shape[1] - cut]
    return middle.mean(axis=1)


def _wins(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (len(x), len(y)): 1 where the first is greater, 1/2 where both are equal, else 0."""
    return (x[:, None] > y) + 0.5 * (x[:, None] == y)


# ---------------------------------------------------------------------------- bootstrap intervals


def _interval(resampled: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def interquartile_mean_interval(scores: Scores, seed: int = 0) -> Interval:
    """Return the stratified bootstrap interval of the interquartile mean.

    Args:
        scores: The scores of one player.
        seed: Determines the resamples.
    """
    rng = np.random.default_rng(seed)
    size = sum(map(len, scores))
    step = max(1, _AT_ONCE // size)
    drawn = []
    for start in range(0, RESAMPLES, step):
        count = min(step, RESAMPLES - start)
        rows = [one[rng.integers(0, len(one), (count, len(one)))] for one in scores]
        drawn.append(_trimmed_means(np.concatenate(rows, axis=1)))
    return _interval(np.concatenate(drawn))


def improvement_interval(x: Scores, y: Scores, seed: int = 0) -> Interval:
    """Return the stratified bootstrap interval of the probability of improvement.

    The scores of the two players are drawn independently of each other.

    Args:
        x: The scores of the player that may be better.
        y: The scores of the other one.
        seed: Determines the resamples.
    """
    rng = np.random.default_rng(seed)
    total = np.zeros(RESAMPLES)
    for a, b in zip(x, y, strict=True):
        # How often each score is drawn, instead of the scores themselves.
        times_a = rng.multinomial(len(a), np.full(len(a), 1 / len(a)), RESAMPLES)
        times_b = rng.multinomial(len(b), np.full(len(b), 1 / len(b)), RESAMPLES)
        total += ((times_a @ _wins(a, b)) * times_b).sum(axis=1) / (len(a) * len(b))
    return _interval(total / len(x))


# --------------------------------------------------------------------- what a comparison reports


@dataclass(frozen=True)
class Aggregates:
    """Two players' scores over all tasks.

    Attributes:
        score: What a score is, such as `progress`.
        names: Of the two players.
        means: Their interquartile means.
        mean_intervals: The intervals of these.
        improvement: Probability that the second improves on the first.
        improvement_interval: The interval of that.
        levels: Scores at which the profiles are given.
        profiles: For each player, the share of scores above each level.
    """

    score: str
    names: tuple[str, str]
    means: tuple[float, float]
    mean_intervals: tuple[Interval, Interval]
    improvement: float
    improvement_interval: Interval
    levels: tuple[float, ...]
    profiles: tuple[tuple[float, ...], tuple[float, ...]]

    @classmethod
    def of(cls, score: str, names: tuple[str, str], first: Scores, second: Scores) -> Aggregates:
        """Compute the aggregates of two players' scores on the same tasks."""
        every = np.concatenate([*first, *second])
        low, high = float(every.min()), float(every.max())
        levels = tuple(low + part * (high - low) for part in LEVELS)
        return cls(
            score=score,
            names=names,
            means=(interquartile_mean(first), interquartile_mean(second)),
            mean_intervals=(
                interquartile_mean_interval(first),
                interquartile_mean_interval(second),
            ),
            improvement=probability_of_improvement(second, first),
            improvement_interval=improvement_interval(second, first),
            levels=levels,
            profiles=(
                tuple(performance_profile(first, levels).tolist()),
                tuple(performance_profile(second, levels).tolist()),
            ),
        )

    def table(self) -> Aligned:
        """Return a table with a row per player, and the probability of improvement below."""
        rows = [
            (
                name,
                f"{mean:.2f}",
                f"{interval[0]:.2f} to {interval[1]:.2f}",
                *(f"{share:.0%}" for share in profile),
            )
            for name, mean, interval, profile in zip(
                self.names, self.means, self.mean_intervals, self.profiles, strict=True
            )
        ]
        low, high = self.improvement_interval
        return Aligned(
            rows=rows,
            key="",
            numbers=(
                "IQM",
                f"{CONFIDENCE:.0%} interval",
                *(f"above {level:.3g}" for level in self.levels),
            ),
            title=f"{self.score} of all episodes: interquartile mean, share above a level",
            notes=f"{self.names[1]} improves on {self.names[0]} with probability "
            f"{self.improvement:.2f} ({low:.2f} to {high:.2f}); all as rliable defines them, "
            f"{RESAMPLES:,} resamples stratified by task",
        )


def return_aggregates(new: Summary, old: Summary) -> Aggregates | None:
    """Return the aggregates of the finite returns in the episodes that both evaluations have.

    Returns:
        The old policy is the first player; None if no such episode is left.
    """
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for x, y in paired_episodes(new.episodes, old.episodes):
        pair = y.undiscounted_return, x.undiscounted_return
        if all(map(math.isfinite, pair)):
            scores[x.task].append(pair)
    if not scores:
        return None
    first, second = ([np.array(one)[:, i] for one in scores.values()] for i in (0, 1))
    return Aggregates.of("return", ("old", "new"), first, second)


def export_to_rliable(file: Path, scores: dict[str, Scores]) -> None:
    """Write matrices of scores, runs by tasks, as rliable's functions take them.

        scores = dict(numpy.load("rliable.npz"))
        rliable.library.get_interval_estimates(scores, ...)

    Args:
        file: An .npz file, which is replaced.
        scores: Player -> its scores.

    Raises:
        MineStudioError: The tasks of a player have different numbers of episodes.
    """
    matrices: dict[str, Any] = {}
    for name, found in scores.items():
        if len({len(one) for one in found}) > 1:
            raise MineStudioError(
                f"rliable takes a matrix, and the tasks of {name!r} have different numbers of "
                "episodes: compare runs without failed episodes, or leave --export out."
            )
        matrices[name] = np.stack(found, axis=1)
    with whole_file(file) as partial, partial.open("wb") as stream:
        np.savez(stream, **matrices)
