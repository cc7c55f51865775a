"""Environments that are stepped one after the other in this process."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool.base import (
    CutShort,
    EnvPool,
    Episode,
    EpisodeSource,
    Infos,
    Observations,
    PoolStep,
    RunningEpisode,
    StepInfos,
    copied,
    log_survived,
    plain_info,
)
from rllib_minestudio.algorithms.env_pool.process_envs import ERROR, env_failures, log_restart
from rllib_minestudio.algorithms.options import EnvPoolOptions
from rllib_minestudio.errors import USER_ERRORS, describe_with_place
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts, NumberedEpisodes, begin_episode
from rllib_minestudio.foundation.names import ENGINE_ERROR
from rllib_minestudio.foundation.observations import parts_of, write_observation


class InlineEnvs(EnvPool):
    """A pool that runs environments in a plain loop: `send` stores the actions, `recv` plays them.

    An environment that raises an exception is replaced. One that hangs blocks the pool.

    Args:
        make_envs: One constructor per environment.
        gamma: Discount per step, for the episodes' discounted returns.
        options: Only `max_restarts_per_hour` is used here.
        seed: Determines the episodes, together with the environment's index and the episode's
            number.
        episode_source: Chooses the seed and options of every reset instead.
        infos: Which infos every `PoolStep` has.
        read: The top-level observation keys to return; None: all.
    """

    def __init__(
        self,
        make_envs: Sequence[Callable[[], gym.Env]],
        *,
        gamma: float,
        options: EnvPoolOptions | None = None,
        seed: int = 0,
        episode_source: EpisodeSource | None = None,
        infos: Infos = Infos.NONE,
        read: Collection[str] | None = None,
    ) -> None:
        options = options or EnvPoolOptions()
        self.restarts = Counter()
        self._make_envs = make_envs
        self.envs = [make() for make in make_envs]
        self.num_envs = len(self.envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self._gamma = gamma
        self._episode_source = episode_source
        self._count_from(EpisodeCounts(seed))
        n, parts = self.num_envs, parts_of(self.single_observation_space, read)
        self._obs = {name: part.zeros(n) for name, part in parts.items()}
        # Indexing with `...` returns views, so that 0-d parts can be written too.
        self._slots = [{name: a[i, ...] for name, a in self._obs.items()} for i in range(n)]
        self._reward = np.zeros(n, np.float32)
        self._terminated = np.zeros(n, np.bool_)
        self._truncated = np.zeros(n, np.bool_)
        self._answered = np.zeros(n, np.bool_)
        self._running = [RunningEpisode(i, {}) for i in range(n)]
        self._failures = [
            env_failures(i, options.max_restarts_per_hour, self.restarts) for i in range(n)
        ]
        self._cut_short = CutShort(is_limited=episode_source is None)
        self._actions: dict[int, Mapping[str, Any] | None] = {}
        self._closed = False
        self._infos = infos
        self._told: dict[int, StepInfos] = {}

    @property
    def unplayed(self) -> list[int]:
        """See `EnvPool.unplayed`."""
        return [episodes.unplayed for episodes in self._episodes]

    @property
    def playing(self) -> list[int]:
        """See `EnvPool.playing`."""
        return [episodes.playing for episodes in self._episodes]

    def reset(self, counts: EpisodeCounts | None = None) -> None:
        """Begin new episodes in all environments; see `EnvPool.reset`."""
        if counts is not None:
            self._count_from(counts)
        self._actions = dict.fromkeys(range(self.num_envs))

    def send(self, rows: NDArray[np.int64], action: Mapping[str, NDArray]) -> None:
        """Store the actions; see `EnvPool.send`."""
        for k, i in enumerate(rows.tolist()):
            self._actions[i] = {name: values[k] for name, values in action.items()}

    def recv(self, min_ready: int = 1) -> PoolStep:
        """Play all actions that were sent; see `EnvPool.recv`."""
        rows = np.array(sorted(self._actions), np.int64)
        final_obs: dict[int, Observations] = {}
        episodes: list[Episode] = []
        self._told = {}
        for i in rows.tolist():
            action = self._actions.pop(i)
            self._answered[i] = action is not None
            if action is None:
                self._begin(i)
            else:
                self._step(i, action, final_obs, episodes)
        everything = len(rows) == self.num_envs
        take: Any = slice(None) if everything else rows  # a slice does not copy
        return PoolStep(
            rows,
            {name: part[take] for name, part in self._obs.items()},
            self._answered[take],
            self._reward[take],
            self._terminated[take],
            self._truncated[take],
            final_obs,
            episodes,
            self._told,
        )

    def close(self, **_: Any) -> None:
        """Close all environments; may be called twice."""
        if not self._closed:
            self._closed = True
            for env in self.envs:
                env.close()

    # ---------------------------------------------------------------- one environment

    def _count_from(self, counts: EpisodeCounts) -> None:
        self._episodes = [NumberedEpisodes(i, counts) for i in range(self.num_envs)]

    def _step(
        self,
        i: int,
        action: Mapping[str, Any],
        final_obs: dict[int, Observations],
        episodes: list[Episode],
    ) -> None:
        """Play one step, and begin the next episode if it ended the current one."""
        failed, info = None, {}
        self._episodes[i].note_step()
        try:
            obs, reward, terminated, truncated, info = self.envs[i].step(action)
            reward = float(reward)
            write_observation(self._slots[i], obs)
        except USER_ERRORS:
            raise
        except Exception as error:
            failed, info = describe_with_place(error), {}
            reward, terminated, truncated = 0.0, False, True
            self._replace(i, error)
        else:
            self._failures[i].note_success()
        self._reward[i] = reward
        self._terminated[i] = terminated
        self._truncated[i] = truncated
        self._running[i].add(reward, self._gamma)
        ended = terminated or truncated
        if self._infos is Infos.STEPS or (ended and self._infos is Infos.EPISODES):
            self._told[i] = StepInfos(plain_info(info), env_error=failed)
        elif self._infos is Infos.EPISODES:
            self._told[i] = StepInfos()
        if ended:
            if truncated and not terminated:
                final_obs[i] = copied(self._slots[i])
            episodes.append(self._running[i].finish(plain_info(info), failed))
            raised = failed is not None or ENGINE_ERROR in info
            self._cut_short.note(episodes[-1], raised=raised)
            self._note_survived(i, info)
            self._begin(i)

    def _begin(self, i: int) -> None:
        """Begin an episode; replace the environment as long as that fails."""
        while True:
            if self._episode_source is None:
                begin = partial(begin_episode, self.envs[i], self._episodes[i].begin())
            else:
                seed, options = self._episode_source(i)
                begin = partial(self.envs[i].reset, seed=seed, options=options)
            try:
                obs, info = begin()
                write_observation(self._slots[i], obs)
            except USER_ERRORS:
                raise
            except Exception as error:
                self._replace(i, error)
                continue
            self._note_survived(i, info)
            first = plain_info(info)
            self._running[i] = RunningEpisode(i, first)
            if self._infos is not Infos.NONE:
                self._told[i] = self._told.get(i, StepInfos())._replace(first=first)
            return

    def _note_survived(self, i: int, info: Mapping[str, Any]) -> None:
        """Count an exception that an environment has survived, if the info tells of one."""
        error = log_survived(i, info)
        if error and self._cut_short.is_limited:
            self._failures[i].note_failure(ERROR, error)

    def _replace(self, i: int, error: Exception) -> None:
        """Rebuild the environment, with as many attempts as the failure budget allows."""
        while True:
            trace = "".join(traceback.format_exception(error)).rstrip()
            what = f"{describe_with_place(error)}\n{trace}"
            self._failures[i].note_failure(ERROR, what)
            delay_s = self._failures[i].delay_s
            log_restart(i, ERROR, what, delay_s)
            time.sleep(delay_s)
            try:
                self.envs[i].close()
                self.envs[i] = self._make_envs[i]()
                return
            except USER_ERRORS:
                raise
            except Exception as another:
                error = another
