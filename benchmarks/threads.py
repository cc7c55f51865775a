"""What torch's waiting threads cost beside other programs: they sleep, or spin as they would alone.

    python benchmarks/threads.py

Trains `cow_vpt.yaml` in short iterations, in one process with two threads, alternating between what
the package chooses (`processor_threads.py`) and what OpenMP does by itself, on the machine as it is
and beside two loops that want a core each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE = Path(__file__).parents[1] / "tuned_examples" / "cow_vpt.yaml"

SHORT = (
    *("rollout_fragment_length=16", "context_length=16", "decorrelation_steps=0"),
    *("summary.random_policy_episodes=0", "summary.video_episodes=0"),
)
"""512 steps an iteration, where the file has 2,048."""

WAYS = {
    "sleep (chosen)": {},
    # What GNU's OpenMP does where the environment says nothing.
    "spin (torch's default)": {"GOMP_SPINCOUNT": "300000"},
}

LOOPS = 2


def main() -> None:
    """Print a table of steps per second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind (default: 2)")
    parser.add_argument("--seconds", type=float, default=25.0, help="of training (default: 25)")
    arguments = parser.parse_args()
    print(f"| waiting threads | idle, steps/s | beside {LOOPS} busy loops, steps/s |")
    print("|---|---|---|")
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(arguments.rounds):
        for loops in (0, LOOPS):
            for name, environment in WAYS.items():
                with busy_loops(loops):
                    rate = steps_per_second(environment, arguments.seconds)
                found.setdefault((name, loops), []).append(rate)
                print(f"  {name}, {loops} loops: {rate:.0f}", file=sys.stderr, flush=True)
    for name in WAYS:
        cells = [", ".join(f"{rate:,.0f}" for rate in found[name, loops]) for loops in (0, LOOPS)]
        print(f"| {name} | {' | '.join(cells)} |")


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Let other processes want a core each."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def steps_per_second(environment: dict[str, str], seconds: float) -> float:
    """Train for a while, and return the median rate of the iterations after the first."""
    with tempfile.TemporaryDirectory() as folder:
        options = [word for option in SHORT for word in ("--set", option)]
        options += ["--stop", f"time_total_s={seconds}", "--stop", "training_iteration=40"]
        rllib = (sys.executable, "-m", "rllib_minestudio.cli.main")
        subprocess.run(
            [*rllib, "train", "file", str(FILE), "--out", folder, *options],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        (log,) = Path(folder).glob("*/*/*/result.json")
        results = [json.loads(line) for line in log.read_text().splitlines()]
    steps = results[0]["num_env_steps_sampled_lifetime"]
    times = [result["time_this_iter_s"] for result in results]
    return steps / statistics.median(times[1:] or times)


if __name__ == "__main__":
    main()
