"""Folders of results: each has one process that writes to it."""

import os
import pickle
import subprocess
import sys

import pytest

from rllib_minestudio.errors import FolderInUseError
from rllib_minestudio.foundation.files import make_new_folder, sole_use

HOLDER = """
import sys
from pathlib import Path
from rllib_minestudio.foundation.files import sole_use
with sole_use(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


def use(folder):
    with sole_use(folder):
        pass


def test_two_runs_that_begin_in_the_same_second_get_two_folders(tmp_path):
    wanted = tmp_path / "cow" / "2026-01-01_00-00-00"
    folders = [make_new_folder(wanted) for _ in range(3)]
    assert [folder.name.removeprefix(wanted.name) for folder in folders] == ["", "_2", "_3"]
    assert all(folder.is_dir() for folder in folders)


def test_a_second_process_is_told_who_uses_a_folder_until_that_is_killed(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "mine\n"
    with pytest.raises(FolderInUseError, match=f"in use by process {holder.pid} on "):
        use(tmp_path)
    holder.kill()
    holder.communicate()
    use(tmp_path)
    use(tmp_path)


def test_within_a_process_too(tmp_path):
    message = f"in use by process {os.getpid()} on "
    with sole_use(tmp_path), pytest.raises(FolderInUseError, match=message) as caught:
        use(tmp_path)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
