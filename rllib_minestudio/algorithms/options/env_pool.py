"""The options of the pool: `env_pool` in the algorithm's config."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rllib_minestudio.option_fields import option

AUTO, INLINE, PROCESS = "auto", "inline", "process"
MODES = (AUTO, INLINE, PROCESS)

_SECONDS: dict[str, Any] = {
    "least": 1e-300,
    "most": sys.float_info.max,
    "wording": "positive seconds",
}


@dataclass(frozen=True, kw_only=True)
class EnvPoolOptions:
    """How environments are run."""

    mode: str = option(
        AUTO,
        "`inline` runs environments one after the other in the env runner's own process; "
        "`process` runs each in a process of its own, which may die or hang without harm; `auto` "
        "is inline for the embedded engine, and otherwise process.",
        choices=MODES,
    )
    inference_batch_size: int = option(
        1,
        "The policy acts as soon as this many environments are ready; more are taken along. "
        "Inline, all are always ready.",
        least=1,
    )
    start_timeout_s: float = option(
        600.0, "Building an environment may take this many seconds (mode `process`).", **_SECONDS
    )
    reset_timeout_s: float = option(
        300.0, "A reset may take this many seconds (mode `process`).", **_SECONDS
    )
    step_timeout_s: float = option(
        60.0, "A step may take this many seconds (mode `process`).", **_SECONDS
    )
    max_restarts_per_hour: int = option(
        20, "An environment may fail this many times within an hour; once more ends the run."
    )
    restart_interval: float | None = option(
        None,
        "An environment's process is replaced after this many seconds, at the end of an episode, "
        "against leaks; null: it never is (mode `process`).",
        **_SECONDS,
    )
