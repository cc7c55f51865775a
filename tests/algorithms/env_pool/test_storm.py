"""Processes of environments are killed and stopped at random while the env runner samples."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter

import numpy as np
import pytest

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from tests.algorithms.env_pool.faulty_envs import make_counting_env

NUM_ENVS, LENGTH = 4, 16
# A killed process is missed at once; only who waits for a stopped one needs limits to be short.
TIME_LIMITS = {
    signal.SIGKILL: {},
    signal.SIGSTOP: {"start_timeout_s": 8.0, "reset_timeout_s": 0.7, "step_timeout_s": 0.7},
}


class Storm(threading.Thread):
    """Sends a signal to random environments' processes, to each once, at random moments."""

    def __init__(self, pool, number, times):
        super().__init__(daemon=True)
        self._pool, self._number, self._times = pool, number, times
        self.hit = set()

    def run(self):
        rng = random.Random(0)
        while len(self.hit) < self._times:
            time.sleep(rng.uniform(0.05, 0.5))
            unhurt = [pid for pid in self._pool.pids if pid is not None and pid not in self.hit]
            if unhurt:
                self._send(rng.choice(unhurt))

    def _send(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, self._number)
            self.hit.add(pid)


@pytest.fixture
def runner(make_config, number):
    config = make_config(
        env_pool={"mode": "process", "max_restarts_per_hour": 1000, **TIME_LIMITS[number]}
    )
    config.environment(make_counting_env)
    config.env_runners(num_envs_per_env_runner=NUM_ENVS, rollout_fragment_length=LENGTH)
    config.validate()
    runner = MineStudioEnvRunner(config=config, worker_index=0, num_workers=0)
    yield runner
    runner.stop()


def check_fragments(fragments):
    """Each follows from the one before, row by row; returns length and return of each episode."""
    ended, length, total, last = [], 0, 0.0, None
    for number, fragment in enumerate(fragments):
        assert fragment.index == number
        for name in ("reward", "logp", "value"):
            assert np.isfinite(getattr(fragment, name)).all(), name
        shown = np.append(fragment.obs["image"][:, 0, 0, 0], fragment.last_obs["image"][0, 0, 0])
        first = np.append(fragment.first, fragment.last_first)
        if number:
            assert (shown[0], first[0]) == last
        last = (shown[-1], first[-1])
        over = fragment.terminated | fragment.truncated
        np.testing.assert_array_equal(first[1:], over)
        np.testing.assert_array_equal(shown == 0, first)
        np.testing.assert_array_equal(shown[1:][~over], shown[:-1][~over] + 1)
        paid = fragment.action["buttons"] % 7
        np.testing.assert_array_equal(fragment.reward[~over], paid[~over])
        bootstrapped = fragment.truncated & ~fragment.terminated
        np.testing.assert_array_equal(np.isfinite(fragment.bootstrap_value), bootstrapped)
        for reward, end in zip(fragment.reward.tolist(), over.tolist(), strict=True):
            length, total = length + 1, total + reward
            if end:
                ended.append((length, total))
                length, total = 0, 0.0
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
def test_what_is_recorded_is_what_happened(runner, number):
    fragments, episodes, restarts = [], [], Counter()
    storm = None
    while storm is None or storm.is_alive():
        report, more = runner.sample(aligned=False)
        assert len(more) == NUM_ENVS
        fragments += more
        episodes += report.episodes
        restarts.update(report.env_restarts)
        if storm is None:
            storm = Storm(runner.env, number, times=12)
            storm.start()
    last_pids = set(runner.env.pids)

    # Those that were hit last may not have been missed yet.
    assert sum(restarts.values()) >= len(storm.hit) - NUM_ENVS
    causes = {"died"} if number == signal.SIGKILL else {"hung_start", "hung_reset", "hung_step"}
    assert set(restarts) <= causes
    assert not any(os.path.exists(f"/proc/{pid}") for pid in storm.hit - last_pids)
    for i, env_id in enumerate(runner._collector.env_ids):
        recorded = check_fragments([f for f in fragments if f.env_id == env_id])
        reported = [(e.length, e.undiscounted_return) for e in episodes if e.env_index == i]
        assert recorded == reported[: len(recorded)]
        assert len(reported) <= len(recorded) + LENGTH  # the rest is in an open fragment
    # An environment that was hit in a start or a reset loses no step.
    assert sum(e.env_error is not None for e in episodes) <= sum(restarts.values())
