"""The option `lr`: a number, or RLlib's schedule."""

from __future__ import annotations

from typing import Any

from rllib_minestudio.option_checks import broken_rule
from rllib_minestudio.option_fields import EVER, Bounds, value_problems

LearningRate = float | list[list[float]] | list[tuple[float, float]]
"""A rate, or pairs of an environment step and the rate that is reached there."""

_STEPS = Bounds(most=float(EVER))
_RATES = Bounds(most=1e6)


def rate_problems(name: str, lr: Any) -> list[str]:
    """Judge a learning rate: a number, or a schedule [[environment step, rate], ...]."""
    if not isinstance(lr, list | tuple):
        return value_problems(name, lr, float, False, _RATES)
    problems = []
    steps = []
    for i, pair in enumerate(lr):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            rule = "must be a number, or a schedule: a list of [environment step, rate]"
            return [broken_rule(name, lr, rule)]
        problems += value_problems(f"{name}[{i}][0]", pair[0], float, False, _STEPS)
        problems += value_problems(f"{name}[{i}][1]", pair[1], float, False, _RATES)
        steps.append(pair[0])
    if not problems and (not steps or steps[0] != 0 or steps != sorted(set(steps))):
        rule = "must, if it is a schedule, begin at step 0 and have rising steps"
        problems.append(broken_rule(name, lr, rule))
    return problems
