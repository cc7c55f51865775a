"""A checkpoint is found once and its tensors are read once, however many ask about it."""

import dataclasses
import json
import pickle
import subprocess
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from rllib_minestudio import checkpoints
from rllib_minestudio.algorithms import MineStudioPPOConfig
from rllib_minestudio.algorithms.policy_config import model_problems
from rllib_minestudio.checkpoints import checkpoint as checkpoint_module
from rllib_minestudio.checkpoints import tensor_files
from rllib_minestudio.checkpoints.checkpoint import MODULE_CLASS, MODULE_STATE, PLAYING_FILE
from rllib_minestudio.checkpoints.lookup import PRIORS
from rllib_minestudio.checkpoints.record import (
    NUMERICS,
    CheckpointRecord,
    digest_of,
    save_record,
    with_own_digest,
)
from rllib_minestudio.cli.model_command import ExportRequest, ModelInfoRequest, export, info
from rllib_minestudio.errors import CheckpointError, CheckpointMismatchError
from rllib_minestudio.evaluation.env_runner import load_prior
from rllib_minestudio.evaluation.inference import Policy
from rllib_minestudio.evaluation.policy_loading import load_policy
from rllib_minestudio.models.policy import copy_policy
from rllib_minestudio.models.rl_modules import ConvGRURLModule, VPTRLModule, spaces_of
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.algorithms.toy_envs import tiny_model
from tests.models.vpt import checkpoints as published
from tests.policies.kinds import MODELS
from tests.policies.parts_env import PartsEnv

PRIOR = "package:hunter_nano"
ONCE = {"found": 1, "read": 1}


@pytest.fixture
def counted(monkeypatch):
    """How many checkpoints are found, and how many files of tensors are read."""
    counts = Counter()

    def counting(owner, name, key):
        real = getattr(owner, name)

        def count(*args, **kwargs):
            counts[key] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, count)

    counting(checkpoints.Checkpoint, "__init__", "found")
    counting(tensor_files, "read_tensors", "read")
    return counts


@pytest.fixture
def network():
    options = {**tiny_model(), "action_head": "joint", "img_shape": [16, 16, 3]}
    return VPTNetwork(VPTConfig.from_options(options))


def trained(network, folder):
    """A checkpoint of training: a policy and a record, without what only training reads."""
    folder.mkdir(parents=True)
    published.described(network, folder / "policy")
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {str(path.relative_to(folder)): path for path in files}
    save_record(
        folder,
        CheckpointRecord(
            saved_at=datetime.now(timezone.utc).isoformat(),
            result={},
            versions={},
            numerics=NUMERICS,
            code={},
            config={},
            files={name: path.stat().st_size for name, path in names.items()},
            digests={name: digest_of(path) for name, path in names.items()},
        ),
    )
    return folder


def other(folder):
    """A policy that is not VPT."""
    module = ConvGRURLModule(model_config=MODELS["ConvGRU"], **spaces_of_parts())
    folder.mkdir()
    torch.save(module.network.state_dict(), folder / "state.pt")
    copy_policy(
        checkpoints.open(folder / "state.pt"), folder / "own", "ConvGRU", module.model_config
    )
    return folder / "own"


def spaces_of_parts():
    env = PartsEnv({})
    return {"observation_space": env.observation_space, "action_space": env.action_space}


SOURCES = {
    "the package's": lambda network, tmp: PRIOR,
    "a folder without pickle": lambda network, tmp: published.described(network, tmp / "own"),
    "Hugging Face": lambda network, tmp: published.hugging_face(network, tmp / "hf"),
    "OpenAI": lambda network, tmp: published.openai(network, tmp / "openai")[0],
    "OpenAI, two files": lambda network, tmp: [*published.openai(network, tmp / "openai")],
    "a state dict": lambda network, tmp: published.state_dict(network, tmp / "model.ckpt"),
    "Lightning": lambda network, tmp: published.lightning(network, tmp / "lightning.ckpt"),
    "a module's pickles": lambda network, tmp: published.module(network, tmp / "module")[0].parent,
    "of training": lambda network, tmp: trained(network, tmp / "trial" / "checkpoint_000001"),
    "a trial": lambda network, tmp: trained(network, tmp / "trial" / "checkpoint_000001").parent,
    "latest": lambda network, tmp: (
        trained(network, tmp / "trial" / "checkpoint_000001").parent / "latest"
    ),
}


@pytest.mark.parametrize("form", SOURCES)
def test_a_policy_is_loaded_from_one_look_at_its_files(form, network, tmp_path, counted):
    source = SOURCES[form](network, tmp_path)
    counted.clear()
    assert isinstance(Policy.load(source).module, VPTRLModule)
    assert counted == ONCE


def test_so_is_another_policy_than_vpt(tmp_path, counted):
    source = other(tmp_path / "other")
    counted.clear()
    Policy.load(source, PartsEnv({}))
    assert counted == ONCE


def test_so_are_weights_that_training_starts_from(network, tmp_path, counted):
    """They decide the sizes as well."""
    path = str(published.state_dict(network, tmp_path / "model.ckpt"))
    VPTRLModule(model_config={"weights": path}, **spaces_of(network.config))
    assert counted == ONCE


def test_so_are_weights_that_a_config_is_checked_with(network, tmp_path, counted):
    path = str(published.state_dict(network, tmp_path / "model.ckpt"))
    config = MineStudioPPOConfig().environment(env_config={"obs_size": [16, 16]})
    config.training(model={"weights": path}, prior=path)
    assert model_problems(config, prior=path) == []
    assert counted == ONCE


@pytest.mark.parametrize(
    "use",
    [
        lambda folder: load_policy(PRIOR),
        lambda folder: info(ModelInfoRequest(paths=(PRIOR,))),
        lambda folder: export(ExportRequest(path=PRIOR, folder=folder, own=True)),
        lambda folder: load_prior(
            MineStudioPPOConfig().training(model={"preset": "nano"}), None, PRIOR
        ),
    ],
    ids=["evaluate", "model info", "model export", "kl_to"],
)
def test_so_is_what_commands_are_given(use, tmp_path, counted):
    use(str(tmp_path / "folder"))
    assert counted == ONCE


def test_opening_reads_no_tensors_and_imports_no_library_of_arrays():
    program = f"""
import sys
from rllib_minestudio import checkpoints
assert checkpoints.open({PRIOR!r}).policy_class == "VPT"
print([name for name in ("torch", "numpy", "ray", "gymnasium") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_what_is_open_is_not_looked_for_again(counted):
    checkpoint = checkpoints.open(PRIOR)
    assert checkpoints.open(checkpoint) is checkpoint
    assert checkpoint.tensors() is checkpoint.tensors()
    assert counted == ONCE


def test_a_checkpoint_says_what_its_policy_is(network, tmp_path):
    gru = checkpoints.open(other(tmp_path / "other"))
    assert (gru.policy_class, gru.options["hidden_size"]) == ("ConvGRU", 8)
    prior = checkpoints.open(PRIOR)
    assert (prior.policy_class, prior.name, prior.path) == ("VPT", PRIOR, PRIORS / "hunter_nano")
    assert prior.playing["env_config"]["obs_size"] == [64, 64]
    unsaid = checkpoints.open(published.state_dict(network, tmp_path / "model.ckpt"))
    assert (unsaid.policy_class, unsaid.options, unsaid.playing) == (None, None, None)
    openai = checkpoints.open(published.openai(network, tmp_path / "openai"))
    assert openai.arguments["hidsize"] == network.config.hidsize


def test_what_training_wrote_is_compared_with_its_record_before_it_is_read(network, tmp_path):
    folder = trained(network, tmp_path / "trial" / "checkpoint_000001")
    description = folder / "policy" / "network.json"
    changed = {**dataclasses.asdict(network.config), "temperature": 3.0}
    description.write_text(json.dumps(changed, indent=2).ljust(description.stat().st_size))
    with pytest.raises(CheckpointError, match=r"policy/network\.json"):
        Policy.load(folder)
    with pytest.raises(CheckpointError, match=r"policy/network\.json"):
        load_policy(folder)


def test_a_checkpoint_that_was_only_looked_at_is_compared_before_it_is_loaded(network, tmp_path):
    folder = trained(network, tmp_path / "trial" / "checkpoint_000001")
    looked_at = checkpoints.open(folder)
    (folder / "policy" / "model.safetensors").open("ab").write(b"more")
    with pytest.raises(CheckpointError, match=r"policy/model\.safetensors"):
        Policy.load(looked_at)


def test_its_files_are_compared_once(network, tmp_path, monkeypatch):
    folder = trained(network, tmp_path / "trial" / "checkpoint_000001")
    text = (PRIORS / "hunter_nano" / PLAYING_FILE).read_text()
    (folder / "policy" / PLAYING_FILE).write_text(text)  # not in the record, so not compared
    compared = []
    monkeypatch.setattr(checkpoint_module, "check_digests", compared.append)
    assert load_policy(folder).checkpoint.path == folder
    assert compared == [folder]


def test_a_playing_file_that_was_cut_short_is_refused(network, tmp_path):
    folder = published.described(network, tmp_path / "own")
    text = (PRIORS / "hunter_nano" / PLAYING_FILE).read_text()
    (folder / PLAYING_FILE).write_text(text[:-100])
    with pytest.raises(CheckpointMismatchError, match="its last line is missing"):
        _ = checkpoints.open(folder).playing


def test_a_policy_is_evaluated_though_what_it_started_from_is_gone(network, tmp_path):
    folder = published.described(network, tmp_path / "own")
    text = (PRIORS / "hunter_nano" / PLAYING_FILE).read_text()
    gone = tmp_path / "gone.ckpt"
    facts = {**yaml.safe_load(text), "weights": str(gone)}
    (folder / PLAYING_FILE).write_text(with_own_digest(yaml.safe_dump(facts)))
    assert load_policy(folder).config.model_config["weights"] == str(gone)


@pytest.mark.parametrize(
    "source", ["a" * 10**6, "a/" * 10**5 + "best", "package:" + "a" * 10**6, ["a" * 300, "b" * 300]]
)
def test_a_name_that_no_file_can_have_is_quoted_in_part(source):
    with pytest.raises(CheckpointMismatchError, match=r"^weights .*(cannot be opened|do not come)"):
        Policy.load(source)
    with pytest.raises(CheckpointMismatchError) as refused:
        checkpoints.open(source)
    assert len(str(refused.value)) < 1500


def test_a_folder_that_may_not_be_listed_is_named(network, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(CheckpointMismatchError, match="x' cannot be opened: Permission denied"):
        checkpoints.open(tmp_path / "x")


@pytest.mark.parametrize("options", [[1, 2], "ab", [("hidsize", 8)], np.arange(2)])
def test_options_that_are_no_mapping_are_refused(options, tmp_path):
    described = {"ctor_args_and_kwargs": ((), {"model_config": options})}
    (tmp_path / MODULE_CLASS).write_bytes(pickle.dumps(described))
    (tmp_path / MODULE_STATE).write_bytes(b"")
    with pytest.raises(CheckpointMismatchError, match="is not a mapping"):
        checkpoints.open(tmp_path)
