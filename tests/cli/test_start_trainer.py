"""`start_rolloutmanager` and `start_trainer` in programs: translated, trained, and kept."""

import sys
from types import SimpleNamespace

import pytest
import yaml
from omegaconf import OmegaConf

from rllib_minestudio.cli.convert import online
from rllib_minestudio.cli.convert.environment import translate_env
from rllib_minestudio.cli.convert.online import start_rolloutmanager, start_trainer
from rllib_minestudio.cli.convert.online_dict import Translation
from rllib_minestudio.env import CameraConfig, MineStudioEnv
from rllib_minestudio.env.callbacks import (
    CommandsCallback,
    Compose,
    FastResetCallback,
    MaskActionsCallback,
    MinecraftCallback,
    RecordCallback,
    RewardsCallback,
    SummonMobsCallback,
    build_callbacks,
)
from rllib_minestudio.env.env_options import EnvOptions
from rllib_minestudio.errors import InvalidOptionsError, MineStudioError
from tests.cli.quick_start_page import small_weights
from tests.processes import run_python

PROGRAM = """\
from omegaconf import OmegaConf
from rllib_minestudio.cli.convert.online import start_rolloutmanager, start_trainer

def policy_generator():
    from minestudio.models import load_vpt_policy
    folder = "pretrained/"
    return load_vpt_policy(
        folder + "foundation-model-2x.model", folder + "bc-from-early-game-2x.weights"
    ).to("cuda")

def env_generator():
    from rllib_minestudio.minestudio import JudgeResetCallback, MinecraftSim
    return MinecraftSim(obs_size=(128, 128), callbacks=[JudgeResetCallback(20)])

online_cfg = OmegaConf.create({
    "trainer_name": "PPOTrainer",
    "rollout_config": {
        "num_rollout_workers": 0, "fragment_length": 16, "worker_config": {"num_envs": 2},
    },
    "train_config": {
        "num_workers": 1, "num_gpus_per_worker": 0, "num_iterations": 1, "learning_rate": 1e-3,
        "batch_size_per_gpu": 1, "batches_per_iteration": 2, "context_length": 16,
        "save_interval": 1, "save_path": "output",
    },
})

if __name__ == "__main__":
    assert start_rolloutmanager(policy_generator, env_generator, online_cfg) is None
    result = start_trainer(policy_generator, env_generator, online_cfg, "whole = 1")
    print("trained:", result.metrics["training_iteration"], result.checkpoint is not None)
"""


@pytest.mark.slow
def test_a_program_trains_and_its_run_keeps_what_was_translated(tmp_path):
    (tmp_path / "hunt.py").write_text(PROGRAM)
    small_weights(tmp_path)
    status, output = run_python("hunt.py", cwd=tmp_path)
    assert status == 0, output
    assert "start_trainer starts the env runners itself" in output
    assert "trained: 1 True" in output
    (run,) = (tmp_path / "output" / "hunt").iterdir()
    assert (run / "whole_config.py").read_text() == "whole = 1"
    experiment = yaml.safe_load((run / "hunt.yaml").read_text())["hunt"]
    assert experiment["stop"] == {"training_iteration": 1}
    env_config = experiment["config"]["env_config"]
    assert env_config["engine"] == "voxel"
    assert env_config["callbacks"] == [{"JudgeReset": {"time_limit": 20}}]


class Still(MinecraftCallback):
    """A callback of one's own, which an importable module has."""

    def __init__(self, keys=("attack",)):
        self.keys = keys


def test_an_environment_of_this_package_becomes_its_options():
    given = {
        "obs_size": (32, 32),
        "seed": 3,
        "camera_config": CameraConfig(camera_binsize=2, camera_maxval=10),
        "callbacks": [
            "GateRewards",
            {"JudgeReset": 20},
            SummonMobsCallback(
                [{"name": "cow", "number": 1, "range_x": [-5, 5], "range_z": [-5, 5]}]
            ),
            Compose([MaskActionsCallback(inventory=0), CommandsCallback(["/time set 0"])], 2),
            FastResetCallback(["plains"], 100, start_time=6000),
            RewardsCallback(
                [
                    {
                        "event": "kill_entity",
                        "objects": ["cow"],
                        "reward": 1.0,
                        "identity": "hunt",
                        "max_reward_times": 3,
                    }
                ]
            ),
            Still(("jump",)),
        ],
    }
    translation = Translation()
    translate_env(translation, MineStudioEnv(given))
    assert translation.left_out == []
    written = yaml.safe_load(yaml.safe_dump(translation.experiment["config"]["env_config"]))
    assert written["engine"] == "voxel" and "render_size" not in written
    again, before = EnvOptions.from_mapping(written), EnvOptions.from_mapping(given)
    assert (again.obs_size, again.seed, again.camera_config) == (
        *(before.obs_size, before.seed, before.camera_config),
    )
    kinds = [type(callback) for callback in build_callbacks(before.callbacks)]
    rebuilt = build_callbacks(again.callbacks)
    assert [type(callback) for callback in rebuilt] == kinds
    assert rebuilt[3].callbacks[0].action_settings == {"inventory": 0}
    assert written["callbacks"][4] == {
        "FastReset": {"biomes": ["plains"], "random_tp_range": 100, "start_time": 6000}
    }
    assert list(rebuilt[6].keys) == ["jump"]


def _forgets():
    class Local(MinecraftCallback):
        pass

    return Local()


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda folder: RecordCallback(folder), "does not keep its argument 'record_actions'"),
        (lambda folder: _forgets(), "Local is of a class that no other process can import"),
    ],
)
def test_a_callback_that_cannot_be_written_down_is_named(tmp_path, make, complaint):
    translation = Translation()
    translate_env(translation, MineStudioEnv(callbacks=[make(tmp_path)], obs_size=(32, 32)))
    (said,) = translation.left_out
    assert complaint in said


def test_a_policy_of_this_package_says_where_it_comes_from(monkeypatch):
    from rllib_minestudio.cli.convert.online_dict import translate_policy
    from rllib_minestudio.minestudio import VPTPolicy

    policy = object.__new__(VPTPolicy)
    policy.source = ["a.model", "b.weights"]
    translation = Translation()
    translate_policy(translation, policy)
    assert translation.left_out == []
    assert translation.experiment["config"]["model"] == {"weights": ["a.model", "b.weights"]}
    assert translation.experiment["config"]["prior"] == "initial"


def generator():
    return None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((None, generator, {}), "policy_generator"),
        ((generator, "env", {}), "env_generator"),
        ((generator, generator, [1]), "online_cfg"),
        ((generator, generator, OmegaConf.create({"a": "${b}"})), "online_cfg"),
    ],
)
@pytest.mark.parametrize("start", [start_rolloutmanager, start_trainer])
def test_arguments_of_another_kind_are_refused(start, arguments, field):
    with pytest.raises(InvalidOptionsError) as raised:
        start(*arguments)
    (problem,) = raised.value.problems
    assert problem.startswith(field)


def test_nothing_is_trained_that_is_translated_in_part(monkeypatch):
    monkeypatch.setattr(online, "_trained", lambda *_: pytest.fail("it was trained"))
    monkeypatch.setattr(online, "_refuse_second_ray", lambda: None)
    with pytest.raises(InvalidOptionsError) as raised:
        start_trainer(generator, generator, {"train_config": {"clip_vloss": True}})
    problems = raised.value.problems
    assert any("not translated: train_config.clip_vloss=True" in text for text in problems)
    assert any("env_generator() returns None" in text for text in problems)
    assert "nothing was trained" in problems[-1]


def test_a_process_that_runs_ray_is_refused_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: True))
    with pytest.raises(MineStudioError, match=r"leave out ray\.init"):
        start_trainer(generator, generator, {})


@pytest.mark.parametrize(("save_path", "folder"), [(None, "~/ray_results"), ("output", "output")])
def test_results_go_where_minestudio_puts_them(monkeypatch, save_path, folder):
    options = {"train_config": {"save_path": save_path}}
    monkeypatch.setenv("HOME", "/somewhere")
    expected = folder.replace("~", "/somewhere")
    assert str(online._results_folder(options)) == expected
