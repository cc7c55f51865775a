"""Weights of MineStudio's 2x size go through the same command."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from rllib_minestudio.benchmark.results import BenchmarkResults
from rllib_minestudio.cli.main import main
from rllib_minestudio.env.backends.minecraft import prerequisites
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.benchmark.conftest import TASKS, write_suite
from tests.models.conftest import TINY_OPTIONS
from tests.models.vpt.checkpoints import hugging_face

PRESET = "2x"


def experiment(folder: Path, network: VPTNetwork, engine: str) -> str:
    """Write weights in MineStudio's layout and an experiment file that names them."""
    height, width, _ = network.config.img_shape
    config = {
        "model": {"weights": str(hugging_face(network, folder / "weights"))},
        "env_config": {"engine": engine, "obs_size": [width, height]},
    }
    file = folder / "published.yaml"
    described = {"run": "MineStudioPPO", "env": "MineStudioEnv", "config": config}
    file.write_text(yaml.safe_dump({"published": described}))
    return str(file)


def words(file: str, suite: str, out: Path, *others: str) -> list[str]:
    """The command that plays the file's policy."""
    numbers = ["--episodes", "1", "--envs", "1", "--no-videos"]
    return ["benchmark", "run", file, "--suite", suite, "--out", str(out), *numbers, *others]


@pytest.mark.slow  # 248 million parameters
def test_random_weights_of_the_2x_size_play(tmp_path):
    torch.manual_seed(0)
    file = experiment(tmp_path, VPTNetwork(VPTConfig.from_options({"preset": PRESET})), "voxel")
    suite = write_suite(tmp_path / "suite", {"stay": {**TASKS["move/stay"], "time_limit": 8}})
    assert main(words(file, suite, tmp_path / "out")) == 0
    (stay,) = BenchmarkResults.load(tmp_path / "out").tasks
    assert [episode.length for episode in stay.episodes] == [8]
    assert stay.rate.yes_rate == 1.0


@pytest.mark.parametrize("engine", ["minecraft", "voxel"])
def test_either_engine_plays_and_the_real_game_is_looked_for_first(
    tmp_path, monkeypatch, capsys, engine
):
    missing = prerequisites.PrerequisiteCheck(
        "package minestudio", False, "not installed", "Get it"
    )
    monkeypatch.setattr(prerequisites, "examine", lambda options: [missing])
    network = VPTNetwork(VPTConfig.from_options({**TINY_OPTIONS, "action_head": "joint"}))
    file = experiment(tmp_path, network, engine)
    suite = write_suite(tmp_path / "suite", {"stay": TASKS["move/stay"]})
    out = tmp_path / "out"
    assert main(words(file, suite, out, "--set", "env_config.engine=minecraft")) == 2
    assert "engine='minecraft' cannot start on this machine" in capsys.readouterr().err
    assert not out.exists()
    assert main(words(file, suite, out, "--set", "env_config.engine=voxel")) == 0
