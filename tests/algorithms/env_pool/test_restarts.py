"""How many failures are tolerated, and how fast they are followed by another attempt."""

from __future__ import annotations

from collections import Counter

import pytest

from rllib_minestudio import failure_budget
from rllib_minestudio.algorithms.env_pool.restarts import EnvFailures
from rllib_minestudio.errors import EnvPoolError


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

    monkeypatch.setattr(failure_budget.time, "monotonic", lambda: Clock.now)
    return Clock


def test_attempts_in_a_row_wait_longer_each_time(clock):
    counts = Counter()
    failures = EnvFailures(0, max_per_hour=100, counts=counts)
    delays = [failures.note("died", "gone") for _ in range(5)]
    assert delays == [0.0, 0.5, 1.0, 2.0, 4.0]
    with pytest.raises(EnvPoolError, match="6 times in a row"):
        failures.note("died", "gone")
    assert counts == {"died": 6}


def test_a_step_between_makes_it_a_first_attempt_again(clock):
    failures = EnvFailures(0, max_per_hour=100, counts=Counter())
    for _ in range(20):
        assert failures.note("hung_step", "stuck") == 0.0
        failures.note_step()


def test_only_the_last_hour_counts(clock):
    failures = EnvFailures(7, max_per_hour=2, counts=Counter())
    for _ in range(10):
        clock.now += 1801.0
        failures.note("error", "wrong")
        failures.note_step()
    with pytest.raises(EnvPoolError, match=r"Environment 7 failed 3 times within an hour"):
        failures.note("error", "wrong")
