"""How often an engine may fail in a row before the environment gives up."""

import time

from rllib_minestudio.errors import EngineError

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
        self._failures = 0
        self._healthy_steps = 0

    def note_step(self, *, episode_ended: bool) -> None:
        """Note a step that went well."""
        self._healthy_steps += 1
        if episode_ended or self._healthy_steps >= HEALTHY_STEPS:
            self._failures = 0

    def before_rebuild(self) -> None:
        """Wait 1, 2, 4, 4, ... s after the second, third, ... failure in a row.

        There may be more than `MAX_REBUILDS`: whoever goes on after the error makes them so.
        """
        if self._pauses and self._failures > 1:
            time.sleep(min(_FIRST_PAUSE_S * 2 ** (self._failures - 2), LONGEST_PAUSE_S))

    def note_failure(self, error: Exception) -> None:
        """Note a failure.

        Raises:
            EngineError: If it was one too many in a row.
        """
        self._failures += 1
        self._healthy_steps = 0
        if self._failures > MAX_REBUILDS:
            raise EngineError(
                f"The environment failed {self._failures} times in a row, each time after being "
                f"rebuilt; the last failure was {describe(error)}. If a callback is at fault, its "
                "traceback is above; otherwise please report it."
            ) from error


def describe(error: Exception) -> str:
    """Return an exception in one line: its class and message."""
    return f"{type(error).__name__}: {error}"
