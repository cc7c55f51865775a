"""Hunting cows with this package's MineStudioPPO."""

import itertools

from game import asked, game_options

from rllib_minestudio import MineStudioPPOConfig

request = asked()
example = "cow" if request.task == "cow" else "stray_cows_from_scratch"
config = MineStudioPPOConfig.from_example(example)
config.environment(env_config=game_options(request))
config.env_runners(num_envs_per_env_runner=request.games // 2)
config.debugging(seed=request.seed)
config.training(lr=request.lr, entropy_coeff=request.entropy)
algorithm = config.build_algo()
for _ in itertools.count():
    algorithm.train()
