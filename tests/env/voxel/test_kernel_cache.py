"""Kernels are compiled once per machine; `tests/cli/test_wheel.py` has several start together."""

import os
import subprocess
import sys

import pytest

from rllib_minestudio.env.voxel import kernel_cache, kernels
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.errors import EngineError
from tests.env.voxel.warming import PROGRAM


@pytest.mark.slow
def test_a_compiler_that_fails_is_told_with_its_last_words(tmp_path):
    full_disk = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    result = subprocess.run(
        [sys.executable, "-c", full_disk + PROGRAM],
        env={
            **os.environ,
            kernels.CACHE_VARIABLE: str(tmp_path),
            # CPython keeps the half of a .pyc that fits, and every later import fails on it.
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
    )
    assert "EngineError: Compiling the game engine failed" in result.stderr
    assert "File too large" in result.stderr


def test_an_engine_makes_the_machine_warm():
    VoxelEngine(frame_size=(32, 32))
    assert kernel_cache.is_warm()
    lines = []
    kernel_cache.warmup(lines.append)
    assert lines == []


def test_an_unusable_folder_is_named(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(kernels, "CACHE_FOLDER", blocked / "cache")
    with pytest.raises(EngineError, match=kernels.CACHE_VARIABLE):
        kernel_cache.warmup()


def test_old_machine_code_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "CACHE_FOLDER", tmp_path / "current")
    for name, age in (("current", 0), ("old", 40 * 86400), ("recent", 86400)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "ready").touch()
        then = (folder / "ready").stat().st_mtime - age
        os.utime(folder / "ready", (then, then))
    kernel_cache._delete_outdated()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "recent"]
