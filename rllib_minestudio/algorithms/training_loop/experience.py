"""Where the training loop gets its batches from: an env runner in this process, or remote ones.

Both keep what was played in a replay buffer in this process, and hand out samples of it.
`LocalExperience` plays when the buffer holds too little. `RemoteExperience`
(`remote_experience.py`) keeps remote runners playing all the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.experimental import get_object_locations
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from rllib_minestudio.algorithms import activity
from rllib_minestudio.algorithms.options.ppo import ReplayBufferOptions
from rllib_minestudio.algorithms.prior_latents import PriorWeights
from rllib_minestudio.algorithms.rollout_report import RolloutReport
from rllib_minestudio.algorithms.training_loop.loop_metrics import REPLAY_BUFFER_RESULTS
from rllib_minestudio.algorithms.training_loop.replay_buffer import ReplayBuffer, SampledFragment
from rllib_minestudio.algorithms.training_loop.rollout_starts import RolloutStarts

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
        """Begin without experience."""
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
            activity.stage("collecting: fragment", available, count, self.players)
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
        """Begin without experience."""
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
