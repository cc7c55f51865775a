"""What the summary reads back."""

import json
from types import SimpleNamespace

import pytest

from rllib_minestudio.experiments import summary
from rllib_minestudio.experiments.summary import _last_return, draw_curves, read_history, summarize


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

    monkeypatch.setattr(summary, "_record_video", fail)
    lines = {"training_iteration": 1, "num_env_steps_sampled_lifetime": 64}
    trial = SimpleNamespace(
        path=tmp_path, error=None, metrics=lines, config={}, checkpoint=None, errors=[]
    )
    config = SimpleNamespace(metrics_num_episodes_for_smoothing=20, env=None)
    plan = SimpleNamespace(name="tiny", searched=[], example=config)
    with pytest.raises(RuntimeError, match="no film today"):
        summary.summarize(plan, tmp_path, [trial], [1.0, 3.0], 5.0)
    saved = json.loads((tmp_path / "summary.json").read_text())
    assert saved["random_policy"]["mean_return"] == 2.0
    assert saved["video"] is None


def write_history(folder, returns):
    folder.mkdir()
    lines = [
        {
            "training_iteration": i + 1,
            "num_env_steps_sampled_lifetime": 100 * (i + 1),
            "env_runners": {
                "episode_return_mean": value,
                "episode_return_min": None if value is None else value - 1,
                "episode_return_max": None if value is None else value + 2,
            },
        }
        for i, value in enumerate(returns)
    ]
    (folder / "result.json").write_text("\n".join(map(json.dumps, lines)))
    return lines[-1]


@pytest.fixture
def curves(monkeypatch):
    """The curves that would be drawn."""
    drawn = []
    monkeypatch.setattr(summary, "draw", lambda title, curves, *others: drawn.extend(curves))
    return drawn


def test_seeds_are_one_curve_with_a_band_and_other_settings_one_each(tmp_path, curves):
    trials = []
    for lr in (1e-4, 1e-3):
        for seed in (0, 1):
            folder = tmp_path / f"{lr}-{seed}"
            write_history(folder, [None, lr + seed, lr + 2 * seed])
            trials.append((folder, {"lr": lr, "seed": seed}))
    assert draw_curves("cow", trials, tmp_path / "curve.png", None, 20)
    labels = [curve.label for curve in curves]
    assert labels == [f"lr={lr}, 2 seeds: mean and range" for lr in ("0.0001", "0.001")]
    assert list(curves[1].lowest) == [1e-3, 1e-3]
    assert list(curves[1].highest) == [1e-3 + 1, 1e-3 + 2]


def test_every_trial_of_a_search_has_a_curve(tmp_path, curves):
    trials = [(tmp_path / str(lr), {"lr": lr}) for lr in (1.00001, 1.00002)]
    for folder, _ in trials:
        write_history(folder, [1.0])
    write_history(tmp_path / "nothing", [None])
    trials.append((tmp_path / "nothing", {"lr": 3.0}))
    assert draw_curves("cow", trials, tmp_path / "curve.png", None, 20)
    assert [curve.label for curve in curves] == ["lr=1", "lr=1"]
    assert [curve.lowest for curve in curves] == [None, None]
    assert not draw_curves("cow", trials[2:], tmp_path / "curve.png", None, 20)


def test_a_run_that_is_alone_shows_the_range_of_its_episodes(tmp_path, curves):
    write_history(tmp_path / "only", [None, 3.0, 4.0])
    assert draw_curves("cow", [(tmp_path / "only", {})], tmp_path / "curve.png", None, 20)
    (curve,) = curves
    assert curve.label == "agent: mean and range"
    assert (curve.lowest, curve.returns, curve.highest) == ((2.0, 3.0), (3.0, 4.0), (5.0, 6.0))


def trial(tmp_path, seed, returns, error=None):
    metrics = write_history(tmp_path / str(seed), returns)
    return SimpleNamespace(
        path=tmp_path / str(seed),
        error=error,
        metrics=metrics,
        config={"seed": seed},
        checkpoint=None,
    )


def test_failed_trials_are_called_failed_and_so_says_the_exit_status(tmp_path, capsys, curves):
    summary = SimpleNamespace(video_episodes=0)
    plan = SimpleNamespace(name="tiny", searched=[("seed",)], summary=summary, stop={})
    plan.example = SimpleNamespace(metrics_num_episodes_for_smoothing=20, env=None)
    results = [trial(tmp_path, 0, [1.0]), trial(tmp_path, 1, [3.0])]
    assert summarize(plan, tmp_path, results, [], 5.0) == 0
    output = capsys.readouterr()
    assert "mean return over 2 seeds: 2.00 (from 1.00 to 3.00)" in output.out
    assert "trials failed" not in output.err and "A trial failed" not in output.err
    results.append(trial(tmp_path, 2, [2.0], RuntimeError("Traceback ...\nKeyError: 'cow'")))
    none = SimpleNamespace(
        path=tmp_path, error=OSError("full"), metrics={}, config=None, checkpoint=object()
    )
    results.append(none)
    assert summarize(plan, tmp_path, results, [], 5.0) == 1
    output = capsys.readouterr()
    rows = [line for line in output.out.splitlines() if line.endswith("  failed")]
    with_result, without = rows
    assert "2.00" in with_result and "2.00" not in without
    assert "A trial failed: KeyError: 'cow'" in output.err
    assert "tiny: 2 of 4 trials failed; --resume continues" in output.err
    saved = json.loads((tmp_path / "summary.json").read_text())
    assert saved["failed_trials"] == 2
    assert [one["error"] for one in saved["trials"]] == [None, None, "KeyError: 'cow'"]
    assert summarize(plan, tmp_path, [], [], 5.0) == 1


def test_a_run_that_failed_before_its_first_result_says_so(tmp_path, capsys):
    failed = SimpleNamespace(
        path=tmp_path, error=ValueError("no"), metrics={}, config={}, checkpoint=None
    )
    assert summarize(SimpleNamespace(name="tiny"), tmp_path, [failed], [], 5.0) == 1
    assert "tiny: the trial failed; no checkpoint was saved" in capsys.readouterr().err
