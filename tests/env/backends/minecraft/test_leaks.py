"""Resets and dead games leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("minestudio", reason="pip install --no-deps -r requirements-minecraft.txt")

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "minecraft_soak.py"


def soak(resets, deaths):
    command = [sys.executable, SCRIPT, "--resets", str(resets), "--deaths", str(deaths)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr[-2000:]


def test_after_some_resets_and_deaths():
    soak(resets=60, deaths=2)


@pytest.mark.slow
def test_after_a_thousand_resets_and_fifty_deaths():
    soak(resets=1000, deaths=50)
