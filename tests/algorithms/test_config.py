"""Bad options are refused before anything starts, all at once, each in one sentence."""

from __future__ import annotations

import gymnasium as gym
import pytest
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from rllib_minestudio.algorithms import MineStudioBCConfig, MineStudioPPOConfig
from rllib_minestudio.errors import InvalidOptionsError
from tests.algorithms.toy_envs import tiny_model


class OtherEnv(gym.Env):
    """An environment of a user's own."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kl_coeff": -1}, r"^kl_coeff must be a number, between 0 and 1e\+09; got -1\."),
        ({"lambda_": 1.5}, r"lambda_ must be a number, between 0 and 1; got 1.5\."),
        ({"clip_param": "wide"}, r"clip_param must be .*; got 'wide'\."),
        ({"num_epochs": 0}, r"num_epochs must be an integer, at least 1; got 0\."),
        ({"context_length": True}, r"context_length must be .*; got True\."),
        ({"prior": None}, r"prior is null but kl_coeff"),
        ({"prior": None, "kl_coeff": 0, "prior_update_interval": 2}, r"nothing to update"),
        ({"kl_coeff": [[5, 0.1], [9, 0]]}, r"kl_coeff must, if it is a schedule, begin at step 0"),
        (
            {"entropy_coeff": [[0, 1e10]]},
            r"entropy_coeff\[0\]\[1\] must be .* between 0 and 1e\+09",
        ),
        ({"kl_coeff": [[0, 1.0]], "kl_decay": 0.9}, r"kl_decay is 0.9, but kl_coeff is the sched"),
        ({"entropy_coeff": [[0, 1.0]], "entropy_decay": 0.9}, r"entropy_decay is 0.9, but entropy"),
        ({"kl_target": 0}, r"kl_target must be a number, between 1e-09 and 1e\+09; got 0"),
        ({"kl_target": 0.1, "prior": None, "kl_coeff": 0}, r"kl_target is 0.1, but prior is null"),
        (
            {"kl_target": 0.1, "kl_coeff": [[0, 1.0]]},
            r"kl_target is 0.1, but kl_coeff is the sched",
        ),
        ({"kl_target": 0.1, "kl_coeff": 0}, r"kl_coeff is 0, of which every multiple is 0"),
        ({"kl_target": 0.1, "kl_decay": 0.9}, r"kl_decay is 0.9: leave out one of them"),
        ({"lr_annealing_iterations": 0}, r"must be an integer, at least 1"),
        ({"lr_annealing_iterations": 9, "lr": [[0, 1.0], [9, 0.5]]}, r"give a number as lr"),
        ({"ema_decay": 1}, r"decay of the weight average must be at least 0 and below 1; got 1\."),
        (
            {"off_policy_correction": "none"},
            r"must be one of 'decoupled', 'recompute'; got 'none'\.",
        ),
        ({"off_policy_correction": "decoupeld"}, r"Did you mean 'decoupled'"),
        (
            {"replay_buffer": {"max_ruse": 3}},
            r"replay_buffer: unknown option 'max_ruse'. Did you mean 'max_reuse'",
        ),
        (
            {"env_pool": {"mode": "proces"}},
            r"'auto', 'inline', 'process'; got 'proces'. Did you mean",
        ),
        (
            {"env_pool": {"step_timeout": 1}},
            r"unknown option 'step_timeout'. Did you mean 'step_timeout_s'",
        ),
        ({"env_pool": {"step_timeout_s": 0}}, r"step_timeout_s must be positive seconds; got 0\."),
        ({"env_pool": {"restart_interval": -1}}, r"must be positive seconds, or null"),
        ({"env_pool": {"max_restarts_per_hour": -1}}, r"must be an integer, at least 0"),
        ({"env_pool": {"inference_batch_size": 9}}, r"from 1 to num_envs_per_env_runner=8"),
        ({"replay_buffer": {"max_fragments": 8}}, r"make it at least 16"),
        ({"fragments_per_minibatch": 9}, r"more than fragments_per_iteration=8 holds"),
        ({"model": {"hidsize": -3}}, r"hidsize must be at least 1"),
        ({"lr_factors": {"nett.*": 0.1}}, r"'nett.\*' picks no parameter"),
        ({"lr_factors": {"net.*": -1}}, r"must be a positive number"),
        ({"model": {"freeze": ["*"]}}, r"leaves nothing to learn"),
        ({"model": {"weights": "nowhere.pt"}}, r"'nowhere.pt' do not exist"),
        ({"prior": 3}, r"prior must be 'initial', a checkpoint, or null; got 3"),
        ({"prior": ["a", 3]}, r"prior must be .*; got"),
        ({"model": {"weights": 3}}, r"weights"),
        ({"prior": "nowhere.pt"}, r"'nowhere.pt' do not exist"),
        ({"model": {"preset": "nanno"}}, r"did you mean 'nano'|Did you mean 'nano'"),
    ],
)
def test_each_problem_has_its_sentence(make_config, options, message):
    config = make_config(**options)
    with pytest.raises(InvalidOptionsError, match=message):
        config.validate()


@pytest.mark.parametrize("options", [DefaultModelConfig(use_lstm=True), {"use_lstm": True}])
def test_an_lstm_of_rllibs_is_told_what_to_use_instead(options):
    config = MineStudioPPOConfig().rl_module(model_config=options)
    with pytest.raises(InvalidOptionsError, match=r"^model has use_lstm, of RLlib's .*'ConvGRU'"):
        config.validate()


def test_an_evaluations_copy_is_judged_by_what_it_plays(make_config):
    config = make_config().env_runners(num_envs_per_env_runner=2)
    config.evaluation(evaluation_interval=5, evaluation_duration=4, evaluation_num_env_runners=64)
    config.training(env_pool={"inference_batch_size": 2})
    config.evaluation_config = {"num_envs_per_env_runner": 1}
    config.validate()
    copy = config.get_evaluation_config_object()
    assert (copy.num_env_runners, copy.num_envs_per_env_runner) == (64, 1)
    copy.validate()
    copy.module_class = "VTP"
    with pytest.raises(InvalidOptionsError, match="VPT"):
        copy.validate()
    copy.module_class = "VPT"
    trained = config.copy(copy_frozen=False).env_runners(num_envs_per_env_runner=1)
    with pytest.raises(InvalidOptionsError, match="inference_batch_size"):
        trained.validate()


def test_all_problems_are_reported_together(make_config):
    config = make_config(kl_decay=2, adam_eps=0, gamma=-1)
    with pytest.raises(InvalidOptionsError) as caught:
        config.validate()
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("name", ["model", "env_pool", "replay_buffer"])
def test_null_is_no_group_of_options(make_config, name):
    with pytest.raises(InvalidOptionsError, match=f"^{name} must be a mapping; leave it out"):
        make_config().update_from_dict({name: None})


def test_env_options_are_checked_too():
    config = MineStudioPPOConfig().environment(env_config={"obs_sise": [64, 64]})
    with pytest.raises(InvalidOptionsError, match="obs_size"):
        config.validate()


def test_an_unknown_env_is_named(make_config):
    config = make_config().environment("NoSuchEnv")
    with pytest.raises(InvalidOptionsError, match=r"^env must be .*; got 'NoSuchEnv'\.$"):
        config.validate()


def test_options_survive_the_way_through_a_mapping(make_config):
    config = make_config(lr=3e-4, replay_buffer={"max_reuse": 3})
    again = MineStudioPPOConfig().update_from_dict(config.to_dict())
    assert again.model_config == config.model_config
    assert again.replay_buffer == config.replay_buffer
    assert again.lr == 3e-4


def test_model_options_add_up(make_config):
    config = make_config().training(model={"hidsize": 64})
    assert config.model_config["hidsize"] == 64
    assert config.model_config["img_shape"] == tiny_model()["img_shape"]


def test_rates_by_part_reach_the_optimizer(local_ray, make_config):
    """Groups keep their share of a rate that a schedule moves, and frozen parts have no group."""
    config = make_config(
        lr=1e-3, lr_factors={"net.*": 0.5}, model=tiny_model(freeze=["net.img_process.*"])
    )
    algorithm = config.build_algo()
    try:
        learner = algorithm.learner_group._learner
        network = learner.policy.network
        (optimizer,) = learner._named_optimizers.values()
        rates = {
            id(parameter): group["lr"]
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        for name, parameter in network.named_parameters():
            expected = None if "img_process" in name else 5e-4 if name.startswith("net.") else 1e-3
            assert rates.get(id(parameter)) == expected, name
        encoder = network.net.img_process.linear.layer.weight
        before = encoder.clone(), network.net.final_ln.weight.clone()
        algorithm.train()
        assert encoder.equal(before[0]) and not network.net.final_ln.weight.equal(before[1])
    finally:
        algorithm.stop()


@pytest.mark.parametrize("kind", [MineStudioPPOConfig, MineStudioBCConfig])
def test_published_sizes_see_samples_unless_told_otherwise(kind):
    def sampling(model, **env_config):
        config = kind().training(model=model).environment(env_config=env_config)
        config.suit_env_to_policy()
        return config.env_config.get("sampling")

    for preset in ("1x", "2x", "3x"):
        assert sampling({"preset": preset}) == "samples"
    assert sampling({"preset": "2x", "precision": "bfloat16"}) == "samples"
    assert sampling({"preset": "2x"}, sampling="average") == "average"
    assert sampling({"preset": "nano"}) is None
    assert sampling({"preset": "1x", "img_shape": [64, 64, 3]}) is None


def test_validation_notes_how_frames_are_made():
    config = MineStudioPPOConfig().training(model={"preset": "1x"})
    config.validate()
    assert config.env_config == {"sampling": "samples"}
    config = MineStudioPPOConfig().training(model={"preset": "1x"}).environment(OtherEnv)
    config.suit_env_to_policy()
    assert config.env_config == {}, "only MineStudioEnv has the option"
