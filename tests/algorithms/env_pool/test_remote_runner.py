"""An env runner in an actor of Ray, with environments in processes, is killed and comes back."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import ray

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from tests.algorithms.env_pool.faulty_envs import make_env_with_game

NUM_ENVS = 2


class Runner(MineStudioEnvRunner):
    """Tells its process."""

    def pid(self):
        return os.getpid()


def processes(folder):
    """Of the environments and their games, as those have noted them."""
    return [int(pid) for file in folder.iterdir() for pid in file.read_text().split()]


def gone(pids):
    deadline = time.monotonic() + 60
    while any(map(alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def actor(local_ray, make_config, tmp_path):
    config = make_config(env_pool={"mode": "process"})
    config.environment(make_env_with_game, env_config={"pids": str(tmp_path)})
    config.env_runners(num_envs_per_env_runner=NUM_ENVS, rollout_fragment_length=4)
    config.validate()
    for file in tmp_path.iterdir():  # of the environment that was built here, to learn its spaces
        *_, game = map(int, file.read_text().split())
        os.kill(game, signal.SIGKILL)  # which `close` leaves to the end of the process
        file.unlink()
    options = {"max_restarts": 1, "max_task_retries": 1}
    actor = ray.remote(Runner).options(**options).remote(config=config, worker_index=1)
    yield actor
    # Ray lets a worker kill its children before it ends.
    pids = processes(tmp_path)
    ray.kill(actor)
    gone(pids)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_killed_runner_leaves_nothing_and_comes_back_with_other_fragments(actor, tmp_path):
    def sample():
        return ray.get(actor.sample.remote(aligned=True), timeout=120).fragments

    before = sample()
    pids = processes(tmp_path)
    assert len(pids) == 2 * NUM_ENVS and all(map(alive, pids))
    os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)
    gone(pids)

    after = sample()
    assert [fragment.key for fragment in before] == [("1-0", 0), ("1-1", 0)]
    assert not {fragment.key for fragment in before} & {fragment.key for fragment in after}
    assert all(fragment.env_id.startswith("1-") for fragment in after)
