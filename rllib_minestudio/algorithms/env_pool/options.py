"""The options of the pool: `env_pool` in the algorithm's config."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rllib_minestudio.errors import did_you_mean

AUTO, INLINE, PROCESS = "auto", "inline", "process"
MODES = (AUTO, INLINE, PROCESS)


@dataclass(frozen=True)
class EnvPoolOptions:
    """How environments are run.

    Attributes:
        mode: `inline`, one after the other in the env runner's own process; `process`, each in a
            process of its own, which may die or hang without harm; `auto`, inline for the embedded
            engine, otherwise process.
        inference_batch_size: How many environments must be ready before the policy acts (more are
            taken along). Inline, all are always ready.
        start_timeout_s: Seconds that building an environment may take (mode `process`).
        reset_timeout_s: Seconds that a reset may take (mode `process`).
        step_timeout_s: Seconds that a step may take (mode `process`).
        max_restarts_per_hour: Failures of one environment within an hour that are put up with.
        restart_interval: Seconds after which an environment's process is replaced, at the end of
            an episode, against leaks; None for never (mode `process`).
    """

    mode: str = AUTO
    inference_batch_size: int = 1
    start_timeout_s: float = 600.0
    reset_timeout_s: float = 300.0
    step_timeout_s: float = 60.0
    max_restarts_per_hour: int = 20
    restart_interval: float | None = None


_NAMES = tuple(field.name for field in fields(EnvPoolOptions))
_SECONDS = ("start_timeout_s", "reset_timeout_s", "step_timeout_s")


def env_pool_problems(options: Mapping[str, Any], num_envs: int) -> list[str]:
    """What is wrong with the option `env_pool`, one sentence per problem.

    Args:
        options: All of them, defaults included.
        num_envs: `num_envs_per_env_runner`.
    """
    problems = [
        f"env_pool.{name} is unknown.{did_you_mean(name, _NAMES)} "
        f"The options are {', '.join(_NAMES)}."
        for name in options
        if name not in _NAMES
    ]
    mode = options["mode"]
    if mode not in MODES:
        problems.append(
            f"env_pool.mode is {mode!r}: it must be one of {', '.join(MODES)}."
            f"{did_you_mean(mode, MODES)}"
        )
    for name in _SECONDS:
        if not _is_seconds(options[name]):
            problems.append(f"env_pool.{name} is {options[name]!r}: it must be positive seconds.")
    interval = options["restart_interval"]
    if interval is not None and not _is_seconds(interval):
        problems.append(
            f"env_pool.restart_interval is {interval!r}: it must be positive seconds, or null."
        )
    restarts = options["max_restarts_per_hour"]
    if isinstance(restarts, bool) or not isinstance(restarts, int) or restarts < 0:
        problems.append(
            f"env_pool.max_restarts_per_hour is {restarts!r}: it must be an integer, at least 0."
        )
    size = options["inference_batch_size"]
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= num_envs:
        problems.append(
            f"env_pool.inference_batch_size is {size!r}: it must be an integer from 1 to "
            f"num_envs_per_env_runner={num_envs}."
        )
    return problems


def _is_seconds(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf
