"""Where the training loop gets its batches from: an env runner in this process, or remote ones.

Both play, keep what was played in a replay buffer, and hand out samples of it. `PlayedHere` plays
when more is needed. `PlayedElsewhere` keeps remote runners playing all the time: they wait for
nobody, unless the buffer is full or no staleness is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ray
from ray.exceptions import RayError
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from rllib_minestudio.algorithms.prior_latents import PriorWeights
from rllib_minestudio.algorithms.rollout import RolloutReport
from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer, Sample
from rllib_minestudio.algorithms.training_loop.replay_buffer_actor import RemoteReplayBuffer
from rllib_minestudio.algorithms.training_loop.rollout_requests import RolloutRequests
from rllib_minestudio.algorithms.training_loop.weights import WeightsPublisher

HARVEST_WITHIN_S = 0.5
"""How long to wait at most for the next rollout before looking at everything else again."""

OnReport = Callable[[RolloutReport], None]


class Experience(Protocol):
    """What the training loop needs of its experience.

    Attributes:
        replay_buffer: What was played and may still be trained on.
    """

    replay_buffer: Any

    @property
    def meanwhile(self) -> Callable[[float], None] | None:
        """What is to be called while a learner trains, or None for nothing."""

    def sample(self, count: int) -> list[Sample[Any]]:
        """A batch, as soon as there are enough fragments for it."""

    def sample_ahead(self, count: int, lead: int) -> list[Sample[Any]]:
        """A batch that will be trained on `lead` versions later; empty if there are too few."""

    def discard_lost(self, samples: Sequence[Sample[Any]]) -> None:
        """Forget those samples whose data are gone."""

    def publish(self, version: int, module_state: Any) -> None:
        """Give new weights to the runners, and their version to the buffer."""

    def bring_up_to_date(self, runner: Any) -> None:
        """Load the weights published last into the env runner of this process."""

    def published(self) -> Any:
        """The state of the module that was published last."""

    def set_prior(self, weights: PriorWeights) -> None:
        """Give the prior's weights to the runners, together with the next `publish`."""

    def forget(self) -> None:
        """Do away with all that was played: training goes on from somewhere else."""

    def take_restored(self) -> list[int]:
        """Indices of the env runners that are back since the last call."""

    def metrics(self) -> dict[tuple[str, ...], float]:
        """What is known of runners and buffer."""

    def stop(self) -> None:
        """End whatever was started."""


class PlayedHere:
    """Experience of an env runner in this process, played when it is needed.

    Args:
        runner: The env runner.
        limits: Of the replay buffer.
        on_report: Gets the report of every rollout.
        learns_here: Whether the learner is in this process as well; otherwise fragments go into
            the object store.
    """

    meanwhile: Callable[[float], None] | None = None

    def __init__(
        self, runner: Any, limits: dict[str, int], on_report: OnReport, *, learns_here: bool
    ) -> None:
        """Begin without experience."""
        self.replay_buffer: ReplayBuffer[Any] = ReplayBuffer(**limits)
        self._runner = runner
        self._on_report = on_report
        self._learns_here = learns_here

    def sample(self, count: int) -> list[Sample[Any]]:
        """Play until there are enough fragments."""
        while self.replay_buffer.available() < count:
            report, fragments = self._runner.sample()
            self._on_report(report)
            for fragment in fragments:
                payload = fragment if self._learns_here else ray.put(fragment)
                self.replay_buffer.add(
                    payload, key=fragment.key, weights_version=fragment.weights_version_min
                )
        return self.replay_buffer.sample(count)

    def sample_ahead(self, count: int, lead: int) -> list[Sample[Any]]:
        """What is there already, if it is enough."""
        enough = self.replay_buffer.available(lead) >= count
        return self.replay_buffer.sample(count, lead) if enough else []

    def discard_lost(self, samples: Sequence[Sample[Any]]) -> None:
        """Forget what is gone."""
        self.replay_buffer.discard(_lost(samples))

    def publish(self, version: int, module_state: Any) -> None:
        """Load the weights."""
        self.replay_buffer.set_version(version)
        self._runner.set_state({COMPONENT_RL_MODULE: module_state, WEIGHTS_SEQ_NO: version})

    def bring_up_to_date(self, runner: Any) -> None:
        """It has them: it plays."""

    def published(self) -> Any:
        """What it plays with."""
        return self._runner.module.get_state()

    def set_prior(self, weights: PriorWeights) -> None:
        """Load the prior's weights."""
        self._runner.set_prior(weights)

    def forget(self) -> None:
        """Empty the buffer."""
        self.replay_buffer.clear()

    def take_restored(self) -> list[int]:
        """None: it cannot be lost alone."""
        return []

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Of the buffer."""
        return _named("replay_buffer", self.replay_buffer.metrics())

    def stop(self) -> None:
        """Nothing was started."""


class PlayedElsewhere:
    """Experience of remote env runners, which play all the time.

    Args:
        requests: The calls to them.
        limits: Of the replay buffer.
        on_report: Gets the report of every rollout.
        fragments_per_iteration: As in the config.
        max_restarts_per_hour: As in the config.
    """

    def __init__(
        self,
        requests: RolloutRequests,
        limits: dict[str, int],
        on_report: OnReport,
        *,
        fragments_per_iteration: int,
        max_restarts_per_hour: int,
    ) -> None:
        """Start the actors for buffer and weights; playing begins with the first sample."""
        self.requests = requests
        self.replay_buffer = RemoteReplayBuffer(limits, max_restarts_per_hour)
        self.weights = WeightsPublisher(max_restarts_per_hour)
        self._on_report = on_report
        self._count = fragments_per_iteration
        self._num_envs = requests.num_envs
        self._version = self._number_here = self._unreachable = 0
        # If no staleness is allowed, runners wait for the weights: nothing may straddle them.
        self._aligned = limits["max_staleness"] == 0

    def sample(self, count: int) -> list[Sample[Any]]:
        """Take in rollouts until there are enough fragments."""
        while True:
            samples = self.replay_buffer.sample(count)
            if samples:
                return samples
            self._exchange(HARVEST_WITHIN_S, waits=True)

    def sample_ahead(self, count: int, lead: int) -> list[Sample[Any]]:
        """What is there already, if it is enough."""
        return self.replay_buffer.sample(count, lead)

    def meanwhile(self, seconds: float) -> None:
        """Take in what has come, and keep the runners busy."""
        self._exchange(seconds, waits=False)

    def discard_lost(self, samples: Sequence[Sample[Any]]) -> None:
        """Forget what is gone."""
        self.replay_buffer.discard(_lost(samples))

    def publish(self, version: int, module_state: Any) -> None:
        """Announce the weights; the buffer is told first, lest it meet fragments of the future."""
        self._version = version
        self.replay_buffer.set_version(version)
        self.weights.publish(version, {COMPONENT_RL_MODULE: module_state, WEIGHTS_SEQ_NO: version})

    def bring_up_to_date(self, runner: Any) -> None:
        """Load what was published since the last call: who does not play pulls nothing."""
        newest = self.weights.newest(self._number_here)
        if newest is not None:
            runner.set_state(newest.state)
            self._number_here = newest.number

    def published(self) -> Any:
        """What the runners pull."""
        newest: Any = self.weights.newest(0)  # setup publishes, so there is one
        return newest.state[COMPONENT_RL_MODULE][DEFAULT_MODULE_ID]

    def set_prior(self, weights: PriorWeights) -> None:
        """Put the weights where the runners pull them from."""
        self.weights.set_prior(weights)

    def forget(self) -> None:
        """Empty the buffer, and do away with what is being played."""
        self.requests.make_void()
        self.replay_buffer.clear()

    def take_restored(self) -> list[int]:
        """Indices of the runners that are back."""
        restored, self.requests.restored = self.requests.restored, []
        return restored

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Of buffer, runners and actors."""
        parts = (self.requests, self.replay_buffer.service, self.weights.service)
        restarts = {name: n for part in parts for name, n in part.failures.metrics().items()}
        rollouts = {
            "rollouts_lost": self.requests.lost_calls,
            "rollouts_void": self.requests.void_calls,
            "rollouts_without_newest_weights": self._unreachable,
            "fragments_under_way": self.requests.fragments_under_way,
        }
        return {
            **_named("replay_buffer", {**self.replay_buffer.metrics(), **rollouts}),
            **_named("restarts", restarts),
        }

    def stop(self) -> None:
        """End runners and actors."""
        self.requests.stop()
        self.replay_buffer.stop()
        self.weights.stop()

    def _exchange(self, seconds: float, *, waits: bool) -> None:
        """Send calls and take in what has come back, waiting up to `seconds` for it.

        Args:
            seconds: At most.
            waits: Whether the learner found too little in the buffer, and waits for more.
        """
        self._send(waits=waits)
        stored = []
        for report, fragments in self.requests.harvest(seconds):
            self._on_report(report)
            self._unreachable += not report.weights_reachable
            # Begun before a rollback, and held back until after it.
            stored += [f for f in fragments if f.weights_version <= self._version]
        if stored:
            self.replay_buffer.add(stored)
            self._send(waits=False)

    def _send(self, *, waits: bool) -> None:
        held, coming = len(self.replay_buffer), self.requests.fragments_under_way
        room = self.replay_buffer.max_fragments - held - coming
        if self._aligned:
            missing = self._count - held - coming if waits else 0
            room = min(room, math.ceil(missing / self._num_envs) * self._num_envs)
        if waits and not coming:
            room = max(room, self._num_envs)  # what fills the buffer is of no use to the learner
        self.requests.send(self.weights.source(), room=room, aligned=self._aligned)


def _lost(samples: Sequence[Sample[Any]]) -> set[Any]:
    """Chunks that cannot be read any more."""
    lost = set()
    for sample in samples:
        try:
            ray.get(sample.payload)
        except RayError:
            lost.add(sample.chunk)
    return lost


def _named(group: str, values: dict[str, Any]) -> dict[tuple[str, ...], float]:
    return {(group, name): value for name, value in values.items()}
