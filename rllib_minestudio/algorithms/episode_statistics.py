"""Statistics of the episodes that ended last, whatever iteration they ended in.

RLlib's own means hold only what ended since the last report; an iteration shorter than an episode
would report NaN most of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from ray.rllib.utils.metrics import (
    EPISODE_DURATION_SEC_MEAN,
    EPISODE_LEN_MAX,
    EPISODE_LEN_MEAN,
    EPISODE_LEN_MIN,
    EPISODE_RETURN_MAX,
    EPISODE_RETURN_MEAN,
    EPISODE_RETURN_MIN,
)

from rllib_minestudio.algorithms.env_pool import Episode

EPISODE_DISCOUNTED_RETURN_MEAN = "episode_discounted_return_mean"


class EpisodeStatistics:
    """The last `window` episodes.

    Args:
        window: How many episodes the means are over.
    """

    def __init__(self, window: int) -> None:
        """Start without episodes."""
        self._episodes: deque[Episode] = deque(maxlen=window)

    def add(self, episodes: Iterable[Episode]) -> None:
        """Take in episodes in the order they ended."""
        self._episodes.extend(episodes)

    def metrics(self) -> dict[str, float]:
        """Under RLlib's names; empty before the first episode has ended."""
        if not self._episodes:
            return {}
        lengths, discounted, returns, seconds = zip(*self._episodes, strict=True)
        count = len(self._episodes)
        return {
            EPISODE_RETURN_MEAN: sum(returns) / count,
            EPISODE_RETURN_MIN: min(returns),
            EPISODE_RETURN_MAX: max(returns),
            EPISODE_DISCOUNTED_RETURN_MEAN: sum(discounted) / count,
            EPISODE_LEN_MEAN: sum(lengths) / count,
            EPISODE_LEN_MIN: min(lengths),
            EPISODE_LEN_MAX: max(lengths),
            EPISODE_DURATION_SEC_MEAN: sum(seconds) / count,
        }

    def get_state(self) -> list[Any]:
        """Plain data for a checkpoint."""
        return [tuple(episode) for episode in self._episodes]

    def set_state(self, state: list[Any]) -> None:
        """Replace the episodes by those of a checkpoint."""
        self._episodes.clear()
        self.add(Episode(*numbers) for numbers in state)
