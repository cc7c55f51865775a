"""How often an engine may fail in a row before the environment gives up."""

import time

from rllib_minestudio.errors import EngineError
from rllib_minestudio.failure_budget import FailureBudget

MAX_REBUILDS = 3
"""Rebuilds in a row after which a failing engine is an error, not bad luck."""
HEALTHY_STEPS = 200
"""Steps without a failure after which earlier ones no longer count."""
_FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 4.0
"""Before the last rebuild; it must fit into the deadline of a reset whatever happened before."""


class FaultCounter:
    """Counts failures in a row.

    A failure counts until an episode has ended normally or `HEALTHY_STEPS` steps have gone well.
    """

    def __init__(self, *, pauses: bool = False) -> None:
        """Start without failures.

        Args:
            pauses: Whether `before_rebuild` waits: a game that has just failed to start, perhaps
                because the machine is busy or short of memory, does better a little later.
        """
        self._pauses = pauses
        self._budget = FailureBudget(
            max_in_a_row=MAX_REBUILDS, first_delay_s=_FIRST_PAUSE_S, max_delay_s=LONGEST_PAUSE_S
        )
        self._healthy_steps = 0

    def note_step(self, *, episode_ended: bool) -> None:
        """Note a step that went well."""
        self._healthy_steps += 1
        if episode_ended or self._healthy_steps >= HEALTHY_STEPS:
            self._budget.note_success()

    def before_rebuild(self) -> None:
        """Wait 1, 2, 4, 4, ... s after the second, third, ... failure in a row.

        There may be more than `MAX_REBUILDS`, if the caller goes on after the error.
        """
        if self._pauses and self._budget.delay_s:
            time.sleep(self._budget.delay_s)

    def note_failure(self, error: Exception) -> None:
        """Note a failure.

        Raises:
            EngineError: If it was one too many in a row.
        """
        self._healthy_steps = 0
        exceeded = self._budget.note_failure()
        if exceeded:
            raise EngineError(
                f"The environment {exceeded}, each time after being rebuilt; the last failure was "
                f"{describe(error)}. If a callback is at fault, its traceback is above; otherwise "
                "please report it."
            ) from error


def describe(error: Exception) -> str:
    """Return an exception in one line: its class and message."""
    return f"{type(error).__name__}: {error}"
