"""Metrics of a result, and stopping trials by them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray import tune
from ray.tune.result import TIME_TOTAL_S, TRAINING_ITERATION

ITERATION, TOTAL_SECONDS = TRAINING_ITERATION, TIME_TOTAL_S
ENV_STEPS = "num_env_steps_sampled_lifetime"
RETURN = "env_runners/episode_return_mean"
LOWEST_RETURN = "env_runners/episode_return_min"
HIGHEST_RETURN = "env_runners/episode_return_max"


def metric(result: Mapping[str, Any], path: str) -> float | None:
    """Return metric `a/b/c` of a nested result; None if it is absent, not a number, or NaN."""
    node: Any = result
    for key in path.split("/"):
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    try:
        number = float(node)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else number


class StopAt(tune.Stopper):
    """A stopper that ends a trial at the first criterion it reaches.

    Unlike a plain dict of criteria, it accepts metrics that early results lack, such as the episode
    return before any episode has ended.
    """

    def __init__(self, stop: Mapping[str, float]) -> None:
        """Take metrics (slashes for nesting) and the values that end a trial."""
        self._stop = dict(stop)

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Return whether a trial with this result must end."""
        reached = [(metric(result, name), limit) for name, limit in self._stop.items()]
        return any(value is not None and value >= limit for value, limit in reached)

    def stop_all(self) -> bool:
        """Return False: trials that have not reached a criterion go on."""
        return False
