"""Waiting for what remote learners answer, in time, and telling a lost one from an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from rllib_minestudio.algorithms.training_loop.failures import HUNG
from rllib_minestudio.failure_budget import DIED

DEATH_SHOWS_WITHIN_S = 5.0
"""A learner's connections break before Ray knows that it died; until then Ray waits for it."""

TICK_S = 0.02
"""How long to wait before looking again whether an update is done."""


class LearnerLostError(Exception):
    """A remote learner died or hung.

    Args:
        cause: `DIED` or `HUNG`.
    """

    def __init__(self, cause: str) -> None:
        """Keep the cause."""
        super().__init__(cause)
        self.cause = cause


def results_of(
    calls: list[ray.ObjectRef],
    learners: Sequence[Any],
    timeout_s: float,
    meanwhile: Callable[[float], Any] | None = None,
) -> list[Any]:
    """The results of calls to learners, in time.

    Args:
        calls: One for each learner, or for some.
        learners: All of them. If one dies, it may be another that fails, because it has lost its
            connection to the first.
        timeout_s: How long all calls together may take.
        meanwhile: Called again and again while they run, with the seconds it may take.

    Raises:
        LearnerLostError: If one died or did not answer.
        RayTaskError: If one raised an error of its own.
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
