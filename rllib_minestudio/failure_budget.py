"""How often something may fail before trying again is pointless, and how long to wait between."""

from __future__ import annotations

import time
from collections import deque

HOUR_S = 3600.0


class FailureBudget:
    """Counts the failures of one thing within the last hour, and those in a row.

    Args:
        max_per_hour: Failures within an hour that are tolerated; None for any number.
        option: What sets `max_per_hour`, for messages.
        max_in_a_row: Failures without a success in between that are tolerated; None for any number.
        first_delay_s: How long to wait after the second failure in a row. The wait doubles with
            each further one.
        max_delay_s: How long to wait at most.
    """

    def __init__(
        self,
        *,
        max_per_hour: int | None = None,
        option: str = "max_per_hour",
        max_in_a_row: int | None = None,
        first_delay_s: float = 0.0,
        max_delay_s: float = 0.0,
    ) -> None:
        """Start without failures."""
        self._max_per_hour = max_per_hour
        self._option = option
        self._max_in_a_row = max_in_a_row
        self._first_delay_s = first_delay_s
        self._max_delay_s = max_delay_s
        self._failed_at: deque[float] = deque()
        self._in_a_row = 0

    @property
    def delay_s(self) -> float:
        """How long to wait before the next attempt."""
        if self._in_a_row < 2:
            return 0.0
        return min(self._first_delay_s * 2 ** (self._in_a_row - 2), self._max_delay_s)

    def note_success(self) -> None:
        """Note that it works: the next failure is the first in a row."""
        self._in_a_row = 0

    def note_failure(self) -> str | None:
        """Note a failure.

        Returns:
            If it was one too many, what happened, such as "failed 4 times in a row", for the
            error that the caller raises; else None.
        """
        now = time.monotonic()
        self._in_a_row += 1
        self._failed_at.append(now)
        while self._failed_at[0] < now - HOUR_S:
            self._failed_at.popleft()
        if self._max_per_hour is not None and len(self._failed_at) > self._max_per_hour:
            times = len(self._failed_at)
            return f"failed {times} times within an hour ({self._option}={self._max_per_hour})"
        if self._max_in_a_row is not None and self._in_a_row > self._max_in_a_row:
            return f"failed {self._in_a_row} times in a row"
        return None
