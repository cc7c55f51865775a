"""How many failures are tolerated, and how fast they are followed by another attempt."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from rllib_minestudio.algorithms.env_pool.process_envs import env_failures
from rllib_minestudio.errors import EnvPoolError
from rllib_minestudio.foundation import processes


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

    # The module's clock alone: threads of this process have deadlines.
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    return Clock


def delay_after(failures, cause):
    failures.note_failure(cause, "gone")
    return failures.delay_s


def test_attempts_in_a_row_wait_longer_each_time(clock):
    counts = Counter()
    failures = env_failures(0, max_per_hour=100, counts=counts)
    delays = [delay_after(failures, "died") for _ in range(5)]
    assert delays == [0.0, 0.5, 1.0, 2.0, 4.0]
    with pytest.raises(EnvPoolError, match="6 times in a row"):
        failures.note_failure("died", "gone")
    assert counts == {"died": 6}


def test_a_step_between_makes_it_a_first_attempt_again(clock):
    failures = env_failures(0, max_per_hour=100, counts=Counter())
    for _ in range(20):
        assert delay_after(failures, "hung_step") == 0.0
        failures.note_success()


def test_only_the_last_hour_counts(clock):
    failures = env_failures(7, max_per_hour=2, counts=Counter())
    for _ in range(10):
        clock.now += 1801.0
        failures.note_failure("error", "wrong")
        failures.note_success()
    with pytest.raises(EnvPoolError, match=r"Environment 7 failed 3 times within an hour"):
        failures.note_failure("error", "wrong")
