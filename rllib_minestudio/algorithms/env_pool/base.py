"""What the env runner asks of a pool of environments, whether they run here or in processes."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool.episode import Episode
from rllib_minestudio.episode_seeds import EpisodeCounts

Observations = dict[str, NDArray]
"""The parts of observations by name (`observations.py`), perhaps with leading axes."""

EpisodeSource = Callable[[int], tuple[int | None, dict[str, Any] | None]]
"""From an environment's index to `seed` and `options` of the reset that it is about to have."""


class Infos(enum.Enum):
    """Which infos a pool is to tell."""

    NONE = enum.auto()
    """Those of finished episodes only (`Episode.info`)."""
    EPISODES = enum.auto()
    """Of resets and of the steps that end an episode."""
    STEPS = enum.auto()
    """Of every step."""


class StepInfos(NamedTuple):
    """What one environment told with its answer; infos are plain and small (`plain_info`).

    Attributes:
        last: Of the step; None if the episode goes on and infos of such steps are not asked for.
        first: Of the reset that followed, or that this answer is of; None if there was none.
        env_error: Why the environment failed in the step, in one line; None if it did not.
    """

    last: dict[str, Any] | None = None
    first: dict[str, Any] | None = None
    env_error: str | None = None


class PoolStep(NamedTuple):
    """What k environments that were ready answered. Arrays have a leading axis of k.

    Attributes:
        rows: (k,) int64, ascending: which environments these are. They wait for an action now.
        obs: (k, ...) each part, valid until the next `recv`; already of the next episode where
            one ended.
        answered: (k,) bool, False for a first observation after `EnvPool.reset`: it answers no
            action, and what follows here means nothing.
        reward: (k,) float32.
        terminated: (k,) bool.
        truncated: (k,) bool; also where an environment failed.
        final_obs: Per environment whose episode was truncated, what it saw last.
        episodes: The episodes that ended.
        infos: Per environment in `rows`, what it told; empty unless the pool was asked for infos.
    """

    rows: NDArray[np.int64]
    obs: Observations
    answered: NDArray[np.bool_]
    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_obs: dict[int, Observations]
    episodes: list[Episode]
    infos: Mapping[int, StepInfos] = {}


class EnvPool(ABC):
    """Environments of equal spaces, each of which restarts by itself.

    The observation after a step that ended an episode is the first of the next one, and the last
    of the finished one is handed out separately, because a truncated episode is worth what would
    have followed. An environment that fails is replaced: its step counts as truncated with reward
    0, what it saw before is its final observation, and its next observation begins an episode.

    Attributes:
        num_envs: How many there are.
        single_observation_space: Of each environment, a `Dict`.
        single_action_space: Of each environment.
        restarts: How often an environment was replaced, by cause.
    """

    num_envs: int
    single_observation_space: gym.Space
    single_action_space: gym.Space
    restarts: Counter[str]

    @property
    @abstractmethod
    def unplayed(self) -> list[int]:
        """Per environment, the number of the first episode of which nothing was played."""

    @property
    @abstractmethod
    def playing(self) -> list[int]:
        """Per environment, the number of the episode that it is in."""

    @abstractmethod
    def reset(self, counts: EpisodeCounts | None = None) -> None:
        """Begin new episodes everywhere; their first observations come with `recv`.

        Args:
            counts: Where the environments go on in their episodes; None: after those that were
                begun last.
        """

    @abstractmethod
    def send(self, rows: NDArray[np.int64], action: Mapping[str, NDArray]) -> None:
        """Hand actions to environments that wait for one.

        Args:
            rows: (k,) which environments.
            action: Arrays with a leading axis of k, as {"buttons": (k,), "camera": (k,)}.
        """

    @abstractmethod
    def recv(self, min_ready: int = 1) -> PoolStep:
        """Wait until environments are ready, and take all that are.

        Args:
            min_ready: How many to wait for. Fewer come if fewer are under way; environments that
                are being restarted are not waited for as long as there are others.

        Raises:
            EnvPoolError: An environment failed more often than is allowed.
        """

    @abstractmethod
    def close(self, **kwargs: Any) -> None:
        """Close all environments; may be called twice."""

    @property
    def observation_space(self) -> gym.Space:
        """Of all environments together; RLlib asks."""
        return gym.vector.utils.batch_space(self.single_observation_space, self.num_envs)

    @property
    def action_space(self) -> gym.Space:
        """Of all environments together; RLlib asks."""
        return gym.vector.utils.batch_space(self.single_action_space, self.num_envs)

    @property
    def unwrapped(self) -> EnvPool:
        """Itself; RLlib asks."""
        return self


def copied(obs: Observations) -> Observations:
    """Return copies of all parts."""
    return {name: part.copy() for name, part in obs.items()}
