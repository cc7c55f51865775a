"""How often an engine may fail in a row before the environment gives up."""

from rllib_minestudio.errors import EngineError
from rllib_minestudio.failure_budget import FailureBudget

MAX_REBUILDS = 3
"""Rebuilds in a row after which a failing engine is an error, not bad luck."""
HEALTHY_STEPS = 200
"""Steps without a failure after which earlier ones no longer count; an episode's end does, too."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 4.0
"""Before the last rebuild; it must fit into the deadline of a reset whatever happened before."""


def engine_failures(*, pauses: bool) -> FailureBudget:
    """Return the budget of one environment's failures.

    Args:
        pauses: Whether rebuilds after the first wait: a game that has just failed to start, perhaps
            because the machine is busy or short of memory, does better a little later.
    """
    return FailureBudget(
        "The environment",
        EngineError,
        advice=(
            "It was rebuilt after each failure before. If a callback is at fault, its traceback is "
            "above; otherwise please report it."
        ),
        max_in_a_row=MAX_REBUILDS,
        healthy_after=HEALTHY_STEPS,
        first_delay_s=FIRST_PAUSE_S if pauses else 0.0,
        max_delay_s=LONGEST_PAUSE_S,
    )
