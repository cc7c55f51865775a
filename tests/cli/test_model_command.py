"""`rllib model info` and `rllib model export`, on small checkpoints."""

import pytest
import torch
from safetensors.torch import load_file

from rllib_minestudio import checkpoints
from rllib_minestudio.cli.main import main
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import config_from_checkpoint, export_network, load_weights

OPTIONS = {
    "preset": "nano",
    "img_shape": [16, 16, 3],
    "hidsize": 16,
    "attention_heads": 2,
    "attention_memory_size": 12,
    "timesteps": 6,
}


@pytest.fixture
def network():
    torch.manual_seed(0)
    return VPTNetwork(VPTConfig.from_options(OPTIONS))


def _words(text):
    return " ".join(text.split())


def test_info_of_a_folder(network, tmp_path, capsys):
    export_network(network, tmp_path / "model")
    assert main(["model", "info", str(tmp_path / "model")]) == 0
    shown = _words(capsys.readouterr().out)
    state = load_file(tmp_path / "model" / "model.safetensors")
    parameters = sum(tensor.numel() for tensor in state.values())
    for words in (
        "Hugging Face folder",
        "hidsize 16, impala_width 0.5, 2 layers, 2 heads",
        "16 x 16 x 3",
        "memory 6 frames",
        "temperature 1 ",
        f"{parameters:,} (float32)",
        f"{len(state)} of {len(state)} tensors",
    ):
        assert words in shown, words


def test_info_of_a_bare_state_dict(network, tmp_path, capsys):
    state = {**network.state_dict(), "other_head.weight": torch.zeros(2)}
    torch.save(state, tmp_path / "a.pt")
    assert main(["model", "info", str(tmp_path / "a.pt")]) == 0
    shown = _words(capsys.readouterr().out)
    assert "temperature 2 (assumed)" in shown
    assert "ignored other_head.weight" in shown
    assert "read off the tensors" in shown


def test_info_lists_what_does_not_fit(network, tmp_path, capsys):
    state = network.state_dict()
    state["net.surprise"] = state.pop("net.final_ln.bias")
    torch.save(state, tmp_path / "a.pt")
    assert main(["model", "info", str(tmp_path / "a.pt")]) == 1
    shown = capsys.readouterr()
    words = _words(shown.err)
    assert "1 missing: net.final_ln.bias" in words and "1 unexpected: net.surprise" in words
    assert f"{len(state) - 1} of {len(state)} tensors" in _words(shown.out)


def test_info_of_nothing(tmp_path, capsys):
    assert main(["model", "info", str(tmp_path / "missing.pt")]) == 2
    assert "do not exist" in capsys.readouterr().err


def test_export_changes_no_probability(network, tmp_path, capsys):
    """Factored heads are multiplied out, because MineStudio has joint heads only."""
    export_network(network, tmp_path / "first")
    source, target = str(tmp_path / "first"), str(tmp_path / "second")
    assert main(["model", "export", source, target]) == 0
    assert "from_pretrained" in capsys.readouterr().out
    options = {**OPTIONS, "action_head": "joint"}
    exported = VPTNetwork(VPTConfig.from_options(options))
    load_weights(exported, checkpoints.open(target))
    image = torch.randint(0, 256, (1, 9, 16, 16, 3), dtype=torch.uint8)
    first = torch.zeros(1, 9, dtype=torch.bool)
    expected = network(image, first, network.initial_state(1))
    actual = exported(image, first, exported.initial_state(1))
    torch.testing.assert_close(actual.value_bt, expected.value_bt)
    for name, log_p in expected.logits.items():
        torch.testing.assert_close(actual.logits[name], log_p, rtol=1e-5, atol=1e-5)


def test_export_overwrites_nothing(network, tmp_path, capsys):
    export_network(network, tmp_path)
    assert main(["model", "export", str(tmp_path), str(tmp_path)]) == 2
    assert "already has config.json" in capsys.readouterr().err


def test_export_of_our_own_form(network, tmp_path, capsys):
    export_network(network, tmp_path / "theirs")
    assert main(["model", "export", "--own", str(tmp_path / "theirs"), str(tmp_path / "ours")]) == 0
    assert "network.json" in capsys.readouterr().out
    assert main(["model", "info", str(tmp_path / "ours")]) == 0
    assert "temperature 1 " in _words(capsys.readouterr().out) + " "


def test_a_copy_may_be_more_decided(network, tmp_path):
    export_network(network, tmp_path / "theirs")
    source, target = str(tmp_path / "theirs"), str(tmp_path / "ours")
    assert main(["model", "export", "--own", "--temperature", "0.5", source, target]) == 0
    copy = checkpoints.open(target)
    sharper = VPTNetwork(config_from_checkpoint(copy))
    load_weights(sharper, copy)
    image = torch.randint(0, 256, (1, 4, 16, 16, 3), dtype=torch.uint8)
    first = torch.zeros(1, 4, dtype=torch.bool)
    before, after = (policy(image, first, policy.initial_state(1)) for policy in (network, sharper))
    for name, logits in before.logits.items():
        expected = (2 * logits).log_softmax(-1)
        torch.testing.assert_close(after.logits[name], expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(after.value_bt, before.value_bt)


@pytest.mark.parametrize("memory", [1, 3])
def test_a_copy_may_remember_less(network, tmp_path, capsys, memory):
    export_network(network, tmp_path / "theirs")
    source, target = str(tmp_path / "theirs"), str(tmp_path / "ours")
    assert main(["model", "export", "--own", "--memory", str(memory), source, target]) == 0
    assert f"{memory} frames of memory" in _words(capsys.readouterr().out)
    copy = checkpoints.open(target)
    shorter = VPTNetwork(config_from_checkpoint(copy))
    load_weights(shorter, copy)
    image = torch.randint(0, 256, (1, 9, 16, 16, 3), dtype=torch.uint8)

    def values(policy, frames):
        first = torch.zeros(1, len(frames), dtype=torch.bool)
        return policy(image[:, frames], first, policy.initial_state(1)).value_bt[0].tolist()

    # As long as there is no more to remember, both do; then one has forgotten the first frame.
    everything, all_frames = values(network, range(9)), values(shorter, range(9))
    assert all_frames[:memory] == pytest.approx(everything[:memory], abs=1e-5)
    assert all_frames[memory] != pytest.approx(everything[memory], abs=1e-5)
    if memory == 1:
        alone = [values(shorter, range(i, i + 1))[0] for i in range(9)]
        assert all_frames == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--own", "--memory", "0"], "--memory must be an integer, at least 1; got 0."),
        (["--own", "--memory", "999"], "memory must be from 1 to 6 frames; got 999."),
        (["--memory", "1"], "add --own"),
        (["--temperature", "0.5"], "add --own"),
        (["--own", "--temperature", "0"], "must be a number, between 1e-06 and 1e+06; got 0.0."),
        (["--own", "--temperature", "nan"], "must be a number, between 1e-06 and 1e+06; got nan."),
    ],
)
def test_what_no_copy_can_have(network, tmp_path, capsys, arguments, message):
    export_network(network, tmp_path / "theirs")
    paths = [str(tmp_path / "theirs"), str(tmp_path / "ours")]
    assert main(["model", "export", *arguments, *paths]) == 2
    assert message in _words(capsys.readouterr().err)
    assert not (tmp_path / "ours").exists()
