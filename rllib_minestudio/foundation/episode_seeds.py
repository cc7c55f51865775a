"""Which episode an environment plays: its number, and the seed that belongs to it.

An environment that derived its episodes from its own beginning would play the first ones again
whenever a run is resumed. So pools number the episodes of each environment, and give each the seed
that follows from (seed, worker, environment, number), whatever was played before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

EPISODE_SEED = "episode_seed"
"""Option of `reset`, for environments that tell a new episode from a new world: begin the episode
of this seed, but leave it to the environment whether that takes a new world."""

RESET_OPTIONS = "reset_options"
"""Key of an environment's `metadata`: the options of `reset` that it knows."""


class EpisodeCounts(NamedTuple):
    """Where the environments of a pool go on.

    Attributes:
        seed: What all their episodes derive from.
        unplayed: Per environment, the number of the first episode of which nothing was played.
            Environments beyond its end have played nothing.
    """

    seed: int
    unplayed: Sequence[int] = ()


class NumberedEpisodes:
    """The episodes of one environment.

    Args:
        index: Of the environment in its pool.
        counts: Where it goes on.

    Attributes:
        unplayed: As in `EpisodeCounts`, of this environment.
    """

    def __init__(self, index: int, counts: EpisodeCounts) -> None:
        self._seed, self._index = counts.seed, index
        self.unplayed = counts.unplayed[index] if index < len(counts.unplayed) else 0
        self._next = self.unplayed

    def begin(self) -> int:
        """The seed of the next episode; also if the one before could not be begun."""
        seed = derived_seed(self._seed, self._index, self._next)
        self._next += 1
        return seed

    @property
    def playing(self) -> int:
        """The number of the episode that was begun last."""
        return self._next - 1

    def note_step(self) -> None:
        """Note that something was played of the episode that was begun last."""
        self.unplayed = self._next


def derived_seed(*entropy: int) -> int:
    """A seed of 31 bits that belongs to these numbers, none of which is negative."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)


def begin_episode(env: gym.Env, seed: int) -> tuple[Any, dict[str, Any]]:
    """Reset an environment to the episode of a seed, in a new world only if it wants one."""
    metadata: Mapping[str, Any] = env.metadata or {}
    if EPISODE_SEED in metadata.get(RESET_OPTIONS, ()):
        return env.reset(options={EPISODE_SEED: seed})
    return env.reset(seed=seed)
