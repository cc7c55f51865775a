"""Kernels are compiled once per machine; `tests/cli/test_wheel.py` has several start together."""

import os
import subprocess
import sys
import time
from pathlib import Path

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


@pytest.mark.slow
def test_a_compiler_ends_with_who_waits_for_it(tmp_path):
    """Else the next command would compile beside it, as after a doctor that was killed."""
    module = "import rllib_minestudio.env.voxel.kernel_cache as cache; cache"
    waiting = subprocess.Popen(
        [sys.executable, "-c", f"{module}.warmup(lambda line: print(line, flush=True))"],
        env={**os.environ, kernels.CACHE_VARIABLE: str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with waiting:
        while "1/3" not in (line := waiting.stdout.readline()):
            assert line, "it has ended"
        (child,) = children(waiting.pid)
        waiting.kill()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(parent):
    """The ids of a process's children."""
    return [
        int(stat.parent.name)
        for stat in Path("/proc").glob("[0-9]*/stat")
        if int(stat.read_text().rpartition(")")[2].split()[1]) == parent
    ]


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
