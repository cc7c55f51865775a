"""Between which bounds the numbers in a config lie: RLlib's settings here, our options their own.

RLlib takes nearly any number. A NaN anywhere shows after hours. Bounds above say what no machine
has, so that a slip of the finger is noticed before memory is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rllib_minestudio.algorithms.policy_config import PolicyAlgorithmConfig
from rllib_minestudio.option_checks import broken_rule
from rllib_minestudio.option_fields import (
    EVER,
    MANY,
    Bounds,
    option_problems,
    types_of,
    value_problems,
)

RLLIB_INTEGERS: dict[str, tuple[int, int]] = {
    "num_env_runners": (0, 10_000),
    "num_learners": (0, 10_000),
    "num_envs_per_env_runner": (1, 10_000),
    "rollout_fragment_length": (1, MANY),
    "max_requests_in_flight_per_env_runner": (1, 10_000),
    "metrics_num_episodes_for_smoothing": (1, 10**7),
    "evaluation_num_env_runners": (0, 10_000),
    "max_num_env_runner_restarts": (0, EVER),
}
"""Setting of RLlib's -> least and greatest."""

RLLIB_OPTIONAL_INTEGERS: dict[str, tuple[int, int]] = {
    "seed": (0, 2**32 - 1),
    "evaluation_interval": (0, EVER),
    "dataset_num_iters_per_learner": (1, EVER),
}
"""The same, for settings that may be null."""

RLLIB_NUMBERS: dict[str, tuple[float, float]] = {
    "sample_timeout_s": (1e-6, math.inf),
    "evaluation_sample_timeout_s": (1e-6, math.inf),
    "env_runner_restore_timeout_s": (0.0, math.inf),
    "env_runner_health_probe_timeout_s": (0.0, math.inf),
    "num_cpus_per_env_runner": (0.0, 1e6),
    "num_gpus_per_env_runner": (0.0, 1e6),
    "num_gpus_per_learner": (0.0, 1e6),
    "num_cpus_for_main_process": (0.0, 1e6),
}
RLLIB_OPTIONAL_NUMBERS: dict[str, tuple[float, float]] = {"min_time_s_per_iteration": (0.0, 1e9)}

_TABLES: tuple[tuple[type, bool, Mapping[str, tuple[float, float]]], ...] = (
    (int, False, RLLIB_INTEGERS),
    (int, True, RLLIB_OPTIONAL_INTEGERS),
    (float, False, RLLIB_NUMBERS),
    (float, True, RLLIB_OPTIONAL_NUMBERS),
)
"""(type, whether it may be null, bounds by setting)"""


def range_problems(config: PolicyAlgorithmConfig) -> list[str]:
    """Say which options of a config are outside their bounds, one sentence each."""
    values = vars(config)
    problems: list[str] = []
    for kind, nullable, table in _TABLES:
        for name, (least, most) in table.items():
            bounds = Bounds(least=least, most=most)
            problems += value_problems(name, values[name], kind, nullable, bounds)
    if config.evaluation_duration != "auto":
        bounds = Bounds(least=1, most=MANY)
        problems += value_problems(
            "evaluation_duration", config.evaluation_duration, int, False, bounds
        )
    problems += option_problems(config.OPTIONS, values)
    return [*problems, *_nan_problems(values, numbers_of(config.OPTIONS))]


def numbers_of(options: type) -> set[str]:
    """Return which settings and options have bounds of their own."""
    judged = {name for name, (kind, _) in types_of(options).items() if kind in (int, float)}
    return judged.union(*(table for _, _, table in _TABLES))


def _nan_problems(options: Mapping[str, Any], judged: set[str]) -> list[str]:
    """Find NaN in what has no bounds, below any mapping or list."""
    return [
        broken_rule(path, math.nan, "must be a number")
        for name, value in options.items()
        if not name.startswith("_") and name not in judged
        for path in _paths_of_nan(name, value)
    ]


def _paths_of_nan(path: str, value: Any) -> Iterable[str]:
    if isinstance(value, float) and math.isnan(value):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _paths_of_nan(f"{path}.{key}", part)
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from _paths_of_nan(f"{path}[{i}]", part)
