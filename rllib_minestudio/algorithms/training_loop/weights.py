"""Weights on their way from the learner to the env runners, which pull numbered publications.

RLlib pushes weights, and drops a push while one is under way, so a runner in a long rollout keeps
old weights. Here an actor holds a reference to the newest weights, and a runner pulls them whenever
it begins a rollout. Publications are *numbered* in order, which tells a runner that they are new:
after a rollback, newer weights have a lower *version*.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rllib_minestudio.algorithms.prior import PriorWeights
from rllib_minestudio.algorithms.training_loop.learners import HUNG, part_failures
from rllib_minestudio.foundation.processes import DIED

logger = logging.getLogger(__name__)

PULL_WITHIN_S = 3.0
"""How long a runner waits for the actor before it uses the newest weights that its caller knew."""
ANSWER_WITHIN_S = 10.0
"""An actor that does not answer within this time counts as hung; its methods take milliseconds."""
START_WITHIN_S = 60.0
"""How long the actor's process may take to start, which can be slow on a busy machine."""


class Publication(NamedTuple):
    """Weights as a runner receives them.

    Attributes:
        number: Counts publications from 1; it never decreases.
        version: Version of the weights.
        state: The argument of `EnvRunner.set_state`.
    """

    number: int
    version: int
    state: dict[str, Any]


class PriorPublication(NamedTuple):
    """The prior's weights as a runner receives them; `number` counts their publications from 1."""

    number: int
    weights: PriorWeights


class _Announcement(NamedTuple):
    """A publication whose weights are still in the object store.

    Attributes:
        number: As in `Publication`.
        version: As in `Publication`.
        reference: Reference to `Publication.state`.
        prior_number: Counts publications of the prior from 1; 0 if there is none.
        prior: Reference to `PriorWeights`; None without a prior.
    """

    number: int
    version: int
    reference: ray.ObjectRef
    prior_number: int
    prior: ray.ObjectRef | None


class WeightsBoard:
    """The weights actor, which only holds the newest announcement.

    If it dies or hangs, `WeightsPublisher` replaces it and announces again.
    """

    def __init__(self) -> None:
        self._newest: _Announcement | None = None

    def announce(self, announcement: _Announcement) -> None:
        """Replace the newest announcement."""
        self._newest = announcement

    def newest(self) -> _Announcement | None:
        """Return the newest announcement, if there is one."""
        return self._newest


class WeightsSource:
    """The source from which an env runner pulls weights, sent with every rollout call.

    It also holds the newest announcement at the time of the call, so that a runner gets weights
    even if the actor is dead, hung, or has just been replaced.

    Attributes:
        reachable: Whether the actor answered the last `pull`.
    """

    def __init__(self, board: Any, newest: _Announcement) -> None:
        self._board = board
        self._known = newest
        self.reachable = True

    def pull(self, after_number: int) -> Publication | None:
        """Return the newest publication known; None if the runner already has it.

        If its data were lost with the learner's node, the runner keeps the weights that it has.

        Args:
            after_number: Number of the publication that the runner has; 0 for none.

        Raises:
            RayError: If its data were lost and the runner has no weights yet.
        """
        newest = self._known
        try:
            announced = ray.get(self._board.newest.remote(), timeout=PULL_WITHIN_S)
            self.reachable = True
            if announced is not None and announced.number > newest.number:
                newest = self._known = announced
        except RayError:
            self.reachable = False
        if newest.number <= after_number:
            return None
        try:
            return Publication(newest.number, newest.version, ray.get(newest.reference))
        except RayError:
            if not after_number:
                raise
            self.reachable = False
            return None

    def pull_prior(self, after_number: int) -> PriorPublication | None:
        """Return the prior's publication of the last `pull`; None if there is no prior.

        Also returns None if the runner already has it, as `after_number` says (0 for none).
        """
        known = self._known
        if known.prior is None or known.prior_number == after_number:
            return None
        return PriorPublication(known.prior_number, ray.get(known.prior))


class WeightsPublisher:
    """The driver's side: puts weights into the object store and announces them.

    Args:
        max_restarts_per_hour: How often the actor may fail within an hour.

    Attributes:
        actor: A `WeightsBoard`; a new one after a failure.
        failures: The actor's failure budget.
        answer_within_s: How long the actor may take to answer before it counts as hung.
    """

    def __init__(self, max_restarts_per_hour: int) -> None:
        self.failures = part_failures("weights", max_restarts_per_hour)
        self.answer_within_s = ANSWER_WITHIN_S
        self._number = 0
        self._newest: _Announcement | None = None
        self._prior: tuple[int, ray.ObjectRef | None] = (0, None)
        self._start()

    def publish(self, version: int, state: dict[str, Any] | ray.ObjectRef) -> None:
        """Publish new weights.

        Args:
            version: Their version.
            state: The argument of `EnvRunner.set_state`, or a reference to it.

        Raises:
            PartLostError: If the actor fails too often within an hour.
        """
        self._number += 1
        reference = state if isinstance(state, ray.ObjectRef) else ray.put(state)
        self._newest = _Announcement(self._number, version, reference, *self._prior)
        while cause := self._announcement_failure():
            what = f"The weights actor {cause}; another takes its place."
            self.failures.note_failure(cause, what)
            logger.warning("%s", what)
            ray.kill(self.actor)
            self._start()

    def set_prior(self, weights: PriorWeights) -> None:
        """Include the prior's weights in the next publications."""
        self._prior = (self._prior[0] + 1, ray.put(weights))

    def source(self) -> WeightsSource:
        """Return the source to send with a rollout call; something must have been published."""
        assert self._newest is not None
        return WeightsSource(self.actor, self._newest)

    def newest(self, after_number: int) -> Publication | None:
        """Return the newest publication; None if its number is not above `after_number`."""
        newest = self._newest
        if newest is None or newest.number <= after_number:
            return None
        return Publication(newest.number, newest.version, ray.get(newest.reference))

    def stop(self) -> None:
        """Kill the actor."""
        ray.kill(self.actor)

    def _start(self) -> None:
        # On the driver's node, whose loss ends the run anyway; outside Tune's placement group,
        # because it needs no CPU.
        node = ray.get_runtime_context().get_node_id()
        on_this_node = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        board = ray.remote(num_cpus=0, scheduling_strategy=on_this_node)(WeightsBoard)
        self.actor = board.remote()
        self._has_answered = False

    def _announcement_failure(self) -> str | None:
        """Announce the newest weights; return how the actor failed, or None if it did not."""
        timeout = self.answer_within_s if self._has_answered else START_WITHIN_S
        try:
            ray.get(self.actor.announce.remote(self._newest), timeout=timeout)
        except GetTimeoutError:
            return HUNG
        except RayActorError:
            return DIED
        self._has_answered = True
        return None
