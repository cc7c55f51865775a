"""`rllib convert`: what a MineStudio config says arrives, and what cannot is listed."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import yaml

from rllib_minestudio.cli import convert
from rllib_minestudio.cli.convert import environment
from rllib_minestudio.cli.convert.online_dict import RULES, flattened
from rllib_minestudio.cli.convert.stand_ins import ConfigModule
from rllib_minestudio.cli.main import BAD_INPUT, main
from rllib_minestudio.env.voxel.server import launcher
from rllib_minestudio.experiments.experiment_file import load_experiments
from rllib_minestudio.experiments.plan import make_plan
from rllib_minestudio.models.fine_tuning import freeze
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork
from tests.processes import run_rllib

MINESTUDIO = importlib.util.find_spec("minestudio")
EXAMPLE = Path(__file__).with_name("minestudio_config.py")
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "minecraft.md"

ON_TWO_CORES = (
    *("env_config.engine=voxel", "num_env_runners=0", "num_envs_per_env_runner=2"),
    *("num_gpus_per_env_runner=0", "num_learners=0", "num_gpus_per_learner=0"),
    "env_pool.inference_batch_size=2",
    *("rollout_fragment_length=64", "fragments_per_iteration=2", "gradient_accumulation=2"),
    *("model.weights=null", "model.preset=nano", "model.img_shape=[128, 128, 3]"),
    *("model.hidsize=16", "model.attention_heads=2", "model.n_recurrence_layers=1"),
    *("model.attention_memory_size=24", "model.timesteps=16"),
    "summary={random_policy_episodes: 0, video_episodes: 0}",
)
"""What makes a few seconds of MineStudio's own experiments."""


def translate(tmp_path, text):
    file = tmp_path / "config.py"
    file.write_text(text)
    return environment.translate(ConfigModule(file))


def test_every_option_arrives_where_it_belongs(capsys):
    assert main(["convert", str(EXAMPLE)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    experiment = yaml.safe_load(captured.out)["minestudio_config"]
    config = experiment.pop("config")
    assert experiment == {
        "run": "MineStudioPPO",
        "env": "MineStudioEnv",
        "stop": {"training_iteration": 4000},
        "checkpoint_config": {"save_interval": 10, "keep_interval": 40},
        "record_video_interval": 10,
        "summary": {"random_policy_episodes": 5},
        "trackers": {"wandb": {"project": "minestudio_online", "name": "cow"}},
    }
    env_config = config.pop("env_config")
    assert env_config == {
        "engine": "minecraft",
        "action_type": "agent",
        "obs_size": [128, 128],
        "preferred_spawn_biome": "plains",
        "camera_config": {"camera_binsize": 2, "camera_maxval": 10},
        "callbacks": [
            {
                "SummonMobs": {
                    "mobs": [{"name": "cow", "number": 10, "range_x": [-5, 5], "range_z": [-5, 5]}]
                }
            },
            {"MaskActions": {"inventory": 0}},
            "GateRewards",
            {"Voxels": {"voxels_ins": [-3, 3, -3, 3, -3, 3]}},
            {"Commands": {"commands": ["/give @p minecraft:iron_sword 1"]}},
            {"FastReset": {"biomes": ["plains"], "random_tp_range": 1000, "start_time": 6000}},
            {"JudgeReset": {"time_limit": 600}},
        ],
    }
    assert config == {
        "num_env_runners": 2,
        "num_gpus_per_env_runner": 0.5,
        "num_cpus_per_env_runner": 3,
        "rollout_fragment_length": 128,
        "num_envs_per_env_runner": 16,
        "env_pool": {"inference_batch_size": 8, "restart_interval": 3600},
        "replay_buffer": {
            "max_fragments": 400,
            "max_reuse": 2,
            "max_staleness": 3,
            "fragments_per_chunk": 4,
        },
        "num_learners": 2,
        "num_gpus_per_learner": 1.0,
        "vf_warmup_iterations": 5,
        "lr": 2e-5,
        "weight_decay": 0.03,
        "adam_eps": 1e-8,
        "fragments_per_minibatch": 4,
        "fragments_per_iteration": 2 * 4 * 10,
        "gradient_accumulation": 2 * 5,
        "num_epochs": 2,
        "context_length": 64,
        "gamma": 0.99,
        "lambda_": 0.9,
        "clip_param": 0.1,
        "grad_clip": 4,
        "zero_init_value_head": False,
        "vf_coeff": 0.4,
        "kl_coeff": 0.3,
        "entropy_coeff": 0.01,
        "kl_decay": 0.999,
        "log_ratio_clamp": 40,
        "model": {"weights": ["2x.model", "rl.weights"]},
        "prior": "initial",
    }


def test_what_is_written_is_an_experiment_that_can_be_planned(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")  # it tracks with W&B, which wants a login
    target = tmp_path / "cow.yaml"
    assert main(["convert", str(EXAMPLE), "--out", str(target)]) == 0
    # The weights are not there, and two callbacks and the game are only where MineStudio is.
    own = "[{SummonMobs: {mobs: []}}, {JudgeReset: 600}]"
    overrides = ["model.weights=null", f"env_config.callbacks={own}", "env_config.engine=voxel"]
    (experiment,) = load_experiments(target, overrides)
    plan = make_plan(experiment)
    assert plan.example.fragments_per_iteration == 80
    assert plan.record_video_interval == 10
    assert main(["convert", str(EXAMPLE), "--out", str(target)]) == BAD_INPUT
    assert "already exists" in capsys.readouterr().err


def test_every_key_of_minestudio_is_documented():
    keys = set(flattened(ConfigModule(EXAMPLE).online_dict))
    assert keys <= set(RULES)
    text = DOCUMENTATION.read_text()
    for key in RULES:
        assert f"`{key.rpartition('.')[2]}`" in text, key


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("online_dict = {'train_config': {'learning_rte': 1}}", "learning_rte=1: unknown key"),
        ("online_dict = {'train_config': {'clip_vloss': True}}", "clip_vloss=True: the value"),
        ("online_dict = {'train_config': {'anneal_lr_linearly': True}}", "no train_config.num_it"),
        ("online_dict = {'trainer_name': 'BCTrainer'}", "only PPOTrainer and PPOBC"),
        ("online_dict = []", "online_dict is list"),
        (
            "from omegaconf import OmegaConf\nonline_dict = OmegaConf.create({'a': '${b}'})",
            "online_cfg: Interpolation key 'b' not found",
        ),
        ("x = 1", "there is no online_dict"),
        ("x = 1", "there is no env_generator()"),
        ("import no_such_package\nno_such_package.f()", "no_such_package is not installed"),
        (
            "from no_such_package import Base\nclass Own(Base): pass",
            "no_such_package is not installed",
        ),
        (
            "import no_such_package\n"
            "online_dict = {'train_config': {'learning_rate': no_such_package.RATE}}",
            "learning_rate: <class 'no_such_package.RATE'> cannot be written",
        ),
        ("def env_generator(): return 1 / 0", "env_generator() raised ZeroDivisionError"),
        ("def env_generator(): return object()", "only MineStudio's MinecraftSim"),
        ("def policy_generator(): return [1]", "policy_generator() returns a list, which is no"),
        (
            "from minestudio.models import VPTPolicy\ndef policy_generator(): return VPTPolicy",
            "policy_generator() returns VPTPolicy; translated are",
        ),
        (
            "from minestudio.simulator import MinecraftSim\n"
            "from minestudio.simulator.callbacks import MinecraftCallback\n"
            "class Own(MinecraftCallback):\n    def __init__(self): pass\n"
            "def env_generator(): return MinecraftSim(callbacks=[Own()])",
            "the callback Own is not MineStudio's",
        ),
        (
            "from minestudio.simulator import MinecraftSim\n"
            "def env_generator(): return MinecraftSim(seed=open)",
            "cannot be written as YAML",
        ),
        (
            "from minestudio.simulator import MinecraftSim\n"
            "def env_generator(): return MinecraftSim(gui=True)",
            "MinecraftSim(gui=...)",
        ),
        ("online_dict = {'train_config': {'bc_coef': 0.1}}", "bc_coef: only PPOBCTrainer reads it"),
        (
            "online_dict = {'trainer_name': 'PPOBCTrainer',"
            " 'train_config': {'enable_ref_update': True}}",
            "PPOBCTrainer replaces the prior when",
        ),
        (
            "from minestudio.offline.mine_callbacks import BehaviorCloneCallback, KLDCallback\n"
            "online_dict = {'trainer_name': 'PPOBCTrainer',"
            " 'train_config': {'callbacks': [BehaviorCloneCallback(), KLDCallback()]}}",
            "train_config.callbacks: only a single BehaviorCloneCallback",
        ),
    ],
)
def test_nothing_is_dropped_in_silence(tmp_path, text, complaint):
    assert any(complaint in sentence for sentence in translate(tmp_path, text).left_out)


def test_what_is_left_out_stands_in_the_file_and_in_the_exit_status(tmp_path, capsys):
    file = tmp_path / "my-config.py"
    file.write_text("online_dict = {'train_config': {'clip_vloss': True}}")
    assert main(["convert", str(file)]) == convert.INCOMPLETE
    captured = capsys.readouterr()
    assert "not translated: train_config.clip_vloss=True" in captured.err
    assert "# - train_config.clip_vloss=True" in captured.out
    assert list(yaml.safe_load(captured.out)) == ["my_config"]


@pytest.mark.skipif(MINESTUDIO is None, reason="MineStudio is not installed")
@pytest.mark.parametrize("name", ["config_shoot", "gate", "gate_kl"])
def test_minestudios_own_configs_are_translated_whole(name, tmp_path, monkeypatch):
    """Translated, planned with a small network instead of weights that only its authors have."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    config = Path(MINESTUDIO.origin).parent / "online" / "run" / "config" / f"{name}.py"
    target = tmp_path / f"{name}.yaml"
    assert main(["convert", str(config), "--out", str(target)]) == 0
    monkeypatch.setenv("MINESTUDIO_DIR", str(tmp_path / "MineStudio"))
    launcher.install(tmp_path / "MineStudio")
    small = ["model.weights=null", "model.preset=nano", "model.img_shape=[128, 128, 3]"]
    (experiment,) = load_experiments(target, small)
    assert make_plan(experiment).example.kl_coeff == 0.2


@pytest.mark.slow
@pytest.mark.skipif(MINESTUDIO is None, reason="MineStudio is not installed")
@pytest.mark.parametrize("name", ["config_shoot", "gate", "gate_kl"])
def test_minestudios_own_configs_train(name, tmp_path, monkeypatch):
    """For one iteration: a tiny network, few and short fragments, no GPU, the embedded engine."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    config = Path(MINESTUDIO.origin).parent / "online" / "run" / "config" / f"{name}.py"
    target = tmp_path / f"{name}.yaml"
    assert main(["convert", str(config), "--out", str(target)]) == 0
    sets = [word for option in ON_TWO_CORES for word in ("--set", option)]
    status, output = run_rllib(
        tmp_path, "train", "file", target.name, *sets, "--stop", "training_iteration=1"
    )
    assert status == 0, output
    (lines,) = (tmp_path / "results" / name).glob("*/*/result.json")
    result = json.loads(lines.read_text().splitlines()[-1])
    assert result["training_iteration"] == 1
    assert result["learners"]["default_policy"]["gradient_norm"] > 0


def test_annealing_goes_over_minestudios_iterations(tmp_path):
    options = "{'num_iterations': 40, 'anneal_lr_linearly': True, 'enable_ref_update': True}"
    translation = translate(tmp_path, f"online_dict = {{'train_config': {options}}}")
    assert translation.experiment["config"]["lr_annealing_iterations"] == 40
    assert any("enable_ref_update: MineStudio's PPO" in text for text in translation.not_needed)


def test_the_keys_of_ppo_with_cloning_are_translated(tmp_path):
    translation = translate(
        tmp_path,
        "from minestudio.data import MineDataModule\n"
        "from minestudio.offline.mine_callbacks import BehaviorCloneCallback\n"
        "online_dict = {'trainer_name': 'PPOBCTrainer', 'train_config': {'bc_coef': 0.5,\n"
        "    'mine_data': MineDataModule({}), 'callbacks': [BehaviorCloneCallback(weight=0.2)]}}",
    )
    assert translation.experiment["config"]["behaviour_cloning"] == {"coeff": 0.1}
    (data,) = (text for text in translation.left_out if "generator" not in text)
    assert data.startswith("train_config.mine_data: ")
    assert "config.behaviour_cloning.recordings" in data
    assert any("train_config.callbacks" in text for text in translation.not_needed)


def test_a_fixed_decoder_and_mixed_precision_are_translated(tmp_path):
    text = "online_dict = {'train_config': {'fix_decoder': True, 'use_amp': True}}"
    model = translate(tmp_path, text).experiment["config"]["model"]
    assert model["precision"] == "bfloat16"
    network = VPTNetwork(VPTConfig.from_options({"preset": "nano"}))
    frozen = freeze(network, model["freeze"])
    learning = {name for name, _ in network.named_parameters()} - set(frozen)
    assert all(name.startswith(("net.img_process.", "value_head.")) for name in learning)
    assert {"net.img_process.linear.layer.weight", "value_head.linear.weight"} <= learning

    text = "online_dict = {'train_config': {'fix_decoder': False, 'use_amp': False}}"
    translation = translate(tmp_path, text)
    assert "model" not in translation.experiment["config"]
    assert all("generator" in sentence for sentence in translation.left_out)


def test_hub_weights_and_compositions_are_translated(tmp_path):
    translation = translate(
        tmp_path,
        "from minestudio.simulator import MinecraftSim\n"
        "from minestudio.simulator.callbacks import *\n"
        "from minestudio.simulator.callbacks import Compose, JudgeResetCallback\n"
        "from minestudio.models import VPTPolicy\n"
        "def env_generator():\n"
        "    return MinecraftSim(callbacks=[Compose([JudgeResetCallback(3)], options=1)])\n"
        "def policy_generator():\n"
        "    return VPTPolicy.from_pretrained('CraftJarvis/VPT')\n",
    )
    config = translation.experiment["config"]
    assert config["model"] == {"weights": "CraftJarvis/VPT"}
    compose = {"Compose": {"callbacks": [{"JudgeReset": {"time_limit": 3}}], "options": 1}}
    assert config["env_config"]["callbacks"] == [compose]


def test_stand_ins_do_not_stay_behind(tmp_path):
    before = set(sys.modules)
    translate(
        tmp_path, "import no_such_package.part\nfrom minestudio.simulator import MinecraftSim"
    )
    assert not {name for name in set(sys.modules) - before if "minestudio" in name.split(".")[0]}
    assert "no_such_package" not in sys.modules
    with pytest.raises(ImportError):
        import no_such_package  # noqa: F401


def test_a_file_that_raises_or_is_missing_is_refused(tmp_path, capsys):
    file = tmp_path / "broken.py"
    file.write_text("raise RuntimeError('not today')")
    assert main(["convert", str(file)]) == BAD_INPUT
    assert "RuntimeError: not today" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "none.py")]) == BAD_INPUT


def test_numpy_values_become_lists_and_numbers(tmp_path, capsys):
    file = tmp_path / "config.py"
    file.write_text(
        "import numpy as np\n"
        "from pathlib import Path\n"
        "from minestudio.simulator import MinecraftSim\n"
        "from minestudio.simulator.callbacks import MaskActionsCallback\n"
        "from minestudio.models import load_vpt_policy\n"
        "online_dict = {'train_config': {'learning_rate': np.float32(0.5),\n"
        "    'num_iterations': np.int64(40), 'anneal_lr_linearly': np.bool_(True)}}\n"
        "def env_generator():\n"
        "    masks = MaskActionsCallback(inventory=0, camera=np.array([0., 0.]))\n"
        "    return MinecraftSim(obs_size=np.array([128, 128]), callbacks=[masks])\n"
        "def policy_generator():\n"
        "    return load_vpt_policy(Path('2x.model'), 'rl.weights')\n"
    )
    assert main(["convert", str(file)]) == 0
    config = yaml.safe_load(capsys.readouterr().out)["config"]["config"]
    assert config["env_config"]["obs_size"] == [128, 128]
    masks = {"MaskActions": {"inventory": 0, "camera": [0.0, 0.0]}}
    assert config["env_config"]["callbacks"] == [masks]
    assert (config["lr"], config["lr_annealing_iterations"]) == (0.5, 40)
    assert config["model"] == {"weights": ["2x.model", "rl.weights"]}


SIMULATOR = "from minestudio.simulator import MinecraftSim\n"


@pytest.mark.parametrize(
    "text",
    [
        "from minestudio.simulator import *\nfrom minestudio.simulator.callbacks import *\n"
        "def env_generator(): return MinecraftSim(callbacks=[JudgeResetCallback(3)])",
        f"{SIMULATOR}from minestudio.simulator.callbacks import JudgeResetCallback\n"
        "def env_generator():\n    sim = MinecraftSim()\n"
        "    sim.callbacks.append(JudgeResetCallback(3))\n    return sim",
        f"{SIMULATOR}from minestudio.simulator.callbacks import JudgeResetCallback\n"
        "def env_generator():\n    sim = MinecraftSim('agent')\n"
        "    sim.callbacks = [JudgeResetCallback(time_limit=3)]\n    return sim",
        "from beside import env_generator",
    ],
    ids=["star", "append", "assigned", "module beside it"],
)
def test_callbacks_arrive_however_they_are_written(tmp_path, text):
    (tmp_path / "beside.py").write_text(
        f"{SIMULATOR}from minestudio.simulator.callbacks import JudgeResetCallback\n"
        "def env_generator(): return MinecraftSim(callbacks=[JudgeResetCallback(3)])"
    )
    translation = translate(tmp_path, text)
    assert translation.experiment["config"]["env_config"]["callbacks"] == [
        {"JudgeReset": {"time_limit": 3}}
    ]
    assert not any("env_generator" in sentence for sentence in translation.left_out)
    assert "beside" not in sys.modules


def test_options_of_a_module_beside_the_config_arrive(tmp_path):
    (tmp_path / "common.py").write_text("online_dict = {'train_config': {'learning_rate': 0.5}}")
    text = "from common import online_dict\nonline_dict['train_config']['discount'] = 0.9"
    config = translate(tmp_path, text).experiment["config"]
    assert (config["lr"], config["gamma"]) == (0.5, 0.9)


@pytest.mark.skipif(MINESTUDIO is None, reason="MineStudio is not installed")
def test_options_of_minestudios_own_configs_arrive(tmp_path):
    text = "from minestudio.online.run.config.gate import online_dict, env_generator"
    translation = translate(tmp_path, text)
    assert translation.experiment["config"]["gamma"] == 0.999
    assert translation.experiment["config"]["env_config"]["callbacks"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("from no_such_package import online_dict", "online_dict comes from a module that is not"),
        ("online_dict = {}", "online_dict is empty"),
        ("def env_generator(): pass", "env_generator() returns None"),
        ("def env_generator(): raise SystemExit(0)", "env_generator() raised SystemExit"),
        (f"{SIMULATOR}def env_generator(): return MinecraftSim(callbacks=None)", "callbacks is a"),
        (
            "online_dict = {'train_config': {'batches_per_iteration': 'many', 'num_workers': 'x'}}",
            "batches_per_iteration='many': the value is invalid",
        ),
        ("online_dict = {'train_config': {'clip_vloss': {1: open}}}", "cannot be written as YAML"),
    ],
)
def test_what_makes_no_sense_is_said(tmp_path, capsys, text, complaint):
    file = tmp_path / "config.py"
    file.write_text(text)
    assert main(["convert", str(file)]) == convert.INCOMPLETE
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert "{}" not in captured.out


def test_a_config_that_exits_is_refused(tmp_path, capsys):
    file = tmp_path / "config.py"
    file.write_text("raise SystemExit(0)")
    assert main(["convert", str(file)]) == BAD_INPUT
    assert "SystemExit" in capsys.readouterr().err
