"""`rllib model` on checkpoints of policies other than VPT."""

import json

import pytest
import torch
from safetensors.torch import load_file

from rllib_minestudio import checkpoints
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.models.policy import copy_policy
from rllib_minestudio.models.rl_modules import ConvGRURLModule
from tests.models.vpt.checkpoints import tell

OPTIONS = {"hidden_size": 8, "channels": [2, 2, 2], "text_size": 2, "temperature": 1.0}


@pytest.fixture
def module():
    spaces = MineStudioEnv.spaces_of({"obs_size": [64, 64]})
    return ConvGRURLModule(model_config=OPTIONS, **spaces)


@pytest.fixture
def folder(module, tmp_path):
    torch.save(module.network.state_dict(), tmp_path / "state.pt")
    copy_policy(checkpoints.open(tmp_path / "state.pt"), tmp_path / "policy", "ConvGRU", OPTIONS)
    return tmp_path / "policy"


def _words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("name", ["ConvGRU", "no_such_package.module.MyPolicy"])
def test_info_needs_no_class(module, folder, capsys, name):
    tell(folder, json.dumps({"policy": name, "options": OPTIONS}))
    for path in (folder, folder.parent):  # the policy's folder, and the checkpoint's
        assert main(["model", "info", str(path)]) == 0
        shown = _words(capsys.readouterr().out)
        state = module.network.state_dict()
        numbers = sum(tensor.numel() for tensor in state.values())
        assert f"class {name} " in shown
        assert "'hidden_size': 8, 'channels': [2, 2, 2]" in shown
        assert f"parameters {numbers:,} (float32)" in shown
        assert f"tensors {len(state)}" in shown


def test_minestudio_has_no_such_class(folder, tmp_path, capsys):
    assert main(["model", "export", str(folder), str(tmp_path / "out")]) == BAD_INPUT
    said = _words(capsys.readouterr().err)
    assert "of the class ConvGRU, which MineStudio does not have" in said
    assert "--own" in said
    assert not (tmp_path / "out").exists()


def test_our_own_form_is_copied_as_it_is(folder, tmp_path, capsys):
    target = tmp_path / "out"
    assert main(["model", "export", "--own", str(folder), str(target)]) == 0
    assert "ConvGRU" in capsys.readouterr().out
    for name in ("network.json", "model.safetensors"):
        assert (target / name).read_bytes() == (folder / name).read_bytes()
    assert not (target / "playing.yaml").exists(), "it is not known what it played"


def test_what_it_played_is_copied_too(folder, tmp_path, capsys):
    (folder / "playing.yaml").write_text("env: x")
    target = tmp_path / "out"
    assert main(["model", "export", "--own", str(folder), str(target)]) == 0
    assert "network.json, model.safetensors and playing.yaml, ConvGRU" in capsys.readouterr().out
    assert (target / "playing.yaml").read_text() == "env: x"


def test_a_copy_may_be_more_decided(module, folder, tmp_path):
    target = tmp_path / "out"
    arguments = ["--own", "--temperature", "0.25", str(folder), str(target)]
    assert main(["model", "export", *arguments]) == 0
    state, sharper = module.network.state_dict(), load_file(target / "model.safetensors")
    assert state.keys() == sharper.keys()
    for name, tensor in state.items():
        scale = 4 if name.startswith("action_head.") else 1
        torch.testing.assert_close(sharper[name], scale * tensor)
    description = (folder / "network.json").read_text()
    assert (target / "network.json").read_text() == description


def test_heads_of_another_kind_have_no_temperature(tmp_path, capsys):
    torch.save({"pi.weight": torch.ones(3)}, tmp_path / "state.pt")
    copy_policy(checkpoints.open(tmp_path / "state.pt"), tmp_path / "policy", "my.Policy", {})
    arguments = ["--own", "--temperature", "0.5", str(tmp_path / "policy"), str(tmp_path / "out")]
    assert main(["model", "export", *arguments]) == BAD_INPUT
    assert "its action heads are not this package's" in _words(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_only_vpts_memory_can_be_shortened(folder, tmp_path, capsys):
    arguments = ["--own", "--memory", "3", str(folder), str(tmp_path / "out")]
    assert main(["model", "export", *arguments]) == BAD_INPUT
    assert "--memory shortens VPT's memory only" in _words(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "no_such_package.module.MyPolicy",
            "which cannot be imported (No module named 'no_such_package'): install it, or put the",
        ),
        ("raises.MyPolicy", "which cannot be imported (RuntimeError: not today)."),
        ("exits.MyPolicy", "which cannot be imported (SystemExit: 3)."),
        ("json.MyPolicy", "(module 'json' has no attribute 'MyPolicy')."),
        ("os.system", "or a subclass of RecurrentRLModule"),
    ],
)
def test_a_class_that_is_missing_is_named(folder, tmp_path, capsys, monkeypatch, name, complaint):
    """By all commands that play."""
    (tmp_path / "raises.py").write_text("raise RuntimeError('not today')")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    place = tmp_path / "learner_group" / "learner" / "rl_module" / "default_policy"
    place.mkdir(parents=True)
    description = {"policy": name, "options": OPTIONS}
    tell(folder, json.dumps(description))
    assert main(["evaluate", str(tmp_path), "--trust", "--out", str(tmp_path / "out")]) == BAD_INPUT
    said = _words(capsys.readouterr().err)
    assert complaint in said and name in said and str(tmp_path) in said
    assert said.count("error:") == 1
