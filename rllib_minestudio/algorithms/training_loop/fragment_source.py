"""The source of the training loop's batches: an env runner in this process, or remote ones.

Both kinds keep fragments in a replay buffer in this process, and return samples from it.
`LocalExperience` plays when the buffer holds too few fragments. `RemoteExperience` keeps remote
runners playing continuously.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import RayError
from ray.experimental import get_object_locations
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.fragment import RolloutReport, compress
from rllib_minestudio.algorithms.options import ReplayBufferOptions
from rllib_minestudio.algorithms.prior import PriorWeights
from rllib_minestudio.algorithms.reporting import REPLAY_BUFFER_RESULTS
from rllib_minestudio.algorithms.training_loop.learners import RESTARTS, restart_metrics
from rllib_minestudio.algorithms.training_loop.replay_buffer import (
    BufferCounts,
    ReplayBuffer,
    SampledFragment,
)
from rllib_minestudio.algorithms.training_loop.rollout_requests import (
    RolloutRequests,
    RolloutStarts,
)
from rllib_minestudio.algorithms.training_loop.weights import WeightsPublisher

OnReport = Callable[[RolloutReport], None]
Metrics = dict[tuple[str, ...], float]


class Experience(ABC):
    """Has fragments played, and returns batches of those that may be trained on.

    Args:
        limits: Limits of the replay buffer.
        capacity: Maximum number of fragments in the buffer.
        on_report: Called with the report of every rollout.
        starts: Where env runners begin.
        seed: Determines the order in which fragments are sampled.

    Attributes:
        replay_buffer: Fragments, or references to fragments in Ray's object store.
        starts: As given.
    """

    def __init__(
        self,
        limits: ReplayBufferOptions,
        on_report: OnReport,
        *,
        capacity: int,
        starts: RolloutStarts,
        seed: int,
    ) -> None:
        self.starts = starts
        self.replay_buffer: ReplayBuffer[Any] = ReplayBuffer(
            max_fragments=capacity,
            max_reuse=limits.max_reuse,
            max_staleness=limits.max_staleness,
            fragments_per_sequence=limits.fragments_per_chunk,
            seed=seed,
        )
        self._on_report = on_report

    # ---------------------------------------------------------------- batches

    def sample(self, count: int, iteration: int) -> list[SampledFragment[Any]]:
        """Return a batch for an iteration, as soon as there are enough fragments."""
        while (available := self.replay_buffer.available()) < count:
            reporting.stage("collecting: fragment", available, count, self.players)
            self._play()
        return self.replay_buffer.sample(count, iteration=iteration)

    def sample_ahead(self, count: int, iteration: int, lead: int) -> list[SampledFragment[Any]]:
        """Return a batch for a later iteration; empty if there are too few fragments.

        `lead` is by how many versions the weights will have advanced by then.
        """
        enough = self.replay_buffer.available(lead) >= count
        if not enough:
            return []
        return self.replay_buffer.sample(count, iteration=iteration, lead=lead)

    def discard_unreadable(self, samples: Sequence[SampledFragment[Any]]) -> None:
        """Remove samples whose data were lost with their node from the buffer."""
        lost = _unreadable([sample.payload for sample in samples])
        self.replay_buffer.discard({s.sequence for s in samples if s.payload in lost})

    @abstractmethod
    def _play(self) -> None:
        """Add fragments to the replay buffer, or wait a short time for some."""

    @property
    def players(self) -> Sequence[Any]:
        """The actors that play; empty if this process plays itself."""
        return ()

    @property
    def meanwhile(self) -> Callable[[float], None] | None:
        """A function to call repeatedly while a learner trains, or None."""
        return None

    # ---------------------------------------------------------------- weights

    @abstractmethod
    def publish(self, version: int, state: dict[str, Any] | ray.ObjectRef) -> None:
        """Pass new weights to the runners, and their version to the buffer.

        Args:
            version: The weights' version.
            state: The argument of `EnvRunner.set_state`, or a reference to it.
        """

    @abstractmethod
    def bring_up_to_date(self, runner: Any) -> None:
        """Load the weights published last into this process's env runner."""

    @abstractmethod
    def published(self) -> Any:
        """Return the module state that was published last."""

    @abstractmethod
    def set_prior(self, weights: PriorWeights) -> None:
        """Pass the prior's weights to the runners, together with the next `publish`."""

    # ---------------------------------------------------------------- the run

    def go_on_from(self, progress: dict[str, Any] | None) -> None:
        """Discard all fragments, because training continues from a restored state.

        Args:
            progress: The env runners' progress in that state, as from `RolloutStarts.get_state`.
                None if the checkpoint has none: the runners then continue where they are.
        """
        self.replay_buffer.clear()
        if progress is not None:
            self.starts.set_state(progress)

    def take_restored(self) -> list[int]:
        """Return the indices of env runners that came back since the last call."""
        return []

    def metrics(self) -> Metrics:
        """Return metrics of the buffer, and of remote runners."""
        return in_group(REPLAY_BUFFER_RESULTS, self.replay_buffer.metrics())

    @abstractmethod
    def stop(self) -> None:
        """Stop everything that this object has started."""


class LocalExperience(Experience):
    """Experience of an env runner in this process, which plays on demand.

    Arguments that are not listed are as in `Experience`.

    Args:
        runner: The env runner.
        has_local_learner: Whether the learner is also in this process; otherwise fragments are put
            into the object store.
        compress_observations: Whether they are compressed on their way there.
    """

    def __init__(
        self,
        runner: Any,
        limits: ReplayBufferOptions,
        on_report: OnReport,
        *,
        capacity: int,
        starts: RolloutStarts,
        has_local_learner: bool,
        compress_observations: bool = False,
        seed: int,
    ) -> None:
        super().__init__(limits, on_report, capacity=capacity, starts=starts, seed=seed)
        self._runner = runner
        self._has_local_learner = has_local_learner
        self._compress = compress_observations

    def _play(self) -> None:
        self._runner.begin_from(self.starts.of(0))
        report, fragments = self._runner.sample()
        self.starts.note(report)
        self._on_report(report)
        for fragment in fragments:
            payload = fragment
            if not self._has_local_learner:
                payload = ray.put(compress(fragment) if self._compress else fragment)
            self.replay_buffer.add(
                payload, key=fragment.key, weights_version=fragment.weights_version_min
            )

    def publish(self, version: int, state: dict[str, Any] | ray.ObjectRef) -> None:
        """Load the weights into the env runner."""
        self.replay_buffer.set_version(version)
        self._runner.set_state(ray.get(state) if isinstance(state, ray.ObjectRef) else state)

    def bring_up_to_date(self, runner: Any) -> None:
        """Do nothing: the env runner of this process is the one that plays."""

    def published(self) -> Any:
        """Return the state of the env runner's module, which `publish` loads."""
        return self._runner.module.get_state()

    def set_prior(self, weights: PriorWeights) -> None:
        """Load the prior's weights into the env runner."""
        self._runner.set_prior(weights)

    def stop(self) -> None:
        """Do nothing: nothing was started."""


def in_group(group: str, values: dict[str, Any]) -> Metrics:
    """Prefix metrics with the name of their group."""
    return {(group, name): value for name, value in values.items()}


def _unreadable(references: Sequence[ray.ObjectRef]) -> set[ray.ObjectRef]:
    """Return the references whose data were lost, without fetching large objects."""
    located = get_object_locations(list(references))
    lost = set()
    for reference in references:
        # An object without a location was lost, or is so small that this process holds it itself.
        if not located.get(reference, {}).get("node_ids"):
            try:
                ray.get(reference)
            except RayError:
                lost.add(reference)
    return lost


# ---------------------------------------- experience of remote env runners, which play continuously
# The fragments stay in Ray's object store, on the node where they were played. This process owns
# them, as results of its rollout calls, and keeps their references in its replay buffer: a fragment
# survives the death of the runner that played it, and dropping the reference frees its memory. It
# is lost only if its node is lost.

LOOK_EVERY = 500
"""Number of fragments after which to check how many were wasted."""
MUCH = 0.1
"""If more than this share was wasted, a warning is logged."""

HARVEST_WITHIN_S = 0.5
"""How long to wait for the next rollout before checking everything else again."""

_logger = logging.getLogger(__name__)


class RemoteExperience(Experience):
    """Experience of remote env runners.

    They wait if the buffer is full, if no staleness is allowed, or if they are too far ahead of the
    learner (see `Lead`). Arguments that are not listed are as in `Experience`.

    Args:
        requests: The calls to the env runners.
        fragments_per_iteration: As in the config.
        max_restarts_per_hour: As in the config.
    """

    def __init__(
        self,
        requests: RolloutRequests,
        limits: ReplayBufferOptions,
        on_report: OnReport,
        *,
        capacity: int,
        starts: RolloutStarts,
        fragments_per_iteration: int,
        max_restarts_per_hour: int,
        seed: int,
    ) -> None:
        """Start the weights actor; the runners start playing with the first `sample`."""
        super().__init__(limits, on_report, capacity=capacity, starts=starts, seed=seed)
        self.requests = requests
        self.weights = WeightsPublisher(max_restarts_per_hour)
        self._count = fragments_per_iteration
        self._num_envs = requests.num_envs
        self._lead = Lead(fragments_per_iteration, limits.max_staleness, step=requests.num_envs)
        self._version = self._number_here = self._unreachable = 0
        self._waste = Waste()
        # Without staleness, runners wait for new weights, so that no fragment spans two versions.
        self._aligned = limits.max_staleness == 0

    @property
    def players(self) -> list[Any]:
        """The env runners that are not lost."""
        return self.requests.actors()

    @property
    def meanwhile(self) -> Callable[[float], None]:
        """Receives finished rollouts and sends new calls, within the given seconds."""
        return self._exchange

    def publish(self, version: int, state: dict[str, Any] | ray.ObjectRef) -> None:
        """Announce the weights, which the runners pull."""
        self._version = version
        self.replay_buffer.set_version(version)
        self._waste.look_at(self.replay_buffer.counts)
        self._lead.follow()
        self.weights.publish(version, state)

    def bring_up_to_date(self, runner: Any) -> None:
        """Load new weights into this process's env runner, which does not play."""
        newest = self.weights.newest(self._number_here)
        if newest is not None:
            runner.set_state(newest.state)
            self._number_here = newest.number

    def published(self) -> Any:
        """Return the module state that the runners pull."""
        newest: Any = self.weights.newest(0)  # setup publishes, so there is one
        return newest.state[COMPONENT_RL_MODULE][DEFAULT_MODULE_ID]

    def set_prior(self, weights: PriorWeights) -> None:
        """Provide the prior's weights for the runners to pull."""
        self.weights.set_prior(weights)

    def go_on_from(self, progress: dict[str, Any] | None) -> None:
        """Also discard what is being played; see `Experience.go_on_from`."""
        self.requests.make_void()
        super().go_on_from(progress)

    def take_restored(self) -> list[int]:
        """Return the indices of runners that came back since the last call."""
        restored, self.requests.restored = self.requests.restored, []
        return restored

    def metrics(self) -> Metrics:
        """Return metrics of the buffer, the runners, and the weights actor."""
        rollouts = {
            "rollouts_lost": self.requests.lost_calls,
            "rollouts_void": self.requests.void_calls,
            "rollouts_without_newest_weights": self._unreachable,
            "fragments_under_way": self.requests.fragments_under_way,
        }
        restarts = {
            **restart_metrics("env_runner", self.requests.failures),
            **restart_metrics("weights", self.weights.failures),
        }
        return {
            **super().metrics(),
            **in_group(REPLAY_BUFFER_RESULTS, rollouts),
            **in_group(RESTARTS, restarts),
        }

    def stop(self) -> None:
        """Stop the runners and the weights actor."""
        self.requests.stop()
        self.weights.stop()

    def _play(self) -> None:
        self._exchange(HARVEST_WITHIN_S, learner_waits=True)

    def _exchange(self, seconds: float, *, learner_waits: bool = False) -> None:
        """Send calls and receive finished rollouts, waiting up to `seconds` for one.

        Args:
            seconds: Maximum time to wait.
            learner_waits: Whether the learner is waiting, because the buffer holds too little.
        """
        self._send(learner_waits=learner_waits)
        for report, references in self.requests.harvest(seconds):
            self.starts.note(report)
            self._on_report(report)
            self._unreachable += not report.weights_reachable
            for reference, (key, version) in zip(references, report.fragments, strict=True):
                # A version newer than the current one is from a rollout that was begun before a
                # rollback and arrived after it.
                if version <= self._version:
                    self.replay_buffer.add(reference, key=key, weights_version=version)
        lacks = not self._aligned and self.replay_buffer.available() < self._count
        self._send(learner_waits=learner_waits and lacks)

    def _send(self, *, learner_waits: bool) -> None:
        held, coming = len(self.replay_buffer), self.requests.fragments_under_way
        if self._aligned:
            missing = self._count - held - coming if learner_waits else 0
        else:
            missing = self._lead.allowed(learner_waits) - self.replay_buffer.unused - coming
        room = self.replay_buffer.max_fragments - held - coming
        room = min(room, math.ceil(max(0, missing) / self._num_envs) * self._num_envs)
        if learner_waits and not coming:
            room = max(room, self._num_envs)  # the buffer is full of what cannot be sampled
        source = self.weights.source()
        self.requests.send(source, self.starts, room=room, aligned=self._aligned)


class Lead:
    """How many fragments may be unused in the buffer or under way.

    While the learner trains on one iteration, one more iteration of fragments is enough, if the
    learner does not have to wait afterwards: what is played later is played with newer weights. If
    it waits, the lead grows, up to the point where fragments would become too stale before they are
    trained on: those of `max_staleness` iterations.

    Args:
        count: Fragments per iteration.
        max_staleness: As in the config.
        step: Number of fragments by which the lead changes per iteration.
    """

    def __init__(self, count: int, max_staleness: int, *, step: int) -> None:
        self._least, self._most = count, count * max(1, max_staleness)
        self._step = step
        self._fragments = count
        self._waited = False

    def allowed(self, learner_waits: bool) -> int:
        """Return the allowed number of fragments, and note whether the learner waits."""
        self._waited |= learner_waits
        # A waiting learner trains immediately on what arrives, so one more iteration is not too
        # stale. One more rollout, so that no runner idles while it waits for a slow or hung one.
        return self._most + self._least + self._step if learner_waits else self._fragments

    def follow(self) -> None:
        """Adapt the lead at the end of an iteration."""
        change = self._step if self._waited else -self._step
        self._fragments = min(max(self._fragments + change, self._least), self._most)
        self._waited = False


class Waste:
    """Warns once if many of the played fragments are never trained on."""

    def __init__(self) -> None:
        self._seen = BufferCounts()
        self._told = False

    def look_at(self, counts: BufferCounts) -> None:
        """Compare the counts with those at the last check, if enough fragments were added."""
        added = counts.added - self._seen.added
        never_sampled = counts.never_sampled - self._seen.never_sampled
        if self._told or added < LOOK_EVERY:
            return
        self._seen = replace(counts)
        if never_sampled > MUCH * added:
            self._told = True
            _logger.warning(
                "Of the last %d fragments from env runners, %d were dropped without being trained "
                "on, because they had become too stale (max_staleness) or found no room "
                "(max_fragments). Use fewer environments, which would train as much, or shorter "
                "fragments, or raise fragments_per_iteration or max_staleness.",
                added,
                never_sampled,
            )
