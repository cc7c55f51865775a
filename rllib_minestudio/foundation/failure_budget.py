"""Limits on how often something may fail before giving up, and delays between attempts."""

from __future__ import annotations

import time
from collections import Counter, deque

DIED = "died"
"""The cause of a failure in which the process exited or was killed."""

HOUR_S = 3600.0

_MOST_DOUBLINGS = 60
"""Bounds the delay's exponent: a caller that ignores the error may fail any number of times."""


class FailureBudget:
    """Counts the failures of one thing by cause, and limits them per hour and in a row.

    Args:
        thing: What fails, as the error's first words: "Environment 3".
        raises: The exception raised when there are too many failures.
        advice: The error's last sentence.
        max_per_hour: Failures tolerated within an hour; None for any number.
        option: Name of the option that sets `max_per_hour`, for the error.
        max_in_a_row: Failures tolerated in a row; None for any number.
        healthy_after: Successes after which the count of failures in a row restarts.
        first_delay_s: Delay in seconds after the second failure in a row; it doubles with each
            further one.
        max_delay_s: The longest delay in seconds.
        counts: A counter to share with other budgets; by default a new one.

    Attributes:
        counts: Failures so far, by cause.
    """

    def __init__(
        self,
        thing: str,
        raises: type[Exception],
        *,
        advice: str = "",
        max_per_hour: int | None = None,
        option: str = "max_per_hour",
        max_in_a_row: int | None = None,
        healthy_after: int = 1,
        first_delay_s: float = 0.0,
        max_delay_s: float = 0.0,
        counts: Counter[str] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter() if counts is None else counts
        self._thing = thing
        self._raises = raises
        self._advice = advice
        self._max_per_hour = max_per_hour
        self._option = option
        self._max_in_a_row = max_in_a_row
        self._healthy_after = healthy_after
        self._first_delay_s = first_delay_s
        self._max_delay_s = max_delay_s
        self._failed_at: deque[float] = deque()
        self._in_a_row = 0
        self._successes = 0

    @property
    def delay_s(self) -> float:
        """Seconds to wait before the next attempt."""
        if self._in_a_row < 2:
            return 0.0
        doublings = min(self._in_a_row - 2, _MOST_DOUBLINGS)
        return min(self._first_delay_s * 2**doublings, self._max_delay_s)

    def note_success(self, *, is_proof: bool = False) -> None:
        """Note a success.

        Args:
            is_proof: Whether this success alone ends a series of failures.
        """
        self._successes += 1
        if is_proof or self._successes >= self._healthy_after:
            self._in_a_row = 0

    def note_failure(self, cause: str, what: str) -> None:
        """Note a failure.

        Args:
            cause: The cause under which it is counted.
            what: What happened, for the error.

        Raises:
            Exception: There were too many failures; the type is `raises`.
        """
        now = time.monotonic()
        self.counts[cause] += 1
        self._successes = 0
        self._in_a_row += 1
        self._failed_at.append(now)
        while self._failed_at[0] < now - HOUR_S:
            self._failed_at.popleft()
        if self._max_per_hour is not None and len(self._failed_at) > self._max_per_hour:
            limit = f"{self._option}={self._max_per_hour}"
            self._give_up(f"{len(self._failed_at)} times within an hour ({limit})", what)
        if self._max_in_a_row is not None and self._in_a_row > self._max_in_a_row:
            self._give_up(f"{self._in_a_row} times in a row", what)

    def _give_up(self, how_often: str, what: str) -> None:
        told = f"{self._thing} failed {how_often}, the last time: {what}"
        raise self._raises(f"{told} {self._advice}" if self._advice else told)
