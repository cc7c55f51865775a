"""`--set` of the commands that play changes the environment and the policy, and nothing else."""

from pathlib import Path

import pytest
import torch
import yaml

from rllib_minestudio import checkpoints
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.evaluation.policy_loading import load_module
from rllib_minestudio.experiments.evaluate_checkpoint import RecordingRequest
from rllib_minestudio.experiments.played_policy import load_policy_of, task_policy
from rllib_minestudio.experiments.recording_order import recording_order
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import export_network
from tests.models.conftest import TINY_OPTIONS

SIZES = {**TINY_OPTIONS, "img_shape": [32, 16, 3], "action_head": "joint", "temperature": 1.5}
NANO = "package:hunter_nano"
TASK = {
    "env_config": {
        "render_size": [64, 36],
        "num_empty_frames": 1,
        "callbacks": [{"JudgeReset": {"time_limit": 4}}],
    },
    "model": {"weights": "nobody/has_this"},
    "num_envs_per_env_runner": 1,
}


@pytest.fixture
def weights(tmp_path):
    """Weights as MineStudio has them, of sizes that no preset has."""
    torch.manual_seed(0)
    export_network(VPTNetwork(VPTConfig.from_options(SIZES)), tmp_path / "weights")
    return str(tmp_path / "weights")


@pytest.fixture
def file(tmp_path):
    """An experiment file that names neither the size of the frames nor weights that there are."""
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump({"short": {"env": "MineStudioEnv", "config": TASK}}))
    return str(path)


def played(policy):
    """What of a policy's config matters to these tests."""
    model = policy.config.model_config
    return policy.config.env_config["obs_size"], model["hidsize"], model["temperature"]


def test_a_file_plays_the_weights_that_the_command_line_names(file, weights):
    policy = load_policy_of(file, [f"model.weights={weights}", "env_config.gamma=1"])
    assert played(policy) == ([16, 32], 16, 1.5)  # width and height, from the weights
    assert policy.config.env_config["gamma"] == 1
    own = load_module(weights).get_state()
    assert (policy.weights["net.final_ln.weight"] == own["net.final_ln.weight"]).all()
    colder = load_policy_of(file, [f"config.model.weights={weights}", "model.temperature=0.5"])
    assert played(colder) == ([16, 32], 16, 0.5)


def test_a_checkpoint_keeps_its_weights_and_may_act_otherwise():
    as_it_is = load_policy_of(NANO)
    changed = load_policy_of(NANO, ["model.temperature=0.8", "env_config.gamma=1"])
    assert changed.config.model_config["temperature"] == 0.8
    assert changed.config.env_config["gamma"] == 1
    assert changed.identity == {**as_it_is.identity, "changed": {"temperature": 0.8}}
    policy = task_policy(checkpoints.open(NANO), ["model.temperature=0.8"])
    assert policy.env_defaults == {"obs_size": [64, 64]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("model.hidsize=64", "its weights decide the network. Options that can: temperature, prec"),
        ("model.preset=1x", "its weights decide the network"),
        ("model.weights=x", "they are the policy that plays; name others in its place"),
        ("model.freeze=[]", "it matters to training only"),
        ("model.temperature=-1", "temperature must be positive"),
        ("lr=1", "only options of the environment and of the policy change what is played"),
        ("model=3", "such as --set env_config.model=VALUE or --set model.model=VALUE"),
    ],
)
def test_what_cannot_be_changed_is_one_sentence(change, reason):
    with pytest.raises(InvalidOptionsError, match=reason) as refused:
        load_policy_of(NANO, [change])
    assert len(refused.value.problems) == 1


def test_beside_a_checkpoint_the_policy_of_a_file_is_changed(
    file, weights, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for one, other in ((NANO, file), (file, NANO)):
        words = ["evaluate", one, "--compare", other, "--out", "out"]
        assert main([*words, "--set", f"model.weights={weights}"]) == BAD_INPUT
        said = " ".join(capsys.readouterr().err.split())
        assert "cannot be compared: their environments or their options differ" in said


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("hunter", "--set model.temperature=0.8: 'hunter' is no policy with such options"),
        ("json:loads", "'json:loads' is no policy with such options"),
    ],
)
def test_scripted_agents_have_no_model(agent, message, file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change = ["--set", "model.temperature=0.8"]
    for command in (
        ["play", file, "--agent", agent],
        ["benchmark", "run", agent, "--suite", "animals", "--out", "out"],
    ):
        assert main([*command, *change]) == BAD_INPUT
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_task_is_played_by_weights_and_by_those_of_a_file(file, weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["play", file, "--agent", weights]) == 0  # frames of their size, whatever the task
    assert main(["play", file, "--agent", file, "--set", f"model.weights={weights}"]) == 0
    assert main(["play", file, "--agent", "random"]) == 0  # needs none of the task's weights


def test_demonstrations_are_recorded_as_the_weights_need_them(file, weights, capsys):
    def recorded(*changes):
        request = RecordingRequest(
            task=Path(file), episodes=1, out=Path("demos"), overrides=changes
        )
        return recording_order(request).env_config.get("obs_size")

    assert recorded(f"model.weights={weights}") == [16, 32]
    assert not capsys.readouterr().err
    # Weights that are yet to be trained on the recordings.
    assert recorded("model.weights=nowhere/to/be/found") is None
    assert "these weights may need others" in " ".join(capsys.readouterr().err.split())
    assert recorded("model.weights=nowhere/to/be/found", "model.preset=1x") is None
    assert not capsys.readouterr().err
