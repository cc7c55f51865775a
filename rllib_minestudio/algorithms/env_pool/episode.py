"""What is kept of an episode when it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from rllib_minestudio.episode_info import ENGINE_ERROR, SUCCESS, TASK
from rllib_minestudio.plain_values import OMITTED, integer_or_text, plain

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
        """Begin the episode now."""
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
