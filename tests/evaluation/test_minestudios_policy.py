"""MineStudio's own `VPTPolicy` as somebody's agent, against ours with the same weights."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

from tests.processes import run_python

ROOT = Path(__file__).parents[2]
CLOSE_CALL = 1e-4
"""Between two logits: which is the greater depends on the order in which numbers were added."""
FACTS = "facts: "

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("minestudio") is None, reason="MineStudio is not installed"
    ),
]


def found_out(folder, *calls):
    """What the last of some calls of `programs/both_policies.py` found out."""
    code = "from tests.evaluation.programs import both_policies as it"
    status, printed = run_python(
        *("-c", "; ".join([code, *calls])),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert status == 0, printed[-3000:]
    (facts,) = (line for line in printed.splitlines() if line.startswith(FACTS))
    return json.loads(facts.removeprefix(FACTS))


@pytest.mark.parametrize("weights", ["hunter", "random_weights"])
def test_the_most_probable_actions_are_equal_up_to_a_close_call(weights, tmp_path):
    episodes = found_out(tmp_path, f"it.{weights}('policy')", "it.deterministic('policy')")
    listed = []
    for number, episode in enumerate(episodes):
        gaps, difference = episode["gaps"], episode["first_difference"]
        close = next((t for t, gap in enumerate(gaps) if gap < CLOSE_CALL), None)
        listed.append((number, difference, close, min(gaps)))
        assert difference is None or (close is not None and difference >= close), listed
        assert close is not None or episode["lengths"][0] == episode["lengths"][1]
        assert len(gaps) == episode["lengths"][0] and episode["kinds"] > 20
        assert close is None or close > 50, listed  # or little was compared
    print("episode, first difference, first close call, smallest gap:", *listed, sep="\n")


def test_no_paired_test_tells_their_sampled_successes_apart(tmp_path):
    found = found_out(tmp_path, "it.hunter('policy')", "it.sampled('policy')")
    assert found["errors"] == [] and found["pairs"] == 40
    assert all(10 <= successes <= 35 for successes in found["successes"]), found
    assert found["success_p"] > 0.05 and found["return_p"] > 0.05, found
