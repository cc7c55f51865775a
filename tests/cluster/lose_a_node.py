"""Trains on a cluster of Ray nodes, loses some, gets others; prints what it saw as JSON.

Last, a command trains on the cluster, too.

A script of its own, because a process can be in one Ray cluster only.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ray
import yaml
from ray._common.utils import reset_ray_address
from ray.cluster_utils import Cluster

from rllib_minestudio.algorithms import MineStudioPPO
from tests.algorithms.conftest import quick_config
from tests.cli.tiny import TINY
from tests.processes import run_rllib

NODE = {
    "num_cpus": 1,
    "resources": {"games": 1},
    "object_store_memory": 100 * 1024**2,
}
"""Room for one env runner."""

LEARNING_NODE = {**NODE, "resources": {"learning": 1}}
"""Room for the learner."""


def main() -> None:
    """Print the last result of each part of the run."""
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 * 1024**2}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    reset_ray_address()  # lest every other `ray.init` on this machine join this cluster
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    learning = cluster.add_node(**LEARNING_NODE)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    config = quick_config(replay_buffer={"max_fragments": 64, "max_staleness": 8}).env_runners(
        num_env_runners=2,
        num_envs_per_env_runner=4,
        num_cpus_per_env_runner=1,
        custom_resources_per_env_runner={"games": 1},
    )
    config = config.learners(
        num_learners=1, num_cpus_per_learner=1, custom_resources_per_learner={"learning": 1}
    )
    algorithm = config.build_algo()
    seen = {"all nodes": train_until(algorithm, lambda: well(algorithm) == 2)}
    cluster.remove_node(nodes[1], allow_graceful=False)
    train_until(algorithm, lambda: well(algorithm) == 1)
    for _ in range(3):
        seen["a runner's lost"] = train_once(algorithm)
    cluster.add_node(**NODE)
    seen["all again"] = train_until(algorithm, lambda: well(algorithm) == 2)
    cluster.add_node(**LEARNING_NODE)
    cluster.remove_node(learning, allow_graceful=False)
    seen["the learner's lost"] = train_until(algorithm, lambda: learners_lost(algorithm) > 0)
    for _ in range(2):
        seen["learning elsewhere"] = train_once(algorithm)
    algorithm.stop()
    ray.shutdown()
    status, output = train_by_command(cluster.address)
    cluster.shutdown()
    print(json.dumps({"seen": seen, "status": status, "output": output}))


def train_by_command(address: str) -> tuple[int, str]:
    """Exit status and output of `rllib train file ... --address`, of a user on the same cluster."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tiny.yaml").write_text(yaml.safe_dump(TINY))
        options = ("--stop", "training_iteration=1", "--set", "summary.video_episodes=0")
        return run_rllib(folder, "train", "file", "tiny.yaml", "--address", address, *options)


def well(algorithm: MineStudioPPO) -> int:
    """How many env runners are not lost."""
    return algorithm.experience.requests.num_well


def learners_lost(algorithm: MineStudioPPO) -> int:
    """How often the learner was lost."""
    return sum(algorithm.learners.failures.counts.values())


def train_once(algorithm: MineStudioPPO) -> dict:
    """One iteration, and the numbers that the test looks at."""
    result = algorithm.train()
    return {
        "iteration": result["training_iteration"],
        "weights_version": result["learners"]["default_policy"]["weights_version"],
        "env_runners": well(algorithm),
        "replay_buffer": result["replay_buffer"],
        "restarts": result["restarts"],
    }


def train_until(algorithm: MineStudioPPO, holds: Callable[[], bool], seconds: float = 180) -> dict:
    """Iterations until something holds."""
    deadline = time.monotonic() + seconds
    while True:
        seen = train_once(algorithm)
        if holds():
            return seen
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {seen}")


if __name__ == "__main__":
    main()
