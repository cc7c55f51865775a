"""What the environments show that wait for an action."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool.base import Observations


class Observed(NamedTuple):
    """What k environments see that wait for an action.

    Attributes:
        rows: (k,) int64, which environments.
        obs: (k, ...) each part.
        first: (k,) bool, whether it begins an episode.
    """

    rows: NDArray[np.int64]
    obs: Observations
    first: NDArray[np.bool_]

    def select(self, which: NDArray[np.bool_]) -> Observed:
        """A copy of those where `which` (k,) is true."""
        obs = {name: part[which] for name, part in self.obs.items()}
        return Observed(self.rows[which], obs, self.first[which])

    @staticmethod
    def join(parts: list[Observed]) -> Observed:
        """All of several, by environment."""
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        obs = {
            name: np.concatenate([part.obs[name] for part in parts])[order] for name in parts[0].obs
        }
        return Observed(rows[order], obs, np.concatenate([part.first for part in parts])[order])
