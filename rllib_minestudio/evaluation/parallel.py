"""Distribution of episodes among env runners, and collection of their results."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayTaskError
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_minestudio.algorithms.env_pool.base import DEFAULT_TASK
from rllib_minestudio.errors import EnvRunnersLostError, MineStudioError
from rllib_minestudio.evaluation.episode import EvaluatedEpisode
from rllib_minestudio.evaluation.request import EpisodeSpec, Played, PlaySettings, StepsPlayed

RECOVERY_SECONDS = 300.0
"""How long Ray may take to restart an env runner before the evaluation goes on without it."""
_SECONDS_BETWEEN_PINGS = 0.5

_logger = logging.getLogger(__name__)


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
    it, or by another.

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
    yield from play_on_actors(actors, specs, settings, weights, prior)


def play_on_actors(
    actors: Mapping[int, Any], specs: Sequence[EpisodeSpec], settings: PlaySettings, *shared: Any
) -> Iterator[Played]:
    """Play episodes on actors and yield each as it ends; see `play_episodes`.

    Args:
        actors: By index; each has a generator `play(specs, settings, *shared)` and a `ping()`.
        specs: Episodes to play.
        settings: How to play them.
        shared: Further arguments of `play`, the same for all actors.

    Raises:
        EnvRunnersLostError: No actor is left.
        MineStudioError: An actor gave up.
    """
    references = [None if part is None else ray.put(part) for part in shared]
    yield from _RemoteRunners(actors, settings, references).play(specs)


@dataclass
class _Stream:
    """A `play` call in progress on an env runner, or a ping of one that is being restarted.

    Attributes:
        worker: Index of the env runner.
        specs: The episodes that it still has to play; None while Ray restarts it.
        deadline: Monotonic time by which it must have been restarted.
    """

    worker: int
    specs: dict[int, EpisodeSpec] | None
    deadline: float = math.inf


class _RemoteRunners:
    """Remote env runners, each with at most one streaming `play` call at a time."""

    def __init__(
        self,
        actors: Mapping[int, Any],
        settings: PlaySettings,
        shared: Sequence[ray.ObjectRef | None],
    ) -> None:
        self._actors = actors
        self._settings = settings
        self._shared = shared
        self._streams: dict[Any, _Stream] = {}
        self._waiting: list[EpisodeSpec] = []

    def play(self, specs: Sequence[EpisodeSpec]) -> Iterator[Played]:
        for position, worker in enumerate(self._actors):
            self._start(worker, specs[position :: len(self._actors)])
        while self._streams:
            for ready in ray.wait(list(self._streams), num_returns=1)[0]:
                stream = self._streams[ready]
                if stream.specs is None:
                    self._resume(ready, stream)
                else:
                    yield from self._advance(ready, stream, stream.specs)
        if self._waiting:
            raise EnvRunnersLostError(
                f"All {len(self._actors)} env runners of the evaluation were lost with "
                f"{len(self._waiting)} episodes left to play: see their logs."
            )

    def _start(self, worker: int, specs: Sequence[EpisodeSpec]) -> None:
        if specs:
            generator = (
                self._actors[worker]
                .play.options(num_returns="streaming")
                .remote(list(specs), self._settings, *self._shared)
            )
            self._streams[generator] = _Stream(worker, {spec.index: spec for spec in specs})

    def _advance(
        self, generator: Any, stream: _Stream, specs: dict[int, EpisodeSpec]
    ) -> Iterator[Played]:
        """Yield the next episode or message of a stream, or handle its end."""
        try:
            played = ray.get(next(generator))
        except StopIteration:
            del self._streams[generator]
            waiting, self._waiting = self._waiting, []
            self._start(stream.worker, waiting)
        except RayTaskError as error:
            if isinstance(error.cause, MineStudioError):
                raise error.cause from error
            raise
        except RayActorError as error:
            del self._streams[generator]
            _logger.warning(
                "Env runner %d of the evaluation died with %d episodes to go, which will be "
                "repeated: %s",
                *(stream.worker, len(specs), error),
            )
            self._await(stream.worker, time.monotonic() + RECOVERY_SECONDS)
            yield from self._lost(specs.values())
        else:
            if not isinstance(played, StepsPlayed):
                del specs[played.index]
            yield played

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
        except RayActorError:
            _logger.warning(
                "Env runner %d of the evaluation could not be restarted.", stream.worker
            )
        else:
            waiting, self._waiting = self._waiting, []
            self._start(stream.worker, waiting)

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
                    error="its env runner died",
                )
