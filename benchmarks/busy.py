"""Who waits for whom: busy fractions of env runners and learner when one of them is slow.

    python benchmarks/busy.py [--iterations N]
    python benchmarks/busy.py --file tuned_examples/cow.yaml [--iterations N] [--set KEY=VALUE]

Two env runners with four toy environments each, and a learner, all in processes of their own.
Environments sleep in every step, or the learner sleeps in every update, so that the other side is
by far the faster one. The slow side should be busy all the time: a fast learner only waits for
data, fast runners only for room in a buffer that is full. Without that, both sides work on. In the
last row both sleep: four runners bring two iterations' fragments in the time of two updates, and
neither should wait for long.

With `--file`, a real experiment is trained instead, and what each of its processes does is counted
by the system's scheduler: how long it was on a processor, and how long it had work but no processor
was free. What is left, it waited for the others. Shares are of the wall time; threads add up.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME
from rich.console import Console
from rich.table import Table

from rllib_minestudio.algorithms import MineStudioPPO, MineStudioPPOConfig
from rllib_minestudio.algorithms.learner import MineStudioPPOLearner
from rllib_minestudio.experiments.experiment_file import load_experiments
from rllib_minestudio.experiments.plan import make_plan

IMAGE = (16, 16, 3)
MODEL = {
    "preset": "nano",
    "img_shape": list(IMAGE),
    "hidsize": 32,
    "attention_heads": 2,
    "n_recurrence_layers": 1,
    "attention_memory_size": 24,
    "timesteps": 16,
}
SAMPLED = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
STEPS, CAPACITY, STALENESS = 16, 48, 2


class Case(NamedTuple):
    """Who sleeps for how long.

    Attributes:
        env_seconds: In every step of an environment.
        learner_seconds: In every iteration.
        runners: Env runners, of four environments each.
        fragments: Of an iteration.
    """

    env_seconds: float = 0.0
    learner_seconds: float = 0.0
    runners: int = 2
    fragments: int = 16


class SleepyEnv(gym.Env):
    """Pixels of noise; each step takes `seconds`."""

    def __init__(self, config: Any) -> None:
        """Take the step's duration from the config."""
        self._seconds = config["seconds"]
        self._rng = np.random.default_rng(0)
        self.observation_space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, IMAGE, np.uint8))
        self.action_space = gym.spaces.Dict(
            buttons=gym.spaces.MultiDiscrete([8641]), camera=gym.spaces.MultiDiscrete([121])
        )

    def reset(self, **_: Any) -> tuple[Any, dict]:
        """Begin an episode that never ends."""
        return self._observe(), {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict]:
        """Sleep."""
        time.sleep(self._seconds)
        return self._observe(), 0.0, False, False, {}

    def _observe(self) -> dict[str, np.ndarray]:
        return {"image": self._rng.integers(0, 256, IMAGE, np.uint8)}


class SleepyLearner(MineStudioPPOLearner):
    """Sleeps as long as its environments' config says."""

    def update(self, **arguments: Any) -> dict[str, Any]:
        """Sleep, then train."""
        time.sleep(self.config.env_config["learner_seconds"])
        return super().update(**arguments)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--file", type=Path, help="an experiment file to train instead")
    parser.add_argument("--set", action="append", default=[], help="changes to the file")
    arguments = parser.parse_args()
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=200 * 1024**2,
    )
    if arguments.file:
        Console(width=100).print(
            busy_processes(arguments.file, arguments.set, arguments.iterations)
        )
        return
    names = "s per iteration", "learner busy", "env runners busy", "buffer", "staleness"
    table = Table("", *names, "never sampled")
    for name, case in (
        ("slow environments", Case(env_seconds=0.02)),
        ("slow learner", Case(learner_seconds=2.0)),
        ("equally slow", Case(env_seconds=0.02, learner_seconds=0.6, runners=4, fragments=8)),
    ):
        table.add_row(name, *measure(case, arguments.iterations))
    Console(width=100).print(table)
    ray.shutdown()


def measure(case: Case, iterations: int) -> list[str]:
    """Means over the iterations after a few that fill the buffer."""
    algorithm = make_algorithm(case)
    for _ in range(5):
        warm = algorithm.train()
    results = [algorithm.train() for _ in range(iterations)]
    algorithm.stop()

    def mean(*path: str) -> float:
        values = []
        for result in results:
            node: Any = result
            for key in path:
                node = node[key]
            values.append(float(node))
        return sum(values) / len(values)

    added, never_sampled = (
        results[-1]["replay_buffer"][name] - warm["replay_buffer"][name]
        for name in ("added", "never_sampled")
    )
    return [
        f"{mean('time_this_iter_s'):.2f}",
        f"{mean('busy_fraction', 'learner'):.0%}",
        f"{mean('busy_fraction', 'env_runners'):.0%}",
        f"{mean('replay_buffer', 'occupancy'):.0f} of {CAPACITY}",
        f"{mean('replay_buffer', 'staleness_mean'):.1f}",
        f"{never_sampled / added:.0%}",
    ]


def busy_processes(file: Path, changes: list[str], iterations: int) -> Table:
    """Train an experiment, and count what its processes do after a few iterations of warm-up."""
    plan = make_plan(load_experiments(file, changes)[0])
    algorithm = plan.example.copy(copy_frozen=False).build_algo()
    for _ in range(5):
        algorithm.train()
    wall, steps = time.perf_counter(), algorithm.metrics.peek(SAMPLED)
    before = _scheduled(algorithm.env_runner_group)
    for _ in range(iterations):
        algorithm.train()
    wall, steps = time.perf_counter() - wall, algorithm.metrics.peek(SAMPLED) - steps
    after = _scheduled(algorithm.env_runner_group)
    algorithm.stop()
    names = ["learner" if len(after) > 1 else "learner and env runner"]
    names += [f"env runner {number}" for number in range(1, len(after))]
    table = Table(
        "process", "on a processor", "no processor free", title=f"{steps / wall:,.0f} steps/s"
    )
    for name, old, new in zip(names, before, after, strict=True):
        table.add_row(name, *(f"{(b - a) / wall:.0%}" for a, b in zip(old, new, strict=True)))
    return table


def _scheduled(runners: EnvRunnerGroup) -> list[tuple[float, float]]:
    """Of the main process, then of each remote env runner's; see `_time_on_processor`."""
    remote: list[tuple[float, float]] = runners.foreach_env_runner(
        lambda _: _time_on_processor(), local_env_runner=False
    )
    return [_time_on_processor(), *remote]


def _time_on_processor() -> tuple[float, float]:
    """Seconds that this process's threads were on a processor, and had to wait for one (Linux)."""
    nanoseconds = np.zeros(2)
    for thread in Path("/proc/self/task").iterdir():
        try:
            nanoseconds += np.array((thread / "schedstat").read_text().split()[:2], float)
        except OSError:  # it has ended meanwhile
            continue
    on_processor, waiting = nanoseconds / 1e9
    return float(on_processor), float(waiting)


def make_algorithm(case: Case) -> MineStudioPPO:
    """Env runners and a learner."""
    config = (
        MineStudioPPOConfig()
        .environment(
            SleepyEnv,
            env_config={"seconds": case.env_seconds, "learner_seconds": case.learner_seconds},
        )
        .env_runners(
            num_env_runners=case.runners,
            num_envs_per_env_runner=4,
            rollout_fragment_length=STEPS,
        )
        .learners(num_learners=1, num_cpus_per_learner=1)
        .training(
            model=MODEL,
            learner_class=SleepyLearner,
            env_pool={"mode": "inline"},
            prior=None,
            kl_coeff=0.0,
            context_length=STEPS,
            fragments_per_iteration=case.fragments,
            fragments_per_minibatch=case.fragments,
            gradient_accumulation=1,
            replay_buffer={"max_fragments": CAPACITY, "max_staleness": STALENESS},
        )
    )
    return config.build_algo()


if __name__ == "__main__":
    main()
