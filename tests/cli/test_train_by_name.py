"""`rllib train file gate_kl`: MineStudio's configs by their names."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from rllib_minestudio.cli.main import BAD_INPUT, main
from tests.cli.tiny import TINY
from tests.processes import run_rllib

EXAMPLE = Path(__file__).with_name("minestudio_config.py")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A MineStudio with one config, which complains if anybody imports it; returns the folder."""
    folder = tmp_path / "site" / "minestudio" / "online" / "run" / "config"
    folder.mkdir(parents=True)
    (tmp_path / "site" / "minestudio" / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "gate_kl.py").write_text(EXAMPLE.read_text())
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "minestudio", raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def said(capsys):
    captured = capsys.readouterr()
    return " ".join(captured.out.split()), " ".join(captured.err.split())


def test_a_config_of_the_installed_minestudio_is_converted(installed, capsys):
    wrong = ["--set", "lr=fast", "--set", "model.weights=null"]
    assert main(["train", "file", "gate_kl", *wrong]) == BAD_INPUT
    printed, errors = said(capsys)
    assert printed.count("executed") == 1
    assert str(installed / "gate_kl.py") in printed and "keeps gate_kl.yaml" in printed
    assert "gate_kl.config.lr must be a number" in errors
    assert not Path("results").exists()


def test_a_config_of_the_current_folder_goes_first(installed, tmp_path, capsys):
    own = tmp_path / "config" / "gate_kl.py"
    own.parent.mkdir()
    own.write_text("raise RuntimeError('the own one')")
    assert main(["train", "file", "gate_kl"]) == BAD_INPUT
    assert "RuntimeError: the own one" in said(capsys)[1]


def test_a_file_and_an_example_go_before_a_config(installed, tmp_path, capsys):
    (installed / "cow.py").write_text("raise RuntimeError('executed')")
    (tmp_path / "gate_kl").write_text("a file of that name")
    for name in ("cow", "gate_kl"):
        assert main(["train", "file", name, "--set", "lr=fast"]) == BAD_INPUT
        assert "executed" not in "".join(said(capsys))


def test_a_name_that_there_is_not_is_refused_with_the_nearest(installed, capsys):
    assert main(["train", "file", "gate_lk"]) == BAD_INPUT
    assert said(capsys)[1].endswith("'gate_lk'. Did you mean 'gate_kl'?")
    assert main(["train", "file", "cows"]) == BAD_INPUT
    assert "Did you mean 'cow'?" in said(capsys)[1]


def test_what_cannot_be_translated_whole_is_not_trained(installed, capsys):
    config = installed / "part.py"
    config.write_text("online_dict = {'train_config': {'clip_vloss': True}}")
    assert main(["train", "file", "part"]) == BAD_INPUT
    errors = said(capsys)[1]
    assert "part: not translated: train_config.clip_vloss=True" in errors
    assert f"`rllib convert {config}`" in errors and "nothing was trained" in errors
    assert not Path("results").exists()


OWN = """\
online_dict = {
    "trainer_name": "PPOTrainer",
    "train_config": {"num_iterations": 1, "save_interval": 1},
}

def env_generator():
    from minestudio.simulator import MinecraftSim
    from minestudio.simulator.callbacks import JudgeResetCallback
    return MinecraftSim(obs_size=(64, 64), callbacks=[JudgeResetCallback(20)])

def policy_generator():
    from minestudio.models import load_vpt_policy
    return load_vpt_policy("2x.model", "2x.weights")
"""


@pytest.mark.slow
def test_a_run_keeps_the_config_and_what_became_of_it(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "judge.py").write_text(OWN)
    tiny = {**TINY["tiny"]["config"], "env_config": {"engine": "voxel", "render_size": [64, 36]}}
    options = [f"{key}={json.dumps(value)}" for key, value in tiny.items()]
    options += ["model.weights=null", "summary={random_policy_episodes: 0, video_episodes: 0}"]
    sets = [word for option in options for word in ("--set", option)]
    status, output = run_rllib(tmp_path, "train", "file", "judge", *sets)
    assert status == 0, output
    assert "checking judge.yaml ..." in output
    (run,) = (tmp_path / "results" / "judge").iterdir()
    assert (run / "judge.py").read_text() == OWN
    written = yaml.safe_load((run / "judge.yaml").read_text())["judge"]
    assert written["config"]["env_config"]["callbacks"] == [{"JudgeReset": {"time_limit": 20}}]
    assert written["config"]["model"] == {"weights": ["2x.model", "2x.weights"]}
