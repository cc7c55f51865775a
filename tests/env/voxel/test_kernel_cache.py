"""Kernels are compiled once per machine, also when several processes start together."""

import os
import subprocess
import sys

import pytest

from rllib_minestudio.env.voxel import kernel_cache, kernels
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.errors import EngineError

_PROGRAM = """
from rllib_minestudio.env.voxel import kernel_cache, kernels
from rllib_minestudio.env.voxel.engine import VoxelEngine
from rllib_minestudio.env.voxel.warmup_game import STAGES
lines = []
kernel_cache.warmup(lines.append)
assert kernel_cache.is_warm()
for name, stage in STAGES:
    stage()
engine = VoxelEngine()
engine.tick({"forward": 1})
engine.mobs_near(20.0), engine.info(), engine.biome(), engine.render()
print(kernels.count_compiled(), len(lines), sum("Compiling" in line for line in lines))
"""


def start(cache):
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, kernels.CACHE_VARIABLE: str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_processes_that_start_together_compile_once(tmp_path):
    processes = [start(tmp_path) for _ in range(3)]
    outputs = [process.communicate(timeout=500) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    numbers = [[int(word) for word in output.split()] for output, _ in outputs]
    compiled, told, compilers = zip(*numbers, strict=True)
    assert compiled == (0, 0, 0)  # all load the same code: they round alike
    assert sum(compilers) == 1
    assert all(lines > 0 for lines in told)


@pytest.mark.slow
def test_a_compiler_that_fails_is_told_with_its_last_words(tmp_path):
    full_disk = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    result = subprocess.run(
        [sys.executable, "-c", full_disk + _PROGRAM],
        env={**os.environ, kernels.CACHE_VARIABLE: str(tmp_path)},
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
