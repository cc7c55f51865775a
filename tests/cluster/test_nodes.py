"""Ray nodes on one machine: training uses them, and goes on when one is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.algorithms.training_loop.test_remote import accounted_for


@pytest.mark.slow
def test_training_loses_a_runners_node_and_the_learners_and_goes_on():
    run = subprocess.run(
        [sys.executable, "-m", "tests.cluster.lose_a_node"],
        cwd=Path(__file__).parents[2],
        timeout=550,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    seen = told["seen"]
    assert [part["env_runners"] for part in seen.values()] == [2, 1, 2, 2, 2]
    iterations = [part["iteration"] for part in seen.values()]
    assert iterations == sorted(set(iterations))
    last = seen["learning elsewhere"]
    assert last["restarts"]["env_runner_died"] == last["restarts"]["learner_died"] == 1
    assert last["iteration"] - 1 <= last["weights_version"] <= last["iteration"]
    for part in seen.values():
        assert accounted_for(part["replay_buffer"])
    (line,) = [line for line in run.stderr.splitlines() if "Env runner" in line]
    assert "died and is restarted" in line
    assert "1 of 2 env runners go on" in line
    (line,) = [line for line in run.stderr.splitlines() if "A learner died" in line]
    assert "rebuilt from the newest state" in line

    assert told["status"] == 0, told["output"]
    assert "joining the cluster at" in told["output"]
    assert "iteration    1" in told["output"]
