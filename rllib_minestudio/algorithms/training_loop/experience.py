"""Where the training loop gets its batches from: an env runner in this process, or remote ones.

Both keep what was played in a replay buffer in this process, and hand out samples of it.
`LocalExperience` plays when the buffer holds too little. `RemoteExperience`
(`remote_experience.py`) keeps remote runners playing all the time.
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
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from rllib_minestudio.algorithms import reporting
from rllib_minestudio.algorithms.fragment import RolloutReport
from rllib_minestudio.algorithms.options import ReplayBufferOptions
from rllib_minestudio.algorithms.prior_latents import PriorWeights
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
    """Gets fragments played, and hands out batches of those that may be trained on.

    Args:
        limits: Of the replay buffer.
        capacity: Fragments that the buffer holds at most.
        on_report: Gets the report of every rollout.
        starts: Where env runners begin.
        seed: Of the order in which fragments are sampled.

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
        seed: int = 0,
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
        """A batch for an iteration, as soon as there are enough fragments for it."""
        while (available := self.replay_buffer.available()) < count:
            reporting.stage("collecting: fragment", available, count, self.players)
            self._play()
        return self.replay_buffer.sample(count, iteration=iteration)

    def sample_ahead(self, count: int, iteration: int, lead: int) -> list[SampledFragment[Any]]:
        """A batch for a later iteration; empty if there are too few fragments.

        Args:
            count: Fragments.
            iteration: The later one.
            lead: How many versions later the weights will be then.
        """
        enough = self.replay_buffer.available(lead) >= count
        if not enough:
            return []
        return self.replay_buffer.sample(count, iteration=iteration, lead=lead)

    def discard_unreadable(self, samples: Sequence[SampledFragment[Any]]) -> None:
        """Forget those samples whose data were lost with the node that held them."""
        lost = _unreadable([sample.payload for sample in samples])
        self.replay_buffer.discard({s.sequence for s in samples if s.payload in lost})

    @abstractmethod
    def _play(self) -> None:
        """Add fragments to the replay buffer, or wait a moment for some."""

    @property
    def players(self) -> Sequence[Any]:
        """The actors that play; none if this process does."""
        return ()

    @property
    def meanwhile(self) -> Callable[[float], None] | None:
        """What the learner's caller is to call while a learner trains; None for nothing."""
        return None

    # ---------------------------------------------------------------- weights

    @abstractmethod
    def publish(self, version: int, module_state: Any) -> None:
        """Give new weights to the runners, and their version to the buffer."""

    @abstractmethod
    def bring_up_to_date(self, runner: Any) -> None:
        """Load the weights published last into the env runner of this process."""

    @abstractmethod
    def published(self) -> Any:
        """The state of the module that was published last."""

    @abstractmethod
    def set_prior(self, weights: PriorWeights) -> None:
        """Give the prior's weights to the runners, together with the next `publish`."""

    # ---------------------------------------------------------------- the run

    def go_on_from(self, progress: dict[str, Any] | None) -> None:
        """Discard everything that was played: training goes on from another state.

        Args:
            progress: That of the env runners in this state, as `RolloutStarts.get_state` told it;
                None if the checkpoint does not say: then they play on.
        """
        self.replay_buffer.clear()
        if progress is not None:
            self.starts.set_state(progress)

    def take_restored(self) -> list[int]:
        """Indices of the env runners that are back since the last call."""
        return []

    def metrics(self) -> Metrics:
        """Metrics of the runners and of the buffer."""
        return in_group(REPLAY_BUFFER_RESULTS, self.replay_buffer.metrics())

    @abstractmethod
    def stop(self) -> None:
        """End what this object has started."""


class LocalExperience(Experience):
    """Experience of an env runner in this process, which plays when it is needed.

    Args:
        runner: The env runner.
        limits: Of the replay buffer.
        capacity: Fragments that the buffer holds at most.
        on_report: Gets the report of every rollout.
        starts: Where the env runner begins.
        has_local_learner: Whether the learner is in this process as well; otherwise fragments go
            into the object store.
        seed: Of the order in which fragments are sampled.
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
        seed: int = 0,
    ) -> None:
        super().__init__(limits, on_report, capacity=capacity, starts=starts, seed=seed)
        self._runner = runner
        self._has_local_learner = has_local_learner

    def _play(self) -> None:
        self._runner.begin_from(self.starts.of(0))
        report, fragments = self._runner.sample()
        self.starts.note(report)
        self._on_report(report)
        for fragment in fragments:
            payload = fragment if self._has_local_learner else ray.put(fragment)
            self.replay_buffer.add(
                payload, key=fragment.key, weights_version=fragment.weights_version_min
            )

    def publish(self, version: int, module_state: Any) -> None:
        """Load the weights."""
        self.replay_buffer.set_version(version)
        self._runner.set_state({COMPONENT_RL_MODULE: module_state, WEIGHTS_SEQ_NO: version})

    def bring_up_to_date(self, runner: Any) -> None:
        """Nothing to do: the env runner of this process is the one that plays."""

    def published(self) -> Any:
        """The state of the module in the env runner, which `publish` loads."""
        return self._runner.module.get_state()

    def set_prior(self, weights: PriorWeights) -> None:
        """Load the prior's weights."""
        self._runner.set_prior(weights)

    def stop(self) -> None:
        """Nothing was started."""


def in_group(group: str, values: dict[str, Any]) -> Metrics:
    """Metrics under the name of their group."""
    return {(group, name): value for name, value in values.items()}


def _unreadable(references: Sequence[ray.ObjectRef]) -> set[ray.ObjectRef]:
    """Those whose data were lost, found without fetching what is large."""
    located = get_object_locations(list(references))
    lost = set()
    for reference in references:
        # An object that lies nowhere was lost, or is so small that this process holds it itself.
        if not located.get(reference, {}).get("node_ids"):
            try:
                ray.get(reference)
            except RayError:
                lost.add(reference)
    return lost


# ---------------------------- experience of env runners in other processes, which play all the time
# The fragments stay in Ray's object store, on the node they were played on. This process owns them,
# as results of its rollout calls, and keeps their references in its replay buffer: neither the
# death of the runner that made a fragment nor a full buffer elsewhere takes it away while it is
# held here, and dropping the reference frees its memory. Only the loss of its node loses it.

LOOK_EVERY = 500
"""Fragments after which it is looked at how many were played in vain."""
MUCH = 0.1
"""A greater share of them is told."""

HARVEST_WITHIN_S = 0.5
"""How long to wait at most for the next rollout before looking at everything else again."""

_logger = logging.getLogger(__name__)


class RemoteExperience(Experience):
    """Experience of remote env runners.

    They wait if the buffer is full, if no staleness is allowed, or if they are ahead of the
    learner: see `Lead`.

    Args:
        requests: The calls to them.
        limits: Of the replay buffer.
        capacity: Fragments that the buffer holds at most.
        on_report: Gets the report of every rollout.
        starts: Where env runners begin.
        fragments_per_iteration: As in the config.
        max_restarts_per_hour: As in the config.
        seed: Of the order in which fragments are sampled.
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
        seed: int = 0,
    ) -> None:
        """Start the actor that hands out weights; playing begins with the first sample."""
        super().__init__(limits, on_report, capacity=capacity, starts=starts, seed=seed)
        self.requests = requests
        self.weights = WeightsPublisher(max_restarts_per_hour)
        self._count = fragments_per_iteration
        self._num_envs = requests.num_envs
        self._lead = Lead(fragments_per_iteration, limits.max_staleness, step=requests.num_envs)
        self._version = self._number_here = self._unreachable = 0
        self._waste = Waste()
        # If no staleness is allowed, runners wait for the weights: no fragment may be of two
        # versions.
        self._aligned = limits.max_staleness == 0

    @property
    def players(self) -> list[Any]:
        """The env runners that are well."""
        return self.requests.actors()

    @property
    def meanwhile(self) -> Callable[[float], None]:
        """Receive finished rollouts and send new calls; called with the seconds this may take."""
        return self._exchange

    def publish(self, version: int, module_state: Any) -> None:
        """Announce the weights, from where runners pull them."""
        self._version = version
        self.replay_buffer.set_version(version)
        self._waste.look_at(self.replay_buffer.counts)
        self._lead.follow()
        self.weights.publish(version, {COMPONENT_RL_MODULE: module_state, WEIGHTS_SEQ_NO: version})

    def bring_up_to_date(self, runner: Any) -> None:
        """Load what was published since the last call; this process plays nothing."""
        newest = self.weights.newest(self._number_here)
        if newest is not None:
            runner.set_state(newest.state)
            self._number_here = newest.number

    def published(self) -> Any:
        """The state of the module that the runners pull."""
        newest: Any = self.weights.newest(0)  # setup publishes, so there is one
        return newest.state[COMPONENT_RL_MODULE][DEFAULT_MODULE_ID]

    def set_prior(self, weights: PriorWeights) -> None:
        """Put the weights where the runners pull them from."""
        self.weights.set_prior(weights)

    def go_on_from(self, progress: dict[str, Any] | None) -> None:
        """Empty the buffer, and discard what is being played; see `Experience.go_on_from`."""
        self.requests.make_void()
        super().go_on_from(progress)

    def take_restored(self) -> list[int]:
        """Indices of the runners that are back."""
        restored, self.requests.restored = self.requests.restored, []
        return restored

    def metrics(self) -> Metrics:
        """Metrics of the buffer, of the runners, and of the weights' actor."""
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
        """End the runners and the weights' actor."""
        self.requests.stop()
        self.weights.stop()

    def _play(self) -> None:
        self._exchange(HARVEST_WITHIN_S, learner_waits=True)

    def _exchange(self, seconds: float, *, learner_waits: bool = False) -> None:
        """Send calls and receive finished rollouts, waiting up to `seconds` for one.

        Args:
            seconds: At most.
            learner_waits: Whether the learner found too little in the buffer, and waits for more.
        """
        self._send(learner_waits=learner_waits)
        for report, references in self.requests.harvest(seconds):
            self.starts.note(report)
            self._on_report(report)
            self._unreachable += not report.weights_reachable
            for reference, (key, version) in zip(references, report.fragments, strict=True):
                # A newer version than the present one is of a rollout that was begun before a
                # rollback and held back until after it.
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
            room = max(room, self._num_envs)  # the buffer is full, but of what cannot be sampled
        source = self.weights.source()
        self.requests.send(source, self.starts, room=room, aligned=self._aligned)


class Lead:
    """How many fragments may lie ready, never sampled, or be on their way.

    While the learner trains on an iteration's fragments, an iteration more is enough, if it does
    not have to wait afterwards: what is played later is played with newer weights. If it waits,
    runners get further ahead, up to where fragments would be too stale before their turn: those
    that begin now behind `max_staleness` iterations' others.

    Args:
        count: Fragments of an iteration.
        max_staleness: As in the config.
        step: Fragments by which the lead changes from iteration to iteration.
    """

    def __init__(self, count: int, max_staleness: int, *, step: int) -> None:
        self._least, self._most = count, count * max(1, max_staleness)
        self._step = step
        self._fragments = count
        self._waited = False

    def allowed(self, learner_waits: bool) -> int:
        """Fragments; noticed is whether the learner waits, after having found too few."""
        self._waited |= learner_waits
        # It trains at once on what it waits for, so an iteration more is not too stale. It is not
        # to wait for the slowest runner, or for one that hangs, while others idle: a rollout more.
        return self._most + self._least + self._step if learner_waits else self._fragments

    def follow(self) -> None:
        """Follow what the last iteration showed; it is over."""
        change = self._step if self._waited else -self._step
        self._fragments = min(max(self._fragments + change, self._least), self._most)
        self._waited = False


class Waste:
    """Tells once if much of what is played is never trained on."""

    def __init__(self) -> None:
        self._seen = BufferCounts()
        self._told = False

    def look_at(self, counts: BufferCounts) -> None:
        """Compare the counts with those of some hundred fragments ago."""
        added = counts.added - self._seen.added
        never_sampled = counts.never_sampled - self._seen.never_sampled
        if self._told or added < LOOK_EVERY:
            return
        self._seen = replace(counts)
        if never_sampled > MUCH * added:
            self._told = True
            _logger.warning(
                "Of the last %d fragments that env runners handed in, %d were dropped without "
                "being trained on, as they had become too stale (max_staleness) before their turn "
                "or found no room (max_fragments). Fewer environments would train as much, or "
                "shorter fragments, or more fragments_per_iteration or max_staleness.",
                added,
                never_sampled,
            )
