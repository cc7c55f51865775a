"""How often a part of the training system may fail before going on is pointless."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque

from rllib_minestudio.errors import PartLostError

logger = logging.getLogger(__name__)

DIED = "died"
HUNG = "hung"
HOUR_S = 3600.0


class FailureBudget:
    """Logs and counts the failures of one part, and ends the run when there are too many.

    Args:
        part: What logs and metrics call it.
        max_per_hour: Failures within an hour that are put up with.

    Attributes:
        counts: Failures so far, by cause.
    """

    def __init__(self, part: str, max_per_hour: int) -> None:
        """Start without failures."""
        self.part = part
        self.counts: Counter[str] = Counter()
        self._max_per_hour = max_per_hour
        self._failed_at: deque[float] = deque()

    def note(self, cause: str, what: str) -> None:
        """Note a failure.

        Args:
            cause: `DIED` or `HUNG`.
            what: What failed, and what is done about it, for the log.

        Raises:
            PartLostError: If it was one too many.
        """
        now = time.monotonic()
        self.counts[cause] += 1
        self._failed_at.append(now)
        while self._failed_at[0] < now - HOUR_S:
            self._failed_at.popleft()
        if len(self._failed_at) > self._max_per_hour:
            raise PartLostError(
                f"The {self.part} failed {len(self._failed_at)} times within an hour "
                f"(max_restarts_per_hour={self._max_per_hour}), the last time: {what} Ray's logs "
                "tell what ends it; often it is memory."
            )
        logger.warning("%s", what)

    def metrics(self) -> dict[str, int]:
        """Failures so far by part and cause; zeros too, so that columns do not come and go."""
        return {
            f"{self.part}_{cause}".replace(" ", "_"): self.counts[cause] for cause in (DIED, HUNG)
        }
