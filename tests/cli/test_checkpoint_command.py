"""`rllib checkpoint info`: of one checkpoint, and of a folder with some."""

import pytest

from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.saving import write_record
from rllib_minestudio.cli.main import main
from rllib_minestudio.experiments.trial_checkpoints import keep


def save(trial, number, iteration, mean_return):
    folder = trial / f"checkpoint_{number:06d}"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(bytes(2_000_000))
    result = {
        "training_iteration": iteration,
        "num_env_steps_sampled_lifetime": 1000 * iteration,
        "env_runners": {"episode_return_mean": mean_return},
    }
    config = MineStudioPPOConfig().training(lr=3e-4, model={"preset": "nano"})
    write_record(folder, config, result)
    keep(trial, folder, 4)
    return folder


@pytest.fixture
def trial(tmp_path):
    folder = tmp_path / "cow" / "2026-01-01_00-00-00" / "trial_a"
    save(folder, 0, 2, 1.0)
    save(folder, 1, 4, float("nan"))
    return folder


def test_a_checkpoint_says_what_it_was_made_with(trial, capsys):
    assert main(["checkpoint", "info", str(trial / "checkpoint_000000")]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in ("iteration 2", "env steps 2,000", "return 1.00", "lr: 0.0003", "preset: nano"):
        assert line in lines, line
    assert any("1 files, 2.0 MB, complete" in line for line in lines)
    assert not any(line.startswith("gamma") for line in lines), "as the default has it"


@pytest.mark.parametrize(("name", "number"), [("best", "2"), ("latest", "4")])
def test_one_is_found_by_name(trial, capsys, name, number):
    assert main(["checkpoint", "info", str(trial.parents[1] / name)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"iteration {number}" in lines


def test_the_whole_record_is_yaml(trial, capsys):
    path = trial / "checkpoint_000001"
    assert main(["checkpoint", "info", str(path), "--all"]) == 0
    assert capsys.readouterr().out == (path / "record.yaml").read_text()


def test_the_checkpoints_of_a_folder_are_listed(trial, capsys):
    assert main(["checkpoint", "info", str(trial.parents[1])]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:4] for row in rows] == [
        ["kept/iteration_000002", "2", "2,000", "1.00"],
        ["kept/iteration_000004", "4", "4,000", "-"],
        ["checkpoint_000000", "2", "2,000", "1.00"],
        ["checkpoint_000001", "4", "4,000", "-"],
    ]
    assert ["best" in row for row in rows] == [True, False, False, False]


def test_one_that_is_not_whole_is_told_and_the_others_are_shown(trial, capsys):
    weights = trial / "checkpoint_000001" / "weights"
    weights.unlink()
    assert main(["checkpoint", "info", str(trial)]) == 1
    shown = capsys.readouterr()
    assert "checkpoint_000001              -            -        -  incomplete" in shown.out
    assert "weights is missing" in shown.err
    assert main(["checkpoint", "info", str(weights.parent)]) == 2


def test_a_folder_without_checkpoints(tmp_path, capsys):
    assert main(["checkpoint", "info", str(tmp_path)]) == 2
    assert "holds no checkpoint." in capsys.readouterr().err
    assert main(["checkpoint", "info", str(tmp_path / "x")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
