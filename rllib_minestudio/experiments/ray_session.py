"""Starting Ray: quietly, and on one machine on loopback only, without dashboard and autoscaler."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rllib_minestudio.errors import MineStudioError
from rllib_minestudio.foundation.console import phase, stdout
from rllib_minestudio.foundation.processes import machine_cpus

OBJECT_STORE_BYTES = 1024**3
"""Shared memory for fragments and weights, beyond which Ray spills to disk."""

SECONDS_BETWEEN_STATE_SAVES = 10
"""Interval at which Tune saves the state for `--resume`, and copies results to their folder."""

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": str(SECONDS_BETWEEN_STATE_SAVES),
    "TUNE_WARN_THRESHOLD_S": "60",
    # Results lack the return until an episode has ended, which `sections.py` handles.
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    # Relative paths in an experiment file have the same meaning in a trial as on the command line.
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "PYTHONWARNINGS": "ignore",
}
"""Environment variables for Ray and its workers, unless the user has set them."""

LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes Ray use 127.0.0.1 as this machine's address, also on Linux, and listen only there.

(`ray.init(_node_ip_address="127.0.0.1")` does not: Ray replaces it by the external address.)
"""

START_ATTEMPTS = 3
"""Attempts at starting Ray's processes on this machine."""

NOT_NEEDED = ("start_monitor", "start_api_server", "start_log_monitor")
"""Methods of Ray's `Node` that start processes which a run on one machine does not need: the
autoscaler's monitor, the API server (which without a dashboard only reports usage), and the log
monitor, which forwards workers' output to the driver. Each is a Python process that imports Ray,
and costs a second of CPU time and 80 MiB."""

LOGGERS = ("ray.rllib", "ray.tune", "ray.train", "ray._common")


def set_environment() -> None:
    """Set the environment variables above; call it before anything imports Ray."""
    wanted = ENVIRONMENT if os.environ.get("RAY_ADDRESS") else {**ENVIRONMENT, **LOOPBACK_ONLY}
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def quieten(verbose: bool) -> None:
    """Silence Ray's libraries unless `verbose`, after importing them, which sets log levels.

    Errors are silenced too: Tune logs a failed trial's whole traceback, of which the summary shows
    the essential line.
    """
    import ray.rllib
    import ray.tune  # noqa: F401

    if not verbose:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def ray_session(num_cpus: int, verbose: bool) -> Iterator[list[dict[str, float]] | None]:
    """Run Ray for the duration of a `with` block.

    Joins the cluster at RAY_ADDRESS, if that is set, instead of starting Ray on this machine.

    Args:
        num_cpus: CPUs that a trial needs. If the machine has fewer, Ray is started with this
            number, so that the trial runs slowly instead of waiting forever.
        verbose: Show the output of Ray and its workers.

    Yields:
        The resources of each of the cluster's machines; None on this machine alone.

    Raises:
        MineStudioError: No cluster answers at RAY_ADDRESS, or Ray could not be started here.
    """
    import ray

    address = os.environ.get("RAY_ADDRESS")
    local = {
        "num_cpus": max(num_cpus, machine_cpus()),
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
    }
    logs = {
        "log_to_driver": verbose,
        "logging_level": logging.INFO if verbose else logging.ERROR,
    }
    with phase(f"joining the cluster at {address}" if address else "starting Ray"):
        if address:
            _join(address, logs)
        elif verbose:
            _start({**local, **logs})
        else:
            with fewer_processes():
                _start({**local, **logs})
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"]] if address else None
    finally:
        ray.shutdown()


@contextmanager
def fewer_processes() -> Iterator[None]:
    """Disable `NOT_NEEDED` processes within a `with` block; Ray has no option for this."""
    from ray._private.node import Node

    originals = {name: getattr(Node, name) for name in NOT_NEEDED if hasattr(Node, name)}
    for name in originals:
        setattr(Node, name, lambda *_args, **_kwargs: None)
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(Node, name, original)


CONNECT_SECONDS = 3.0
PROBE_SECONDS = 6.0
"""Longest times for a connection, and for the cluster's answer. Ray itself takes minutes to give up
an address at which nobody answers."""

_PROBE = """
import sys, ray, ray._raylet
try:
    ray._raylet.GcsClient(address=sys.argv[1])
except ray.exceptions.AuthenticationError:
    pass  # a cluster has answered; tokens are the business of who joins it
"""


_answered: set[str] = set()
"""Addresses at which a cluster answered."""


def require_cluster(address: str, origin: str = "RAY_ADDRESS") -> None:
    """Check that a Ray cluster answers at an address, within ten seconds.

    Args:
        address: `host:port`, `auto` for the cluster that this machine belongs to, or
            `ray://host:port`.
        origin: Where the address comes from, for the message.

    Raises:
        MineStudioError: Nobody answers there, or something else than a Ray cluster.
    """
    if address in _answered:
        return
    place, reason = address, ""
    try:
        if address == "auto":
            place = _address_of_this_machines_cluster()
        host, separator, port = place.removeprefix("ray://").rpartition(":")
        if not separator or not port.isdigit():
            raise ValueError("an address is HOST:PORT, or `auto`")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            pass
        if not place.startswith("ray://"):
            subprocess.run(
                [sys.executable, "-c", _PROBE, place],
                check=True,
                capture_output=True,
                timeout=PROBE_SECONDS,
            )
        _answered.add(address)
        return
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        reason = "something answers there, but not a Ray cluster of this version"
    except (OSError, ValueError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).rstrip(".")
    at = repr(address) if place == address else f"{place!r}, which {address!r} stands for"
    raise MineStudioError(
        f"No Ray cluster answers at {at} ({origin}): {reason}. Start one with `ray start --head`, "
        f"or {'unset RAY_ADDRESS' if origin == 'RAY_ADDRESS' else 'leave the address out'}."
    )


def _address_of_this_machines_cluster() -> str:
    """Return the address that Ray noted when a cluster was started on this machine.

    Raises:
        ConnectionError: There is no such note.
    """
    from ray._private import services

    return str(services.get_ray_address_from_environment("auto", None))


def _join(address: str, options: dict[str, Any]) -> None:
    import ray

    require_cluster(address)
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise MineStudioError(
            f"No Ray cluster answers at {address!r} (--address or RAY_ADDRESS): {error} "
            "Start one with `ray start --head`, or leave the address out."
        ) from error


def _start(options: dict[str, Any]) -> None:
    """Start Ray on this machine, in several attempts.

    Ray's processes have half a minute to find each other, which is not always enough on a busy
    machine.
    """
    import ray

    if ray.is_initialized():
        raise MineStudioError(
            "This process runs Ray already. Call ray.shutdown() first, or run `rllib` as a "
            "command of its own."
        )
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            ray.init(address="local", **options)
            return
        except Exception as error:  # Ray raises a bare Exception on timeout
            ray.shutdown()
            if attempt == START_ATTEMPTS:
                raise MineStudioError(
                    f"Ray could not be started on this machine, {START_ATTEMPTS} times: {error} "
                    "Its logs below /tmp/ray/session_latest/logs contain the reason. Often the "
                    "machine is too busy, or has too little memory or disk space."
                ) from error
            stdout.print(f"  Ray did not start ({error}); starting it again")


# -------------------------------------------------------- compiles kernels, with a progress message


def compile_kernels() -> bool:
    """Compile the embedded engine if necessary; return whether it was."""
    from rllib_minestudio.env.voxel import kernel_cache

    if kernel_cache.is_warm():
        return False
    with phase("compiling kernels (once per machine)") as show:
        kernel_cache.warmup(lambda message: show(message.strip()))
    return True


def compile_convolutions() -> bool:
    """Compile the networks' convolutions if necessary; return whether it was."""
    from rllib_minestudio.models.kernels import direct_calls, winograd_calls

    missing = [code for code in (direct_calls.CODE, winograd_calls.CODE) if not code.is_compiled()]
    if missing:
        with phase("compiling convolutions (once per machine)") as show:
            for code in missing:
                code.compile_once(lambda message: show(message.strip()))
    return bool(missing)
