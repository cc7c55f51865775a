"""Everything that is to be known of a machine with a CUDA device, in nine minutes at most.

    python benchmarks/gpu.py --out DIR [--stages NAME ...] [--short] [--budget SECONDS]

Every stage runs in a process of its own and within a limit of its own. What it finds lies in
DIR/NAME.json at once, row by row, and what it prints in DIR/NAME.log; one that fails or is too
slow ends no other, and what it had found stays. In the end there is a table, and DIR/gpu.json.

On a machine without a CUDA device it says so and goes through what a processor can do, in small
sizes, which shows that the stages themselves work; `--short` does the same on a device. Kernels
for the processor are compiled meanwhile, if they are not yet: what needs them comes last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from gpu_stages.processes import (
    DONE,
    NO_DEVICE,
    SKIPPED,
    Outcome,
    Stage,
    end,
    environment,
    has_device,
    run_all,
)
from gpu_stages.report import as_json, table
from rich.console import Console

from rllib_minestudio.foundation.files import write_whole

BUDGET_S = 540.0

STAGES = (
    Stage("machine", "gpu_stages.machine:measure", 15),
    Stage("acting", "gpu_stages.speed:acting", 55),
    Stage("training", "gpu_stages.speed:training", 95),
    Stage("memory", "gpu_stages.memory:measure", 15),
    Stage("two_learners", "gpu_stages.two_learners:measure", 30),
    Stage("equality", "gpu_stages.equality:measure", 60),
    Stage("gpu_tests", "gpu_stages.gpu_tests:measure", 85),
    Stage("cow_nano", "gpu_stages.cow:nano", 90),
    Stage(
        "resumed_on_cpu",
        "gpu_stages.cow:resumed_on_cpu",
        25,
        environment={"CUDA_VISIBLE_DEVICES": ""},
    ),
    Stage("cow_1x", "gpu_stages.cow:large", 60, needs_device=True),
)
"""In the order of running; their limits together are less than the budget."""


def main() -> int:
    """Run the stages, print the table, and return whether one was not what it should be."""
    started = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    names = [stage.name for stage in STAGES]
    parser.add_argument("--stages", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--short", action="store_true", help="small sizes, few repetitions")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds for all of them")
    arguments = parser.parse_args()
    folder, console = arguments.out, Console(width=160)
    folder.mkdir(parents=True, exist_ok=True)
    stages = [s for s in STAGES if s.name in arguments.stages or s is STAGES[0]]
    compiling = _compile(folder)
    outcomes: list[Outcome] = []
    try:
        ends_at = started + arguments.budget
        for outcome in run_all(stages, folder, ends_at=ends_at, short=arguments.short):
            _tell(outcome, console)
            outcomes.append(outcome)
            seconds = time.monotonic() - started
            summary = as_json(outcomes, seconds=seconds, short=arguments.short)
            write_whole(folder / "gpu.json", json.dumps(summary, indent=1))
    finally:
        end(compiling)
    console.print(table(outcomes, f"benchmarks/gpu.py, {seconds:.0f} s"))
    return any(outcome.status not in (DONE, SKIPPED) for outcome in outcomes)


def _tell(outcome: Outcome, console: Console) -> None:
    reason = f": {outcome.reason}" if outcome.reason else ""
    console.print(
        f"{outcome.stage}: {outcome.status} in {outcome.seconds:.0f} s{reason}",
        markup=False,
    )
    if outcome.stage == STAGES[0].name and not has_device(outcome.rows):
        console.print(f"CUDA device: {NO_DEVICE}; what a processor can do is run, in small sizes.")


def _compile(folder: Path) -> subprocess.Popen[bytes]:
    """Have the kernels compiled in the background: a minute's work, and the device needs none."""
    with (folder / "compile.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "rllib_minestudio.cli.main", "warmup"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


if __name__ == "__main__":
    sys.exit(main())
