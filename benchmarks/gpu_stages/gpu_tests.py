"""The tests that are marked `gpu`; without a device they are skipped, and rows say so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from xml.etree import ElementTree

from gpu_stages.processes import BENCHMARKS
from gpu_stages.rows import Row, Setting

FOLDERS = ("tests/models", "tests/algorithms/learner", "tests/policies")
"""Where the marked tests are; to look at all the others would take half of the time."""


def measure(setting: Setting) -> Iterator[Row]:
    """One row for each test.

    Raises:
        SystemExit: Some failed, or pytest found none at all.
    """
    report = setting.folder / "gpu_tests.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", f"--junitxml={report}", *FOLDERS]
    status = subprocess.run(command, cwd=BENCHMARKS.parent).returncode
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            found = {child.tag for child in case} & {"failure", "error", "skipped"}
            met = None if "skipped" in found else not found
            yield Row(case.get("name", "?"), ", ".join(found) or "passed", goal="passes", met=met)
    if status:
        raise SystemExit(f"pytest ended with status {status}")
