"""Parts are killed and frozen at random moments while training runs; it ends as if they had not.

Each part has a killer of its own, so that several may be lost at once. `SOAK_KILLS` is how many
are killed or frozen in all (default: each of the four parts once). More than that makes it the
long form, which catches parts while they start, too; with 80, each part is killed ten times and
frozen ten times. `SOAK_SEED` changes the moments, `SOAK_PARTS` the parts.
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

from rllib_minestudio.algorithms.training_loop import weights
from tests.algorithms import leaks
from tests.algorithms.actors import freeze, is_running, kill, wait_until
from tests.algorithms.conftest import quick_config
from tests.algorithms.training_loop.test_remote import accounted_for

MARKS = {
    "env runner": "MineStudioEnvRunner",
    "learner": "_WrappedExecutable",
    "weights": "WeightsBoard",
    "env": "env_pool.process_handle import",
}
"""What stands in the command lines of the parts' processes."""
PARTS = os.environ.get("SOAK_PARTS", ",".join(MARKS)).split(",")
KILLS = int(os.environ.get("SOAK_KILLS", len(PARTS)))
SEED = int(os.environ.get("SOAK_SEED", "0"))
LONG = len(PARTS) < KILLS
CAUSES = {kill: "died", freeze: "hung"}
MAX_IN_FLIGHT = 2
MAX_FRAGMENTS = 64


class Progress:
    """When the last iteration ended (`time.time`)."""

    last = 0.0


def processes_of(part: str) -> dict[int, bool]:
    """Those that are alive and were not frozen: process id, and whether it is past its start."""
    found = {}
    for process in leaks.relatives():
        command = leaks.command_line(process)
        try:
            frozen = process.status() == psutil.STATUS_STOPPED
            # Between the steps of its start an actor looks as if it had been started.
            starting = "__init__" in command or process.create_time() > Progress.last
        except psutil.Error:
            continue
        if MARKS[part] in command and not frozen and is_running(process.pid):
            found[process.pid] = not starting
    return found


class Killer(threading.Thread):
    """Kills and freezes a part at random moments.

    Attributes:
        victims: The process ids.
        settled: How many of them were past their start. One that was not need not be noticed as a
            failure of its own.
        done: How many were killed, and frozen.
    """

    def __init__(self, part: str, kills: int) -> None:
        super().__init__(daemon=True)
        self.part = part
        self.rng = random.Random(f"{part} {SEED}")
        hows = self.rng.sample(list(CAUSES), len(CAUSES))
        self.errands = [hows[i % len(hows)] for i in range(kills)]
        self.victims: list[int] = []
        self.settled = 0
        self.done: Counter[str] = Counter()

    def find(self, *, settled: bool) -> tuple[int, bool] | None:
        """One of the part's processes, as soon as there is one; None if that takes too long.

        In the long form many minutes may pass before an iteration ends undisturbed.
        """
        deadline = time.monotonic() + (1800 if LONG else 180)
        while time.monotonic() < deadline:
            alive = [item for item in processes_of(self.part).items() if item[1] or not settled]
            if alive:
                return self.rng.choice(alive)
            time.sleep(0.1)
        return None

    def run(self) -> None:
        was_settled = False
        for how in self.errands:
            time.sleep(self.rng.uniform(0.5, 5.0))
            # Whatever hangs while it starts takes minutes to be given up; and caught each time
            # that it starts, it never does.
            victim = self.find(settled=not (LONG and was_settled))
            if victim is None:
                return
            pid, was_settled = victim
            how(pid)
            self.victims.append(pid)
            self.settled += was_settled
            self.done[CAUSES[how]] += 1
            wait_until(lambda pid=pid: not is_running(pid), seconds=180)


def build(config):
    """The algorithm, with deadlines short enough to be waited for."""
    config = config.env_runners(
        num_env_runners=2,
        num_envs_per_env_runner=2,
        sample_timeout_s=15,
        max_requests_in_flight_per_env_runner=MAX_IN_FLIGHT,
    )
    env_pool = {
        "mode": "process",
        "start_timeout_s": 60.0,
        "step_timeout_s": 3.0,
        "max_restarts_per_hour": 1000,
    }
    config = config.fault_tolerance(env_runner_restore_timeout_s=60)
    config = config.training(env_pool=env_pool, learner_timeout_s=15, max_restarts_per_hour=1000)
    algorithm = config.learners(num_learners=1, num_cpus_per_learner=1).build_algo()
    algorithm.learners.start_within_s = 60
    algorithm.experience.weights.answer_within_s = 3
    return algorithm


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_training_outlives_every_part(local_ray, caplog, monkeypatch):
    monkeypatch.setattr(weights, "START_WITHIN_S", 30)
    memory = leaks.named_memory()
    files = psutil.Process().num_fds()
    algorithm = build(
        quick_config(replay_buffer={"max_fragments": MAX_FRAGMENTS, "max_staleness": 4})
    )
    algorithm.train()
    Progress.last = time.time()
    shared = max(map(leaks.memory_files, processes_of("env runner")))

    killers = [Killer(part, KILLS // len(PARTS)) for part in PARTS]
    iterations = 1
    with caplog.at_level(logging.WARNING):
        for killer in killers:
            killer.start()
        while any(killer.is_alive() for killer in killers):
            result = algorithm.train()
            Progress.last = time.time()
            iterations += 1
            assert accounted_for(result["replay_buffer"])
            assert result["replay_buffer"]["staleness_max"] <= 4
        for _ in range(3):
            result = algorithm.train()
            iterations += 1
    assert [len(killer.victims) for killer in killers] == [KILLS // len(PARTS)] * len(PARTS)
    assert result["training_iteration"] == iterations

    # All that could be noticed was noticed, and logged.
    noticed = Counter(
        {
            part: sum(
                result["restarts"][f"{part}_{cause}".replace(" ", "_")]
                for cause in ("died", "hung")
            )
            for part in MARKS
            if part
            != "env"  # counted and logged by the runner, which may be killed before it tells
        }
    )
    for killer in killers:
        assert killer.part == "env" or noticed[killer.part] >= killer.settled, killer.part
    lines = [record for record in caplog.records if record.name.startswith("rllib_minestudio")]
    assert len(lines) >= noticed.total()

    # Nothing is lost beyond what the design allows.
    version = result["learners"]["default_policy"]["weights_version"]
    assert iterations - noticed["learner"] <= version <= iterations, (
        "an update for each lost learner"
    )
    counts = result["replay_buffer"]
    assert counts["dropped_unreadable"] == 0
    assert counts["rollouts_lost"] <= MAX_IN_FLIGHT * noticed["env runner"]

    # Nothing is left behind: first while it runs, then when it has ended.
    def holds_no_more() -> bool:
        algorithm.train()
        return max(map(leaks.memory_files, processes_of("env runner"))) <= shared

    assert wait_until(holds_no_more, seconds=60)
    algorithm.stop()
    assert wait_until(lambda: not any(map(processes_of, MARKS)), seconds=30)
    assert not any(is_running(pid) for killer in killers for pid in killer.victims)
    assert wait_until(lambda: not leaks.forgotten_memory(memory), seconds=30)
    print(f"{files} -> {psutil.Process().num_fds()} files, {shared} memory files per runner")
    assert psutil.Process().num_fds() <= files + 10
    print(f"{iterations} iterations, version {version}, {len(lines)} lines in the log")
    for killer in killers:
        print(f"{killer.part}: {dict(killer.done)}, {killer.settled} past their start")
    print(f"noticed {dict(noticed)}")
    lost = counts["dropped_unreadable"]
    print(f"lost {lost} of {counts['added']} fragments, {counts['rollouts_lost']} rollouts")
