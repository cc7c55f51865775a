"""What staleness costs, and what each correction gives back: returns after equal steps.

    python benchmarks/staleness.py [--steps N] [--seeds S ...] [--staleness K ...]
                                   [--corrections NAME ...] [--results FILE]

An agent learns to walk in the embedded engine: it is paid for every metre that it walks or sprints
on plains within 48 steps, and sees where it goes in 16 x 16 pixels. Task and network are so small
that much is learnt within 20,000 steps, which take a core less than a minute.
Staleness is exact and not left to timing: playing and learning take turns, and the weights that
play are always those of K updates ago. Every run plays the same number of steps.
The correction `none`, PPO's ratio to the behaviour policy itself, is for this comparison only:
`MineStudioPPOConfig` refuses it, `ComparedConfig` below does not.

`return` is the mean undiscounted return of the episodes of the last quarter, `on the way` that of
all of them, which tells how fast it went; +- is half the range over the seeds. With `--results`
runs are appended to a file of JSON lines, and the table is made of all runs in it: so each can be
a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, WEIGHTS_SEQ_NO
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.algorithms.learner import ITERATION
from rllib_minestudio.algorithms.learner.value_targets import NO_CORRECTION
from rllib_minestudio.algorithms.options import DECOUPLED, RECOMPUTE, PPOOptions
from rllib_minestudio.foundation.options import like

CORRECTIONS = (DECOUPLED, RECOMPUTE, NO_CORRECTION)

TIME_LIMIT = 48
NUM_ENVS = 32
OPTIONS: dict[str, Any] = {
    "env_config": {
        "engine": "voxel",
        "obs_size": [16, 16],
        "preferred_spawn_biome": "plains",
        "callbacks": [
            {"MaskActions": {"inventory": 0}},
            {
                "Rewards": {
                    "reward_cfg": [
                        {
                            "event": "custom",
                            "objects": ["walk_one_cm", "sprint_one_cm"],
                            "reward": 0.01,
                            "identity": "metres",
                            "max_reward_times": 10_000,
                        }
                    ]
                }
            },
            {"FastReset": {"biomes": ["plains"], "random_tp_range": 100}},
            {"JudgeReset": {"time_limit": TIME_LIMIT}},
        ],
    },
    "model": {
        "preset": "nano",
        "img_shape": [16, 16, 3],
        "impala_chans": [8, 16],
        "hidsize": 64,
        "attention_heads": 2,
        "n_recurrence_layers": 1,
        "attention_memory_size": 32,
        "timesteps": 16,
    },
    "num_envs_per_env_runner": NUM_ENVS,
    "rollout_fragment_length": 16,
    "decorrelation_steps": TIME_LIMIT,
    "context_length": 16,
    "fragments_per_iteration": NUM_ENVS,
    "fragments_per_minibatch": NUM_ENVS,
    "gradient_accumulation": 1,
    "num_epochs": 2,
    "lr": 1e-3,
    "gamma": 0.95,
    "entropy_coeff": 0.005,
    "prior": None,
    "kl_coeff": 0.0,
    "weight_decay": 0.0,
}
"""Many small updates, so that staleness has something to be about."""


class Run(NamedTuple):
    """What one run gave."""

    correction: str
    staleness: int
    seed: int
    steps: int
    final: float
    on_the_way: float
    importance_weight: float
    approximate_kl: float
    seconds: float


def main() -> None:
    """Do the runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20_480, help="per run")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 2, 8])
    parser.add_argument("--corrections", nargs="+", default=CORRECTIONS, choices=CORRECTIONS)
    parser.add_argument("--results", type=Path, help="a file of JSON lines to add to")
    arguments = parser.parse_args()

    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 * 1024**2,
    )
    runs = []
    for staleness in arguments.staleness:
        # Without staleness there is nothing to correct: all modes are the same.
        for correction in arguments.corrections if staleness else [DECOUPLED]:
            for seed in arguments.seeds:
                runs.append(run(correction, staleness, seed, arguments.steps))
                print(*runs[-1], flush=True)
                if arguments.results is not None:
                    with arguments.results.open("a") as file:
                        file.write(json.dumps(runs[-1]._asdict()) + "\n")
    if arguments.results is not None:
        runs = [Run(**json.loads(line)) for line in arguments.results.read_text().splitlines()]
    Console(width=120).print(table_of(runs))


def table_of(runs: list[Run]) -> Table:
    """One row for each correction and staleness."""
    names = ("staleness", "correction", "return", "on the way", "importance weight")
    table = Table(*names, "KL per update", "seconds", "seeds")
    cells = defaultdict(list)
    for one in runs:
        cells[one.staleness, one.correction].append(one)
    for (staleness, correction), cell in sorted(cells.items()):
        table.add_row(
            str(staleness),
            correction if staleness else "(any)",
            spread([one.final for one in cell]),
            spread([one.on_the_way for one in cell]),
            f"{statistics.mean(one.importance_weight for one in cell):.3f}",
            f"{statistics.mean(one.approximate_kl for one in cell):.4f}",
            f"{statistics.mean(one.seconds for one in cell):.0f}",
            str(len(cell)),
        )
    return table


def run(correction: str, staleness: int, seed: int, steps: int) -> Run:
    """Train one agent whose experience is `staleness` updates old."""
    started = time.perf_counter()
    algorithm = make_config(correction, staleness, seed).build_algo()
    try:
        returns, metrics = train(algorithm, staleness, steps)
    finally:
        algorithm.stop()
    quarter = returns[-(len(returns) // 4) :]
    return Run(
        correction,
        staleness,
        seed,
        steps,
        statistics.mean(quarter),
        statistics.mean(returns),
        statistics.mean(m["importance_weight_mean"] for m in metrics),
        statistics.mean(m["approximate_kl"] for m in metrics),
        time.perf_counter() - started,
    )


def make_config(correction: str, staleness: int, seed: int) -> MineStudioPPOConfig:
    """The task, in this process."""
    buffer = {"max_fragments": 2 * NUM_ENVS, "max_reuse": 1, "max_staleness": staleness}
    varied = {"off_policy_correction": correction, "replay_buffer": buffer, "seed": seed}
    return ComparedConfig().update_from_dict({**OPTIONS, **varied})


@dataclass(kw_only=True, eq=False, repr=False)
class ComparedOptions(PPOOptions):
    """Those of MineStudioPPO, among them the correction that nobody should use: none."""

    off_policy_correction: str = like(PPOOptions, "off_policy_correction", choices=CORRECTIONS)


class ComparedConfig(MineStudioPPOConfig):
    """Lets the learner go without a correction, to be compared with."""

    OPTIONS = ComparedOptions


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


def spread(values: list[float]) -> str:
    """Mean, and half the range if there are several."""
    text = f"{statistics.mean(values):.2f}"
    return f"{text} +- {(max(values) - min(values)) / 2:.2f}" if len(values) > 1 else text


if __name__ == "__main__":
    main()
