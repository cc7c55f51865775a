"""Runs the checks of this machine, each in a process of its own with a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rllib_minestudio.doctor.machine_checks import Check, Health

_AT_ONCE = 4


class Diagnosis(NamedTuple):
    """A check, what it found, and how long it took in seconds."""

    check: Check
    health: Health
    seconds: float


def is_needed(check: Check, groups: set[str]) -> bool:
    """Whether these groups cannot do without the check."""
    return check.needed and check.group in groups


def diagnose(checks: tuple[Check, ...]) -> list[Diagnosis]:
    """Run checks, some at a time, and return what they found, in their order."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_run, checks))


def _run(check: Check) -> Diagnosis:
    """Run a check in a process of its own, which is killed with all it started if it hangs."""
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "rllib_minestudio.doctor.machine_checks", check.name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=check.seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        health = Health(False, f"no answer within {check.seconds:g} s", "Try again; it may hang.")
    else:
        health = _read(process.returncode, output, errors)
    return Diagnosis(check, health, time.monotonic() - start)


def _kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:  # not read to its end: a grandchild may hold it open
            pipe.close()


def _read(status: int, output: str, errors: str) -> Health:
    """Read what a check printed; one that crashed has the last line of its errors as finding."""
    lines = output.strip().splitlines()
    if status == 0 and lines:
        return Health(**json.loads(lines[-1]))
    complaint = (errors.strip().splitlines() or [f"it ended with status {status}"])[-1]
    return Health(False, complaint, "Reinstall it, or see the message.")
