"""Weights of MineStudio's 2x size go through the same command."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from rllib_minestudio.benchmark.results import BenchmarkResults
from rllib_minestudio.cli.main import main
from rllib_minestudio.errors import EngineError
from rllib_minestudio.experiments.running import starting_policy
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.benchmark.conftest import TASKS, write_suite
from tests.models.vpt.checkpoints import hugging_face

PRESET = "2x"


def experiment(folder: Path, network: VPTNetwork, engine: str) -> str:
    """Write weights in MineStudio's layout and an experiment file that names them."""
    side = network.config.img_shape[0]
    config = {
        "model": {"weights": str(hugging_face(network, folder / "weights"))},
        "env_config": {"engine": engine, "obs_size": [side, side]},
    }
    file = folder / "published.yaml"
    described = {"run": "MineStudioPPO", "env": "MineStudio", "config": config}
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
    suite = write_suite(tmp_path / "suite", {"stay": {**TASKS["move/stay"], "time_limit": 64}})
    assert main(words(file, suite, tmp_path / "out")) == 0
    (stay,) = BenchmarkResults.load(tmp_path / "out").tasks
    assert [episode.length for episode in stay.episodes] == [64]
    assert stay.rate.yes_rate == 1.0


def test_the_real_game_is_not_launched_before_it_is_played(
    tmp_path, tiny_options, monkeypatch, capsys
):
    def launched(*_):
        raise EngineError("launched")

    monkeypatch.setattr(starting_policy, "make_env", launched)
    monkeypatch.setattr("rllib_minestudio.env.simulator.make_backend", launched)
    network = VPTNetwork(VPTConfig.from_options({**tiny_options, "action_head": "joint"}))
    file = experiment(tmp_path, network, "minecraft")
    suite = write_suite(tmp_path / "suite", {"stay": TASKS["move/stay"]})
    assert main(words(file, suite, tmp_path / "out", "--set", "env_config.obs_size=[48, 48]")) == 2
    assert "does not fit the observation" in capsys.readouterr().err
    assert main(words(file, suite, tmp_path / "out")) == 1
    assert "stay failed: launched" in capsys.readouterr().err
