"""Failures of the training system's parts: counted for the metrics, logged, and limited."""

from __future__ import annotations

import logging
from collections import Counter

from rllib_minestudio.errors import PartLostError
from rllib_minestudio.failure_budget import FailureBudget

logger = logging.getLogger(__name__)

DIED = "died"
HUNG = "hung"


class PartFailures:
    """The failures of one part, which end the run when there are too many.

    Args:
        part: What logs and metrics call it.
        max_per_hour: Failures within an hour that are tolerated.

    Attributes:
        counts: Failures so far, by cause.
    """

    def __init__(self, part: str, max_per_hour: int) -> None:
        """Start without failures."""
        self.counts: Counter[str] = Counter()
        self._part = part
        self._budget = FailureBudget(max_per_hour=max_per_hour, option="max_restarts_per_hour")

    def note(self, cause: str, what: str) -> None:
        """Note a failure.

        Args:
            cause: `DIED` or `HUNG`.
            what: What failed, and what is done about it, for the log.

        Raises:
            PartLostError: If it was one too many.
        """
        self.counts[cause] += 1
        exceeded = self._budget.note_failure()
        if exceeded:
            raise PartLostError(
                f"The {self._part} {exceeded}, the last time: {what} Ray's logs tell what ends it; "
                "often it is memory."
            )
        logger.warning("%s", what)

    def metrics(self) -> dict[str, int]:
        """Failures so far by part and cause; zeros too, so that columns do not come and go."""
        return {
            f"{self._part}_{cause}".replace(" ", "_"): self.counts[cause] for cause in (DIED, HUNG)
        }
