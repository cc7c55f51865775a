"""Stages in processes of their own: what one of them does ends none of the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

BENCHMARKS = Path(__file__).parents[1]

DONE, FAILED, TIMED_OUT, SKIPPED = "done", "failed", "timed out", "skipped"
"""What becomes of a stage."""

NO_DEVICE = "none"
"""The `CUDA device` that the first stage finds where there is none."""

LEAST_SECONDS = 5.0
"""With less than this left, a stage is not begun."""

PATIENCE = 5.0
"""Limits are so many times as long without a device: such a machine may be slow, and busy."""


class Stage(NamedTuple):
    """One stage.

    Attributes:
        name: Of its files.
        function: `MODULE:FUNCTION`, from a `Setting` to `Row`s.
        limit_s: How long it may take.
        needs_device: Whether it is skipped on a machine without a CUDA device.
        environment: Variables of its process.
    """

    name: str
    function: str
    limit_s: float
    needs_device: bool = False
    environment: Mapping[str, str] = {}


class Outcome(NamedTuple):
    """What became of a stage.

    Attributes:
        stage: Its name.
        status: `DONE`, `FAILED`, `TIMED_OUT` or `SKIPPED`.
        seconds: How long it took.
        reason: Why it was not done.
        rows: What it found, as JSON; of a stage that was not done, what it had found until then.
    """

    stage: str
    status: str
    seconds: float
    reason: str
    rows: list[dict[str, Any]]


def run_all(
    stages: Sequence[Stage], folder: Path, *, ends_at: float, short: bool
) -> Iterator[Outcome]:
    """Run stages one after the other.

    Args:
        stages: The first of them says which device there is.
        folder: Takes each stage's rows, `NAME.json`, and what it printed, `NAME.log`.
        ends_at: When all of them are to be over (`time.monotonic`).
        short: Small sizes only; so it is without a device anyway.
    """
    device = "cpu"
    for stage in stages:
        left = ends_at - time.monotonic()
        if left < LEAST_SECONDS:
            yield Outcome(stage.name, SKIPPED, 0.0, "no time left", [])
        elif stage.needs_device and device == "cpu":
            yield Outcome(stage.name, SKIPPED, 0.0, "needs a CUDA device", [])
        else:
            how = ["--device", device] + ["--short"] * (short or device == "cpu")
            limit_s = stage.limit_s * (PATIENCE if device == "cpu" else 1.0)
            outcome = run(stage, folder, how, limit_s=min(limit_s, left))
            yield outcome
            if stage is stages[0] and has_device(outcome.rows):
                device = "cuda"


def has_device(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the first stage's rows tell of a CUDA device."""
    return any(row["what"] == "CUDA device" and row["value"] != NO_DEVICE for row in rows)


def run(stage: Stage, folder: Path, how: Sequence[str], *, limit_s: float) -> Outcome:
    """Run one stage, and end it and all it has started when its time is up."""
    rows, log = folder / f"{stage.name}.json", folder / f"{stage.name}.log"
    rows.unlink(missing_ok=True)
    command = [sys.executable, "-m", "gpu_stages", stage.function, str(rows)]
    command += ["--folder", str(folder), "--limit", f"{limit_s:.1f}", *how]
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**environment(), **stage.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status, reason = DONE, ""
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status, reason = TIMED_OUT, f"after {limit_s:.0f} s"
        finally:
            end(process)
    if status == DONE and process.returncode != 0:
        status, reason = FAILED, last_line(log) or f"exit status {process.returncode}"
    found = json.loads(rows.read_text()) if rows.exists() else []
    return Outcome(stage.name, status, time.monotonic() - started, reason, found)


def environment() -> dict[str, str]:
    """The variables of this process; modules of this checkout are found first."""
    paths = [str(BENCHMARKS), str(BENCHMARKS.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def end(process: subprocess.Popen[Any]) -> None:
    """End a process that leads a session, and what it has left behind there."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # nobody is left
    process.wait()


def last_line(log: Path) -> str:
    """The last that a stage printed: with an exception, what it says."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
