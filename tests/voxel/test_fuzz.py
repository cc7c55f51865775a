"""Random play, checked every tick, in two processes at once: see `fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TICKS = 4000
PARTS, EPISODES_PER_PART = 5, 50
"""What the slow form plays: 10^6 ticks."""


def play_twice(first: int, episodes: int, ticks: int, timeout: float) -> None:
    """Plays the same episodes in two processes, which must find nothing wrong and agree."""
    command = [sys.executable, "-m", "tests.voxel.fuzz", "--first", str(first)]
    command += ["--episodes", str(episodes), "--ticks", str(ticks)]
    twins = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(2)
    ]
    try:
        told = [twin.communicate(timeout=timeout) for twin in twins]
    finally:
        for twin in twins:
            twin.kill()
            twin.wait()
    hashes = []
    for twin, (output, errors) in zip(twins, told, strict=True):
        lines = [line for line in output.splitlines() if not line.startswith("#")]
        assert twin.returncode == 0, f"episode {first + len(lines)}:\n{errors[-4000:]}"
        hashes.append(lines)
    assert len(hashes[0]) == episodes
    assert hashes[0] == hashes[1]


def test_thousands_of_ticks_of_anything():
    play_twice(first=1000, episodes=6, ticks=1000, timeout=300)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_million_ticks_of_anything(part):
    play_twice(part * EPISODES_PER_PART, EPISODES_PER_PART, TICKS, timeout=800)
