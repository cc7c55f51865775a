"""How often an environment may fail, and how long to wait before it is tried again."""

from __future__ import annotations

import logging
from collections import Counter

from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.failure_budget import DIED, FailureBudget

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


def env_failures(env_index: int, max_per_hour: int, counts: Counter[str]) -> FailureBudget:
    """Return the budget of one environment's failures; a step that goes well ends a row.

    Args:
        env_index: For the error.
        max_per_hour: Failures within an hour that are tolerated.
        counts: Where the pool counts restarts, by cause.
    """
    return FailureBudget(
        f"Environment {env_index}",
        EnvPoolError,
        max_per_hour=max_per_hour,
        option="env_pool.max_restarts_per_hour",
        max_in_a_row=MAX_FAILED_STARTS,
        first_delay_s=FIRST_DELAY_S,
        max_delay_s=MAX_DELAY_S,
        counts=counts,
    )


def log_restart(env_index: int, cause: str, what: str, delay_s: float) -> None:
    """Warn that an environment failed and is tried again.

    Args:
        env_index: Which.
        cause: One of `CAUSES`.
        what: What happened.
        delay_s: Seconds until it is started again.
    """
    _logger.warning(
        "Environment %d failed (%s) and is restarted%s: %s",
        env_index,
        cause,
        f" in {delay_s:g} s" if delay_s else "",
        what,
    )
