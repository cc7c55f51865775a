"""The learner group as seen by the training loop: it updates, may be lost, and is rebuilt.

After every update (by default), a remote learner's complete state (weights, optimizer, value
statistics, prior) is fetched into the object store of this node. If a learner dies or hangs, the
group is rebuilt from the newest of these states, and the update under way is repeated.
"""

from __future__ import annotations

import atexit
import gc
import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.core.learner.training_data import TrainingData

from rllib_minestudio.algorithms.prior import PriorWeights
from rllib_minestudio.errors import FragmentsLostError, PartLostError
from rllib_minestudio.foundation.processes import DIED, FailureBudget

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
State = dict[str, Any]

START_AT_LEAST_S = 300.0
"""New learners may take as long to start as an update, but at least this long."""

COPY_WITHIN_S, COPY_TICK_S = 120.0, 0.5
"""How long a copy of published weights may take to reach this node, and between looks at it."""

MAX_FAILED_STARTS = 3
"""This many failed starts in a row end the run, because the next would fail as well."""


class Learners:
    """Runs updates, optionally in the background, and replaces remote learners that are lost.

    Args:
        group: RLlib's learner group, freshly built.
        state_interval: Number of updates between saved states.
        state_interval_s: Least time between them.
        timeout_s: How long an update, or any other call to a remote learner, may take.
        max_restarts_per_hour: How often the group may be rebuilt within an hour.

    Attributes:
        group: RLlib's learner group; a new object after a rebuild.
        start_within_s: How long new learners may take to start.
    """

    def __init__(
        self,
        group: LearnerGroup,
        *,
        state_interval: int,
        state_interval_s: float,
        timeout_s: float,
        max_restarts_per_hour: int,
    ) -> None:
        self.group = group
        leave_at_exit(group)
        self.failures = part_failures("learner", max_restarts_per_hour)
        self._state_interval, self._state_interval_s = state_interval, state_interval_s
        self._updates_since_state, self._state_at = 0, -math.inf
        self._timeout_s = timeout_s
        self.start_within_s = max(timeout_s, START_AT_LEAST_S)
        self._starts = FailureBudget(
            "Starting learners in place of lost ones",
            PartLostError,
            advice="Check whether the cluster still has the CPUs and GPUs they need.",
            max_in_a_row=MAX_FAILED_STARTS - 1,
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._copies = CopiesHere()
        self._state: State | None = None
        self._newer_state: Future[State] | None = None
        self.remember()

    # ---------------------------------------------------------------- calls of the training loop

    def update(
        self,
        payloads: Sequence[Any],
        timesteps: dict[str, Any],
        meanwhile: Callable[[float], Any] | None = None,
    ) -> list[State]:
        """Train one iteration.

        Args:
            payloads: Fragments, or references to them.
            timesteps: For `MineStudioPPOLearner.update`.
            meanwhile: Called repeatedly while a learner trains, with the seconds it may take.
                Without it, a learner in this process trains in this thread.

        Returns:
            The metrics of each learner.

        Raises:
            FragmentsLostError: If no fragment can be read because their nodes are gone. The
                learners are unchanged.
            PartLostError: If learners are lost too often.
        """
        if self.group.is_local:
            return self._update_here(payloads, timesteps, meanwhile)

        def update() -> list[State]:
            return self._all(self._calls("update", payloads, timesteps=timesteps), meanwhile)

        try:
            results = self._insist(update)
        except RayTaskError as error:
            if not isinstance(error.cause, FragmentsLostError):
                raise
            if len(self.group) > 1:  # the others wait for the one that failed
                self._insist(self._rebuild)
            raise error.cause from error
        self._updates_since_state += 1
        seconds = time.monotonic() - self._state_at
        if self._updates_since_state >= self._state_interval and seconds >= self._state_interval_s:
            self.remember()
        return results

    def prefetch(self, payloads: Sequence[Any]) -> None:
        """Let learners fetch the next batch during the current `update`; call this before it."""
        if self.group.is_local:
            self.group._learner.prefetch(training_data=_training_data(payloads))
        else:
            self._calls("prefetch", payloads)

    def publication(self) -> tuple[int, State | ray.ObjectRef]:
        """Return the version of the weights, and the argument of `EnvRunner.set_state`.

        A remote learner puts the latter into the object store of its node and trains on, while env
        runners fetch it from there, once per node; what is returned is the reference. Another copy
        is made on this node, meanwhile, for the case that the learner's is lost.
        """
        if self.group.is_local:
            return self.group._learner.publication()

        def publish() -> tuple[int, ray.ObjectRef]:
            call = self.group._workers[0].publication.options(num_returns=2)
            version, state = call.remote()
            return self._all([version])[0], state

        version, state = self._insist(publish)
        self._copies.fetch(state)
        return version, state

    def weights(self) -> State:
        """Return the module's state and its version, for an evaluation."""
        components = dict(components=COMPONENT_RL_MODULE, inference_only=True)
        if self.group.is_local:
            return self.group._learner.get_state(**components)
        return self._insist(
            lambda: self._all([self.group._workers[0].get_state.remote(**components)])[0]
        )

    def prior_weights(self) -> PriorWeights | None:
        """Return the prior's weights for env runners; None without a prior."""
        if self.group.is_local:
            return self.group._learner.prior_weights()
        return self._insist(lambda: self._all([self.group._workers[0].prior_weights.remote()])[0])

    def remember(self) -> None:
        """Fetch the state from which the group is rebuilt; call it after every change."""
        if self.group.is_remote:
            self._settle()
            self._updates_since_state, self._state_at = 0, time.monotonic()
            state = self.group._workers[0].get_state.remote()
            self._newer_state = self._thread.submit(ray.get, state)

    def make_sure(self) -> None:
        """Rebuild the group now if a learner does not answer."""
        if self.group.is_remote:
            self._insist(
                lambda: self._all(
                    [worker.__ray_call__.remote(bool) for worker in self.group._workers]
                )
            )

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Return the number of rebuilds by cause."""
        restarts = restart_metrics("learner", self.failures)
        return {(RESTARTS, name): count for name, count in restarts.items()}

    def stop(self) -> None:
        """Kill remote learners, and end the threads."""
        self._copies.stop()
        if self.group.is_remote:
            end_group(self.group)
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ---------------------------------------------------------------- in this process

    def _update_here(
        self,
        payloads: Sequence[Any],
        timesteps: dict[str, Any],
        meanwhile: Callable[[float], Any] | None,
    ) -> list[State]:
        arguments = dict(
            training_data=_training_data(payloads),
            timesteps=timesteps,
            defer_solve_refs_to_learner=True,  # it may have fetched them already
        )
        if meanwhile is None:
            return self.group.update(**arguments)
        future = self._thread.submit(self.group.update, **arguments)
        while not future.done():
            meanwhile(TICK_S)
        return future.result()

    # ---------------------------------------------------------------- in other processes

    def _calls(self, method: str, payloads: Sequence[Any], **arguments: Any) -> list[ray.ObjectRef]:
        """Call a method of all learners, each with its shard of the fragments."""
        shards = _training_data(payloads).shard(len(self.group))
        pairs = zip(self.group._workers, shards, strict=True)
        return [
            getattr(worker, method).remote(training_data=shard, **arguments)
            for worker, (shard, _) in pairs
        ]

    def _all(
        self, calls: list[ray.ObjectRef], meanwhile: Callable[[float], Any] | None = None
    ) -> list[Any]:
        return results_of(calls, self.group._workers, self._timeout_s, meanwhile)

    def _insist(self, ask: Callable[[], Result]) -> Result:
        """Call `ask`; if a learner is lost, rebuild the group and call it again."""
        is_lost = False
        while True:
            try:
                if is_lost:
                    self._rebuild()
                    is_lost = False
                return ask()
            except LearnerLostError as lost:
                is_lost, cause = True, lost.cause
                took = f" ({self._timeout_s:g} s without an answer)" if cause == HUNG else ""
                what = (
                    f"A learner {cause}{took}; all learners are rebuilt from the newest state, and "
                    "the iteration under way is done again."
                )
                self.failures.note_failure(cause, what)
                logger.warning("%s", what)

    def _rebuild(self) -> None:
        """Replace the group by one that continues from the newest state.

        Raises:
            LearnerLostError: If a new learner died or hung too.
            PartLostError: If new learners failed to start several times in a row.
        """
        end_group(self.group)
        self._settle()
        try:
            group = start_group_like(self.group, self.start_within_s)
        except NotStartedError as error:
            what = f"they {error.cause} ({self.start_within_s:g} s to start)."
            self._starts.note_failure(error.cause, what)
            raise LearnerLostError(error.cause) from error
        self._starts.note_success()
        self.group = group
        state = ray.put(self._state)
        self._all([worker.set_state.remote(state) for worker in self.group._workers])

    def _settle(self) -> None:
        """Keep the state fetched last, if it has arrived."""
        if self._newer_state is not None:
            # If the learner was lost before it answered, the previous state is kept.
            with suppress(RayError, FutureTimeoutError):
                self._state = self._newer_state.result(self._timeout_s)
            self._newer_state = None


class CopiesHere:
    """Copies of published weights on this node, fetched one after the other by a thread.

    If publications come faster than copies, those between are left out: a reference that waited for
    its turn would hold its weights in the learner's object store.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="publications")
        self._is_stopped = threading.Event()
        self._next: deque[ray.ObjectRef] = deque(maxlen=1)  # safe between threads

    def fetch(self, state: ray.ObjectRef) -> None:
        """Fetch a copy once the present one is here, unless another has been asked for by then."""
        self._next.append(state)
        self._thread.submit(self._fetch_next)

    def stop(self) -> None:
        """Let the thread end, which takes a moment."""
        self._is_stopped.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _fetch_next(self) -> None:
        if not self._next:  # only this thread takes any away
            return
        state = self._next.popleft()
        deadline = time.monotonic() + COPY_WITHIN_S
        while time.monotonic() < deadline and not self._is_stopped.is_set():
            if ray.wait([state], timeout=COPY_TICK_S)[0]:
                return


def _training_data(payloads: Sequence[Any]) -> TrainingData:
    if isinstance(payloads[0], ray.ObjectRef):
        return TrainingData(episodes_refs=list(payloads))
    return TrainingData(episodes=list(payloads))


# ---------------------------- waiting for remote learners, and distinguishing lost ones from errors

DEATH_SHOWS_WITHIN_S = 5.0
"""A learner's connections break before Ray notices its death; how long to wait until it does."""

TICK_S = 0.02
"""How long to wait between checks whether an update is done."""


class LearnerLostError(Exception):
    """A remote learner died or hung; `cause` is `DIED` or `HUNG`."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


def results_of(
    calls: list[ray.ObjectRef],
    learners: Sequence[Any],
    timeout_s: float,
    meanwhile: Callable[[float], Any] | None = None,
) -> list[Any]:
    """Return the results of calls to learners, within a time limit.

    Args:
        calls: One call per learner, or to some of them.
        learners: All learners. If one dies, another may raise the error, because it has lost its
            connection to the first.
        timeout_s: How long all calls together may take.
        meanwhile: Called repeatedly while they run, with the seconds it may take.

    Raises:
        LearnerLostError: If a learner died or did not answer.
        RayTaskError: If a learner raised an error itself.
    """
    deadline = time.monotonic() + timeout_s
    waiting = calls
    while waiting:
        if time.monotonic() > deadline:
            raise LearnerLostError(HUNG)
        timeout = 0 if meanwhile else deadline - time.monotonic()
        ready, waiting = ray.wait(waiting, num_returns=1, timeout=timeout)
        try:
            ray.get(ready)
        except RayActorError as error:
            raise LearnerLostError(DIED) from error
        except RayTaskError as error:
            if _one_died(learners):
                raise LearnerLostError(DIED) from error
            raise
        if meanwhile and not ready:
            meanwhile(TICK_S)
    return ray.get(calls)


def _one_died(learners: Sequence[Any]) -> bool:
    calls = [learner.__ray_call__.remote(bool) for learner in learners]
    ready, _ = ray.wait(calls, num_returns=len(calls), timeout=DEATH_SHOWS_WITHIN_S)
    for call in ready:
        try:
            ray.get(call)
        except RayActorError:
            return True
    return False


# ---------------------------------------------------------- starting learners in place of lost ones


class NotStartedError(Exception):
    """New learners did not start; `cause` is `DIED` or `HUNG`."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


def start_group_like(old: LearnerGroup, within_s: float) -> LearnerGroup:
    """Start a new group with the config of one that was lost and has been ended.

    Raises:
        NotStartedError: If it did not start in time; any new actors are then killed.
    """
    group = LearnerGroup.__new__(LearnerGroup)
    others = _actors()
    started: Future[None] = Future()

    def start() -> None:
        try:
            group.__init__(config=old.config, module_spec=old._module_spec)
            started.set_result(None)
        except Exception as error:
            started.set_exception(error)

    # A daemon thread, because it may wait for a GPU that the cluster no longer has.
    threading.Thread(target=start, daemon=True).start()
    try:
        started.result(within_s)
    except Exception as error:
        # Any error counts, because the same config has built learners before. (If one dies, Ray
        # raises a TypeError, by `raise None`, and the others report a lost connection.)
        _end(_actors() - others)
        group._is_shut_down = True  # its `__del__` would call them, for which Ray would start again
        raise NotStartedError(HUNG if isinstance(error, FutureTimeoutError) else DIED) from error
    leave_at_exit(group)
    return group


def leave_at_exit(group: LearnerGroup) -> None:
    """Keep a group that is never shut down from shutting down when Python exits.

    Its `__del__` would call its learners, for which Ray would start again and hang.
    """

    def leave(reference: weakref.ref[LearnerGroup]) -> None:
        left = reference()
        if left is not None:
            left._is_shut_down = True

    atexit.register(leave, weakref.ref(group))


def end_group(group: LearnerGroup) -> None:
    """Kill the learners, including hung ones."""
    if not group._is_shut_down:
        _end(set(group._workers))
        group._backend_executor.shutdown(graceful_termination=False)
        group._is_shut_down = True


def _actors() -> set[ActorHandle]:
    """Return the handles of all actors in this process.

    Learners that were created but not built are referenced only by a local variable of Ray's, in a
    thread that waits for them.
    """
    return {found for found in gc.get_objects() if issubclass(type(found), ActorHandle)}


def _end(actors: set[ActorHandle]) -> None:
    for actor in actors:
        ray.kill(actor)


# ---------------------------------------------------------- failures of the training system's parts

HUNG = "hung"
CAUSES = (DIED, HUNG)

RESTARTS = "restarts"
"""Group of the metrics."""


def part_failures(part: str, max_per_hour: int) -> FailureBudget:
    """Return the failure budget of a part, which is named in the error message."""
    return FailureBudget(
        f"The {part}",
        PartLostError,
        advice="Ray's logs say what ended it; often it is a lack of memory.",
        max_per_hour=max_per_hour,
        option="max_restarts_per_hour",
    )


def restart_metrics(part: str, failures: FailureBudget) -> dict[str, int]:
    """Return a part's failures by cause, including zeros, so that columns stay the same."""
    return {f"{part}_{cause}": failures.counts[cause] for cause in CAUSES}
