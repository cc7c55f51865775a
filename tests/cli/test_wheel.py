"""Wheel and source distribution hold all that the package needs, seen from outside the checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from rllib_minestudio.env.voxel.kernels import CACHE_VARIABLE
from tests.env.voxel.warming import PROGRAM

ROOT = Path(__file__).parents[2]
INGREDIENTS = ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE")
EXAMPLES = {
    f"rllib_minestudio/tuned_examples/{path.name}"
    for path in (ROOT / "tuned_examples").glob("*.yaml")
}
"""The folder is inside an installed package, and beside it in a checkout."""

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
def distributions(tmp_path_factory):
    """The source distribution, and the wheel that is built from it."""
    # Built from a copy: setuptools would pick up stale modules from an older build folder.
    checkout = tmp_path_factory.mktemp("checkout")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("rllib_minestudio", "tuned_examples"):
        shutil.copytree(ROOT / name, checkout / name, ignore=ignore)
    for name in INGREDIENTS:
        shutil.copy(ROOT / name, checkout)
    folder = tmp_path_factory.mktemp("distributions")
    command = [sys.executable, "-m", "build", "--outdir", folder, checkout]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (source,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def unpacked(distributions, tmp_path_factory):
    """A folder that has the wheel's contents in `unpacked`, and an environment that finds them.

    Nothing is compiled in it yet.
    """
    folder = tmp_path_factory.mktemp("outside")
    zipfile.ZipFile(distributions[1]).extractall(folder / "unpacked")
    changes = {"PYTHONPATH": str(folder / "unpacked"), CACHE_VARIABLE: str(folder / "compiled")}
    return folder, {**os.environ, **changes}


@pytest.mark.slow
def test_processes_that_start_together_outside_the_checkout_compile_once(unpacked):
    folder, environment = unpacked
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=500) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    numbers = [[int(word) for word in output.split()] for output, _ in outputs]
    compiled, told, compilers = zip(*numbers, strict=True)
    assert compiled == (0, 0, 0)  # all load the same code: they round alike
    assert sum(compilers) == 1
    assert all(lines > 0 for lines in told)
    assert list((folder / "compiled").rglob("*.nbi"))


@pytest.mark.slow
def test_the_wheel_works_outside_the_checkout(unpacked):
    folder, environment = unpacked
    subprocess.run([sys.executable, "-c", USE_IT], cwd=folder, env=environment, check=True)


@pytest.mark.slow
def test_packaged_examples_are_found_by_name_outside_the_checkout(unpacked):
    folder, environment = unpacked
    command = [sys.executable, "-m", "rllib_minestudio.cli.main"]
    play = [*command, "play", "cow", "--agent", "random", "--out", "played"]
    short = ["--set", "env_config.callbacks.5.JudgeReset.time_limit=5"]
    subprocess.run([*play, *short], cwd=folder, env=environment, check=True)
    assert list((folder / "played").rglob("episode.json"))
    unknown = subprocess.run(
        [*command, "train", "file", "cowx"], cwd=folder, env=environment, capture_output=True
    )
    assert unknown.returncode == 2
    assert b"There is no experiment file 'cowx'. Did you mean 'cow'?" in unknown.stderr


@pytest.mark.slow
def test_the_distributions_hold_the_package_and_nothing_else(distributions):
    source, wheel = distributions
    sources = EXAMPLES | {
        str(path.relative_to(ROOT))
        for path in (ROOT / "rllib_minestudio").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    metadata = f"{wheel.name.split('-py3')[0]}.dist-info/"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if not name.startswith(metadata)} == sources
    with tarfile.open(source) as archive:
        inside = {member.name.partition("/")[2] for member in archive if member.isfile()}
    inside = {f"rllib_minestudio/{name}" if name.startswith("tuned_") else name for name in inside}
    assert sources | set(INGREDIENTS) <= inside
    others = inside - sources - set(INGREDIENTS) - {"PKG-INFO"}
    assert all(name.startswith("rllib_minestudio.egg-info/") for name in others)
