"""Hunting cows with RLlib's own PPO and an LSTM."""

import itertools

from game import asked, game_options
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

import rllib_minestudio  # noqa: F401  # registers MineStudio

request = asked()
network = DefaultModelConfig(use_lstm=True, lstm_cell_size=128, max_seq_len=64)
config = (
    PPOConfig()
    .environment("MineStudio", env_config=game_options(request))
    .env_runners(num_env_runners=2, num_envs_per_env_runner=request.games // 2)
    .env_runners(rollout_fragment_length=64, sample_timeout_s=600)
    .rl_module(model_config=network)
    .training(lr=request.lr, entropy_coeff=request.entropy, gamma=request.gamma, lambda_=0.95)
    .training(train_batch_size_per_learner=64 * request.games, minibatch_size=512, num_epochs=4)
    .training(vf_clip_param=100.0, clip_param=0.2, use_kl_loss=False, grad_clip=5.0)
    .fault_tolerance(restart_failed_env_runners=True, restart_failed_sub_environments=True)
    .debugging(seed=request.seed)
)
algorithm = config.build_algo()
for _ in itertools.count():
    algorithm.train()
