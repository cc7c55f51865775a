"""Hunting cows with RLlib's own APPO and an LSTM."""

import itertools

from game import asked, game_options
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

import rllib_minestudio  # noqa: F401  # registers MineStudio

request = asked()
network = DefaultModelConfig(use_lstm=True, lstm_cell_size=128, max_seq_len=64)
config = (
    APPOConfig()
    .environment("MineStudio", env_config=game_options(request))
    .env_runners(num_env_runners=2, num_envs_per_env_runner=request.games // 2)
    .env_runners(rollout_fragment_length=64, sample_timeout_s=600, num_cpus_per_env_runner=0.5)
    .rl_module(model_config=network)
    .training(lr=request.lr, entropy_coeff=request.entropy, gamma=request.gamma)
    .training(train_batch_size_per_learner=512, grad_clip=5.0, use_kl_loss=False)
    .fault_tolerance(restart_failed_env_runners=True, restart_failed_sub_environments=True)
    .debugging(seed=request.seed)
)
algorithm = config.build_algo()
for _ in itertools.count():
    algorithm.train()
