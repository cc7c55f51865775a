"""What the environments of a process pool share, and the words they use."""

from __future__ import annotations

import enum
import selectors
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import gymnasium as gym

from rllib_minestudio.algorithms.env_pool.base import EpisodeSource, Infos
from rllib_minestudio.algorithms.env_pool.env_process import Reaper
from rllib_minestudio.algorithms.env_pool.episode import Episode
from rllib_minestudio.algorithms.options.env_pool import EnvPoolOptions


class State(enum.Enum):
    """What an environment is doing."""

    STARTING = enum.auto()
    IDLE = enum.auto()
    """Built, while the pool was not reset yet."""
    RESETTING = enum.auto()
    STEPPING = enum.auto()
    READY = enum.auto()
    """Has answered."""
    HELD = enum.auto()
    """Its answer was handed out; it waits for an action."""
    BACKOFF = enum.auto()
    """Has no process until the deadline."""
    CLOSING = enum.auto()


class Outcome(NamedTuple):
    """What came of a step."""

    reward: float
    terminated: bool
    truncated: bool


class Spaces(NamedTuple):
    """Of one environment."""

    observation: gym.Space
    action: gym.Space


class PoolContext(NamedTuple):
    """What all environments of a pool share.

    Attributes:
        options: Timeouts and limits.
        gamma: Discount per step.
        seed: As in `InlineEnvs`.
        episode_source: As in `InlineEnvs`.
        reaper: Kills processes that outlive this one.
        selector: Waits for their answers; the data of its keys are (`SupervisedEnv`, its process).
        restarts: Counts them by cause.
        episodes: Takes the episodes that ended.
        infos: Which infos are told.
        read: The outermost keys of observations that are carried; None: all.
    """

    options: EnvPoolOptions
    gamma: float
    seed: int
    episode_source: EpisodeSource | None
    reaper: Reaper
    selector: selectors.BaseSelector
    restarts: Counter[str]
    episodes: list[Episode]
    infos: Infos
    read: Collection[str] | None
