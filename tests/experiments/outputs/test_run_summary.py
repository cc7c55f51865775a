"""What the summary reads back."""

import json
from types import SimpleNamespace

import pytest

from rllib_minestudio.experiments.outputs import run_summary
from rllib_minestudio.experiments.outputs.run_summary import _last_return, read_history


def test_history_counts_repeated_iterations_once_and_survives_a_torn_line(tmp_path):
    lines = [
        {"training_iteration": 1, "value": "a"},
        {"training_iteration": 2, "value": "lost in the crash"},
        {"training_iteration": 2, "value": "b"},
        {"training_iteration": 3, "value": "c"},
    ]
    text = "\n".join(map(json.dumps, lines)) + '\n{"training_itera'
    (tmp_path / "result.json").write_text(text)
    assert [result["value"] for result in read_history(tmp_path)] == ["a", "b", "c"]


def test_a_trial_without_results_has_no_history(tmp_path):
    assert read_history(tmp_path) == []


def test_the_last_return_is_the_newest_that_was_measured(tmp_path):
    returns = [None, 3.5, float("nan")]
    lines = [
        {"training_iteration": i, "env_runners": {"episode_return_mean": value}}
        for i, value in enumerate(returns)
    ]
    (tmp_path / "result.json").write_text("\n".join(map(json.dumps, lines)))
    assert _last_return(SimpleNamespace(path=tmp_path)) == 3.5


def test_a_video_that_cannot_be_made_costs_no_number(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no film today")

    monkeypatch.setattr(run_summary, "_record_video", fail)
    lines = {"training_iteration": 1, "num_env_steps_sampled_lifetime": 64}
    trial = SimpleNamespace(
        path=tmp_path, error=None, metrics=lines, config={}, checkpoint=None, errors=[]
    )
    plan = SimpleNamespace(name="tiny", searched=[])
    with pytest.raises(RuntimeError, match="no film today"):
        run_summary.summarize(plan, tmp_path, [trial], [1.0, 3.0], 5.0)
    saved = json.loads((tmp_path / "summary.json").read_text())
    assert saved["random_policy"]["mean_return"] == 2.0
    assert saved["video"] is None
