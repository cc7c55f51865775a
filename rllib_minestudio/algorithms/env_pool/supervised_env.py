"""One environment of a process pool: what it is doing, and what becomes of it when it fails.

STARTING -> [IDLE ->] RESETTING -> READY -> HELD -> STEPPING -> READY -> ...
^                     ^                             |
|                     +---- the episode ended ------+---- and its time is up --> CLOSING
+-- BACKOFF <-- it died, hung or raised, wherever it was                            |
+-----------------------------------------------------------------------------------+
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from rllib_minestudio.algorithms.env_pool import channel, restarts
from rllib_minestudio.algorithms.env_pool.base import Infos, Observations, StepInfos, copied
from rllib_minestudio.algorithms.env_pool.channel import Disconnected
from rllib_minestudio.algorithms.env_pool.context import Outcome, PoolContext, Spaces, State
from rllib_minestudio.algorithms.env_pool.env_process import EnvProcess
from rllib_minestudio.algorithms.env_pool.episode import RunningEpisode
from rllib_minestudio.algorithms.env_pool.worker import map_observation
from rllib_minestudio.episode_seeds import EpisodeCounts, NumberedEpisodes
from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.failure_budget import DIED
from rllib_minestudio.observations import parts_of

CLOSE_WITHIN_S = 10.0
"""How long an environment may take to close before its process is killed."""


_HANGS = {
    State.STARTING: (restarts.HUNG_START, "start_timeout_s"),
    State.RESETTING: (restarts.HUNG_RESET, "reset_timeout_s"),
    State.STEPPING: (restarts.HUNG_STEP, "step_timeout_s"),
}
"""States that an environment must leave: what if it does not, and the option that says when."""


class SupervisedEnv:
    """One environment of a pool, in a process that is replaced when it dies, hangs or fails.

    Args:
        index: Of the environment.
        maker: Its pickled constructor, and what is read of observations.
        context: What it shares.

    Attributes:
        state: What it is doing.
        deadline: When it must have done so, or is to be started; monotonic seconds.
        spaces: Of the environment; None until its first process is ready.
        obs: The newest observation; from READY on.
        outcome: Of the step that was answered last; None if `obs` answers no action.
        final_obs: If that step truncated an episode, what it saw last.
        infos: What came with that step, and with the reset that followed.
        episodes: Those of this environment.
    """

    def __init__(self, index: int, maker: bytes, context: PoolContext) -> None:
        """Start the first process."""
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
        self._failures = restarts.env_failures(
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
        """Of the present process, if there is one."""
        return self._process.pid if self._process is not None else None

    # ---------------------------------------------------------------- what the pool wants

    def reset(self, counts: EpisodeCounts | None) -> None:
        """Begin a new episode as soon as the environment can; see `EnvPool.reset`."""
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
        self._send(channel.STEP, action, self._context.infos is Infos.STEPS)

    def close(self) -> None:
        """Ask the process to end."""
        if self._process is not None and self.state is not State.STARTING:
            self._enter(State.CLOSING, CLOSE_WITHIN_S)
            with contextlib.suppress(Disconnected):
                self._process.send(channel.CLOSE)

    def release(self, deadline: float) -> None:
        """End the process, if need be after `deadline`; nothing can be asked of it afterwards."""
        if self._process is not None and self.state is State.CLOSING:
            self._process.wait(deadline - time.monotonic())
        self._kill()
        os.close(self._obs_fd)
        self._shared = self.obs  # the last reference to the mapping, which holds a file open, too

    # ---------------------------------------------------------------- what happens

    def on_readable(self, process: EnvProcess) -> None:
        """Take in a message, or the end of the connection."""
        if process is not self._process:
            return  # it was replaced a moment ago
        try:
            kind, *content = process.recv()
        except Disconnected:
            self._on_exit()
        else:
            _HANDLERS[kind](self, *content)

    def check(self) -> None:
        """Look after the process: what it has forked may keep the connection open without it."""
        if self._process is not None and self._process.has_ended():
            self._on_exit()

    def on_deadline(self) -> None:
        """The time for what it was doing is up."""
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
            process.ignore()  # nothing is expected of it; `_send` will notice

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
        if self._is_due():
            self._context.restarts[restarts.PERIODIC] += 1
            self.close()
        else:
            self._begin()

    def _on_failed(self, what: str, trace: str, is_users: bool) -> None:
        if is_users:
            raise EnvPoolError(f"Environment {self._index} cannot be run: {what}")
        self._fail(restarts.ERROR, f"{what}\n{trace}".rstrip())

    # ---------------------------------------------------------------- from state to state

    def _start(self) -> None:
        self._started = time.monotonic()
        context = self._context
        self._process = EnvProcess(self._maker, self._obs_fd, context.reaper)
        self._process.listen(context.selector, data=(self, self._process))
        self._enter(State.STARTING)

    def _begin(self) -> None:
        """Begin an episode."""
        self._begins_anew = False
        self._enter(State.RESETTING)
        if self._context.episode_source is None:
            self._send(channel.BEGIN, self.episodes.begin())
        else:
            self._send(channel.RESET, *self._context.episode_source(self._index))

    def _kill(self) -> None:
        """End the process, if there is one, and all it has started."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _fail(self, cause: str, what: str) -> None:
        """Note that the process is of no use any more, and when there shall be another."""
        if self.state is State.STEPPING and not self._begins_anew:
            self.outcome = Outcome(reward=0.0, terminated=False, truncated=True)
            self._running.add(0.0, self._context.gamma)
            error = f"{cause}: {what.splitlines()[0]}"
            self.infos = StepInfos({}, env_error=error)
            self._end_episode({}, env_error=error)
        self._kill()
        self._failures.note_failure(cause, what)
        delay_s = self._failures.delay_s
        restarts.log_restart(self._index, cause, what, delay_s)
        self._enter(State.BACKOFF, delay_s)

    def _end_episode(self, info: dict[str, Any], env_error: str | None = None) -> None:
        assert self.outcome is not None
        if self.outcome.truncated and not self.outcome.terminated:
            self.final_obs = copied(self.obs)
        self._context.episodes.append(self._running.finish(info, env_error))

    def _read(self) -> None:
        """Take the newest observation over from shared memory."""
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
    channel.READY: SupervisedEnv._on_ready,
    channel.BEGAN: SupervisedEnv._on_began,
    channel.OUTCOME: SupervisedEnv._on_outcome,
    channel.FAILED: SupervisedEnv._on_failed,
}
