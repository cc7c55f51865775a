"""Ray nodes on one machine: training uses them, and goes on when one is lost."""

from __future__ import annotations

import json

import pytest

from tests.algorithms.training_loop.test_remote import accounted_for
from tests.processes import ROOT, run_python


@pytest.mark.slow
def test_training_loses_a_runners_node_and_the_learners_and_goes_on():
    status, output = run_python("-m", "tests.cluster.lose_a_node", cwd=ROOT)
    assert status == 0, output[-3000:]
    *log, last_line = output.splitlines()
    told = json.loads(last_line)
    seen = told["seen"]
    assert [part["env_runners"] for part in seen.values()] == [2, 1, 2, 2, 2]
    iterations = [part["iteration"] for part in seen.values()]
    assert iterations == sorted(set(iterations))
    last = seen["learning elsewhere"]
    assert last["restarts"]["env_runner_died"] == last["restarts"]["learner_died"] == 1
    assert last["iteration"] - 1 <= last["weights_version"] <= last["iteration"]
    for part in seen.values():
        assert accounted_for(part["replay_buffer"])
    (line,) = [line for line in log if "Env runner" in line]
    assert "died and is restarted" in line
    assert "1 of 2 env runners go on" in line
    (line,) = [line for line in log if "A learner died" in line]
    assert "rebuilt from the newest state" in line

    assert told["status"] == 0, told["output"]
    assert "joining the cluster at" in told["output"]
    assert "\n    1 " in told["output"]
