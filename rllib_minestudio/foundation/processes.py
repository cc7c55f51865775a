"""How a process shares the processor, and the processes that it starts.

PyTorch's threads are OpenMP's. Left alone, a thread that waits for the others spins for a while:
where another process wants its core, the others wait for it meanwhile, and an operation takes
milliseconds instead of microseconds. So threads that wait sleep here. Ray runs its workers at the
lowest but four of the system's priorities (niceness 15), which beside any other program leaves them
a thirtieth of a core; here they count as much as others. OpenMP reads its variables once, when
PyTorch loads it, and Ray when it starts, which is why importing this package is what sets them
(`set_processor_environment`); processes that are started later, Ray's workers among them, inherit
them.

How many threads there are follows from who else computes: Ray gives each of its workers the CPUs
that were asked for, and a process that is none of Ray's gets what env runners and learners leave
over (`share_cores`).

A variable that is set already is left alone, and so decides.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Mapping

logger = logging.getLogger(__name__)

THREADS = "OMP_NUM_THREADS"

WAIT_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Lets waiting threads sleep: in GNU's OpenMP (`libgomp`, which PyTorch's wheels for Linux hold)
and, with both, in Intel's and LLVM's (`libiomp5`, `libomp`), which else spin for 200 ms."""

NICENESS = "RAY_worker_niceness"
PRIORITY = {NICENESS: "0"}
"""Gives Ray's workers the priority of other programs, where this process starts Ray."""

SPINNING = {
    "OMP_WAIT_POLICY": lambda value: value.strip().upper() == "ACTIVE",
    "GOMP_SPINCOUNT": lambda value: value.strip() not in ("", "0"),
    "KMP_BLOCKTIME": lambda value: value.strip() not in ("", "0"),
}
"""Variable -> whether with this value threads spin while they wait."""

OPENMP_LIBRARIES = ("libgomp", "libiomp", "libomp")
"""What the names of their files begin with."""

_came_too_late = False


def set_processor_environment() -> None:
    """Let waiting threads sleep and Ray's workers work, unless the environment decides."""
    global _came_too_late
    _came_too_late = "torch" in sys.modules and "OMP_WAIT_POLICY" not in os.environ
    for name, value in {**WAIT_POLICY, **PRIORITY}.items():
        os.environ.setdefault(name, value)


def machine_cpus() -> int:
    """Return how many CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for one of many small processes: a thread each, unless it says else."""
    return {THREADS: "1", **environment}


def threads_beside(other_cpus: float, cores: int) -> int:
    """Return how many threads a process computes with beside others on its machine.

    Args:
        other_cpus: What the others ask for.
        cores: What there is.
    """
    return max(1, cores - round(other_cpus))


def share_cores(other_cpus: float) -> None:
    """Leave env runners and learners their cores, where PyTorch would take all there are.

    It never adds threads: a user's own `torch.set_num_threads` counts, too. In a worker of Ray's,
    the CPUs that it was given have decided already: Ray sets OMP_NUM_THREADS.

    Args:
        other_cpus: What the processes ask for that this one is about to start.
    """
    import torch

    threads = threads_beside(other_cpus, machine_cpus())
    if THREADS not in os.environ and threads < torch.get_num_threads():
        torch.set_num_threads(threads)
    if _came_too_late and torch.get_num_threads() > 1:
        logger.warning(
            "torch was imported before rllib_minestudio, which could not choose any more what "
            "torch's %d threads do while they wait: they spin, and beside other programs training "
            "may be many times slower. Import rllib_minestudio first, or set "
            "OMP_WAIT_POLICY=PASSIVE.",
            torch.get_num_threads(),
        )


def openmp_library() -> str:
    """Return the file name of the OpenMP library in this process; "" if none is found."""
    try:
        with open("/proc/self/maps") as maps:
            files = {os.path.basename(line.split()[-1]) for line in maps}
    except OSError:  # not Linux
        return ""
    return next((file for file in sorted(files) if file.startswith(OPENMP_LIBRARIES)), "")


def thread_problem(environment: Mapping[str, str], threads: int, cores: int) -> str:
    """Say what makes training slow beside other programs; "" for nothing.

    Args:
        environment: Of the process.
        threads: With which PyTorch computes.
        cores: That the process may run on.
    """
    if threads > cores:
        return f"{threads} threads on {cores} cores wait for each other: unset {THREADS}"
    niceness = environment.get(NICENESS, "0")
    if niceness.strip() != "0":
        return f"{NICENESS}={niceness} lets Ray's workers wait for every other program: unset it"
    if threads == 1:
        return ""
    for name, spins in SPINNING.items():
        if name in environment and spins(environment[name]):
            return f"{name}={environment[name]} lets threads spin while they wait: unset it"
    return ""


# ------------------------------------------------ processes that end with the one that started them

_PR_SET_PDEATHSIG = 1
"""See prctl(2)."""


def die_with(parent: int) -> None:
    """Have the kernel (Linux) kill this process when its parent dies, whatever either is doing.

    Args:
        parent: Process id of the parent, which may have died already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
