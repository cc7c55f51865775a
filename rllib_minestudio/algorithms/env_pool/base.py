"""What the env runner asks of a pool of environments, whether they run here or in processes."""

from __future__ import annotations

import enum
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.foundation.episode_info import ENGINE_ERROR, SUCCESS, TASK
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts
from rllib_minestudio.foundation.values import OMITTED, integer_or_text, plain

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


# ---------------------------------------------------------- what is kept of an episode when it ends

DEFAULT_TASK = "default"
"""The task of episodes whose environment does not name one."""

MAX_ARRAY_SIZE = 64
"""Elements of an array up to which it counts as small."""


class Episode(NamedTuple):
    """A finished episode.

    Attributes:
        length: Steps.
        discounted_return: With the pool's gamma.
        undiscounted_return: The sum of rewards.
        seconds: Wall time from its first observation to its last.
        task: Its name, from the info; `DEFAULT_TASK` if the environment names none.
        success: Whether the task was solved; None if the environment does not tell.
        env_error: Why it was cut short, in one line, if the environment failed; else None.
        env_index: Which environment of the pool it was played in.
        info: The last step's info, plain Python throughout; empty if the environment failed.
    """

    length: int
    discounted_return: float
    undiscounted_return: float
    seconds: float
    task: str
    success: bool | None
    env_error: str | None
    env_index: int
    info: dict[str, Any]


class RunningEpisode:
    """Sums up an episode while it runs.

    Args:
        env_index: Which environment of the pool plays it.
        info: What the reset told, plain.
    """

    def __init__(self, env_index: int, info: Mapping[str, Any]) -> None:
        self._env_index = env_index
        self._info = info
        self._length = 0
        self._discount = 1.0
        self._discounted_return = 0.0
        self._return = 0.0
        self._started = time.perf_counter()

    def add(self, reward: float, gamma: float) -> None:
        """Take in one step."""
        self._length += 1
        self._return += reward
        self._discounted_return += self._discount * reward
        self._discount *= gamma

    def finish(self, info: dict[str, Any], env_error: str | None = None) -> Episode:
        """End the episode now.

        Args:
            info: What the last step told, plain.
            env_error: Why the environment could not go on, if it failed.
        """
        task = info.get(TASK, self._info.get(TASK))
        success = info.get(SUCCESS)
        engine_error = info.get(ENGINE_ERROR)
        return Episode(
            length=self._length,
            discounted_return=self._discounted_return,
            undiscounted_return=self._return,
            seconds=time.perf_counter() - self._started,
            task=task if isinstance(task, str) and task else DEFAULT_TASK,
            success=success if isinstance(success, bool) else None,
            env_error=env_error or (str(engine_error) if engine_error else None),
            env_index=self._env_index,
            info=info,
        )


def plain_info(info: Mapping[Any, Any]) -> dict[str, Any]:
    """The part of an info that is plain and small; the rest (frames, objects) is left out.

    Arrays of up to `MAX_ARRAY_SIZE` elements become lists.
    """
    told = plain(info, lambda _: OMITTED, integer_or_text, MAX_ARRAY_SIZE)  # slots are integers
    return {str(key): value for key, value in told.items()}


# ------------------------------------------ the options of one environment, and its place among all


class EnvConfig(dict[str, Any]):
    """What RLlib calls EnvContext, without RLlib.

    Environments run in processes that shall not have to import Ray to read their options.

    Attributes:
        worker_index: Of the env runner; 0 for the local one.
        vector_index: Of the environment in the env runner.
        num_workers: How many remote env runners there are.
    """

    def __init__(
        self, options: Mapping[str, Any], *, worker_index: int, vector_index: int, num_workers: int
    ) -> None:
        super().__init__(options)
        self.worker_index = worker_index
        self.vector_index = vector_index
        self.num_workers = num_workers
