"""How fast MineStudioPPO plays and learns: environment steps per second of wall time.

    python benchmarks/training.py [FILE] [--iterations N]

FILE is an experiment file with a `config`; the default is `tuned_examples/cow_vpt.yaml`. Playing
and learning are timed apart, in one process, after a warm-up iteration: medians over the
iterations.
A bare loop of engine steps with random actions stands beside them for comparison.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import ray
import torch
import yaml
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.algorithms.learner import ITERATION
from rllib_minestudio.env import MineStudioEnv
from rllib_minestudio.env.agents import RandomAgent

DEFAULT_FILE = Path(__file__).parents[1] / "tuned_examples" / "cow_vpt.yaml"
BARE_STEPS = 2000


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE)
    parser.add_argument("--iterations", type=int, default=8, help="timed iterations")
    arguments = parser.parse_args()

    config = read_config(arguments.file)
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    algorithm = config.build_algo()
    algorithm.train()
    timings = [play_and_learn(algorithm) for _ in range(arguments.iterations)]
    started = time.perf_counter()
    play_at_random(config.env_config)
    bare = BARE_STEPS / (time.perf_counter() - started)
    steps = config.num_envs_per_env_runner * config.rollout_fragment_length
    playing, learning = ([steps / s for s in column] for column in zip(*timings, strict=True))
    show(config, bare, playing, learning)


def read_config(file: Path) -> MineStudioPPOConfig:
    """The first experiment of a file, playing in this process."""
    options = next(iter(yaml.safe_load(file.read_text()).values()))["config"]
    numbers = {key: float(options[key]) for key in ("lr", "kl_coeff") if key in options}
    return MineStudioPPOConfig().update_from_dict({**options, **numbers, "num_env_runners": 0})


def play_and_learn(algorithm: MineStudioPPO) -> tuple[float, float]:
    """Seconds to collect one fragment per environment, and to train on those."""
    started = time.perf_counter()
    fragments = algorithm.env_runner.sample().fragments
    collected = time.perf_counter()
    algorithm.learner_group.update(
        training_data=TrainingData(episodes=fragments),
        timesteps={ITERATION: algorithm.iteration, NUM_ENV_STEPS_SAMPLED_LIFETIME: 0},
    )
    return collected - started, time.perf_counter() - collected


def play_at_random(env_config: dict[str, Any]) -> None:
    """`BARE_STEPS` steps of one environment, without a network."""
    env = MineStudioEnv(env_config)
    agent = RandomAgent(0)
    env.reset(seed=0)
    for _ in range(BARE_STEPS):
        *_, terminated, truncated, _ = env.step(agent.act(env))
        if terminated or truncated:
            env.reset()
    env.close()


def show(config: Any, bare: float, playing: list[float], learning: list[float]) -> None:
    """Print the table."""
    title = (
        f"{config.model_config.get('preset')}, {config.num_envs_per_env_runner} environments, "
        f"{torch.get_num_threads()} threads"
    )
    table = Table("what", "env steps/s (median)", "min", "max", title=title)
    table.add_row("engine alone, random actions, one core", f"{bare:,.0f}", "", "")
    for name, rates in (("playing (engine, network, fragments)", playing), ("learning", learning)):
        table.add_row(
            name, f"{statistics.median(rates):,.0f}", f"{min(rates):,.0f}", f"{max(rates):,.0f}"
        )
    both = 1 / (1 / statistics.median(playing) + 1 / statistics.median(learning))
    table.add_row("both in turns", f"{both:,.0f}", "", "")
    Console().print(table)


if __name__ == "__main__":
    main()
