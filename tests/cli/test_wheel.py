"""The built wheel holds all that the package needs, seen from outside the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INGREDIENTS = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")

USE_IT = """
import pathlib, rllib_minestudio
assert pathlib.Path(rllib_minestudio.__file__).is_relative_to(pathlib.Path.cwd() / "unpacked")
env = rllib_minestudio.MineStudioEnv(obs_size=(64, 64), num_empty_frames=1)
observation, _ = env.reset(seed=0)
assert observation["image"].std() > 0
from rllib_minestudio import MineStudioPPOConfig
from rllib_minestudio.cli.main import build_parser
build_parser().format_help()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # Built from a copy: setuptools would pick up stale modules from an older build folder.
    checkout = tmp_path_factory.mktemp("checkout")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "rllib_minestudio", checkout / "rllib_minestudio", ignore=ignore)
    for name in INGREDIENTS:
        shutil.copy(ROOT / name, checkout)
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, checkout]
    subprocess.run(command, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_the_wheel_works_outside_the_checkout(wheel, tmp_path):
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(unpacked)
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    subprocess.run([sys.executable, "-c", USE_IT], cwd=tmp_path, env=environment, check=True)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "rllib_minestudio").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    metadata = f"{wheel.name.split('-py3')[0]}.dist-info/"
    assert {name for name in names if not name.startswith(metadata)} == sources
