"""Environments in processes of their own, which may die or hang without harm to the others."""

from __future__ import annotations

import math
import selectors
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool.base import (
    EnvPool,
    EpisodeSource,
    Infos,
    PoolStep,
)
from rllib_minestudio.algorithms.env_pool.context import Outcome, PoolContext, State
from rllib_minestudio.algorithms.env_pool.env_process import Reaper
from rllib_minestudio.algorithms.env_pool.episode import Episode
from rllib_minestudio.algorithms.env_pool.supervised_env import CLOSE_WITHIN_S, SupervisedEnv
from rllib_minestudio.algorithms.options.env_pool import EnvPoolOptions
from rllib_minestudio.episode_seeds import EpisodeCounts
from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.observations import parts_of

CHECK_EVERY_S = 1.0
"""How often to see whether the processes still run."""
_UNDER_WAY = (State.STEPPING, State.RESETTING)
"""States that end soon; a start may take minutes."""
_NO_OUTCOME = Outcome(reward=0.0, terminated=False, truncated=False)


class ProcessEnvs(EnvPool):
    """One process per environment; observations come through shared memory.

    Building it takes until the first environment is ready; the others follow meanwhile.

    Args:
        make_envs: One constructor per environment, called in the environment's process; pickled
            with cloudpickle.
        gamma: Discount per step, for the episodes' discounted returns.
        options: Timeouts and limits.
        seed: What episodes derive from, with the environment's index and the episode's number.
        episode_source: Chooses seed and options of every reset instead.
        infos: Which infos every `PoolStep` tells.
        read: The outermost keys of observations that are carried; None: all.

    Raises:
        EnvPoolError: The environments cannot be built.
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
        """Start the processes; the environments are reset by `reset`."""
        self.num_envs = len(make_envs)
        self.restarts = Counter()
        self._episodes: list[Episode] = []
        self._selector = selectors.DefaultSelector()
        self._reaper = Reaper()
        self._is_closed = False
        self._checked = time.monotonic()
        self._tells = infos is not Infos.NONE
        context = PoolContext(
            options=options or EnvPoolOptions(),
            gamma=gamma,
            seed=seed,
            episode_source=episode_source,
            reaper=self._reaper,
            selector=self._selector,
            restarts=self.restarts,
            episodes=self._episodes,
            infos=infos,
            read=read,
        )
        makers = [cloudpickle.dumps((make, read)) for make in make_envs]
        self._envs = [SupervisedEnv(i, maker, context) for i, maker in enumerate(makers)]
        while not (built := [env.spaces for env in self._envs if env.spaces is not None]):
            self._wait()
        self.single_observation_space, self.single_action_space = built[0]
        parts = parts_of(self.single_observation_space, read)
        self._obs = {name: part.zeros(self.num_envs) for name, part in parts.items()}

    @property
    def pids(self) -> list[int | None]:
        """The environments' process ids; None where there is no process at the moment."""
        return [env.pid for env in self._envs]

    @property
    def unplayed(self) -> list[int]:
        """See `EnvPool.unplayed`."""
        return [env.episodes.unplayed for env in self._envs]

    @property
    def playing(self) -> list[int]:
        """See `EnvPool.playing`."""
        return [env.episodes.playing for env in self._envs]

    def reset(self, counts: EpisodeCounts | None = None) -> None:
        """Begin new episodes everywhere; see `EnvPool.reset`."""
        self._episodes.clear()
        with self._closing_on_error():
            for env in self._envs:
                env.reset(counts)

    def send(self, rows: NDArray[np.int64], action: Mapping[str, NDArray]) -> None:
        """Send actions; see `EnvPool.send`."""
        with self._closing_on_error():
            for k, row in enumerate(rows.tolist()):
                self._envs[row].step({name: values[k] for name, values in action.items()})

    def recv(self, min_ready: int = 1) -> PoolStep:
        """Take the answers of the environments that are ready; see `EnvPool.recv`."""
        self._wait(seconds=0.0)
        while True:
            states = [env.state for env in self._envs]
            num_ready = states.count(State.READY)
            soon = num_ready + sum(states.count(state) for state in _UNDER_WAY)
            if num_ready and num_ready >= min(min_ready, soon):
                return self._take([i for i, s in enumerate(states) if s is State.READY])
            self._wait()

    def close(self, **_: Any) -> None:
        """Close all environments, and kill those that do not close; may be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        for env in self._envs:
            env.close()
        deadline = time.monotonic() + CLOSE_WITHIN_S
        for env in self._envs:
            env.release(deadline)
        self._selector.close()
        self._reaper.close()

    def _wait(self, seconds: float = math.inf) -> None:
        """Handle what has happened, or the first that happens within some seconds."""
        with self._closing_on_error():
            now = time.monotonic()
            first = min(env.deadline for env in self._envs)
            seconds = max(0.0, min(seconds, first - now))
            if seconds == math.inf:
                raise RuntimeError("recv waits for environments that were sent no action.")
            # What has arrived counts, however late it is looked at: deadlines come second.
            for key, _ in self._selector.select(min(seconds, CHECK_EVERY_S)):
                env, process = key.data
                env.on_readable(process)
            now = time.monotonic()
            if now - self._checked >= CHECK_EVERY_S:
                self._checked = now
                for env in self._envs:
                    env.check()
            for env in self._envs:
                if env.deadline <= now:
                    env.on_deadline()

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Leave no processes behind when an environment cannot be run any more."""
        if self._is_closed:
            raise EnvPoolError("The pool of environments is closed.")
        try:
            yield
        except EnvPoolError:
            self.close()
            raise

    def _take(self, rows: list[int]) -> PoolStep:
        """Hand out the answers of environments that are ready."""
        envs = [self._envs[row] for row in rows]
        for row, env in zip(rows, envs, strict=True):
            for name, part in self._obs.items():
                part[row] = env.obs[name]
            env.state = State.HELD
        outcomes = [env.outcome or _NO_OUTCOME for env in envs]
        reward, terminated, truncated = zip(*outcomes, strict=True)
        episodes = self._episodes.copy()
        self._episodes.clear()
        return PoolStep(
            rows=np.array(rows, np.int64),
            obs=self._obs
            if len(rows) == self.num_envs
            else {name: part[rows] for name, part in self._obs.items()},
            answered=np.array([env.outcome is not None for env in envs]),
            reward=np.array(reward, np.float32),
            terminated=np.array(terminated),
            truncated=np.array(truncated),
            final_obs={
                row: env.final_obs
                for row, env in zip(rows, envs, strict=True)
                if env.final_obs is not None
            },
            episodes=episodes,
            infos={row: env.infos for row, env in zip(rows, envs, strict=True)}
            if self._tells
            else {},
        )
