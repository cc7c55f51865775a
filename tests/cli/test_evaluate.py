"""`rllib evaluate` and `rllib play`: options, and one run of each from end to end."""

from __future__ import annotations

import json

import pytest
import yaml

from rllib_minestudio.cli.evaluate import _overridden
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.evaluation.summary import Summary
from rllib_minestudio.recordings import find_recordings
from tests.cli.command import finished, start


def task(folder):
    """A task that takes a moment."""
    config = {
        "env_config": {
            "obs_size": [64, 64],
            "render_size": [128, 72],
            "num_empty_frames": 1,
            "callbacks": [{"JudgeReset": {"time_limit": 12}}],
        },
        "model": {"preset": "nano"},
    }
    file = folder / "short.yaml"
    file.write_text(yaml.dump({"short": {"config": config}}))
    return str(file)


def test_an_agent_is_watched(tmp_path, capsys):
    out = tmp_path / "plays"
    arguments = ["play", task(tmp_path), "--agent", "random", "--episodes", "2"]
    assert main([*arguments, "--out", str(out)]) == 0
    first, second = find_recordings(out)
    assert len(first) == len(second) == 12
    assert next(first.frames()).shape == (288, 512, 3)  # 128x72, enlarged for the overlay
    assert "returns: 0, 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, message",
    [
        (["--filter", "kil_entity:cow>=3"], "Did you mean 'kill_entity'"),
        (["--episodes", "0"], "must be an integer of at least 1"),
        (["--only", "best"], "or best_K"),
        (["--record", "x", "--format", "minestudo"], "Did you mean 'minestudio'"),
        ([], "is not a checkpoint of an algorithm"),
    ],
)
def test_mistakes_are_told_before_anything_starts(tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(tmp_path), *words]) == BAD_INPUT
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_agent_is_refused(tmp_path, capsys):
    assert main(["play", task(tmp_path), "--agent", "hunte"]) == BAD_INPUT
    assert "Did you mean 'hunter'" in capsys.readouterr().err.replace("\n", " ")


def test_an_evaluation_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "summary.json").write_text("{}")
    assert main(["evaluate", "somewhere", "--out", str(tmp_path)]) == BAD_INPUT
    assert "holds an evaluation already" in capsys.readouterr().err


def test_options_of_the_environment_are_changed_by_their_path():
    config = {"callbacks": [{"JudgeReset": {"time_limit": 600}}], "seed": 0}
    changed = _overridden(config, ["env_config.callbacks.0.JudgeReset.time_limit=9", "seed=4"])
    assert changed == {"callbacks": [{"JudgeReset": {"time_limit": 9}}], "seed": 4}
    assert config["callbacks"][0]["JudgeReset"]["time_limit"] == 600


@pytest.mark.slow
def test_train_then_evaluate_then_compare(tmp_path):
    def run(*arguments):
        status, output = finished(start(tmp_path, *arguments))
        assert status == 0, output

    words = ["--set", "fragments_per_iteration=2", "--set", "num_envs_per_env_runner=2"]
    words += ["--set", "rollout_fragment_length=8", "--stop", "training_iteration=1"]
    run("train", "file", task(tmp_path), *words, "--out", "results")
    checkpoint = str(next((tmp_path / "results").rglob("rllib_checkpoint.json")).parent)
    common = ["evaluate", checkpoint, "--episodes", "3", "--filter", "length>=12"]
    run(*common, "--record", "one")
    run(*common, "--out", "two", "--workers", "1", "--compare", "one")
    one, two = Summary.load(tmp_path / "one"), Summary.load(tmp_path / "two")
    assert one.rate == two.rate and one.rate.num_yes == 3
    assert [e.undiscounted_return for e in one.episodes] == [
        e.undiscounted_return for e in two.episodes
    ]
    assert len(list(find_recordings(tmp_path / "one"))) == 3
    assert json.loads((tmp_path / "one" / "summary.json").read_text())["policy"]["weights"]
