"""The quick start of MineStudio's page on online training: converted whole, and trained from."""

import json

import pytest
import yaml

from rllib_minestudio.cli.main import main
from tests.cli.quick_start_page import WITHOUT_GPUS, program, small_weights
from tests.processes import run_rllib


def converted(folder, text, capsys):
    """Convert a program; returns the experiment, and what was printed."""
    (folder / "quick.py").write_text(text)
    target = folder / "quick.yaml"
    assert main(["convert", str(folder / "quick.py"), "--out", str(target)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return yaml.safe_load(target.read_text())["quick"], captured.out, target.read_text()


def test_the_page_is_translated_whole(tmp_path, capsys):
    experiment, printed, text = converted(tmp_path, program(), capsys)
    config = experiment["config"]
    assert config["model"]["weights"] == [
        "pretrained/foundation-model-2x.model",
        "pretrained/bc-from-early-game-2x.weights",
    ]
    assert "module_class" not in config and config["prior"] == "initial"
    assert experiment["stop"] == {"training_iteration": 4000}
    assert config["fragments_per_iteration"] == 400
    names = [next(iter(callback)) for callback in config["env_config"]["callbacks"]]
    assert names == [
        *("SummonMobs", "MaskActions", "Rewards", "Commands", "FastReset", "JudgeReset")
    ]
    for key in ("timestep_limit", "database_config", "num_readers", "fix_decoder"):
        assert key in printed and key in text.partition("\nquick:")[0]


def test_what_the_program_starts_counts(tmp_path, capsys):
    """Not the `online_dict` that it made its options of, before it changed them."""
    late = "online_cfg.train_config.learning_rate = 0.5\nstart_rolloutmanager(policy"
    experiment, _, _ = converted(tmp_path, program({"start_rolloutmanager(policy": late}), capsys)
    assert experiment["config"]["lr"] == 0.5


@pytest.mark.slow
def test_the_converted_page_trains(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    small_weights(tmp_path)
    converted(tmp_path, program(WITHOUT_GPUS), capsys)
    options = ["env_config.engine=voxel", "summary={random_policy_episodes: 0, video_episodes: 0}"]
    sets = [word for option in options for word in ("--set", option)]
    status, output = run_rllib(
        tmp_path, "train", "file", "quick.yaml", *sets, "--stop", "training_iteration=1"
    )
    assert status == 0, output
    (lines,) = (tmp_path / "results" / "quick").glob("*/*/result.json")
    result = json.loads(lines.read_text().splitlines()[-1])
    assert result["training_iteration"] == 1
    assert result["learners"]["default_policy"]["gradient_norm"] > 0
