"""Evaluation of foreign agents; the counterpart of `EvaluationEnvRunner`, which plays policies.

A foreign agent may raise, hang, or return invalid actions. Any of these fails the current attempt
at an episode, and is reported with it. An agent that hangs is interrupted; if that does not help,
its process is ended, and the driver starts another and repeats the episode.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayTaskError
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.algorithms.env_pool.base import (
    DEFAULT_TASK,
    Episode,
    RunningEpisode,
    plain_info,
)
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents.user_agents import (
    LEAST_TO_MAKE_S,
    TIMEOUT_S,
    AgentMaker,
    AgentPlays,
    Watch,
)
from rllib_minestudio.errors import (
    AgentError,
    EnvRunnersLostError,
    InvalidActionError,
    InvalidOptionsError,
    MineStudioError,
    describe,
)
from rllib_minestudio.evaluation.env_runner import evaluated
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.evaluation_env import EvaluationEnv, make_evaluation_env
from rllib_minestudio.evaluation.request import (
    EpisodeSpec,
    Played,
    PlaySettings,
    StepCount,
    StepsPlayed,
    agent_seed,
)
from rllib_minestudio.foundation.names import POV
from rllib_minestudio.foundation.observations import IMAGE
from rllib_minestudio.foundation.processes import FailureBudget

# ---------------------- distribution of episodes among env runners, and collection of their results

RECOVERY_SECONDS = 300.0
"""How long Ray may take to restart an env runner before the evaluation goes on without it."""
_SECONDS_BETWEEN_PINGS = 0.5
_SECONDS_BETWEEN_LOOKS = 2.0
"""Between looks for env runners that have been silent for too long."""


def play_episodes(
    group: EnvRunnerGroup,
    count: int,
    settings: PlaySettings,
    weights: Any = None,
    prior: Any = None,
) -> Iterator[Played]:
    """Play episodes 0 to `count` - 1 and yield each as it ends, in no particular order.

    All episodes are played to their end, so short ones are not overrepresented. The episodes that
    an env runner had left when it died are repeated, by the same env runner once Ray has restarted
    it, or by another. One that reports no step for `sample_timeout_s` counts as hung, and is
    killed.

    Args:
        group: `EvaluationEnvRunner`s; the remote ones play if there are any, else the local one.
        count: Number of episodes.
        settings: How to play them.
        weights: The module's state; None keeps the env runners' present weights.
        prior: State of the frozen policy to which the KL divergence is recorded, or None.

    Raises:
        EnvRunnersLostError: No env runner is left.
        MineStudioError: An env runner gave up, for instance because an environment kept failing.
    """
    specs = [EpisodeSpec(index) for index in range(count)]
    actors = dict(group._worker_manager.actors())
    if not actors:
        yield from group.local_env_runner.play(specs, settings, weights, prior)
        return
    silence_s = group._remote_config.sample_timeout_s
    yield from play_on_actors(actors, specs, settings, weights, prior, silence_s=silence_s)


def play_on_actors(
    actors: Mapping[int, Any],
    specs: Sequence[EpisodeSpec],
    settings: PlaySettings,
    *shared: Any,
    silence_s: float,
) -> Iterator[Played]:
    """Play episodes on actors and yield each as it ends; see `play_episodes`.

    Args:
        actors: By index; each has a generator `play(specs, settings, *shared)` and a `ping()`.
        specs: Episodes to play.
        settings: How to play them.
        shared: Further arguments of `play`, the same for all actors.
        silence_s: Seconds without a word after which an actor counts as hung.

    Raises:
        EnvRunnersLostError: No actor is left.
        MineStudioError: An actor gave up.
    """
    references = [None if part is None else ray.put(part) for part in shared]
    played = _RemoteRunners(actors, settings, references, silence_s).play(specs)
    wants_steps = settings.tells_steps
    yield from (one for one in played if wants_steps or not isinstance(one, StepsPlayed))


@dataclass
class _Stream:
    """A `play` call in progress on an env runner, or a ping of one that is being restarted.

    Attributes:
        worker: Index of the env runner.
        specs: The episodes that it still has to play; None while Ray restarts it.
        deadline: Monotonic time by which it must have said something, or have been restarted.
    """

    worker: int
    specs: dict[int, EpisodeSpec] | None
    deadline: float


class _RemoteRunners:
    """Remote env runners, each with at most one streaming `play` call at a time."""

    def __init__(
        self,
        actors: Mapping[int, Any],
        settings: PlaySettings,
        shared: Sequence[ray.ObjectRef | None],
        silence_s: float,
    ) -> None:
        self._actors = actors
        self._settings = replace(settings, tells_steps=True)  # a sign of life every second
        self._shared = shared
        self._silence_s = silence_s
        self._streams: dict[Any, _Stream] = {}
        self._waiting: list[EpisodeSpec] = []
        self._idle = list(actors)

    def play(self, specs: Sequence[EpisodeSpec]) -> Iterator[Played]:
        self._waiting = list(specs)
        self._hand_out()
        while self._streams:
            streams = list(self._streams)
            for ready in ray.wait(streams, num_returns=1, timeout=_SECONDS_BETWEEN_LOOKS)[0]:
                stream = self._streams[ready]
                if stream.specs is None:
                    self._resume(ready, stream)
                else:
                    yield from self._advance(ready, stream, stream.specs)
            yield from self._look_for_hung()
        if self._waiting:
            raise EnvRunnersLostError(
                f"All {len(self._actors)} env runners of the evaluation were lost with "
                f"{len(self._waiting)} episodes left to play: see their logs."
            )

    def _hand_out(self) -> None:
        """Divide the waiting episodes among the env runners that have none."""
        shares = min(len(self._idle), len(self._waiting))
        if not shares:
            return
        waiting, self._waiting = self._waiting, []
        workers, self._idle = self._idle[:shares], self._idle[shares:]
        for share, worker in enumerate(workers):
            specs = waiting[share::shares]
            generator = (
                self._actors[worker]
                .play.options(num_returns="streaming")
                .remote(specs, self._settings, *self._shared)
            )
            self._streams[generator] = _Stream(
                worker,
                {spec.index: spec for spec in specs},
                time.monotonic() + self._silence_s,
            )

    def _advance(
        self, generator: Any, stream: _Stream, specs: dict[int, EpisodeSpec]
    ) -> Iterator[Played]:
        """Yield the next episode or message of a stream, or handle its end."""
        try:
            played = ray.get(next(generator))
        except StopIteration:
            del self._streams[generator]
            self._idle.append(stream.worker)
            self._hand_out()
        except RayTaskError as error:
            if isinstance(error.cause, MineStudioError):
                raise error.cause from error
            raise
        except RayActorError as error:
            yield from self._lose(generator, stream, specs, f"died ({error})")
        else:
            stream.deadline = time.monotonic() + self._silence_s
            if not isinstance(played, StepsPlayed):
                del specs[played.index]
            yield played

    def _look_for_hung(self) -> Iterator[Played]:
        """Kill env runners that have been silent for too long, and forget those that stay away."""
        now = time.monotonic()
        for reference, stream in list(self._streams.items()):
            # What has arrived counts, however late it is read.
            if now < stream.deadline or ray.wait([reference], timeout=0)[0]:
                continue
            if stream.specs is None:
                del self._streams[reference]
                self._tell_of_absence(stream.worker)
            else:
                ray.kill(self._actors[stream.worker], no_restart=False)
                what = f"hung (it reported no step for {self._silence_s:g} s)"
                yield from self._lose(reference, stream, stream.specs, what)

    def _lose(
        self, generator: Any, stream: _Stream, specs: dict[int, EpisodeSpec], what: str
    ) -> Iterator[Played]:
        """Have the episodes of an env runner repeated, and wait for it to be restarted."""
        del self._streams[generator]
        _logger.warning(
            "Env runner %d of the evaluation %s with %d episodes to go, which will be repeated.",
            *(stream.worker, what, len(specs)),
        )
        self._await(stream.worker, time.monotonic() + RECOVERY_SECONDS)
        yield from self._lost(specs.values())
        self._hand_out()

    def _await(self, worker: int, deadline: float) -> None:
        """Ping an env runner that died; the answer is awaited together with the streams."""
        ping = self._actors[worker].ping.remote()
        self._streams[ping] = _Stream(worker, None, deadline)

    def _resume(self, ping: Any, stream: _Stream) -> None:
        """Give a restarted env runner the waiting episodes, or go on without it."""
        del self._streams[ping]
        try:
            ray.get(ping)
        except ActorUnavailableError:
            if time.monotonic() < stream.deadline:
                time.sleep(_SECONDS_BETWEEN_PINGS)  # other runners' episodes wait in their streams
                self._await(stream.worker, stream.deadline)
            else:
                self._tell_of_absence(stream.worker)
        except RayActorError:
            self._tell_of_absence(stream.worker)
        else:
            self._idle.append(stream.worker)
            self._hand_out()

    def _tell_of_absence(self, worker: int) -> None:
        _logger.warning(
            "Env runner %d of the evaluation could not be restarted; the others go on.", worker
        )

    def _lost(self, specs: Any) -> Iterator[EvaluatedEpisode]:
        """Queue episodes for another attempt; yield as failed those with no attempts left."""
        for spec in specs:
            if spec.attempt < self._settings.max_attempts:
                self._waiting.append(spec.again())
            else:
                yield EvaluatedEpisode(
                    index=spec.index,
                    seed=self._settings.world_seed(spec),
                    task=DEFAULT_TASK,
                    length=0,
                    undiscounted_return=0.0,
                    attempts=spec.attempt,
                    error="its env runner died or hung",
                )


# ----- evaluation of foreign agents; the counterpart of `EvaluationEnvRunner`, which plays policies

LONGEST_START_S = 600.0
"""Beyond what its agent may take, how long a process may be silent: Minecraft takes minutes."""
FAILURES_IN_A_ROW = 10
"""Failures in a row after which a process stops playing, since the next attempts would fail too."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AgentOrder:
    """The agent that plays, and its environment.

    Attributes:
        agent: Maker of the agent.
        env: Cloudpickled function that makes the environment; None makes a `MineStudioEnv` with the
            options in `PlaySettings`.
        timeout_s: Seconds that the agent may take for an action.
        failures: Failures of the agent in a row after which a process stops playing.
        num_envs: Environments per process, for an agent that acts on batches.
        gpu: Whether the agent has a share of a GPU.
        trust: Whether a checkpoint that the agent consists of is trusted, whoever wrote it.
    """

    agent: AgentMaker
    env: bytes | None = None
    timeout_s: float = TIMEOUT_S
    failures: int = FAILURES_IN_A_ROW
    num_envs: int = 1
    gpu: bool = False
    trust: bool = False


@dataclass
class _Slot:
    """An environment, and the episode in it.

    Attributes:
        env: The environment; None until it is needed, and after it has failed.
        spec: The episode being played, or None.
        obs: The current observation.
        first: Whether `obs` begins the episode.
    """

    env: EvaluationEnv | None = None
    spec: EpisodeSpec | None = None
    running: RunningEpisode | None = None
    obs: Any = None
    first: bool = True


class AgentRunner:
    """A runner that plays episodes with a foreign agent, in this process or as an actor.

    Args:
        ends_hung: Whether to end the process if the agent hangs and cannot be interrupted. Only for
            actors, which are restarted.
    """

    def __init__(self, ends_hung: bool = False) -> None:
        self._slots: list[_Slot] = []
        self._built_for: tuple[Any, ...] | None = None
        self._agent: AgentPlays | None = None
        self._ordered: tuple[AgentOrder, bool] | None = None
        self._watch = Watch(ends_hung)

    def ping(self) -> None:
        """Return once the actor is running, also after a restart."""

    def play(
        self, specs: Sequence[EpisodeSpec], settings: PlaySettings, order: AgentOrder
    ) -> Iterator[Played]:
        """Play episodes, and yield each as it ends.

        An episode whose environment or agent fails is repeated, up to `settings.max_attempts`
        attempts.

        Args:
            specs: Episodes to play.
            settings: How to play them; `env_config` are the options of `MineStudioEnv`.
            order: The agent and its environment.

        Raises:
            InvalidOptionsError: The maker does not return an agent, or not an environment for one.
        """
        if (settings.env_config, order.env) != self._built_for:
            self.close()
            self._built_for = settings.env_config, order.env
        if (order, settings.deterministic) != self._ordered:
            self._ordered = order, settings.deterministic
            self._agent = AgentPlays(
                order.agent,
                deterministic=settings.deterministic,
                gpu=order.gpu,
                load=partial(
                    load_checkpoint,
                    deterministic=settings.deterministic,
                    gpu=order.gpu,
                    trust=order.trust,
                ),
            )
        self._settings, self._waiting = settings, deque(specs)
        self._failures = FailureBudget("the agent", AgentError, max_in_a_row=order.failures - 1)
        self._gave_up = ""
        self._slots = self._slots or [_Slot()]
        count = StepCount(settings)
        with self._watch():
            while self._waiting or any(slot.spec is not None for slot in self._slots):
                for slot in self._slots:
                    while slot.spec is None and self._waiting:
                        yield from self._begin(slot, self._waiting.popleft())
                playing = [slot for slot in self._slots if slot.spec is not None]
                for episode in self._step(playing) if playing else ():
                    self._watch.rest()
                    yield episode
                for told in count.add(len(playing)):
                    self._watch.rest()
                    yield told

    def close(self) -> None:
        """Close the environments; the next episode builds new ones."""
        slots, self._slots = self._slots, []
        for slot in slots:
            if slot.env is not None:
                slot.env.close()

    # ---------------------------------------------------------------- one step

    def _step(self, playing: list[_Slot]) -> Iterator[EvaluatedEpisode]:
        """Have the agent act in all environments, and step them."""
        try:
            actions = self._actions(playing)
        except AgentError as error:
            yield from self._agent_failed(playing, error)
            return
        self._failures.note_success()
        for slot, action in zip(playing, actions, strict=True):
            yield from self._advance(slot, action)

    def _actions(self, playing: list[_Slot]) -> list[Any]:
        """Return the agent's actions."""
        with self._watch.limit(self._order.timeout_s):
            if not self._playing.takes_batches:
                (slot,) = playing
                return [self._playing.act(slot.obs)]
            begins = np.array([slot.first for slot in playing])
            return self._playing.act_in_all([slot.obs for slot in playing], begins)

    @property
    def _order(self) -> AgentOrder:
        assert self._ordered is not None
        return self._ordered[0]

    @property
    def _playing(self) -> AgentPlays:
        assert self._agent is not None
        return self._agent

    def _advance(self, slot: _Slot, action: Any) -> Iterator[EvaluatedEpisode]:
        """Step one environment."""
        assert slot.env is not None and slot.running is not None and slot.spec is not None
        try:
            slot.obs, reward, terminated, truncated, info = slot.env.step(action)
        except InvalidOptionsError:
            raise
        except InvalidActionError as error:
            yield from self._agent_failed([slot], error)
            return
        except Exception as error:
            yield from self._env_failed(slot, describe(error), None)
            return
        slot.first = False
        slot.running.add(float(reward), gamma=1.0)
        if terminated or truncated:
            ended = slot.running.finish(plain_info(info))
            if ended.env_error is not None:
                yield from self._env_failed(slot, ended.env_error, ended)
            else:
                spec, slot.spec = slot.spec, None
                yield evaluated(spec, self._settings, ended, None)

    # ---------------------------------------------------------------- beginning

    def _begin(self, slot: _Slot, spec: EpisodeSpec) -> Iterator[EvaluatedEpisode]:
        """Reset the environment and the agent for an episode."""
        if self._gave_up:
            yield evaluated(spec, self._settings, None, self._gave_up)
            return
        slot.spec = spec
        settings = self._settings
        self._watch.rest()
        try:
            if slot.env is None:
                slot.env = self._built()
            slot.obs, info = slot.env.reset(
                seed=settings.world_seed(spec), options=settings.reset_options(spec)
            )
        except InvalidOptionsError:
            raise
        except Exception as error:
            yield from self._env_failed(slot, describe(error), None)
            return
        slot.running, slot.first = RunningEpisode(0, plain_info(info)), True
        try:
            self._begin_agent(slot.env, agent_seed(settings.seed, spec.index))
        except AgentError as error:
            yield from self._agent_failed([slot], error)

    def _begin_agent(self, env: gym.Env, seed: int) -> None:
        with self._watch.limit(max(self._order.timeout_s, LEAST_TO_MAKE_S)):
            self._playing.begin(env, seed)
        if self._playing.takes_batches:
            self._slots += [_Slot() for _ in range(self._order.num_envs - len(self._slots))]

    def _built(self) -> EvaluationEnv:
        """Build an environment.

        Raises:
            InvalidOptionsError: It is not an environment.
        """
        env = self._order.env
        if env is not None:
            return make_evaluation_env(lambda: ShowsFrames(cloudpickle.loads(env)()))
        options = {"seed": 0, **(self._settings.env_config or {})}
        return make_evaluation_env(lambda: MineStudioEnv(options))

    # ---------------------------------------------------------------- failures

    def _env_failed(
        self, slot: _Slot, error: str, ended: Episode | None
    ) -> Iterator[EvaluatedEpisode]:
        """Repeat the episode in a new environment, or yield it as failed."""
        env, slot.env = slot.env, None
        if env is not None:
            try:
                env.close()
            except Exception as again:
                error = f"{error}; closing it failed too: {describe(again)}"
        yield from self._failed(slot, error, ended)

    def _agent_failed(self, slots: list[_Slot], error: Exception) -> Iterator[EvaluatedEpisode]:
        """Repeat the episodes with a new agent, or yield them as failed."""
        told = str(error)
        self._playing.forget()
        try:
            self._failures.note_failure(type(error).__name__, told)
        except AgentError as too_often:
            self._gave_up = f"not played: {too_often}"
        for slot in slots:
            yield from self._failed(slot, told, None)

    def _failed(self, slot: _Slot, error: str, ended: Episode | None) -> Iterator[EvaluatedEpisode]:
        spec, slot.spec = slot.spec, None
        assert spec is not None
        if spec.attempt < self._settings.max_attempts and not self._gave_up:
            self._waiting.append(spec.again())
        else:
            yield evaluated(spec, self._settings, ended, error)


class AgentGroup:
    """Processes that play with a foreign agent; `play` starts them.

    Args:
        workers: Number of processes; 0 plays in this process, where an agent that hangs in compiled
            code cannot be ended.
        gpus: Share of a GPU for each process.
        restarts: How often a process that died is restarted.
    """

    def __init__(self, workers: int, *, gpus: float = 0.0, restarts: int = 3) -> None:
        self._workers, self._gpus, self._restarts = workers, gpus, restarts
        self._local: AgentRunner | None = None
        self._actors: dict[int, Any] = {}

    def play(self, episodes: int, settings: PlaySettings, order: AgentOrder) -> Iterator[Played]:
        """Play episodes 0 to `episodes` - 1 and yield each as it ends, in no particular order.

        Raises:
            InvalidOptionsError: There are not enough GPUs; see also `AgentRunner.play`.
            EnvRunnersLostError: No process is left.
        """
        specs = [EpisodeSpec(index) for index in range(episodes)]
        if not self._workers:
            self._local = self._local or AgentRunner()
            yield from self._local.play(specs, settings, order)
            return
        if not self._actors:
            require_gpu(self._gpus)
            kind = ray.remote(AgentRunner).options(
                num_cpus=1, num_gpus=self._gpus, max_restarts=self._restarts
            )
            count = min(self._workers, episodes)
            self._actors = {i + 1: kind.remote(ends_hung=True) for i in range(count)}
        silence_s = LONGEST_START_S + max(order.timeout_s, LEAST_TO_MAKE_S)
        yield from play_on_actors(self._actors, specs, settings, order, silence_s=silence_s)

    def stop(self) -> None:
        """End the processes; the next `play` starts new ones."""
        actors, self._actors = self._actors, {}
        local, self._local = self._local, None
        for actor in actors.values():
            ray.kill(actor)
        if local is not None:
            local.close()


def require_gpu(share: float) -> None:
    """Refuse a share of a GPU that Ray does not have, for which actors would wait forever.

    Raises:
        InvalidOptionsError: Ray has fewer GPUs.
    """
    if share > 0 and (known := ray.cluster_resources().get("GPU", 0.0)) < share:
        raise InvalidOptionsError(
            f"num_gpus is {share:g}, and Ray knows of {known:g} GPUs: set it to 0 to play on "
            "CPUs, or start Ray on a machine with GPUs."
        )


class ShowsFrames(gym.Wrapper):
    """A wrapper that gives any environment frames in `obs["image"]`, and a reset that takes a seed.

    Args:
        env: Environment with frames in `obs["image"]` or `info["pov"]`, uint8 (H, W, 3).

    Raises:
        InvalidOptionsError: `env` is not an environment.
    """

    def __init__(self, env: gym.Env) -> None:
        if not isinstance(env, gym.Env):
            raise InvalidOptionsError(
                f"env_generator made a {type(env).__name__}: it must be a gymnasium environment."
            )
        super().__init__(env)
        given = inspect.signature(env.reset).parameters
        any_name = any(p.kind is p.VAR_KEYWORD for p in given.values())
        self._takes = [name for name in ("seed", "options") if any_name or name in given]
        if "seed" not in self._takes:
            _logger.warning(
                "%s.reset takes no seed: its episodes do not depend on the evaluation's seed, and "
                "cannot be repeated.",
                type(env).__name__,
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        given = {"seed": seed, "options": options}
        obs, info = self.env.reset(**{name: given[name] for name in self._takes})
        return self._with_frame(obs, info), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._with_frame(obs, info), float(reward), terminated, truncated, info

    def _with_frame(self, obs: Any, info: Mapping[str, Any]) -> Any:
        if isinstance(obs, Mapping) and IMAGE in obs:
            return obs
        if POV in info:
            return {**(obs if isinstance(obs, Mapping) else {}), IMAGE: np.asarray(info[POV])}
        parts = f"a mapping of {', '.join(map(repr, obs))}" if isinstance(obs, Mapping) else (
            f"a {type(obs).__name__}"
        )  # fmt: skip
        raise InvalidOptionsError(
            f"env_generator made a {type(self.unwrapped).__name__}, whose observation is {parts}: "
            'frames must be in obs["image"] or info["pov"].'
        )


def load_checkpoint(
    env: gym.Env,
    checkpoint: str,
    *,
    deterministic: bool = False,
    gpu: bool = False,
    trust: bool = False,
) -> Any:
    """Load the policy of a checkpoint; torch is imported only here."""
    from rllib_minestudio.evaluation.inference import Policy

    place = "cuda" if gpu else "cpu"
    return Policy.load(checkpoint, env, deterministic=deterministic, device=place, trust=trust)
