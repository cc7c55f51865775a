"""Hunting cows with sample-factory's APPO."""

import gymnasium as gym
from game import asked, game_options
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl

from rllib_minestudio.env import FlatSpaces, MineStudioEnv

request = asked()


class Game(gym.Wrapper):
    """Sample-factory knows tuples of choices, no MultiDiscrete; it wants channels first."""

    def __init__(self, env):
        super().__init__(env)
        choices = [gym.spaces.Discrete(int(number)) for number in env.action_space.nvec]
        self.action_space = gym.spaces.Tuple(choices)
        height, width, colours = env.observation_space.shape
        self.observation_space = gym.spaces.Box(0, 255, (colours, height, width), "uint8")

    def reset(self, **options):
        """Begin an episode."""
        frame, info = self.env.reset(**options)
        return frame.transpose(2, 0, 1), info

    def step(self, action):
        """Play a step."""
        frame, *others = self.env.step([int(choice) for choice in action])
        return frame.transpose(2, 0, 1), *others


def make(name, cfg, env_config, render_mode=None):
    """Build a game."""
    index = 0 if env_config is None else env_config.env_id
    options = {**game_options(request), "seed": request.seed, "vector_index": index}
    return Game(FlatSpaces(MineStudioEnv(options)))


register_env("game", make)
options = {
    "algo": "APPO",
    "env": "game",
    "experiment": "game",
    "train_dir": request.diary / "sample_factory",
    "device": "cpu",
    "seed": request.seed,
    "num_workers": 2,
    "num_envs_per_worker": request.games // 2,
    "worker_num_splits": 2,
    "rollout": 64,
    "recurrence": 64,
    "batch_size": 512,
    "num_batches_per_epoch": 4,
    "num_epochs": 1,
    "learning_rate": request.lr,
    "exploration_loss_coeff": request.entropy,
    "gamma": request.gamma,
    "gae_lambda": 0.95,
    "ppo_clip_ratio": 0.2,
    "max_grad_norm": 5.0,
    "normalize_input": False,
    "obs_scale": 255.0,
    "use_rnn": True,
    "rnn_type": "gru",
    "rnn_size": 128,
    "encoder_conv_architecture": "convnet_simple",
    "encoder_conv_mlp_layers": 128,
    "reward_clip": 1000.0,
    "train_for_env_steps": 10**9,
}
if __name__ == "__main__":
    words = [f"--{name}={value}" for name, value in options.items()]
    parser, _ = parse_sf_args(words)
    run_rl(parse_full_cfg(parser, words))
