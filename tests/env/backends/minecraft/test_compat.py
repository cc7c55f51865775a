"""Importing MineStudio's package leaves the process's output and logging alone."""

import subprocess
import sys

import pytest

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

PROGRAM = """
import logging, sys
from pathlib import Path
from rllib_minestudio.env.backends.minecraft.prerequisites import import_minestudio
import_minestudio(Path(sys.argv[1]))
assert logging.root.handlers == []
logging.getLogger("rllib_minestudio").warning("heard")
"""


def test_importing_it_is_silent_and_leaves_logging_alone(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "heard\n")
