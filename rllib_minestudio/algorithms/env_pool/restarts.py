"""How often an environment may fail, and how long to wait before it is tried again."""

from __future__ import annotations

import logging
from collections import Counter

from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.failure_budget import FailureBudget

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

_logger = logging.getLogger(__name__)


class EnvFailures:
    """The failures of one environment, which end the run when there are too many.

    Args:
        env_index: For messages.
        max_per_hour: Failures within an hour that are tolerated.
        counts: Where restarts are counted by cause.
    """

    def __init__(self, env_index: int, max_per_hour: int, counts: Counter[str]) -> None:
        """Start without failures."""
        self._env_index = env_index
        self._counts = counts
        self._budget = FailureBudget(
            max_per_hour=max_per_hour,
            option="env_pool.max_restarts_per_hour",
            max_in_a_row=MAX_FAILED_STARTS,
            first_delay_s=FIRST_DELAY_S,
            max_delay_s=MAX_DELAY_S,
        )

    def note_step(self) -> None:
        """Note that the environment works."""
        self._budget.note_success()

    def note(self, cause: str, what: str) -> float:
        """Note a failure; it is logged and counted.

        Args:
            cause: One of `CAUSES`.
            what: What happened, for the log.

        Returns:
            Seconds to wait before the environment is started again.

        Raises:
            EnvPoolError: If it was one too many.
        """
        self._counts[cause] += 1
        exceeded = self._budget.note_failure()
        if exceeded:
            raise EnvPoolError(f"Environment {self._env_index} {exceeded}, the last time: {what}")
        delay = self._budget.delay_s
        _logger.warning(
            "Environment %d failed (%s) and is restarted%s: %s",
            self._env_index,
            cause,
            f" in {delay:g} s" if delay else "",
            what,
        )
        return delay
