"""Episode numbers and the seeds derived from them, so that a resumed run goes on with new episodes.

If each environment derived its episodes from its own start, a resumed run would play the first ones
again. So pools number the episodes of each environment, and derive each episode's seed from (seed,
worker, environment, number) alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

EPISODE_SEED = "episode_seed"
"""Option of `reset`, for environments that distinguish a new episode from a new world: begin the
episode with this seed, and let the environment decide whether it needs a new world."""

RESET_OPTIONS = "reset_options"
"""Key of an environment's `metadata` that lists the options its `reset` supports."""


class EpisodeCounts(NamedTuple):
    """The episode numbers at which the environments of a pool continue.

    Attributes:
        seed: Seed from which all episodes' seeds are derived.
        unplayed: Per environment, the number of the first episode of which no step was played.
            Environments beyond its end have not played yet.
    """

    seed: int
    unplayed: Sequence[int] = ()


class NumberedEpisodes:
    """The episodes of one environment.

    Args:
        index: Index of the environment in its pool.
        counts: Where the pool's environments continue.

    Attributes:
        unplayed: Number of the first episode of which no step was played.
    """

    def __init__(self, index: int, counts: EpisodeCounts) -> None:
        self._seed, self._index = counts.seed, index
        self.unplayed = counts.unplayed[index] if index < len(counts.unplayed) else 0
        self._next = self.unplayed

    def begin(self) -> int:
        """Count the next episode as begun and return its seed, even if the last could not begin."""
        seed = derived_seed(self._seed, self._index, self._next)
        self._next += 1
        return seed

    @property
    def playing(self) -> int:
        """The number of the episode begun last."""
        return self._next - 1

    def note_step(self) -> None:
        """Note that a step of the episode begun last was played."""
        self.unplayed = self._next


def derived_seed(*entropy: int) -> int:
    """Return a 31-bit seed derived from numbers, none of which may be negative."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)


def begin_episode(env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
    """Reset an environment to the episode of a seed, in a new world only if it decides so."""
    metadata: Mapping[str, Any] = env.metadata or {}
    if EPISODE_SEED in metadata.get(RESET_OPTIONS, ()):
        return env.reset(options={EPISODE_SEED: seed})
    return env.reset(seed=seed)
