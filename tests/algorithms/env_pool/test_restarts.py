"""How many failures are put up with, and how fast they are followed by another attempt."""

from __future__ import annotations

from collections import Counter

import pytest

from rllib_minestudio.algorithms.env_pool import restarts
from rllib_minestudio.algorithms.env_pool.restarts import RestartBudget
from rllib_minestudio.errors import EnvPoolError


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 0.0

    monkeypatch.setattr(restarts.time, "monotonic", lambda: Clock.now)
    return Clock


def test_attempts_in_a_row_wait_longer_each_time(clock):
    counts = Counter()
    budget = RestartBudget(0, max_per_hour=100, counts=counts)
    delays = [budget.note_failure("died", "gone") for _ in range(5)]
    assert delays == [0.0, 0.5, 1.0, 2.0, 4.0]
    with pytest.raises(EnvPoolError, match="6 times in a row"):
        budget.note_failure("died", "gone")
    assert counts == {"died": 6}


def test_a_step_between_makes_it_a_first_attempt_again(clock):
    budget = RestartBudget(0, max_per_hour=100, counts=Counter())
    for _ in range(20):
        assert budget.note_failure("hung_step", "stuck") == 0.0
        budget.note_step()


def test_only_the_last_hour_counts(clock):
    budget = RestartBudget(7, max_per_hour=2, counts=Counter())
    for _ in range(10):
        clock.now += 1801.0
        budget.note_failure("error", "wrong")
        budget.note_step()
    with pytest.raises(EnvPoolError, match=r"Environment 7 failed 3 times within an hour"):
        budget.note_failure("error", "wrong")
