"""Random play, checked every tick: see `fuzz`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TICKS = 4000
EPISODES = int(os.environ.get("FUZZ_EPISODES", "16"))
"""Of the sweep, which plays 64,000 ticks; with 252 it is a million."""
PATIENCE = 300 + 60 * EPISODES
"""Seconds; an episode of 4,000 ticks takes 7 of them."""


def play(parts: list[tuple[int, int]], ticks: int, timeout: float) -> list[list[str]]:
    """Plays episodes, each part in a process of its own, which must find nothing wrong.

    Args:
        parts: (first episode, number of episodes).
        ticks: Of an episode.
        timeout: Seconds until all must have ended.

    Returns:
        Per part, a line with a hash for each episode.
    """
    players = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.env.voxel.fuzz", "--ticks", str(ticks)),
                *("--first", str(first), "--episodes", str(episodes)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for first, episodes in parts
    ]
    try:
        told = [player.communicate(timeout=timeout) for player in players]
    finally:
        for player in players:
            player.kill()
            player.wait()
    hashes = []
    for player, (first, episodes), (output, errors) in zip(players, parts, told, strict=True):
        lines = [line for line in output.splitlines() if not line.startswith("#")]
        assert player.returncode == 0, f"episode {first + len(lines)}:\n{errors[-4000:]}"
        assert len(lines) == episodes
        hashes.append(lines)
    return hashes


@pytest.mark.slow
def test_thousands_of_ticks_of_anything():
    one, other = play([(1000, 3)] * 2, ticks=1000, timeout=300)
    assert one == other


@pytest.mark.sweep
@pytest.mark.timeout(PATIENCE + 60)
def test_tens_of_thousands_of_ticks_of_anything(turn):
    """Each episode is played in two processes, which must agree."""
    for episode in range(EPISODES)[turn]:
        one, other = play([(episode, 1)] * 2, TICKS, timeout=PATIENCE)
        assert one == other
