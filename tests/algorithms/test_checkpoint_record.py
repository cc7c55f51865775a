"""A checkpoint describes itself, and is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import yaml

from rllib_minestudio.algorithms.saving import write_record
from rllib_minestudio.checkpoints.record import RECORD_FILE, code_identity, read_record, versions
from rllib_minestudio.errors import CheckpointError
from rllib_minestudio.foundation.files import save_whole
from rllib_minestudio.foundation.values import recordable


@pytest.fixture
def checkpoint(make_config, tmp_path):
    """A folder with two files and their record."""
    folder = tmp_path / "checkpoint"
    (folder / "learner").mkdir(parents=True)
    (folder / "state.pkl").write_bytes(b"12345")
    (folder / "learner" / "weights.pkl").write_bytes(b"123")
    result = {"training_iteration": np.int64(7), "config": object(), "env_runners": {"x": 1.5}}
    write_record(folder, make_config(lr=3e-4), result)
    return folder


def test_the_record_tells_result_versions_code_and_the_whole_config(checkpoint):
    record = read_record(checkpoint)
    assert record.iteration == 7
    assert record.result == {"training_iteration": 7, "env_runners": {"x": 1.5}}
    assert record.versions == versions()
    assert record.config["lr"] == 3e-4
    assert record.config["env"] == "tests.algorithms.toy_envs.AttackOnRed"
    assert record.config["replay_buffer"]["max_fragments"] == 64
    assert record.config["model"]["hidsize"] > 0
    assert record.files == {"learner/weights.pkl": 3, "state.pkl": 5}
    text = (checkpoint / RECORD_FILE).read_text()
    assert yaml.safe_load(text)["config"] == record.config
    assert "object at 0x" not in text


@pytest.mark.parametrize("name", ["state.pkl", "learner/weights.pkl"])
def test_a_file_cut_short_or_missing_is_noticed(checkpoint, name):
    os.truncate(checkpoint / name, 2)
    with pytest.raises(CheckpointError, match=f"{name} has 2 bytes, not"):
        read_record(checkpoint)
    (checkpoint / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        read_record(checkpoint)


@pytest.mark.parametrize("size", [0, 10, 400])
def test_a_record_cut_short_is_noticed(checkpoint, size):
    os.truncate(checkpoint / RECORD_FILE, size)
    with pytest.raises(CheckpointError):
        read_record(checkpoint)


def test_an_error_while_saving_leaves_the_last_good_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"

    def save(text, fail=False):
        def write(folder):
            folder.mkdir()
            (folder / "state").write_text(text)
            if fail:
                raise OSError("No space left on device")

        return write

    save_whole(path, save("first"))
    with pytest.raises(OSError, match="No space"):
        save_whole(path, save("second", fail=True))
    assert (path / "state").read_text() == "first"
    save_whole(path, save("third"))
    assert (path / "state").read_text() == "third"
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]


KILLED_WHILE_SAVING = """
import os, pathlib, signal, sys
from rllib_minestudio.foundation.files import save_whole

def save(folder):
    folder.mkdir()
    (folder / "state").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

save_whole(pathlib.Path(sys.argv[1]), save)
"""


def test_a_kill_while_saving_leaves_the_last_good_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "state").write_text("good")
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_SAVING, path])
    assert done.returncode == -signal.SIGKILL
    assert (path / "state").read_text() == "good"


def test_an_algorithm_saves_its_record_and_is_restored_from_beside_it(
    local_ray, make_config, tmp_path
):
    algorithm = make_config().build_algo()
    algorithm.train()
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    record = read_record(path)
    assert record.iteration == 1
    assert record.result["num_env_steps_sampled_lifetime"] > 0
    algorithm.restore_from_path(path)
    algorithm.stop()


def test_code_that_git_does_not_track_has_no_identity(tmp_path):
    run = ["git", "-C", str(tmp_path)]
    subprocess.run([*run, "init", "--quiet"], check=True)
    assert code_identity(tmp_path) == {}
    (tmp_path / "a.py").write_text("a = 1\n")
    subprocess.run([*run, "add", "a.py"], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*run, *who, "commit", "--quiet", "-m", "first"], check=True)
    code_identity.cache_clear()
    identity = code_identity(tmp_path)
    assert len(identity["commit"]) == 40 and identity["modified"] is False
    (tmp_path / "a.py").write_text("a = 2\n")
    code_identity.cache_clear()
    assert code_identity(tmp_path) == {"commit": identity["commit"], "modified": True}
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "b.py").touch()
    assert code_identity(tmp_path / "site-packages") == {}


def test_plain_values_are_those_that_yaml_can_hold():
    value = {"a": np.float32(0.5), 1: (np.arange(2), CheckpointError), "s": {3}, "f": float}
    assert recordable(value) == {
        "a": 0.5,
        1: [[0, 1], "rllib_minestudio.errors.CheckpointError"],
        "s": [3],
        "f": "builtins.float",
    }
