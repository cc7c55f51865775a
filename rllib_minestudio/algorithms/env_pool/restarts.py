"""How often an environment may fail, and how long to wait before it is tried again."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque

from rllib_minestudio.errors import EnvPoolError

DIED = "died"
"""Its process ended by itself or was killed."""
HUNG_START = "hung_start"
HUNG_RESET = "hung_reset"
HUNG_STEP = "hung_step"
ERROR = "error"
"""It raised an exception."""
PERIODIC = "periodic"
"""Its time was up (`restart_interval`); the only cause that is no failure."""
CAUSES = (DIED, HUNG_START, HUNG_RESET, HUNG_STEP, ERROR, PERIODIC)

MAX_FAILED_STARTS = 5
"""Failures in a row, without one step between them, after which trying again is pointless."""
FIRST_DELAY_S, MAX_DELAY_S = 0.5, 60.0
"""Wait before the second attempt in a row, and at most; each is twice the one before."""
HOUR_S = 3600.0

_logger = logging.getLogger(__name__)


class RestartBudget:
    """Counts one environment's failures.

    Args:
        env_index: For messages.
        max_per_hour: Failures within an hour that are put up with.
        counts: Where restarts are counted by cause.
    """

    def __init__(self, env_index: int, max_per_hour: int, counts: Counter[str]) -> None:
        """Start without failures."""
        self._env_index = env_index
        self._max_per_hour = max_per_hour
        self._counts = counts
        self._failures: deque[float] = deque()
        self._in_a_row = 0

    def note_step(self) -> None:
        """The environment works."""
        self._in_a_row = 0

    def note_failure(self, cause: str, what: str) -> float:
        """Note a failure; it is logged and counted.

        Args:
            cause: One of `CAUSES`.
            what: What happened, for the log.

        Returns:
            Seconds to wait before the environment is started again.

        Raises:
            EnvPoolError: If it was one too many.
        """
        now = time.monotonic()
        self._counts[cause] += 1
        self._failures.append(now)
        while self._failures[0] < now - HOUR_S:
            self._failures.popleft()
        self._in_a_row += 1
        if len(self._failures) > self._max_per_hour:
            raise EnvPoolError(
                f"Environment {self._env_index} failed {len(self._failures)} times within an hour "
                f"(env_pool.max_restarts_per_hour={self._max_per_hour}), the last time: {what}"
            )
        if self._in_a_row > MAX_FAILED_STARTS:
            raise EnvPoolError(
                f"Environment {self._env_index} failed {self._in_a_row} times in a row without a "
                f"single step between, the last time: {what}"
            )
        delay = 0.0
        if self._in_a_row > 1:
            delay = min(FIRST_DELAY_S * 2 ** (self._in_a_row - 2), MAX_DELAY_S)
        _logger.warning(
            "Environment %d failed (%s) and is restarted%s: %s",
            self._env_index,
            cause,
            f" in {delay:g} s" if delay else "",
            what,
        )
        return delay
