"""Every tuned example is an experiment in order; with MineStudio, its environment is played."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from gymnasium.wrappers import TimeLimit

from rllib_minestudio.benchmark.task import load_suite
from rllib_minestudio.env import EpisodeRecorder, MineStudioEnv, RecorderOptions
from rllib_minestudio.env.voxel.server import launcher
from rllib_minestudio.experiments.environment import make_env
from rllib_minestudio.experiments.experiment_file import load_experiments
from rllib_minestudio.experiments.plan import make_plan
from rllib_minestudio.models.rl_modules import ConvGRURLModule

EXAMPLES = Path(__file__).parents[3] / "tuned_examples"
MINECRAFT = [*sorted(EXAMPLES.glob("*_minecraft.yaml")), EXAMPLES / "inference_vpt.yaml"]
COWS = [EXAMPLES / f"cow_{kind}.yaml" for kind in ("bc", "from_prior", "sweep", "vpt")]
FROM_VPT = EXAMPLES / "cow_from_vpt.yaml"
STRAYS = [
    EXAMPLES / f"{name}.yaml" for name in ("stray_cows", "stray_cows_bc", "stray_cows_from_scratch")
]
TWO_TASKS = [EXAMPLES / f"{name}.yaml" for name in ("cows_or_sheep", "cows_or_sheep_bc")]
GYMNASIUM = [EXAMPLES / f"{name}.yaml" for name in ("cartpole", "t_maze")]
TOOLS = EXAMPLES / "iron_pickaxe_bc.yaml"
CRAFTS = {
    "stone_pickaxe": "logs_1200",
    "stone_pickaxe_bc": "logs_1200",
    "stone_pickaxe_minecraft": "logs_1200",
    "stone_pickaxe_from_nothing": "3000",
}
"""Examples, and the tasks of the suite `tech-tree` that they are about."""
SHEEP = {"name": "sheep", "number": 5, "range_x": [-5, 5], "range_z": [-5, 5]}
"""Stand among the cows of the demonstrations, and are left alone."""
HAS_MINESTUDIO = importlib.util.find_spec("minestudio") is not None
FOREIGN = "minestudio.simulator.callbacks."

PUBLISHED = (
    "CraftJarvis/MineStudio_VPT.foundation_model_1x",
    "CraftJarvis/MineStudio_VPT.foundation_model_2x",
    "CraftJarvis/MineStudio_VPT.rl_for_shoot_animals_2x",
)
"""Hugging Face ids that MineStudio's own documentation uses; there is no network here."""


def load(path, *overrides):
    (experiment,) = load_experiments(path, overrides)
    return experiment


def without_download(path, *overrides):
    """The experiment with a small network for images of the same size instead of its weights."""
    small = ("model.weights=null", "model.preset=nano", "model.img_shape=[128, 128, 3]")
    return load(path, *small, *overrides)


def recorded(experiment, folder):
    """Records two short episodes of an experiment's task, and returns their folder."""
    env = TimeLimit(MineStudioEnv(experiment.config["env_config"]), 2)
    env = EpisodeRecorder(env, RecorderOptions(str(folder)))
    for seed in range(2):
        env.reset(seed=seed)
        for _ in range(2):
            env.step(env.action_space.sample())
    env.close()
    assert not env.failures
    return str(folder)


def foreign_callbacks(experiment):
    return [
        spec
        for spec in experiment.config["env_config"]["callbacks"]
        if (spec if isinstance(spec, str) else next(iter(spec))).startswith(FOREIGN)
    ]


@pytest.mark.slow
def test_an_experiment_is_checked_without_importing_pytorchs_compiler():
    check = """
import sys
from pathlib import Path
from rllib_minestudio.experiments.experiment_file import load_experiments
from rllib_minestudio.experiments.plan import make_plan
for path in sys.argv[1:]:
    make_plan(*load_experiments(Path(path)))
assert "torch._dynamo" not in sys.modules  # more than a second
"""
    files = [str(EXAMPLES / f"{name}.yaml") for name in ("cow", "cow_vpt", "stone_pickaxe")]
    subprocess.run([sys.executable, "-c", check, *files], check=True)


def test_the_examples_are_all_looked_at():
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == {
        "cow",
        FROM_VPT.stem,
        TOOLS.stem,
        *(path.stem for path in (*COWS, *STRAYS, *TWO_TASKS, *GYMNASIUM)),
        *CRAFTS,
        *(path.stem for path in MINECRAFT),
    }
    assert len(MINECRAFT) == 5


@pytest.mark.parametrize("path", COWS, ids=lambda path: path.stem)
def test_the_cow_is_the_same_in_all_examples(path, tmp_path):
    experiment = load(path)
    expected = load(EXAMPLES / "cow.yaml").config["env_config"]
    if path.stem == "cow_bc":
        expected["callbacks"][0]["SummonMobs"]["mobs"].append(SHEEP)
    assert experiment.config["env_config"] == expected
    if "input_" in experiment.config:
        experiment.config["input_"] = recorded(experiment, tmp_path)
    assert make_plan(experiment).name == path.stem


def test_vpts_own_weights_learn_the_same_task_on_frames_of_their_size():
    experiment = load(FROM_VPT)
    task = load(EXAMPLES / "cow.yaml").config["env_config"]
    assert experiment.config["env_config"] == {**task, "obs_size": [128, 128]}
    assert experiment.config["model"] == {"weights": PUBLISHED[0]}
    plan = make_plan(without_download(FROM_VPT))
    assert plan.name == "cow_from_vpt"


@pytest.mark.parametrize("name", ["cow", "cow_vpt"])
def test_the_network_reads_images_of_the_size_that_the_command_line_sets(name):
    """As cow.yaml's first lines propose; the plan builds environment and network."""
    plan = make_plan(load(EXAMPLES / f"{name}.yaml", "env_config.obs_size=[128, 128]"))
    assert plan.example.env_config["obs_size"] == [128, 128]


@pytest.mark.parametrize("path", TWO_TASKS, ids=lambda path: path.stem)
def test_one_network_for_two_tasks(path, tmp_path):
    experiment = load(path, "model.weights=null")  # a user's clone is not at hand
    assert experiment.config["env_config"] == load(TWO_TASKS[0]).config["env_config"]
    if "input_" in experiment.config:
        experiment.config["input_"] = recorded(experiment, tmp_path)
    plan = make_plan(experiment)
    env = make_env(plan.example)
    assert set(env.observation_space) == {"image", "task_text"}
    texts = {bytes(env.reset(seed=seed)[0]["task_text"]).rstrip(b"\0") for seed in range(6)}
    assert texts == {b"hunt cows", b"hunt sheep"}
    env.close()


@pytest.mark.parametrize("path", STRAYS, ids=lambda path: path.stem)
def test_the_second_task_differs_by_where_the_cows_are(path, tmp_path):
    experiment = load(path)
    if "weights" in experiment.config["model"]:  # a user's clone, which is not at hand
        experiment = load(path, "model.weights=package:hunter_nano")
    expected = load(EXAMPLES / "cow.yaml").config["env_config"]
    away = {"name": "cow", "number": 4, "range_x": [-16, 16], "range_z": [-16, 16]}
    expected["callbacks"][0]["SummonMobs"]["mobs"] = [away]
    assert experiment.config["env_config"] == expected
    if "input_" in experiment.config:
        experiment.config["input_"] = recorded(experiment, tmp_path)
    assert make_plan(experiment).name == path.stem


@pytest.mark.parametrize("path", GYMNASIUM, ids=lambda path: path.stem)
def test_environments_that_are_not_minestudios_have_a_policy_and_an_aim(path):
    plan = make_plan(load(path))
    assert plan.example.policy_class is ConvGRURLModule and plan.example.prior is None
    env = make_env(plan.example)
    assert set(env.action_space) == {"action"} and set(env.observation_space) == {"observation"}
    best = getattr(env.spec, "max_episode_steps", None) or 1
    assert 0.9 * best < plan.stop["env_runners/episode_return_mean"] < best
    assert plan.stop["time_total_s"] == 300
    env.close()


def test_the_tools_are_made_of_what_lies_near(tmp_path):
    plan = make_plan(load(TOOLS, f"input_={recorded(load(TOOLS), tmp_path)}"))
    env = make_env(plan.example)
    env.reset(seed=0)
    near = env.unwrapped.backend.engine.blocks_within((5, 12, -5, 3, -5, 5))
    names = [block["type"] for block in near]
    assert names.count("iron_ore") == 7 and names.count("stone") > 100
    env.close()


@pytest.mark.parametrize(("name", "of_suite"), CRAFTS.items())
def test_the_pickaxe_is_that_of_the_benchmark(name, of_suite, tmp_path):
    task = load_suite("tech-tree").task(of_suite)
    experiment = load(EXAMPLES / f"{name}.yaml")
    env_config = experiment.config["env_config"]
    callbacks = {name: given for spec in env_config["callbacks"] for name, given in spec.items()}
    assert callbacks["Commands"]["commands"] == [
        *task.world.commands[:1],
        f"/time set {task.world.time}",
        *task.world.commands[1:],
    ]
    inventory = callbacks.get("InitInventory", {"init_inventory": []})["init_inventory"]
    assert inventory == list(task.world.inventory)
    assert callbacks["JudgeReset"]["time_limit"] == task.time_limit
    assert [env_config["preferred_spawn_biome"]] == list(task.world.biomes)
    assert callbacks["TechTreeRewards"] == task.rewards["TechTreeRewards"]
    if "input_" in experiment.config:
        experiment.config["input_"] = recorded(experiment, tmp_path)
    if env_config["engine"] == "voxel":
        assert make_plan(experiment).name == name


@pytest.mark.parametrize("path", MINECRAFT, ids=lambda path: path.stem)
def test_the_options_are_in_order(path):
    assert load(path).config["model"]["weights"] in PUBLISHED
    experiment = without_download(path, "env_config.engine=voxel")
    callbacks = experiment.config["env_config"]["callbacks"]
    for spec in foreign_callbacks(experiment) if not HAS_MINESTUDIO else ():
        callbacks.remove(spec)
    plan = make_plan(experiment)
    assert plan.example.env_config["obs_size"] == [128, 128]
    assert experiment.name == path.stem


@pytest.mark.skipif(not HAS_MINESTUDIO, reason="MineStudio is not installed")
@pytest.mark.parametrize("path", MINECRAFT, ids=lambda path: path.stem)
def test_the_environment_is_played_on_the_stand_in(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    launcher.install(tmp_path / "MineStudio")
    plan = make_plan(
        without_download(path, f"env_config.minecraft.directory={tmp_path / 'MineStudio'}")
    )
    env = make_env(plan.example)
    try:
        obs, _ = env.reset(seed=0)
        assert obs["image"].shape == (128, 128, 3)
        env.action_space.seed(0)
        for _ in range(5):
            obs, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert not (terminated or truncated), info
    finally:
        env.close()
