"""Records which tests run which lines, in all processes that the tests start."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SLOW_TESTS = ("tests/algorithms", "tests/correctness", "tests/policies", "tests/rllib_contract")
"""Where the slow ones are that train."""
CONFIG = """[run]
branch = True
parallel = True
source_pkgs = rllib_minestudio
patch = subprocess, fork, _exit
sigterm = True
dynamic_context = test_function
data_file = {folder}/data
"""


def cover(folder: Path, workers: int) -> None:
    """Write `coverage.json` and `durations.txt` for `draw`.

    Coverage notes the test for what runs in pytest's process, but not for what an actor runs. Most
    tests with actors are slow; each of those is recorded on its own, under its name.

    Args:
        folder: Gets all that is written.
        workers: How many tests run at the same time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "coveragerc"
    config.write_text(CONFIG.format(folder=folder.resolve()))

    def coverage(command: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "coverage", command, f"--rcfile={config}", *arguments]

    def recorded(test: str) -> str:
        command = coverage("run", f"--context={test}", "-m", "pytest", "-m", "slow", test)
        return _tested(command, test)

    distributed = ("-n", str(workers), "--dist", "worksteal")
    printed = [_tested(coverage("run", "-m", "pytest", *distributed), "all that are not slow")]
    with ThreadPoolExecutor(workers) as pool:
        printed += pool.map(recorded, slow_tests())
    (folder / "durations.txt").write_text("".join(printed))
    report = str(folder / "coverage.json")
    for command in (("combine", "-q"), ("json", "-q", "--show-contexts", "-o", report)):
        subprocess.run(coverage(*command), check=True)


def slow_tests() -> list[str]:
    """The ids of the slow tests, without parameters."""
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "slow", *SLOW_TESTS]
    printed = subprocess.run(collect, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted({line.partition("[")[0] for line in printed.splitlines() if "::" in line})


def _tested(command: list[str], name: str) -> str:
    """Run pytest; returns what it printed."""
    ended = subprocess.run([*command, "--durations=0"], stdout=subprocess.PIPE, text=True)
    outcome = ended.stdout.splitlines()[-1:] or [f"status {ended.returncode}"]
    print(f"{name}: {outcome[0].strip('= ')}", file=sys.stderr)
    return ended.stdout
