"""Every published form of weights loads, and what is wrong with one is said."""

import contextlib
import dataclasses
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rllib_minestudio.checkpoints import open as open_checkpoint
from rllib_minestudio.checkpoints.lookup import is_hub_id
from rllib_minestudio.errors import CheckpointMismatchError, InvalidOptionsError
from rllib_minestudio.foundation.pickles import load_plain
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from rllib_minestudio.models.vpt.weights import (
    config_from_checkpoint,
    config_from_options,
    load_weights,
    save_checkpoint,
    weights_problems,
)

_spec = importlib.util.spec_from_file_location(
    "checkpoints", Path(__file__).with_name("checkpoints.py")
)
checkpoints = importlib.util.module_from_spec(_spec)
sys.modules["checkpoints"] = checkpoints  # torch.save looks classes up by their module
_spec.loader.exec_module(checkpoints)


@pytest.fixture
def joint(tiny_options):
    """A network as MineStudio has them, of a size and temperature that no preset has."""
    torch.manual_seed(3)
    options = {**tiny_options, "action_head": "joint", "temperature": 1.5}
    return VPTNetwork(VPTConfig.from_options({**options, "img_shape": [16, 16, 3]}))


def _assert_loads(source, network, config=None):
    config = config or network.config
    checkpoint = open_checkpoint(source)
    assert config_from_checkpoint(checkpoint) == config
    assert weights_problems(config, checkpoint) == []
    loaded = VPTNetwork(config)
    load_weights(loaded, checkpoint)
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def _without_memory_split(config, temperature=2.0):
    """What the tensors alone tell: the memory's length, not what it was made of."""
    memory = config.memory_length
    return dataclasses.replace(
        config, temperature=temperature, timesteps=memory, attention_memory_size=2 * memory
    )


def test_hugging_face_folder(joint, tmp_path):
    folder = checkpoints.hugging_face(joint, tmp_path / "hf", temperature=1.5)
    _assert_loads(folder, joint)
    _assert_loads(str(folder / "model.safetensors"), joint)


@pytest.mark.parametrize("protocol", [2, 4])
def test_openai_files(joint, tmp_path, protocol):
    model, weights = checkpoints.openai(joint, tmp_path / "openai", 1.5, protocol)
    for source in (model, weights, model.parent, [str(model), str(weights)]):
        _assert_loads(source, joint)


def test_openai_files_of_different_names(joint, tmp_path):
    model, weights = checkpoints.openai(joint, tmp_path, temperature=1.5)
    tuned = weights.rename(tmp_path / "rl-from-tiny.weights")
    _assert_loads([model, tuned], joint)
    _assert_loads(tuned, joint, _without_memory_split(joint.config))


@pytest.mark.parametrize("prefix", ["", "module.", "network.", "mine_policy."])
def test_state_dict(joint, tmp_path, prefix):
    path = checkpoints.state_dict(joint, tmp_path / "model.ckpt", prefix)
    expected = _without_memory_split(joint.config)
    _assert_loads(path, joint, expected)
    _assert_loads(tmp_path, joint, expected)


def test_state_dict_in_torchs_old_format(joint, tmp_path):
    path = tmp_path / "old.weights"
    torch.save(joint.state_dict(), path, _use_new_zipfile_serialization=False)
    _assert_loads(path, joint, _without_memory_split(joint.config))


def test_lightning_checkpoint(joint, tmp_path):
    path = checkpoints.lightning(joint, tmp_path / "weight-epoch=1.ckpt")
    _assert_loads(path, joint, _without_memory_split(joint.config))


@pytest.mark.parametrize("preset", ["1x", "2x", "3x", "nano"])
def test_sizes_of_the_presets_show_in_their_tensors(preset):
    from rllib_minestudio.models.vpt.weights import blank_network, config_from_shapes

    config = VPTConfig.from_options({"preset": preset})
    shapes = {
        name: tuple(tensor.shape) for name, tensor in blank_network(config).state_dict().items()
    }
    assert config_from_shapes(shapes) == _without_memory_split(config)


def test_half_precision_weights_are_widened(joint, tmp_path):
    path = tmp_path / "half.pt"
    torch.save({name: tensor.bfloat16() for name, tensor in joint.state_dict().items()}, path)
    loaded = VPTNetwork(joint.config)
    load_weights(loaded, open_checkpoint(path))
    assert loaded.net.final_ln.weight.dtype == torch.float32


# ------------------------------------------------------------------- what is refused


def _refusal(network, source):
    with pytest.raises(CheckpointMismatchError) as caught:
        load_weights(network, open_checkpoint(source))
    return str(caught.value)


def test_a_wrong_size_is_listed(joint, tmp_path):
    folder = checkpoints.hugging_face(joint, tmp_path / "hf")
    wider = dataclasses.replace(joint.config, hidsize=32)
    (problem,) = weights_problems(wider, open_checkpoint(folder))
    assert "net.img_process.linear.layer.weight: (16, 256) instead of (32, 256)" in problem
    assert "misshapen" in problem and "more" in problem
    assert "misshapen" in _refusal(VPTNetwork(wider), folder)


def test_a_wrong_image_size_is_named(joint, tmp_path):
    folder = checkpoints.hugging_face(joint, tmp_path / "hf")
    lying = dataclasses.replace(joint.config, img_shape=(8, 32, 3))
    (problem,) = weights_problems(lying, open_checkpoint(folder))
    assert "(16, 16, 3)" in problem and "(8, 32, 3)" in problem


def test_missing_and_unexpected_names_are_listed(joint, tmp_path):
    state = joint.state_dict()
    state["net.surprise"] = state.pop("net.final_ln.bias")
    torch.save(state, tmp_path / "a.pt")
    (problem,) = weights_problems(joint.config, open_checkpoint(tmp_path / "a.pt"))
    lines = [line.strip() for line in problem.splitlines()[1:]]
    assert lines == ["1 missing:", "net.final_ln.bias", "1 unexpected:", "net.surprise"]


def test_checking_builds_and_loads_nothing(joint, tmp_path):
    folder = checkpoints.hugging_face(joint, tmp_path / "hf")
    random_state = torch.get_rng_state()
    config = dataclasses.replace(joint.config, hidsize=2**14, attention_heads=2)  # 13 GB
    assert weights_problems(config, open_checkpoint(folder))
    assert torch.equal(torch.get_rng_state(), random_state)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("form", ["hugging_face", "state_dict", "openai"])
def test_a_truncated_file_is_refused(joint, tmp_path, form, share):
    make = {
        "hugging_face": lambda: (
            checkpoints.hugging_face(joint, tmp_path / "x") / "model.safetensors"
        ),
        "state_dict": lambda: checkpoints.state_dict(joint, tmp_path / "a.ckpt"),
        "openai": lambda: checkpoints.openai(joint, tmp_path)[0],
    }
    path = make[form]()
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert path.name in _refusal(joint, path)
    if form != "openai":  # whose damaged file is the one that is read first
        assert weights_problems(joint.config, open_checkpoint(path))


def test_values_that_are_not_finite_are_refused(joint, tmp_path):
    state = {name: tensor.clone() for name, tensor in joint.state_dict().items()}
    state["net.final_ln.bias"][3] = torch.nan
    torch.save(state, tmp_path / "a.pt")
    before = joint.net.final_ln.weight.clone()
    assert "not finite" in _refusal(joint, tmp_path / "a.pt")
    assert torch.equal(joint.net.final_ln.weight, before)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"recurrence_type": "multi_layer_lstm"}, "recurrence_type is 'multi_layer_lstm'"),
        ({"use_pre_lstm_ln": True}, "use_pre_lstm_ln is True"),
        ({"hidsize": "large"}, "hidsize must be an integer"),
    ],
)
def test_a_network_that_is_not_vpt_is_named(joint, tmp_path, changed, sentence):
    path = checkpoints.hugging_face(joint, tmp_path / "hf") / "config.json"
    config = json.loads(path.read_text())
    config["policy_kwargs"] |= changed
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointMismatchError, match=sentence):
        config_from_checkpoint(open_checkpoint(path.parent))


def test_things_that_are_no_checkpoint(joint, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "without a checkpoint" in _refusal(joint, tmp_path / "empty")
    assert "do not exist" in _refusal(joint, tmp_path / "a.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    assert "hold a list" in _refusal(joint, tmp_path / "list.pt")
    (tmp_path / "a.model").write_bytes(pickle.dumps({"model": 1}))
    assert "do not exist; OpenAI" in _refusal(joint, tmp_path / "a.model")
    (tmp_path / "a.weights").write_bytes(b"")
    assert "not a .model file of OpenAI" in _refusal(joint, tmp_path / "a.model")
    torch.save({"conv.weight": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(CheckpointMismatchError, match="not those of a VPT policy"):
        config_from_checkpoint(open_checkpoint(tmp_path / "other.pt"))


@pytest.mark.parametrize(
    "form",
    [
        "state_dict",
        "openai",
        # What is read first differs, what is damaged does not.
        *(pytest.param(f, marks=pytest.mark.slow) for f in ("hugging_face", "lightning", "module")),
    ],
)
def test_a_damaged_file_is_refused_or_harmless(joint, tmp_path, form):
    """Whatever bytes change, nothing but our own error comes out."""
    make = {
        "hugging_face": lambda: sorted(checkpoints.hugging_face(joint, tmp_path / "hf").iterdir()),
        "state_dict": lambda: [checkpoints.state_dict(joint, tmp_path / "a.ckpt")],
        "openai": lambda: [checkpoints.openai(joint, tmp_path)[0]],
        "lightning": lambda: [checkpoints.lightning(joint, tmp_path / "b.ckpt")],
        "module": lambda: checkpoints.module(joint, tmp_path / "module"),
    }
    random = np.random.RandomState(0)
    for path in make[form]():
        content = path.read_bytes()
        for _ in range(40):
            damaged = bytearray(content)
            # Headers are at the start or the end.
            reach = min(len(content), 2000)
            for position in random.randint(-reach, reach, size=3):
                damaged[position] = random.randint(256)
            path.write_bytes(damaged)
            source = path.parent if form == "module" else path
            with contextlib.suppress(CheckpointMismatchError):
                checkpoint = open_checkpoint(source)
                assert isinstance(weights_problems(joint.config, checkpoint), list)
                for check in (config_from_checkpoint, lambda found: load_weights(joint, found)):
                    with contextlib.suppress(CheckpointMismatchError):
                        check(checkpoint)
        path.write_bytes(content)


# ------------------------------------------------------------------- pickles


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_runs_something_is_refused(joint, tmp_path):
    model, weights = checkpoints.openai(joint, tmp_path / "openai")
    target = tmp_path / "made"
    model.write_bytes(pickle.dumps({"model": Exploit(target)}))
    assert "import posix.mkdir" in _refusal(joint, model)
    torch.save({"state_dict": joint.state_dict(), "x": Exploit(target)}, weights)
    load_error = _refusal(joint, tmp_path / weights)
    assert "refused" in load_error or "cannot be read" in load_error
    assert not target.exists()


def test_inert_objects_do_nothing(tmp_path):
    target = tmp_path / "made"
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"x": Exploit(target), "y": [1.5]}))
    assert load_plain(path, others_inert=True)["y"] == [1.5]
    assert not target.exists()


def test_arrays_of_objects_are_refused(tmp_path):
    path = tmp_path / "a.pkl"
    for value in (np.array([Exploit(tmp_path / "made")], dtype=object),):
        path.write_bytes(pickle.dumps(value))
        with pytest.raises(CheckpointMismatchError):
            load_plain(path)


# ------------------------------------------------------------------- Hugging Face ids


def test_what_is_taken_for_an_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert is_hub_id("CraftJarvis/MineStudio_VPT.rl_for_shoot_animals_2x")
    for path in ("model", "results/typo", "a/b/c", "other/model.pt", "./x/y", "/abs/path"):
        assert not is_hub_id(path)


def _cache(network, home):
    """A Hugging Face cache that holds the model somebody/tiny."""
    model = home / "hub" / "models--somebody--tiny"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("0" * 40)
    (model / "snapshots").mkdir()
    checkpoints.hugging_face(network, model / "snapshots" / ("0" * 40), temperature=1.5)


LOAD_BY_ID = """
import sys
from rllib_minestudio import checkpoints
from rllib_minestudio.errors import CheckpointMismatchError
from rllib_minestudio.models.vpt.weights import config_from_checkpoint
try:
    print(config_from_checkpoint(checkpoints.open(sys.argv[1])).temperature)
except CheckpointMismatchError as error:
    print("refused:", error)
"""


def _load_by_id(hub_id, home, **environment):
    # Another process, because huggingface_hub reads its environment when it is imported.
    environment = {**os.environ, "HF_HOME": str(home), "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", LOAD_BY_ID, hub_id]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.strip()


def test_an_id_in_the_cache_loads_offline(joint, tmp_path):
    pytest.importorskip("huggingface_hub")
    _cache(joint, tmp_path)
    assert _load_by_id("somebody/tiny", tmp_path, HF_HUB_OFFLINE="1") == "1.5"


def test_an_id_that_cannot_be_fetched(tmp_path):
    """Without the package the message says how to get it, with it that there is no network."""
    # Nothing listens on the discard port, so this is offline even where there is a network.
    message = _load_by_id("somebody/tiny", tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert message.startswith("refused: weights 'somebody/tiny'")
    if importlib.util.find_spec("huggingface_hub"):
        assert "network connection" in message and "give their folder" in message
    else:
        assert "pip install huggingface_hub" in message


# ------------------------------------------------------------------- options


def test_the_weights_decide_sizes_and_temperature(joint, tmp_path):
    folder = str(checkpoints.hugging_face(joint, tmp_path / "hf", temperature=1.5))
    known = ("weights", "zero_init_value_head")
    assert config_from_options({"weights": folder}, known) == joint.config
    assert config_from_options({"weights": folder, "preset": None}, known) == joint.config
    changes = {"temperature": 1.0, "precision": "bfloat16"}
    changed = config_from_options({"weights": folder, **changes}, known)
    assert changed == dataclasses.replace(joint.config, **changes)
    with pytest.raises(InvalidOptionsError, match="hidsize"):
        config_from_options({"weights": folder, "hidsiz": 3}, known)


def test_what_the_weights_do_not_say_comes_from_a_preset_of_their_size(
    joint, tiny_options, tmp_path
):
    sizes = {**tiny_options, "img_shape": [16, 16, 3], "action_head": "joint"}
    assert VPTConfig.from_options(sizes).temperature == 1.0 != joint.config.temperature
    bare = str(checkpoints.state_dict(joint, tmp_path / "bare.pt"))
    assert config_from_options({"weights": bare, **sizes}, ("weights",)).temperature == 1.0
    told = str(checkpoints.hugging_face(joint, tmp_path / "hf", temperature=1.5))
    assert config_from_options({"weights": told, **sizes}, ("weights",)).temperature == 1.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"preset": "2x"},
            r"model.preset is '2x', but the weights '.*' are of another size \(hidsize 16, .*\), "
            "and decide it: leave preset out, or give --set model.preset=null.",
        ),
        ({"hidsize": 64}, "model.hidsize is 64, but .* have 16, and decide .*: leave hidsize out."),
        (
            {"img_shape": [64, 64, 3]},
            r"model.img_shape is \[64, 64, 3\], but .*: leave img_shape out",
        ),
        ({"attention_memory_size": 100}, "model.attention_memory_size is 100, but"),
        ({"impala_width": 1.0}, "model.impala_width is 1.0, but"),
        ({"action_head": "factored"}, "model.action_head is 'factored', but"),
    ],
)
def test_other_sizes_than_the_weights_are_one_sentence(joint, tmp_path, options, message):
    weights = str(checkpoints.hugging_face(joint, tmp_path / "hf"))
    with pytest.raises(InvalidOptionsError, match=message) as refused:
        config_from_options({"weights": weights, **options}, ("weights",))
    assert len(refused.value.problems) == 1


# ---------------------------------------------------- our own, without pickle


def test_a_network_is_saved_and_loaded_as_it_is(tiny_options, tmp_path):
    network = VPTNetwork(VPTConfig.from_options({**tiny_options, "action_head": "factored"}))
    first = checkpoints.described(network, tmp_path / "first")
    assert save_checkpoint(open_checkpoint(first), tmp_path / "second") == network.config
    _assert_loads(str(tmp_path / "second"), network)
    assert {path.name for path in (tmp_path / "second").iterdir()} == {
        "network.json",
        "model.safetensors",
    }
    with pytest.raises(CheckpointMismatchError, match="already has network"):
        save_checkpoint(open_checkpoint(first), tmp_path / "second")
    (tmp_path / "second" / "network.json").write_text("{")
    with pytest.raises(CheckpointMismatchError, match="cannot be read as the options"):
        open_checkpoint(tmp_path / "second")


def test_unknown_weights_of_the_package_are_named():
    with pytest.raises(CheckpointMismatchError, match="do not come with this package"):
        open_checkpoint("package:nothing")
