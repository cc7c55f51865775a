"""The network against MineStudio's own VPTPolicy, where MineStudio is installed.

Without it, test_golden.py compares with numbers that it once gave. The package is imported in
another process, because importing it replaces parts of other packages.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "golden" / "compare_live.py"


@pytest.mark.skipif(
    importlib.util.find_spec("minestudio") is None, reason="MineStudio is not installed"
)
@pytest.mark.parametrize("size", ["narrow", "nano", "deep"])
def test_the_live_package_gives_the_same_numbers(size, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), size, str(tmp_path / "exported")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal" in done.stdout
