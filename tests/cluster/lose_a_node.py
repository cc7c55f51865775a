"""Trains on a cluster of three Ray nodes, loses one, gets another; prints what it saw as JSON.

A script of its own, because a process can be in one Ray cluster only.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

import ray
from ray.cluster_utils import Cluster

from rllib_minestudio.algorithms import MineStudioPPO
from tests.algorithms.conftest import quick_config

NODE = {
    "num_cpus": 1,
    "resources": {"games": 1},
    "object_store_memory": 100 * 1024**2,
}
"""Room for one env runner."""


def main() -> None:
    """Print the last result of each part of the run."""
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 * 1024**2}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    config = quick_config(replay_buffer={"max_fragments": 64, "max_staleness": 8}).env_runners(
        num_env_runners=2,
        num_envs_per_env_runner=4,
        num_cpus_per_env_runner=1,
        custom_resources_per_env_runner={"games": 1},
    )
    algorithm = config.build_algo()
    seen = {"three nodes": train_until(algorithm, lambda: well(algorithm) == 2)}
    cluster.remove_node(nodes[1], allow_graceful=False)
    train_until(algorithm, lambda: well(algorithm) == 1)
    for _ in range(3):
        seen["two nodes"] = train_once(algorithm)
    cluster.add_node(**NODE)
    seen["three again"] = train_until(algorithm, lambda: well(algorithm) == 2)
    print(json.dumps(seen))
    algorithm.stop()
    ray.shutdown()
    cluster.shutdown()


def well(algorithm: MineStudioPPO) -> int:
    """How many env runners are not lost."""
    return algorithm.experience.requests.num_well


def train_once(algorithm: MineStudioPPO) -> dict:
    """One iteration, and the numbers that the test looks at."""
    result = algorithm.train()
    return {
        "iteration": result["training_iteration"],
        "env_runners": well(algorithm),
        "replay_buffer": result["replay_buffer"],
        "restarts": result["restarts"],
    }


def train_until(algorithm: MineStudioPPO, holds: Callable[[], bool], seconds: float = 120) -> dict:
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
