"""Processes: CPU cores, children that end with their parent, limits on how often they may fail.

PyTorch's threads are OpenMP's. By default, a thread that waits for the others spins for a while. If
another process needs its core, the others have to wait meanwhile, and an operation takes
milliseconds instead of microseconds. So waiting threads sleep here. Ray runs its workers at
niceness 15, which leaves them a thirtieth of a core while another program needs it; here they have
normal priority. OpenMP reads its environment variables once, when PyTorch loads it, and Ray when it
starts. That is why importing this package sets them (`set_processor_environment`). Processes that
are started later, including Ray's workers, inherit them.

The number of threads depends on the other processes: Ray gives each of its workers the CPUs that it
asked for, and a process outside Ray gets what env runners and learners leave (`share_cores`).

Variables that are already set are left alone.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Mapping

logger = logging.getLogger(__name__)

THREADS = "OMP_NUM_THREADS"

WAIT_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Lets waiting threads sleep. GNU's OpenMP (`libgomp`, in PyTorch's Linux wheels) reads the first;
Intel's and LLVM's (`libiomp5`, `libomp`), which otherwise spin for 200 ms, need both."""

NICENESS = "RAY_worker_niceness"
PRIORITY = {NICENESS: "0"}
"""Gives Ray's workers normal priority, if this process starts Ray."""

SPINNING = {
    "OMP_WAIT_POLICY": lambda value: value.strip().upper() == "ACTIVE",
    "GOMP_SPINCOUNT": lambda value: value.strip() not in ("", "0"),
    "KMP_BLOCKTIME": lambda value: value.strip() not in ("", "0"),
}
"""Variable -> whether a value of it makes waiting threads spin."""

OPENMP_LIBRARIES = ("libgomp", "libiomp", "libomp")
"""Prefixes of the libraries' file names."""

_came_too_late = False


def set_processor_environment() -> None:
    """Let waiting threads sleep and Ray's workers run at normal priority, if not set otherwise."""
    global _came_too_late
    _came_too_late = "torch" in sys.modules and "OMP_WAIT_POLICY" not in os.environ
    for name, value in {**WAIT_POLICY, **PRIORITY}.items():
        os.environ.setdefault(name, value)


def machine_cpus() -> int:
    """Return the number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that limits a process to one thread, unless the given one sets this."""
    return {THREADS: "1", **environment}


def threads_beside(other_cpus: float, cores: int) -> int:
    """Return how many threads a process should use, given the other processes on its machine.

    Args:
        other_cpus: CPUs that the others ask for.
        cores: CPU cores of the machine.
    """
    return max(1, cores - round(other_cpus))


def share_cores(other_cpus: float) -> None:
    """Limit PyTorch's threads, of which there is one per core, to leave cores to other processes.

    Threads are never added, so a user's own `torch.set_num_threads` counts, too. In Ray's workers
    this does nothing: Ray has set OMP_NUM_THREADS to their CPUs.

    Args:
        other_cpus: CPUs of the env runners and learners that this process is about to start.
    """
    import torch

    threads = threads_beside(other_cpus, machine_cpus())
    if THREADS not in os.environ and threads < torch.get_num_threads():
        torch.set_num_threads(threads)
    if _came_too_late and torch.get_num_threads() > 1:
        logger.warning(
            "torch was imported before rllib_minestudio, which was then too late to set how "
            "torch's %d threads wait: they spin, and next to other programs training may be many "
            "times slower. Import rllib_minestudio first, or set OMP_WAIT_POLICY=PASSIVE.",
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
    """Return what makes training slow while other programs run; "" if nothing does.

    Args:
        environment: The process's environment variables.
        threads: Number of PyTorch's threads.
        cores: Number of cores that the process may run on.
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


# ------------------------------------------------------------- processes that die with their parent

_PR_SET_PDEATHSIG = 1
"""See prctl(2)."""


def die_with(parent: int) -> None:
    """Let the Linux kernel kill this process as soon as its parent dies.

    Args:
        parent: Process id of the parent. If it has already died, this process exits.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


# ------------- limits on how often something may fail before giving up, and delays between attempts

DIED = "died"
"""The cause of a failure in which the process exited or was killed."""

HOUR_S = 3600.0

_MOST_DOUBLINGS = 60
"""Bounds the delay's exponent: a caller that ignores the error may fail any number of times."""


class FailureBudget:
    """Counts the failures of one thing by cause, and limits them per hour and in a row.

    Args:
        thing: What fails, as the error's first words: "Environment 3".
        raises: The exception raised when there are too many failures.
        advice: The error's last sentence.
        max_per_hour: Failures tolerated within an hour; None for any number.
        option: Name of the option that sets `max_per_hour`, for the error.
        max_in_a_row: Failures tolerated in a row; None for any number.
        healthy_after: Successes after which the count of failures in a row restarts.
        first_delay_s: Delay in seconds after the second failure in a row; it doubles with each
            further one.
        max_delay_s: The longest delay in seconds.
        counts: A counter to share with other budgets; by default a new one.

    Attributes:
        counts: Failures so far, by cause.
    """

    def __init__(
        self,
        thing: str,
        raises: type[Exception],
        *,
        advice: str = "",
        max_per_hour: int | None = None,
        option: str = "max_per_hour",
        max_in_a_row: int | None = None,
        healthy_after: int = 1,
        first_delay_s: float = 0.0,
        max_delay_s: float = 0.0,
        counts: Counter[str] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter() if counts is None else counts
        self._thing = thing
        self._raises = raises
        self._advice = advice
        self._max_per_hour = max_per_hour
        self._option = option
        self._max_in_a_row = max_in_a_row
        self._healthy_after = healthy_after
        self._first_delay_s = first_delay_s
        self._max_delay_s = max_delay_s
        self._failed_at: deque[float] = deque()
        self._in_a_row = 0
        self._successes = 0

    @property
    def delay_s(self) -> float:
        """Seconds to wait before the next attempt."""
        if self._in_a_row < 2:
            return 0.0
        doublings = min(self._in_a_row - 2, _MOST_DOUBLINGS)
        return min(self._first_delay_s * 2**doublings, self._max_delay_s)

    def note_success(self, *, is_proof: bool = False) -> None:
        """Note a success.

        Args:
            is_proof: Whether this success alone ends a series of failures.
        """
        self._successes += 1
        if is_proof or self._successes >= self._healthy_after:
            self._in_a_row = 0

    def note_failure(self, cause: str, what: str) -> None:
        """Note a failure.

        Args:
            cause: The cause under which it is counted.
            what: What happened, for the error.

        Raises:
            Exception: There were too many failures; the type is `raises`.
        """
        now = time.monotonic()
        self.counts[cause] += 1
        self._successes = 0
        self._in_a_row += 1
        self._failed_at.append(now)
        while self._failed_at[0] < now - HOUR_S:
            self._failed_at.popleft()
        if self._max_per_hour is not None and len(self._failed_at) > self._max_per_hour:
            limit = f"{self._option}={self._max_per_hour}"
            self._give_up(f"{len(self._failed_at)} times within an hour ({limit})", what)
        if self._max_in_a_row is not None and self._in_a_row > self._max_in_a_row:
            self._give_up(f"{self._in_a_row} times in a row", what)

    def _give_up(self, how_often: str, what: str) -> None:
        told = f"{self._thing} failed {how_often}, the last time: {what}"
        raise self._raises(f"{told} {self._advice}" if self._advice else told)
