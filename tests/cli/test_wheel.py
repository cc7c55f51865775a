"""Wheel and source distribution hold all that the package needs, seen from outside the checkout."""

import email
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from rllib_minestudio.env.voxel import kernel_cache
from rllib_minestudio.env.voxel.kernels import CACHE_VARIABLE
from tests.env.voxel.warming import COUNT, PROGRAM, WARM

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


ONE_KERNEL = """
import numpy as np
from rllib_minestudio.env.voxel.player.player import tick_hunger
from rllib_minestudio.env.voxel.player.player import PLAYER_DTYPE
STAGES = (("hunger", lambda: tick_hunger(np.zeros(1, PLAYER_DTYPE)[0])),)
"""
"""In place of the game that runs all of them, which take a minute to compile."""


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
    """A folder that has the wheel's contents in `unpacked`, and an environment that finds them."""
    return unpack(distributions[1], tmp_path_factory.mktemp("outside"))


def unpack(wheel, folder, **changes):
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder, {**os.environ, "PYTHONPATH": str(folder / "unpacked"), **changes}


def outputs_of(program, unpacked, processes):
    """The numbers that each of several processes prints which start together."""
    folder, environment = unpacked
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    outputs = [process.communicate(timeout=500) for process in started]
    assert not any(process.returncode for process in started), outputs
    return [[int(word) for word in output.split()] for output, _ in outputs]


@pytest.mark.slow
def test_processes_that_start_together_outside_the_checkout_compile_once(distributions, tmp_path):
    compiled_here = tmp_path / "compiled"
    unpacked = unpack(distributions[1], tmp_path, **{CACHE_VARIABLE: str(compiled_here)})
    game = tmp_path / "unpacked" / "rllib_minestudio" / "env" / "voxel" / "warmup_game.py"
    before_main, main = game.read_text().split("\ndef main(")
    game.write_text(f"{before_main}{ONE_KERNEL}\ndef main({main}")
    numbers = outputs_of(WARM + COUNT, unpacked, processes=3)
    compiled, told, compilers = zip(*numbers, strict=True)
    assert compiled == (0, 0, 0)  # all load the same code: they round alike
    assert sum(compilers) == 1
    assert all(lines > 0 for lines in told)
    assert list(compiled_here.rglob("*.nbi"))


@pytest.mark.slow
def test_machine_code_is_found_by_what_the_sources_hold_wherever_they_lie(unpacked):
    """That of the checkout, here; it has every kernel."""
    kernel_cache.warmup()
    assert outputs_of(PROGRAM, unpacked, processes=1) == [[0, 0, 0]]


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
def test_the_wheel_describes_itself_with_readme_as_setup_py_changes_it(distributions):
    with zipfile.ZipFile(distributions[1]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    described = runpy.run_path(str(ROOT / "setup.py"))
    source = described["source_address"]((ROOT / "setup.cfg").read_text())
    expected = described["long_description"]((ROOT / "README.md").read_text(), source)
    assert metadata.get_payload(decode=True).decode().strip() == expected.strip()


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
