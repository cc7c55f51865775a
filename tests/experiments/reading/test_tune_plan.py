"""Everything wrong with an experiment is reported at once, by its path, before Ray starts."""

import pytest
import torch

from rllib_minestudio.errors import InvalidOptionsError
from rllib_minestudio.experiments.experiment_file import Experiment, load_experiments
from rllib_minestudio.experiments.plan import make_plan
from rllib_minestudio.experiments.sections import CheckpointOptions
from rllib_minestudio.models.vpt import VPTConfig, VPTNetwork

TINY_MODEL = {
    "preset": "nano",
    "hidsize": 16,
    "attention_heads": 2,
    "n_recurrence_layers": 1,
    "attention_memory_size": 24,
    "timesteps": 16,
}


SMALL = [64, 64, 3]


def experiment(config=None, **fields):
    base = {
        "env_config": {"obs_size": [64, 64], "callbacks": [{"JudgeReset": {"time_limit": 20}}]},
        "model": dict(TINY_MODEL),
    }
    fields.setdefault("env", "MineStudioEnv")
    return Experiment(name="cow", config={**base, **(config or {})}, **fields)


def problems_of(config=None, **fields):
    with pytest.raises(InvalidOptionsError) as caught:
        make_plan(experiment(config, **fields))
    return caught.value.problems


def test_a_good_experiment_becomes_a_plan_with_defaults():
    plan = make_plan(experiment({"lr": 1e-5}, stop={"env_runners": {"episode_return_mean": 5}}))
    assert plan.example.lr == 1e-5
    assert plan.example.model_config["hidsize"] == 16
    assert plan.stop == {"env_runners/episode_return_mean": 5}
    assert plan.checkpoints == CheckpointOptions()
    assert plan.searched == []


def test_ray_gives_out_fractions_of_gpus_and_cpus():
    shares = {"num_gpus_per_env_runner": 0.25, "num_cpus_per_env_runner": 0.5}
    plan = make_plan(experiment({**shares, "num_env_runners": 2}))
    assert plan.example.num_gpus_per_env_runner == 0.25


def test_a_grid_is_validated_member_by_member():
    plan = make_plan(experiment({"lr": {"grid_search": [1e-4, 3e-4]}}))
    assert plan.searched == [("lr",)]
    problems = problems_of({"gamma": {"grid_search": [0.9, 1.5, "x"]}})
    assert len(problems) == 2
    assert "gamma must be a number, between 0 and 1; got 1.5." in problems[0]
    assert "cow.config.gamma must be a number; got 'x'." in problems[1]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"lrr": 1}, "cow.config: unknown key 'lrr'. Did you mean 'lr'?"),
        ({"clip_parm": 1}, "cow.config: unknown key 'clip_parm'. Did you mean 'clip_param'?"),
        ({"num_workers": 2}, "cow.config.num_workers: has no effect here; use num_env_runners."),
        ({"horizon": 2}, "JudgeReset callback's time_limit"),
        ({"buffer_size": 3}, "cow.config.buffer_size: is deprecated in RLlib"),
        ({"lr": "high"}, "cow.config.lr must be a number; got 'high'."),
        ({"num_epochs": 1e0}, "cow.config.num_epochs must be a whole number; got 1.0."),
        ({"carry_prior_state": 1}, "cow.config.carry_prior_state must be true or false; got 1."),
        ({"env_config": 3}, "cow.config.env_config must be a mapping; got 3."),
        ({"callbacks": "no.such.Class"}, "cannot import callbacks 'no.such.Class'"),
        ({"model": {"preset": "nan"}}, "cow.config.model: model preset is 'nan'"),
        ({"model": {"hidsze": 3}}, "Did you mean 'hidsize'?"),
        ({"model": {"hidsize": 10, "attention_heads": 3}}, "hidsize must be a multiple"),
        ({"env_config": {"callbacks": ["SumonMobs"]}}, "Did you mean 'SummonMobs'?"),
        (
            {"env_config": {"callbacks": [{"JudgeReset": {"time_limit": "soon"}}]}},
            "time_limit must be an integer",
        ),
        ({"env_config": {"obs_size": [0, 64]}}, "obs_size"),
        (
            {"env_config": {"obs_size": [128, 128]}, "model": {**TINY_MODEL, "img_shape": SMALL}},
            "images are (128, 128, 3)",
        ),
        ({"env_config": {"obs_size": [100, 100]}}, "height and width must be multiples of 8"),
        ({"learning_rate": 1e-4}, "learning_rate: is MineStudio's name of it; use lr."),
        ({"num_iterations": 9}, "use stop.training_iteration, next to config."),
        ({"env_config": {"engine": "minecraft", "obs_size": [64, 64]}}, "engine='minecraft'"),
        ({"model": {**TINY_MODEL, "weights": "no/such.pt"}}, "'no/such.pt' do not exist"),
        ({"replay_buffer": {"max_reus": 1}}, "Did you mean 'max_reuse'?"),
    ],
)
def test_each_bad_option_gets_one_clear_message(config, message):
    (problem,) = problems_of(config)
    assert problem.startswith("cow.")
    assert message in problem


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"run": "MineStudoPPO"}, "cow.run: unknown algorithm 'MineStudoPPO'"),
        ({"run": "pathlib.Path"}, "is not an RLlib Algorithm class"),
        ({"env": "MineStudoEnv"}, "Did you mean 'MineStudioEnv'?"),
        ({"env": "no.such.Env"}, "cow: env is 'no.such.Env', which cannot be imported"),
        ({"num_samples": 0}, "cow.num_samples must be a whole number from 1 to 100000; got 0."),
        ({"stop": {"trainin_iteration": 3}}, "Did you mean 'training_iteration'?"),
        ({"stop": {"episode_reward_mean": 3}}, "use env_runners/episode_return_mean"),
        ({"stop": {"time_total_s": "long"}}, "must be a finite number; got 'long'"),
        ({"checkpoint_config": {"save_intervall": 3}}, "Did you mean 'save_interval'?"),
        ({"checkpoint_config": {"save_interval": 1.5}}, "at least 0; got 1.5"),
        (
            {"checkpoint_config": {"save_interval": 1, "checkpoint_frequency": 1}},
            "save_interval and checkpoint_frequency are the same option",
        ),
        ({"checkpoint_config": {"save_interval": 4, "keep_interval": 6}}, "a multiple of"),
        ({"record_video_interval": 15}, "multiple of checkpoint_config.save_interval=10"),
        ({"record_video_interval": "often"}, "at least 1; got 'often'"),
        ({"checkpoint_config": {"num_to_keep": 0}}, "at least 1; got 0"),
        ({"trackers": {"wandbb": {}}}, "cow.trackers: unknown tracker 'wandbb'"),
        ({"summary": {"video": 3}}, "cow.summary: unknown key 'video'"),
        ({"summary": {"video_episodes": -1}}, "from 0 to 100000; got -1"),
    ],
)
def test_each_bad_field_gets_one_clear_message(fields, message):
    (problem,) = problems_of(**fields)
    assert message in problem


def test_all_problems_come_together():
    problems = problems_of(
        {"lrr": 1, "lr": "x", "model": {"preset": "nan"}, "env_config": {"obs_sise": [1, 1]}},
        stop={"x": 3},
    )
    assert len(problems) == 5


def test_a_python_config_takes_overrides_and_keeps_its_searches(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        f"""
from ray import tune
from rllib_minestudio import MineStudioPPOConfig
config = (
    MineStudioPPOConfig()
    .environment(env_config={{"obs_size": [64, 64]}})
    .training(model={TINY_MODEL}, lr=tune.grid_search([1e-4, 3e-4]), gamma=0.9)
)
"""
    )
    overrides = ["model.hidsize=32", "gamma=0.8", "env_config.seed=3"]
    plan = make_plan(load_experiments(path, overrides)[0])
    assert plan.searched == [("lr",)]
    assert plan.example.gamma == 0.8
    assert plan.example.model_config["hidsize"] == 32
    assert plan.example.model_config["attention_heads"] == 2
    assert plan.example.env_config == {"obs_size": [64, 64], "seed": 3}


def test_weights_of_another_model_are_refused(tmp_path):
    path = tmp_path / "weights.pt"
    other = VPTConfig.from_options({**TINY_MODEL, "hidsize": 32})
    torch.save(VPTNetwork(other).state_dict(), path)
    for config, message in (
        ({"model": {**TINY_MODEL, "weights": str(path)}}, "model.hidsize is 16, but the weights"),
        ({"prior": str(path)}, "belong to another network"),
    ):
        (problem,) = problems_of(config)
        assert message in problem


def test_searches_with_impossible_arguments_are_reported():
    (problem,) = problems_of({"lr": {"loguniform": [0, 1]}})
    assert problem.startswith("cow.config.lr: loguniform does not take [0, 1]")
