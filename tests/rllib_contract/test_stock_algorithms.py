"""RLlib's own algorithms train on `MineStudio`, with the encoder that docs/rllib.md gives them."""

import pytest
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

import rllib_minestudio  # noqa: F401  registers the name

EPISODE = 10
TASK = {"num_empty_frames": 1, "callbacks": [{"JudgeReset": {"time_limit": EPISODE}}]}


@pytest.mark.slow
@pytest.mark.parametrize("config_class", [PPOConfig, APPOConfig, IMPALAConfig])
def test_an_iteration_is_played_and_trained_in_another_process(local_ray, config_class):
    config = config_class().environment("MineStudio", env_config=TASK)
    config.env_runners(
        num_env_runners=1, num_envs_per_env_runner=2, rollout_fragment_length=EPISODE
    )
    config.rl_module(model_config=DefaultModelConfig(head_fcnet_hiddens=[32]))
    config.training(train_batch_size_per_learner=4 * EPISODE)
    config.learners(num_learners=0)
    config.reporting(min_time_s_per_iteration=0, min_train_timesteps_per_iteration=1)
    if config_class is PPOConfig:
        config.training(minibatch_size=2 * EPISODE, num_epochs=1)
    algorithm = config.build_algo()
    result = algorithm.train()
    algorithm.stop()
    assert result["env_runners"]["episode_len_mean"] == EPISODE
    learned = result["learners"]["default_policy"]
    assert learned["num_module_steps_trained"] >= 4 * EPISODE and learned["total_loss"] != 0


@pytest.mark.slow
def test_larger_frames_a_memory_and_fewer_keys_fit_the_default_module(local_ray):
    """The options of docs/rllib.md for frames of 128 x 128, in the driver."""
    env_config = {**TASK, "obs_size": (128, 128), "flat_spaces": {"actions": ["attack", "yaw"]}}
    config = PPOConfig().environment("MineStudio", env_config=env_config)
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=2)
    filters = [[16, 8, 4], [32, 4, 2], [64, 4, 2], [128, 4, 2]]
    config.rl_module(
        model_config=DefaultModelConfig(conv_filters=filters, use_lstm=True, max_seq_len=10)
    )
    config.training(train_batch_size_per_learner=2 * EPISODE, minibatch_size=20, num_epochs=1)
    algorithm = config.build_algo()
    assert algorithm.train()["env_runners"]["episode_len_mean"] == EPISODE
    assert algorithm.env_runner.module.action_space.nvec.tolist() == [2, 11]
    algorithm.stop()
