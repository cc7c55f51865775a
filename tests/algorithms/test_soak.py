"""Parts are killed and frozen at random moments while training runs; it ends as if they had not.

`SOAK_KILLS` is how many parts are killed or frozen (default 5). With 100, each of the five is
killed ten times and frozen ten times, which takes about half an hour on two cores.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter

import psutil
import pytest

from tests.algorithms.actors import freeze, is_running, kill, wait_until
from tests.algorithms.conftest import quick_config
from tests.algorithms.test_remote import accounted_for

KILLS = int(os.environ.get("SOAK_KILLS", "5"))
MARKS = {
    "env runner": "MineStudioEnvRunner",
    "learner": "_WrappedExecutable",
    "replay buffer": "_Keeper",
    "weights": "_Board",
    "env": "env_pool.worker import",
}
"""What stands in the command lines of the parts' processes."""
CAUSES = {kill: "died", freeze: "hung"}


def processes_of(part: str, *, settled: bool = False) -> list[int]:
    """Those that are alive and were not frozen, among the descendants of this process.

    Args:
        part: A key of `MARKS`.
        settled: Leave out those that are starting: if they hang, it takes minutes to find out.
    """
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            command = " ".join(process.cmdline())
            starting = "__init__" in command or ".build" in command
            frozen = process.status() == psutil.STATUS_STOPPED
            if MARKS[part] in command and not frozen and not (settled and starting):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


class Killer(threading.Thread):
    """Kills and freezes parts at random moments, one after the other."""

    def __init__(self, kills: int) -> None:
        super().__init__(daemon=True)
        self.rng = random.Random(0)
        each = [(part, how) for part in MARKS for how in CAUSES]
        self.errands = []
        while len(self.errands) < kills:
            self.errands += self.rng.sample(each, len(each))
        del self.errands[kills:]
        self.victims: list[int] = []
        self.done: Counter[str] = Counter()

    def find(self, part: str, *, settled: bool) -> int | None:
        """One of a part's processes, as soon as there is one; None if that takes minutes."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            alive = processes_of(part, settled=settled)
            if alive:
                return self.rng.choice(alive)
            time.sleep(0.1)
        return None

    def run(self) -> None:
        for part, how in self.errands:
            time.sleep(self.rng.uniform(0.5, 3.0))
            victim = self.find(part, settled=how is freeze)
            if victim is None:
                return
            how(victim)
            self.victims.append(victim)
            self.done[f"{part} {CAUSES[how]}".replace(" ", "_")] += 1
            wait_until(lambda victim=victim: not is_running(victim), seconds=120)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_training_outlives_every_part(local_ray, caplog):
    config = quick_config(replay_buffer={"max_fragments": 64, "max_staleness": 4})
    config = config.env_runners(num_env_runners=2, num_envs_per_env_runner=2, sample_timeout_s=20)
    env_pool = {"mode": "process", "step_timeout_s": 3.0, "max_restarts_per_hour": 1000}
    config = config.training(env_pool=env_pool, learner_timeout_s=20, max_restarts_per_hour=1000)
    algorithm = config.learners(num_learners=1, num_cpus_per_learner=1).build_algo()
    for service in (algorithm.replay_buffer.service, algorithm.experience.weights.service):
        service.answer_within_s = 3
    first = algorithm.train()
    open_files = psutil.Process().num_fds()

    killer = Killer(KILLS)
    iterations = 1
    with caplog.at_level(logging.WARNING):
        killer.start()
        while killer.is_alive():
            result = algorithm.train()
            iterations += 1
            assert accounted_for(result["replay_buffer"])
            assert result["replay_buffer"]["staleness_max"] <= 4
        for _ in range(3):
            result = algorithm.train()
            iterations += 1

    assert len(killer.victims) == KILLS
    assert result["training_iteration"] == iterations
    noticed = {name: result["restarts"][name] for name in first["restarts"]}
    killed = {name: n for name, n in killer.done.items() if not name.startswith("env_")}
    killed |= {name: n for name, n in killer.done.items() if name.startswith("env_runner")}
    # (Environments are counted and logged by their runner, which may be killed before it tells.)
    for name, count in killed.items():
        assert noticed[name] >= count, name
    lines = [record for record in caplog.records if record.name.startswith("rllib_minestudio")]
    assert len(lines) >= sum(killed.values())
    # Each lost learner costs at most the update under way.
    lost = noticed["learner_died"] + noticed["learner_hung"]
    version = result["learners"]["default_policy"]["weights_version"]
    assert iterations - lost <= version <= iterations

    algorithm.stop()
    assert wait_until(lambda: not any(map(processes_of, MARKS)), seconds=30)
    assert not any(map(is_running, killer.victims))
    assert psutil.Process().num_fds() <= open_files + 10
    print(f"{iterations} iterations, {len(killer.victims)} kills, noticed: {noticed}")
