"""Rollout calls to remote env runners: sent ahead, harvested, or given up.

A rollout call has one result per fragment, owned by this process, so a fragment survives the death
of the runner that played it. Ray restarts a runner that dies; one that does not answer in time is
killed first. Either way its calls under way are lost, and the other runners continue.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

from rllib_minestudio.algorithms.fragment import RolloutReport, RolloutStart, RunnerProgress
from rllib_minestudio.algorithms.training_loop.learners import HUNG, part_failures
from rllib_minestudio.algorithms.training_loop.weights import WeightsSource
from rllib_minestudio.errors import EnvRunnersLostError
from rllib_minestudio.foundation.episode_seeds import derived_seed
from rllib_minestudio.foundation.processes import DIED

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_PINGS = 0.5
STARTS = 3
"""`env_runner_restore_timeout_s` may pass this many times without any runner. A runner has one such
period to start; if one were the limit, a runner that hangs in its start would end the run instead
of being replaced."""
STOP_WITHIN_S = 10.0
"""How long runners may take to close their environments before they are killed."""


class Harvest(NamedTuple):
    """The results of one rollout call: the report, and references to its fragments."""

    report: RolloutReport
    fragments: list[ray.ObjectRef]


class RolloutRequests:
    """Keeps rollout calls under way at every runner that is not lost.

    Args:
        actors: The runners by index.
        num_envs: Environments per runner, and so fragments per call.
        max_in_flight: Maximum number of calls under way per runner.
        timeout_s: How long a call may take before its runner counts as hung.
        restore_timeout_s: How long a lost runner may take to come back before it is restarted
            again. `STARTS` times this without any runner end the run.
        max_restarts_per_hour: How many failures of all runners within an hour are tolerated.

    Attributes:
        restored: Indices of runners that were lost and are back; the reader empties the list.
        lost_calls: Number of rollouts that were lost with their runner.
        void_calls: Number of rollouts that were discarded because of a rollback.
    """

    def __init__(
        self,
        actors: dict[int, Any],
        *,
        num_envs: int,
        max_in_flight: int,
        timeout_s: float,
        restore_timeout_s: float,
        max_restarts_per_hour: int,
    ) -> None:
        self._runners = [RemoteRunner(index, actor) for index, actor in actors.items()]
        self.num_envs = num_envs
        self._max_in_flight = max_in_flight
        self._timeout_s = timeout_s
        self._restore_timeout_s = restore_timeout_s
        self._last_well = time.monotonic()
        self.failures = part_failures("env runner", max_restarts_per_hour)
        self.restored: list[int] = []
        self.lost_calls = 0
        self.void_calls = 0

    @property
    def num_well(self) -> int:
        """Number of runners that are not lost."""
        return sum(runner.is_well for runner in self._runners)

    def actors(self) -> list[Any]:
        """Return the handles of the runners that are not lost."""
        return [runner.actor for runner in self._runners if runner.is_well]

    @property
    def fragments_under_way(self) -> int:
        """Number of fragments that the calls under way will return."""
        return self.num_envs * sum(len(runner.calls) for runner in self._runners)

    # ---------------------------------------------------------------- calls

    def send(
        self, weights: WeightsSource, starts: RolloutStarts, *, room: int, aligned: bool
    ) -> None:
        """Send calls, to runners with the fewest first, while there is room for their fragments.

        Args:
            weights: The source from which the runners pull weights.
            starts: Where runners begin that have not begun yet.
            room: Number of fragments that may be requested.
            aligned: As in `MineStudioEnvRunner.rollout`.
        """
        for depth in range(self._max_in_flight):
            for runner in self._runners:
                if runner.is_well and len(runner.calls) == depth:
                    if room < self.num_envs:
                        return
                    room -= self.num_envs
                    self._send(runner, weights, aligned, starts.of(runner.index))

    def harvest(self, timeout_s: float) -> list[Harvest]:
        """Return the finished calls; wait up to `timeout_s` if there are none yet.

        Raises:
            EnvRunnersLostError: If all runners have been lost for too long.
            PartLostError: If runners fail too often.
        """
        self._look_after_lost()
        reports = [call.report for runner in self._runners for call in runner.calls]
        if reports:
            ray.wait(reports, num_returns=1, timeout=timeout_s)
            ready = set(ray.wait(reports, num_returns=len(reports), timeout=0)[0])
        else:
            time.sleep(timeout_s)
            ready = set()
        return [harvest for runner in self._runners for harvest in self._harvest(runner, ready)]

    def make_void(self) -> None:
        """Discard the results of the calls under way, once they arrive."""
        for runner in self._runners:
            for call in runner.calls:
                call.void = True

    def stop(self) -> None:
        """Let the runners close their environments, and kill those that do not in time."""
        for runner in self._runners:
            for call in list(runner.calls)[1:]:
                ray.cancel(call.report)
        stopping = {runner.actor.stop.remote(): runner for runner in self._runners}
        _, late = ray.wait(list(stopping), num_returns=len(stopping), timeout=STOP_WITHIN_S)
        for call in late:
            ray.kill(stopping[call].actor)
        self._runners.clear()

    # ---------------------------------------------------------------- inside

    def _send(
        self, runner: RemoteRunner, weights: WeightsSource, aligned: bool, start: RolloutStart
    ) -> None:
        rollout = runner.actor.rollout.options(num_returns=self.num_envs + 1)
        report, *fragments = rollout.remote(weights, aligned, start)
        runner.note_call(RolloutCall(report, fragments))

    def _harvest(self, runner: RemoteRunner, ready: set[ray.ObjectRef]) -> Iterator[Harvest]:
        while runner.calls and runner.calls[0].report in ready:
            call = runner.calls[0]
            try:
                report = ray.get(call.report)
            except RayTaskError:  # an error of the runner, which would only recur
                raise
            except RayActorError:
                self._lose(runner, DIED)
                return
            except RayError:  # the report was lost with its node
                report = None
            runner.calls.popleft()
            runner.since = time.monotonic()
            self._last_well = runner.since
            if report is not None and report.instance_id != runner.instance_id:
                runner.instance_id = report.instance_id
                self._note_unseen(runner)
            if report is None:
                self.lost_calls += 1
            elif call.void:
                self.void_calls += 1
            else:
                yield Harvest(report, call.fragments)
        if runner.calls and time.monotonic() - runner.since > self._timeout_s:
            self._lose(runner, HUNG, f" ({self._timeout_s:g} s for a rollout)")

    def _lose(self, runner: RemoteRunner, cause: str, after: str = "") -> None:
        lost = len(runner.calls)
        runner.losses += 1
        self.lost_calls += lost
        runner.calls.clear()
        if cause == HUNG:
            runner.end()
        runner.since = time.monotonic()
        if runner.is_well:
            self._last_well = runner.since  # as far as is known; its time to restart begins now
        runner.ping()
        self._note_failure(
            cause,
            f"Env runner {runner.index} {cause}{after} and is restarted; {lost} rollouts under way "
            f"are lost, {self.num_well} of {len(self._runners)} env runners go on.",
        )

    def _start_again(self, runner: RemoteRunner) -> None:
        """Kill a runner that may hang in its start; no failure, as there may be no room for it."""
        logger.warning(
            "Env runner %d was not started within %g s; it is started again, %d of %d env runners "
            "go on.",
            runner.index,
            self._restore_timeout_s,
            self.num_well,
            len(self._runners),
        )
        runner.end()
        runner.losses += 1
        runner.since = time.monotonic()
        runner.ping()

    def _note_unseen(self, runner: RemoteRunner) -> None:
        """Note how often a runner was lost while it was idle or being started."""
        for _ in range(runner.take_unseen_losses()):
            self._note_failure(
                DIED,
                f"Env runner {runner.index} {DIED} while it was being started or had nothing to "
                "do; it is back, and no rollout is lost.",
            )

    def _note_failure(self, cause: str, what: str) -> None:
        """Count and log a failure.

        Raises:
            PartLostError: If there were too many.
        """
        self.failures.note_failure(cause, what)
        logger.warning("%s", what)

    def _look_after_lost(self) -> None:
        """Check which lost runners are back, and restart those that are late."""
        now = time.monotonic()
        for runner in self._runners:
            if runner.returning is None:
                continue
            is_late = now - runner.since > self._restore_timeout_s
            if not ray.wait([runner.returning], timeout=0)[0]:
                if is_late:
                    self._lose(runner, HUNG, f" ({self._restore_timeout_s:g} s to start)")
                continue
            try:
                ray.get(runner.returning)
                runner.returning = None
                self.restored.append(runner.index)
                self._last_well = now
            except ActorUnavailableError:  # Ray has not started it yet
                if is_late:
                    self._start_again(runner)
                elif now - runner.pinged > SECONDS_BETWEEN_PINGS:
                    runner.ping()
            except RayActorError as error:
                raise EnvRunnersLostError(
                    f"Env runner {runner.index} cannot be restarted: {error}"
                ) from error
        if not self.num_well and now - self._last_well > STARTS * self._restore_timeout_s:
            raise EnvRunnersLostError(
                f"None of the {len(self._runners)} env runners came back within {STARTS} times "
                f"env_runner_restore_timeout_s={self._restore_timeout_s:g}: see their logs, and "
                "check whether the cluster still has the CPUs and GPUs they need."
            )


# -------------------------------------------------------- a remote env runner as seen by the driver


@dataclass
class RolloutCall:
    """References to the results of one call.

    `void` if it was sent before a rollback, so that its results are useless.
    """

    report: ray.ObjectRef
    fragments: list[ray.ObjectRef]
    void: bool = False


@dataclass
class RemoteRunner:
    """What is known about a remote env runner.

    Attributes:
        index: RLlib's index of the runner, from 1.
        actor: Its handle.
        calls: Calls under way, oldest first.
        since: When the oldest call began, or when the runner was lost.
        returning: While the runner is lost: a call that it will answer when it is back.
        pinged: When that call was made; a call fails immediately until Ray has restarted the actor.
        instance_id: From its last report.
        starts: How often Ray had restarted it when `instance_id` last changed.
        losses: How often it was noticed to be lost, or killed, since then.
    """

    index: int
    actor: Any
    calls: deque[RolloutCall] = field(default_factory=deque)
    since: float = 0.0
    returning: ray.ObjectRef | None = None
    pinged: float = 0.0
    instance_id: str = ""
    starts: int = 0
    losses: int = 0

    @property
    def is_well(self) -> bool:
        """Whether the runner is not lost."""
        return self.returning is None

    def note_call(self, call: RolloutCall) -> None:
        """Record a call that was sent."""
        if not self.calls:
            self.since = time.monotonic()
        self.calls.append(call)

    def ping(self) -> None:
        """Make a call that it will answer when it is back."""
        self.returning = self.actor.ping.remote()
        self.pinged = time.monotonic()

    def end(self) -> None:
        """Kill its process, so that Ray starts another."""
        ray.kill(self.actor, no_restart=False)

    def take_unseen_losses(self) -> int:
        """Return how often it was lost without being noticed since the last call."""
        starts = _starts(self.actor)
        unseen = starts - self.starts - self.losses
        self.starts, self.losses = starts, 0
        return unseen


def _starts(actor: Any) -> int:
    """Return how often Ray has restarted an actor, as counted by its control service (GCS).

    `ray.util.state` would query the dashboard, which may not be running.
    """
    return int(ray._private.state.actors(actor._actor_id.hex())["NumRestarts"])


# -------------------------------------------------------------------------- where env runners begin
# A resumed run plays the episodes that come next, not its first ones again. Runners report their
# progress, and the newest reports are saved in a checkpoint. What a runner has played beyond its
# report counts as not played, because it was not trained on.


class RolloutStarts:
    """Tracks the progress of each env runner.

    Args:
        seed: The seed of the run's episodes.
        trial: Number of this trial in a search; None outside of one.
    """

    def __init__(self, seed: int, trial: int | None = None) -> None:
        self._seed = seed
        self._trial = trial
        self._is_copy = False
        self._restores = 0
        self._progress: dict[int, RunnerProgress] = {}

    def of(self, worker_index: int) -> RolloutStart:
        """Return where an env runner begins, if it has not begun."""
        # With the same seed, a copy of another trial would play the same episodes as that trial.
        seed = derived_seed(self._seed, self._trial or 0) if self._is_copy else self._seed
        progress = self._progress.get(worker_index, RunnerProgress())
        return RolloutStart(self._restores, seed, progress)

    def note(self, report: RolloutReport) -> None:
        """Store a runner's progress, if the runner began after the last restore."""
        if report.restores == self._restores:
            self._progress[report.worker_index] = report.progress

    def get_state(self) -> dict[str, Any]:
        """Return plain data for a checkpoint."""
        progress = {
            str(index): {"rollouts": runner.rollouts, "unplayed": list(runner.unplayed)}
            for index, runner in self._progress.items()
        }
        return {"trial": self._trial, "is_copy": self._is_copy, "env_runners": progress}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint, where all env runners begin with their next rollout.

        The state may be that of another trial of the same search, which this one copies.
        """
        others = state["trial"] is not None and state["trial"] != self._trial
        self._is_copy = self._trial is not None and (others or state["is_copy"])
        self._restores += 1
        self._progress = {
            int(index): RunnerProgress(runner["rollouts"], tuple(runner["unplayed"]))
            for index, runner in state["env_runners"].items()
        }


def trial_number(trial_id: str | None) -> int | None:
    """Return the number in Tune's id of a trial, such as 2 in `f1c5a_00002`; None without one."""
    _, underscore, number = (trial_id or "").rpartition("_")
    return int(number) if underscore and number.isdecimal() else None
