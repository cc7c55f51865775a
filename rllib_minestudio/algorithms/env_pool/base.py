"""The interface of a pool of environments, whether they run inline or in other processes."""

from __future__ import annotations

import enum
import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts
from rllib_minestudio.foundation.names import ENGINE_ERROR, RESET_ERROR, SUCCESS, TASK
from rllib_minestudio.foundation.values import OMITTED, integer_or_text, plain

Observations = dict[str, NDArray]
"""The parts of observations by name (`observations.py`), possibly with leading axes."""

EpisodeSource = Callable[[int], tuple[int | None, dict[str, Any] | None]]
"""From an environment's index to the `seed` and `options` of its next reset."""


class Infos(enum.Enum):
    """Which infos a pool returns."""

    NONE = enum.auto()
    """Those of finished episodes only (`Episode.info`)."""
    EPISODES = enum.auto()
    """Those of resets and of the steps that end an episode."""
    STEPS = enum.auto()
    """Those of resets and of every step."""


class StepInfos(NamedTuple):
    """The infos in one environment's answer, plain and small (`plain_info`).

    Attributes:
        last: Info of the step; None if the episode continues and `Infos.STEPS` was not requested.
        first: Info of the reset, if this answer is to a reset or one followed the step; else None.
        env_error: Why the environment failed in the step, in one line; None if it did not.
    """

    last: dict[str, Any] | None = None
    first: dict[str, Any] | None = None
    env_error: str | None = None


class PoolStep(NamedTuple):
    """The answers of k environments that were ready. Arrays have a leading axis of k.

    Attributes:
        rows: (k,) int64, ascending, the environments' indices. They now wait for an action.
        obs: (k, ...) each part, valid until the next `recv`; if an episode ended, already the first
            observation of the next.
        answered: (k,) bool, False for the first observation after `EnvPool.reset`, which answers no
            action: `reward`, `terminated` and `truncated` are then meaningless.
        reward: (k,) float32.
        terminated: (k,) bool.
        truncated: (k,) bool; also true if the environment failed.
        final_obs: The final observation of each environment whose episode was truncated and not
            terminated.
        episodes: The episodes that ended.
        infos: Infos of each environment in `rows`; empty if the pool was not asked for infos.
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
    """Environments with equal spaces, each of which resets itself when an episode ends.

    The observation after a step that ended an episode is the first of the next episode. The final
    observation of a truncated episode is returned separately, because its value is needed for
    bootstrapping. An environment that fails is replaced: its step counts as truncated with reward
    0, its previous observation is the final one, and its next observation begins an episode.

    Attributes:
        num_envs: The number of environments.
        single_observation_space: The observation space of each environment, a `Dict`.
        single_action_space: The action space of each environment.
        restarts: How often environments were replaced, by cause.
    """

    num_envs: int
    single_observation_space: gym.Space
    single_action_space: gym.Space
    restarts: Counter[str]

    @property
    @abstractmethod
    def unplayed(self) -> list[int]:
        """Per environment, the number of the first episode of which no step was played."""

    @property
    @abstractmethod
    def playing(self) -> list[int]:
        """Per environment, the number of its current episode."""

    @abstractmethod
    def reset(self, counts: EpisodeCounts | None = None) -> None:
        """Begin new episodes in all environments; `recv` returns their first observations.

        Args:
            counts: The episode numbers from which the environments continue; None: after those
                begun last.
        """

    @abstractmethod
    def send(self, rows: NDArray[np.int64], action: Mapping[str, NDArray]) -> None:
        """Send actions to environments that wait for one.

        Args:
            rows: (k,) the environments' indices.
            action: Arrays with a leading axis of k, such as {"buttons": (k,), "camera": (k,)}.
        """

    @abstractmethod
    def recv(self, min_ready: int = 1) -> PoolStep:
        """Wait until environments are ready, and return the answers of all that are.

        Args:
            min_ready: How many to wait for. If fewer are playing, fewer are returned; environments
                that are being restarted are only waited for if there are no others.

        Raises:
            EnvPoolError: If an environment failed more often than is allowed.
        """

    @abstractmethod
    def close(self, **kwargs: Any) -> None:
        """Close all environments; may be called twice."""

    @property
    def observation_space(self) -> gym.Space:
        """The batched space of all environments, for RLlib."""
        return gym.vector.utils.batch_space(self.single_observation_space, self.num_envs)

    @property
    def action_space(self) -> gym.Space:
        """The batched space of all environments, for RLlib."""
        return gym.vector.utils.batch_space(self.single_action_space, self.num_envs)

    @property
    def unwrapped(self) -> EnvPool:
        """The pool itself, for RLlib."""
        return self


def copied(obs: Observations) -> Observations:
    """Return copies of all parts."""
    return {name: part.copy() for name, part in obs.items()}


# ------------------------------------------------------------------- summaries of finished episodes

DEFAULT_TASK = "default"
"""The task of episodes whose environment does not name one."""

MAX_ARRAY_SIZE = 64
"""Arrays with up to this many elements count as small."""


class Episode(NamedTuple):
    """A finished episode.

    Attributes:
        length: Number of steps.
        discounted_return: Return discounted by the pool's gamma.
        undiscounted_return: The sum of rewards.
        seconds: Wall time from the first observation to the last.
        task: Name of the task, from the info; `DEFAULT_TASK` if the info has none.
        success: Whether the task was solved; None if the info does not say.
        env_error: Why the environment failed, in one line, if that truncated the episode; else
            None.
        env_index: Index of the environment in the pool.
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
    """Accumulates the numbers of an episode while it runs; `info` is the reset's, plain."""

    def __init__(self, env_index: int, info: Mapping[str, Any]) -> None:
        self._env_index = env_index
        self._info = info
        self._length = 0
        self._discount = 1.0
        self._discounted_return = 0.0
        self._return = 0.0
        self._started = time.perf_counter()

    def add(self, reward: float, gamma: float) -> None:
        """Add one step."""
        self._length += 1
        self._return += reward
        self._discounted_return += self._discount * reward
        self._discount *= gamma

    def finish(self, info: dict[str, Any], env_error: str | None = None) -> Episode:
        """Return the finished episode; `info` is the last step's, plain."""
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


JUDGED_EPISODES = 20
"""How many of the last episodes are looked at to see whether errors have become the rule."""

_logger = logging.getLogger(__name__)


class CutShort:
    """Limits the share of episodes that exceptions within their environments cut short.

    Such an environment often plays on: `MineStudioEnv` builds a new engine. So neither the number
    of failures in a row nor that within an hour need ever be large, while most of what is learnt
    from ends in an error, such as one of a user's callback.

    Args:
        is_limited: Whether there is a limit. An evaluation has none: it repeats and reports
            episodes that were cut short, and must not lose the others.
    """

    def __init__(self, *, is_limited: bool) -> None:
        self.is_limited = is_limited
        self._last: deque[bool] = deque(maxlen=JUDGED_EPISODES)

    def note(self, episode: Episode, *, raised: bool) -> None:
        """Note the end of an episode.

        Args:
            episode: The episode.
            raised: Whether an exception ended it.

        Raises:
            EnvPoolError: Exceptions cut short more than half of the last `JUDGED_EPISODES`.
        """
        self._last.append(raised)
        count = sum(self._last)
        if (
            self.is_limited
            and raised
            and len(self._last) == JUDGED_EPISODES
            and count > JUDGED_EPISODES / 2
        ):
            raise EnvPoolError(
                f"Errors cut short {count} of the last {JUDGED_EPISODES} episodes, the last time: "
                f"{episode.env_error}. Nothing sensible can be learnt from these: correct what "
                "raises, most likely a callback of the environment."
            )


def log_survived(env_index: int, info: Mapping[str, Any]) -> str | None:
    """Warn of an exception that an environment says in an info to have survived, and return it."""
    for key, what in ((ENGINE_ERROR, "cut short an episode"), (RESET_ERROR, "delayed a reset")):
        if error := info.get(key):
            _logger.warning("An error %s of environment %d: %s", what, env_index, error)
            return str(error)
    return None


def plain_info(info: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the plain and small part of an info; the rest (frames, objects) is left out.

    Arrays of up to `MAX_ARRAY_SIZE` elements become lists.
    """
    told = plain(info, lambda _: OMITTED, integer_or_text, MAX_ARRAY_SIZE)  # slots are integers
    return {str(key): value for key, value in told.items()}


# -------------------------------------------------- the options of one environment, and its indices


class EnvConfig(dict[str, Any]):
    """An environment's options, like RLlib's EnvContext.

    RLlib's own class is not used, because the environments' processes must not import Ray.

    Attributes:
        worker_index: Index of the env runner; 0 for the local one.
        vector_index: Index of the environment in the env runner.
        num_workers: The number of remote env runners.
    """

    def __init__(
        self, options: Mapping[str, Any], *, worker_index: int, vector_index: int, num_workers: int
    ) -> None:
        super().__init__(options)
        self.worker_index = worker_index
        self.vector_index = vector_index
        self.num_workers = num_workers
