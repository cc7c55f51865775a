"""Starting learners in place of lost ones, which may be lost themselves before they have begun."""

from __future__ import annotations

import atexit
import gc
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

import ray
from ray.actor import ActorHandle
from ray.rllib.core.learner.learner_group import LearnerGroup

from rllib_minestudio.algorithms.training_loop.failures import HUNG
from rllib_minestudio.failure_budget import DIED


class NotStartedError(Exception):
    """New learners did not come up.

    Args:
        cause: `DIED` or `HUNG`.
    """

    def __init__(self, cause: str) -> None:
        """Keep the cause."""
        super().__init__(cause)
        self.cause = cause


def start_group_like(old: LearnerGroup, within_s: float) -> LearnerGroup:
    """Start another group with the config of one that was lost.

    Args:
        old: The group, ended.
        within_s: Seconds that the new learners may take to be built.

    Raises:
        NotStartedError: They did not come up, and what there was of them is ended.
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
    except FutureTimeoutError as error:
        _end(_actors() - others)
        raise NotStartedError(HUNG) from error
    except Exception as error:
        # Whatever it says: the same config did build learners before. (One that dies makes Ray
        # raise a TypeError, by `raise None`, and the others complain of their lost connection.)
        _end(_actors() - others)
        raise NotStartedError(DIED) from error
    leave_at_exit(group)
    return group


def leave_at_exit(group: LearnerGroup) -> None:
    """Keep a group that is never shut down from shutting down while Python ends.

    Its `__del__` would call its learners, for which Ray starts anew, and never comes to an end.
    """

    def leave(reference: weakref.ref[LearnerGroup]) -> None:
        left = reference()
        if left is not None:
            left._is_shut_down = True

    atexit.register(leave, weakref.ref(group))


def end_group(group: LearnerGroup) -> None:
    """End the learners at once, also such as hang."""
    if not group._is_shut_down:
        _end(set(group._workers))
        group._backend_executor.shutdown(graceful_termination=False)
        group._is_shut_down = True


def _actors() -> set[ActorHandle]:
    """All actors that this process knows.

    Learners that have been created but not built are known to nobody but a local variable of Ray's
    in a thread that waits for them.
    """
    return {found for found in gc.get_objects() if issubclass(type(found), ActorHandle)}


def _end(actors: set[ActorHandle]) -> None:
    for actor in actors:
        ray.kill(actor)
