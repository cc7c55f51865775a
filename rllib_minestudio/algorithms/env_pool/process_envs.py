"""Environments in processes of their own: the states of each, and what happens when it fails.

STARTING -> [IDLE ->] RESETTING -> READY -> HELD -> STEPPING -> READY -> ...
^                     ^                             |
|                     +---- the episode ended ------+-- and a restart is due --> CLOSING
+-- BACKOFF <-- it died, hung or raised, wherever it was                            |
+-----------------------------------------------------------------------------------+
"""

from __future__ import annotations

import contextlib
import enum
import logging
import math
import os
import selectors
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import cloudpickle
import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rllib_minestudio.algorithms.env_pool import process_handle
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
)
from rllib_minestudio.algorithms.env_pool.process_handle import (
    Disconnected,
    EnvProcess,
    Reaper,
    map_observation,
)
from rllib_minestudio.algorithms.options import EnvPoolOptions
from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts, NumberedEpisodes
from rllib_minestudio.foundation.names import ENGINE_ERROR
from rllib_minestudio.foundation.observations import parts_of
from rllib_minestudio.foundation.processes import DIED, FailureBudget

# ------------------------------------------------ states, and what the environments of a pool share


class State(enum.Enum):
    """The state of an environment."""

    STARTING = enum.auto()
    IDLE = enum.auto()
    """The environment is built, but the pool has not been reset yet."""
    RESETTING = enum.auto()
    STEPPING = enum.auto()
    READY = enum.auto()
    """The environment has answered."""
    HELD = enum.auto()
    """`recv` has returned its answer; it waits for an action."""
    BACKOFF = enum.auto()
    """There is no process until the deadline."""
    CLOSING = enum.auto()


class Outcome(NamedTuple):
    """The outcome of a step."""

    reward: float
    terminated: bool
    truncated: bool


class Spaces(NamedTuple):
    """The spaces of one environment."""

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
        selector: Waits for their messages; the data of its keys are (`SupervisedEnv`, its process).
        restarts: Counts restarts by cause.
        cut_short: Limits the share of episodes that exceptions cut short.
        episodes: Receives the episodes that ended.
        infos: Which infos are returned.
        read: The top-level observation keys to return; None: all.
    """

    options: EnvPoolOptions
    gamma: float
    seed: int
    episode_source: EpisodeSource | None
    reaper: Reaper
    selector: selectors.BaseSelector
    restarts: Counter[str]
    cut_short: CutShort
    episodes: list[Episode]
    infos: Infos
    read: Collection[str] | None


# -------------------------- the pool of processes, which may die or hang without harming the others

CHECK_EVERY_S = 1.0
"""How often to check that the processes still run."""
_UNDER_WAY = (State.STEPPING, State.RESETTING)
"""States that end soon, unlike a start, which may take minutes."""
_NO_OUTCOME = Outcome(reward=0.0, terminated=False, truncated=False)


class ProcessEnvs(EnvPool):
    """A pool with one process per environment; observations are passed in shared memory.

    The constructor returns when the first environment is built; the others are built meanwhile.
    Arguments that are not listed are as in `InlineEnvs`.

    Args:
        make_envs: One constructor per environment, pickled with cloudpickle and called in the
            environment's process.
        options: Timeouts and limits.

    Raises:
        EnvPoolError: If the environments cannot be built.
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
        """Start the processes, without resetting the environments."""
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
            cut_short=CutShort(is_limited=episode_source is None),
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
        """The environments' process ids; None where there is currently no process."""
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
        """Begin new episodes in all environments; see `EnvPool.reset`."""
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
        """Return the answers of the environments that are ready; see `EnvPool.recv`."""
        self._wait(seconds=0.0)
        while True:
            states = [env.state for env in self._envs]
            num_ready = states.count(State.READY)
            soon = num_ready + sum(states.count(state) for state in _UNDER_WAY)
            if num_ready and num_ready >= min(min_ready, soon):
                return self._take([i for i, s in enumerate(states) if s is State.READY])
            self._wait()

    def close(self, **_: Any) -> None:
        """Close all environments, and kill those that do not close in time; may be called twice."""
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
        """Handle all events that have happened, or wait up to `seconds` for the first."""
        with self._closing_on_error():
            now = time.monotonic()
            first = min(env.deadline for env in self._envs)
            seconds = max(0.0, min(seconds, first - now))
            if seconds == math.inf:
                raise RuntimeError("recv waits for environments that were sent no action.")
            # Messages before deadlines: an answer that has arrived counts, however late it is read.
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
        """Close the pool if an environment cannot be run any more, to leave no processes behind."""
        if self._is_closed:
            raise EnvPoolError("The pool of environments is closed.")
        try:
            yield
        except EnvPoolError:
            self.close()
            raise

    def _take(self, rows: list[int]) -> PoolStep:
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


# --------------------------------- how often an environment may fail, and the wait before a restart

HUNG_START = "hung_start"
HUNG_RESET = "hung_reset"
HUNG_STEP = "hung_step"
ERROR = "error"
"""The environment raised an exception, or survived one that cut its episode short."""
PERIODIC = "periodic"
"""`restart_interval` has passed; the only cause that is not a failure."""
CAUSES = (DIED, HUNG_START, HUNG_RESET, HUNG_STEP, ERROR, PERIODIC)

MAX_FAILED_STARTS = 5
"""Failures in a row, without a step in between, after which trying again is pointless."""
FIRST_DELAY_S, MAX_DELAY_S = 0.5, 60.0
"""First and longest wait before an attempt; each is twice the previous one."""

_logger = logging.getLogger(__name__)


def env_failures(env_index: int, max_per_hour: int, counts: Counter[str]) -> FailureBudget:
    """Return the failure budget of one environment, which counts restarts by cause in `counts`."""
    return FailureBudget(
        f"Environment {env_index}",
        EnvPoolError,
        max_per_hour=max_per_hour,
        option="env_pool.max_restarts_per_hour",
        max_in_a_row=MAX_FAILED_STARTS,
        first_delay_s=FIRST_DELAY_S,
        max_delay_s=MAX_DELAY_S,
        counts=counts,
    )


def log_restart(env_index: int, cause: str, what: str, delay_s: float) -> None:
    """Warn that an environment failed (for one of `CAUSES`), and is restarted after a delay."""
    _logger.warning(
        "Environment %d failed (%s) and is restarted%s: %s",
        env_index,
        cause,
        f" in {delay_s:g} s" if delay_s else "",
        what,
    )


CLOSE_WITHIN_S = 10.0
"""How long an environment may take to close before its process is killed."""


_HANGS = {
    State.STARTING: (HUNG_START, "start_timeout_s"),
    State.RESETTING: (HUNG_RESET, "reset_timeout_s"),
    State.STEPPING: (HUNG_STEP, "step_timeout_s"),
}
"""States with a time limit: the cause of failure if it is exceeded, and the option that sets it."""


class SupervisedEnv:
    """One environment of a pool, in a process that is replaced when it dies, hangs or fails.

    Args:
        index: The environment's index.
        maker: Its pickled constructor and `read`.
        context: What it shares with the pool's other environments.

    Attributes:
        state: Its state.
        deadline: When the state must have ended, or the next start is due; monotonic seconds.
        spaces: The environment's spaces; None until its first process is ready.
        obs: The newest observation; valid from the first READY on.
        outcome: Outcome of the last step; None if `obs` answers no action.
        final_obs: The final observation, if that step truncated an episode.
        infos: Infos of that step, and of the reset that followed.
        episodes: The environment's episode numbers.
    """

    def __init__(self, index: int, maker: bytes, context: PoolContext) -> None:
        self.spaces: Spaces | None = None
        self.obs: Observations = {}
        self.outcome: Outcome | None = None
        self.final_obs: Observations | None = None
        self.infos = StepInfos()
        self._index = index
        self._maker = maker
        self._context = context
        self._obs_fd = os.memfd_create(f"env_{index}")
        self._shared = self.obs
        self._failures = env_failures(
            index, context.options.max_restarts_per_hour, context.restarts
        )
        self._running = RunningEpisode(index, {})
        self._was_reset = False
        self._begins_anew = False
        self.episodes = NumberedEpisodes(index, EpisodeCounts(context.seed))
        self._process: EnvProcess | None = None
        self._start()

    @property
    def pid(self) -> int | None:
        """Id of the current process, if there is one."""
        return self._process.pid if self._process is not None else None

    # ---------------------------------------------------------------- requests of the pool

    def reset(self, counts: EpisodeCounts | None) -> None:
        """Begin a new episode as soon as possible; see `EnvPool.reset`."""
        self._was_reset = True
        if counts is not None:
            self.episodes = NumberedEpisodes(self._index, counts)
        self.outcome = self.final_obs = None
        self.infos = StepInfos()
        if self.state in (State.IDLE, State.READY, State.HELD):
            self._begin()
        else:
            self._begins_anew = True

    def step(self, action: Mapping[str, Any]) -> None:
        """Send an action."""
        self.outcome = self.final_obs = None
        self.infos = StepInfos()
        self.episodes.note_step()
        self._enter(State.STEPPING)
        self._send(process_handle.STEP, action, self._context.infos is Infos.STEPS)

    def close(self) -> None:
        """Ask the process to end."""
        if self._process is not None and self.state is not State.STARTING:
            self._enter(State.CLOSING, CLOSE_WITHIN_S)
            with contextlib.suppress(Disconnected):
                self._process.send(process_handle.CLOSE)

    def release(self, deadline: float) -> None:
        """End the process, if necessary by killing it after `deadline`, and free all resources."""
        if self._process is not None and self.state is State.CLOSING:
            self._process.wait(deadline - time.monotonic())
        self._kill()
        os.close(self._obs_fd)
        self._shared = self.obs  # drops the last reference to the mapping, which keeps a file open

    # ---------------------------------------------------------------- events

    def on_readable(self, process: EnvProcess) -> None:
        """Handle a message, or the end of the connection."""
        if process is not self._process:
            return  # it has just been replaced
        try:
            kind, *content = process.recv()
        except Disconnected:
            self._on_exit()
        else:
            _HANDLERS[kind](self, *content)

    def check(self) -> None:
        """Check that the process runs: its forks may keep the connection open after its end."""
        if self._process is not None and self._process.has_ended():
            self._on_exit()

    def on_deadline(self) -> None:
        """Handle the deadline of the current state."""
        if self.state in _HANGS:
            cause, option = _HANGS[self.state]
            seconds = getattr(self._context.options, option)
            what = f"it was still {self.state.name.lower()} after env_pool.{option}={seconds:g}"
            self._fail(cause, what)
        else:  # back-off, or a process that does not close
            self._kill()
            self._start()

    def _on_exit(self) -> None:
        process = self._process
        assert process is not None
        if self.state is State.CLOSING:
            self._kill()
            self._start()
        elif self.state in _HANGS:
            self._fail(DIED, f"its process {process.pid} {process.how_it_ended()}")
        else:
            process.ignore()  # no message is expected; the next `_send` will notice

    def _on_ready(self) -> None:
        assert self._process is not None
        spaces = Spaces(*self._process.spaces())
        if self.spaces is None:
            self.spaces = spaces
            parts = parts_of(spaces.observation, self._context.read)
            self._shared = map_observation(self._obs_fd, parts)
            self.obs = {name: part.zeros() for name, part in parts.items()}
        elif spaces != self.spaces:
            raise EnvPoolError(
                f"Environment {self._index} has other spaces than before it was restarted: "
                f"{spaces} instead of {self.spaces}."
            )
        if self._was_reset:
            self._begin()
        else:
            self._enter(State.IDLE)

    def _on_began(self, info: dict[str, Any]) -> None:
        if self._begins_anew:
            self._begin()
            return
        self._note_survived(info)
        self._read()
        self._running = RunningEpisode(self._index, info)
        self.infos = self.infos._replace(first=info)
        self._enter(State.READY)

    def _on_outcome(
        self, reward: float, terminated: bool, truncated: bool, info: dict[str, Any] | None
    ) -> None:
        self._failures.note_success()
        if self._begins_anew:
            self._begin()
            return
        ended = terminated or truncated
        self._read()
        self.outcome = Outcome(reward, terminated, truncated)
        self.infos = StepInfos(info)
        self._running.add(reward, self._context.gamma)
        if not ended:
            self._enter(State.READY)
            return
        self._end_episode(info or {})
        self._note_survived(info or {})
        if self._is_due():
            self._context.restarts[PERIODIC] += 1
            self.close()
        else:
            self._begin()

    def _on_failed(self, what: str, trace: str, is_users: bool) -> None:
        if is_users:
            raise EnvPoolError(f"Environment {self._index} cannot be run: {what}")
        self._fail(ERROR, f"{what}\n{trace}".rstrip())

    # ---------------------------------------------------------------- transitions

    def _start(self) -> None:
        self._started = time.monotonic()
        context = self._context
        self._process = EnvProcess(self._maker, self._obs_fd, context.reaper)
        self._process.listen(context.selector, data=(self, self._process))
        self._enter(State.STARTING)

    def _begin(self) -> None:
        self._begins_anew = False
        self._enter(State.RESETTING)
        if self._context.episode_source is None:
            self._send(process_handle.BEGIN, self.episodes.begin())
        else:
            self._send(process_handle.RESET, *self._context.episode_source(self._index))

    def _kill(self) -> None:
        """Kill the process, if there is one, and everything it has started."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _fail(self, cause: str, what: str) -> None:
        """Kill the process after a failure, and schedule the restart."""
        if self.state is State.STEPPING and not self._begins_anew:
            self.outcome = Outcome(reward=0.0, terminated=False, truncated=True)
            self._running.add(0.0, self._context.gamma)
            error = f"{cause}: {what.splitlines()[0]}"
            self.infos = StepInfos({}, env_error=error)
            self._end_episode({}, env_error=error, raised=cause == ERROR)
        self._kill()
        self._failures.note_failure(cause, what)
        delay_s = self._failures.delay_s
        log_restart(self._index, cause, what, delay_s)
        self._enter(State.BACKOFF, delay_s)

    def _note_survived(self, info: Mapping[str, Any]) -> None:
        """Count an exception that the environment has survived, if the info tells of one."""
        error = log_survived(self._index, info)
        if error and self._context.cut_short.is_limited:
            self._failures.note_failure(ERROR, error)

    def _end_episode(
        self, info: dict[str, Any], env_error: str | None = None, *, raised: bool = False
    ) -> None:
        assert self.outcome is not None
        if self.outcome.truncated and not self.outcome.terminated:
            self.final_obs = copied(self.obs)
        episode = self._running.finish(info, env_error)
        self._context.episodes.append(episode)
        self._context.cut_short.note(episode, raised=raised or ENGINE_ERROR in info)

    def _read(self) -> None:
        """Copy the newest observation from shared memory."""
        for name, part in self.obs.items():
            part[...] = self._shared[name]

    def _is_due(self) -> bool:
        interval = self._context.options.restart_interval
        return interval is not None and time.monotonic() - self._started >= interval

    def _enter(self, state: State, seconds: float = math.inf) -> None:
        if state in _HANGS:
            seconds = getattr(self._context.options, _HANGS[state][1])
        self.state = state
        self.deadline = time.monotonic() + seconds

    def _send(self, *message: Any) -> None:
        process = self._process
        assert process is not None
        try:
            process.send(*message)
        except Disconnected:
            self._fail(DIED, f"its process {process.pid} {process.how_it_ended()}")


_HANDLERS: dict[str, Callable[..., None]] = {
    process_handle.READY: SupervisedEnv._on_ready,
    process_handle.BEGAN: SupervisedEnv._on_began,
    process_handle.OUTCOME: SupervisedEnv._on_outcome,
    process_handle.FAILED: SupervisedEnv._on_failed,
}
