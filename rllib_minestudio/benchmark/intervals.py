"""Intervals of a benchmark's numbers, by the bootstrap with a fixed seed.

The percentile bootstrap (Efron and Tibshirani 1993, chapter 13): the numbers are drawn again with
replacement, `RESAMPLES` times, and the interval is what the middle 95 % of the drawn means span.
The seed is fixed, so that the same numbers always have the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.evaluation.evaluation_summary import CONFIDENCE

RESAMPLES = 4000
"""The ends of the interval are then known to about a fiftieth of its width."""

_SEED = 0
_BLOCK = 1_000_000
"""Numbers that are drawn at a time."""

_DECIMALS = 12
"""Means that differ by less differ by the order of their additions only."""

Interval = tuple[float, float]


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """Return the interval of the mean of at least one number.

    Equal numbers have an interval of no width: the bootstrap knows nothing but what it is given.
    """
    return mean_of_means_interval([values])


def mean_of_means_interval(groups: Sequence[Sequence[float] | NDArray[np.float64]]) -> Interval:
    """Return the interval of the mean, over groups, of each group's mean.

    Groups are drawn, and within each drawn group its numbers. So the interval is that of what
    groups like these would come to; a single group's is that of its own mean.

    Args:
        groups: At least one, each with at least one number: for instance a task's episodes.
    """
    arrays = [np.asarray(group, np.float64) for group in groups]
    sizes = np.array([len(array) for array in arrays])
    flat, starts = np.concatenate(arrays), np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rng = np.random.default_rng(_SEED)
    rows = max(1, _BLOCK // (len(arrays) * int(sizes.max())))
    means = np.concatenate(
        [
            _drawn_means(flat, starts, sizes, min(rows, RESAMPLES - done), rng)
            for done in range(0, RESAMPLES, rows)
        ]
    )
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return round(float(low), _DECIMALS), round(float(high), _DECIMALS)


def _drawn_means(
    flat: NDArray[np.float64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return (count,) means of means of drawn groups.

    Args:
        flat: The groups' numbers, one group after the other.
        starts: (groups,) where each begins.
        sizes: (groups,) how many each has.
        count: How often all groups are drawn.
        rng: Draws.
    """
    groups = rng.integers(0, len(sizes), (count, len(sizes)))  # a single one is drawn as itself
    longest = int(sizes.max())
    within = (rng.random((count, len(sizes), longest)) * sizes[groups][..., None]).astype(np.int64)
    drawn = flat[starts[groups][..., None] + within]
    counted = np.arange(longest) < sizes[groups][..., None]
    means: NDArray[np.float64] = (drawn * counted).sum(axis=2) / sizes[groups]
    return means.mean(axis=1)
