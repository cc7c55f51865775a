"""What staleness costs, and what each correction gives back: returns after equal steps.

    python benchmarks/staleness.py [--steps N] [--seeds S ...] [--staleness K ...]
                                   [--corrections NAME ...]

An agent learns to hunt cows in the embedded engine, on an easier task than that of
`tuned_examples/cow.yaml` (short episodes, small images), so that a cell of the table takes minutes.
Staleness is exact and not left to timing: playing and learning take turns, and the weights that
play are always those of K updates ago. Every cell plays the same number of steps.

`return` is the mean undiscounted return of the episodes of the last quarter, `on the way` that of
all of them, which tells how fast it went; +- is half the range over the seeds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import ray
import yaml
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, WEIGHTS_SEQ_NO
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.algorithms.learner import ITERATION
from rllib_minestudio.algorithms.learner.targets import CORRECTIONS, DECOUPLED

TASK = Path(__file__).parents[1] / "tuned_examples" / "cow.yaml"
TIME_LIMIT = 100
OPTIONS: dict[str, Any] = {
    "lr": 1e-3,
    "kl_coeff": 4e-3,
    "num_envs_per_env_runner": 16,
    "rollout_fragment_length": 32,
    "decorrelation_steps": TIME_LIMIT,
    "context_length": 32,
    "fragments_per_iteration": 16,
    "fragments_per_minibatch": 8,
    "num_epochs": 2,
}
"""Changes to the task's config: many small updates, so that staleness has something to be about."""


class Cell(NamedTuple):
    """What one run gave."""

    final: float
    on_the_way: float
    importance_weight: float
    approximate_kl: float
    seconds: float


def main() -> None:
    """Run all cells and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=60_000, help="per cell and seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 2, 8])
    parser.add_argument("--corrections", nargs="+", default=CORRECTIONS, choices=CORRECTIONS)
    arguments = parser.parse_args()

    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=200 * 1024**2,
    )
    title = f"cows, {arguments.steps:,} steps per run, seeds {arguments.seeds}"
    table = Table(
        "staleness",
        "correction",
        "return",
        "on the way",
        "importance weight",
        "KL per update",
        "seconds",
        title=title,
    )
    for staleness in arguments.staleness:
        # Without staleness there is nothing to correct: all modes are the same.
        for correction in arguments.corrections if staleness else [DECOUPLED]:
            cells = [run(correction, staleness, seed, arguments.steps) for seed in arguments.seeds]
            final, on_the_way, weight, kl, seconds = zip(*cells, strict=True)
            row = (
                str(staleness),
                correction if staleness else "(any)",
                spread(final),
                spread(on_the_way),
                f"{statistics.mean(weight):.3f}",
                f"{statistics.mean(kl):.4f}",
                f"{statistics.mean(seconds):.0f}",
            )
            print(*row, sep="  ", flush=True)
            table.add_row(*row)
    Console().print(table)


def run(correction: str, staleness: int, seed: int, steps: int) -> Cell:
    """Train one agent whose experience is `staleness` updates old."""
    started = time.perf_counter()
    algorithm = make_config(correction, staleness, seed).build_algo()
    try:
        returns, metrics = train(algorithm, staleness, steps)
    finally:
        algorithm.stop()
    quarter = returns[-(len(returns) // 4) :]
    return Cell(
        statistics.mean(quarter),
        statistics.mean(returns),
        statistics.mean(m["importance_weight_mean"] for m in metrics),
        statistics.mean(m["approximate_kl"] for m in metrics),
        time.perf_counter() - started,
    )


def make_config(correction: str, staleness: int, seed: int) -> MineStudioPPOConfig:
    """The task, made easier, in this process."""
    options = yaml.safe_load(TASK.read_text())["cow"]["config"]
    for callback in options["env_config"]["callbacks"]:
        if "JudgeReset" in callback:
            callback["JudgeReset"]["time_limit"] = TIME_LIMIT
    options["env_config"]["obs_size"] = [32, 32]
    options["model"] = {"preset": "nano", "img_shape": [32, 32, 3]}
    options["replay_buffer"] |= {"max_staleness": staleness}
    correcting = {"off_policy_correction": correction, "seed": seed}
    return MineStudioPPOConfig().update_from_dict({**options, **OPTIONS, **correcting})


def train(
    algorithm: MineStudioPPO, staleness: int, steps: int
) -> tuple[list[float], list[dict[str, Any]]]:
    """Take turns; returns of all episodes in their order, and the learner's metrics."""
    config, runner, learners = algorithm.config, algorithm.env_runner, algorithm.learner_group
    published = deque([weights(algorithm)], maxlen=staleness + 1)
    returns: list[float] = []
    metrics = []
    for iteration in range(steps // config.env_steps_per_iteration):
        runner.set_state(published[0])
        rollout = runner.sample(aligned=True)
        returns += [episode.undiscounted_return for episode in rollout.report.episodes]
        (result,) = learners.update(
            training_data=TrainingData(episodes=rollout.fragments),
            timesteps={
                ITERATION: iteration,
                NUM_ENV_STEPS_SAMPLED_LIFETIME: iteration * config.env_steps_per_iteration,
            },
        )
        own = result["default_policy"]
        metrics.append(
            {name: float(own[name]) for name in ("importance_weight_mean", "approximate_kl")}
        )
        published.append(weights(algorithm))
    return returns, metrics


def weights(algorithm: MineStudioPPO) -> dict[str, Any]:
    """The learner's weights with their version, as an env runner takes them."""
    state = algorithm.learner_group.get_state(
        components=f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}", inference_only=True
    )[COMPONENT_LEARNER]
    return {name: state[name] for name in (COMPONENT_RL_MODULE, WEIGHTS_SEQ_NO)}


def spread(values: tuple[float, ...]) -> str:
    """Mean, and half the range if there are several."""
    text = f"{statistics.mean(values):.2f}"
    return f"{text} +- {(max(values) - min(values)) / 2:.2f}" if len(values) > 1 else text


if __name__ == "__main__":
    main()
