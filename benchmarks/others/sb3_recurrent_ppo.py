"""Hunting cows with SB3-contrib's RecurrentPPO."""

from game import asked, game_options
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env

import rllib_minestudio  # noqa: F401  # registers MineStudio-v0
from rllib_minestudio.env import FlatSpaces

request = asked()
games = make_vec_env(
    "MineStudio-v0",
    n_envs=request.games,
    wrapper_class=FlatSpaces,
    env_kwargs=game_options(request),
    seed=request.seed,
)
network = {
    "lstm_hidden_size": 128,
    "shared_lstm": True,
    "enable_critic_lstm": False,
    "features_extractor_kwargs": {"features_dim": 128},
    "net_arch": [],
}
model = RecurrentPPO(
    "CnnLstmPolicy",
    games,
    learning_rate=request.lr,
    ent_coef=request.entropy,
    gamma=request.gamma,
    n_steps=64,
    batch_size=512,
    n_epochs=4,
    max_grad_norm=5.0,
    policy_kwargs=network,
    seed=request.seed,
)
model.learn(total_timesteps=10**9)
