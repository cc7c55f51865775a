"""Starts Ray for one machine: quietly, on loopback only, and without its dashboard."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rllib_minestudio.cli.console import phase

OBJECT_STORE_BYTES = 1024**3
"""Shared memory for fragments and weights; Ray spills to disk beyond it."""

SECONDS_BETWEEN_STATE_SAVES = 10
"""How often Tune writes what `--resume` needs to know about the trials."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": str(SECONDS_BETWEEN_STATE_SAVES),
    "TUNE_WARN_THRESHOLD_S": "60",
    "PYTHONWARNINGS": "ignore",
}
"""Environment variables for Ray and its workers, set where the user has not set them."""


@contextmanager
def ray_session(num_cpus: int, verbose: bool) -> Iterator[None]:
    """Run Ray for the duration of a `with` block.

    Joins the cluster that RAY_ADDRESS names, if it is set.

    Args:
        num_cpus: CPUs a trial needs. Where the machine has fewer, Ray is told it has these
            many, so that the trial runs slowly rather than waits for ever.
        verbose: Show what Ray and its workers print.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    level = logging.INFO if verbose else logging.ERROR
    local = {
        "num_cpus": max(num_cpus, machine_cpus()),
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
        "_node_ip_address": "127.0.0.1",
    }
    with phase("starting Ray"):
        ray.init(
            log_to_driver=verbose,
            logging_level=level,
            **({} if os.environ.get("RAY_ADDRESS") else local),
        )
    for name in ("ray.tune", "ray.rllib", "ray.train"):
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        ray.shutdown()


def machine_cpus() -> int:
    """Return how many CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
