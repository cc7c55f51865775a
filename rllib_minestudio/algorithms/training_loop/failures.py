"""How the training system's parts fail, and how often they may."""

from __future__ import annotations

from rllib_minestudio.errors import PartLostError
from rllib_minestudio.failure_budget import DIED, FailureBudget

HUNG = "hung"
CAUSES = (DIED, HUNG)

RESTARTS = "restarts"
"""The metrics' group."""


def part_failures(part: str, max_per_hour: int) -> FailureBudget:
    """Return the budget of a part's failures.

    Args:
        part: What the error calls it.
        max_per_hour: Failures within an hour that are tolerated.
    """
    return FailureBudget(
        f"The {part}",
        PartLostError,
        advice="Ray's logs tell what ends it; often it is memory.",
        max_per_hour=max_per_hour,
        option="max_restarts_per_hour",
    )


def restart_metrics(part: str, failures: FailureBudget) -> dict[str, int]:
    """Return a part's failures so far by cause; zeros too, so that columns do not come and go."""
    return {f"{part}_{cause}": failures.counts[cause] for cause in CAUSES}
