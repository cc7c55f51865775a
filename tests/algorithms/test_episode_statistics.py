"""What is reported of episodes, of all together and of each task."""

from __future__ import annotations

import math

import pytest

from rllib_minestudio.algorithms.env_pool import Episode
from rllib_minestudio.algorithms.reporting import EpisodeStatistics


def make_episode(total, task="default", success=None, env_error=None, length=10):
    return Episode(
        length=length,
        discounted_return=total / 2,
        undiscounted_return=total,
        seconds=1.0,
        task=task,
        success=success,
        env_error=env_error,
        env_index=0,
        info={"large": "info"},
    )


@pytest.fixture
def statistics():
    statistics = EpisodeStatistics(window=3)
    statistics.add(
        [
            make_episode(9.0, task="old"),
            make_episode(1.0, task="hunt", success=True, length=4),
            make_episode(2.0, task="hunt/far", success=False),
            make_episode(6.0, task="hunt", success=True, length=6),
        ]
    )
    return statistics


def test_means_are_over_the_last_episodes_of_all_tasks(statistics):
    metrics = statistics.metrics()
    assert metrics["episode_return_mean",] == 3.0
    assert metrics["episode_discounted_return_mean",] == 1.5
    assert metrics["episode_success_rate",] == pytest.approx(2 / 3)
    assert metrics["episode_count",] == 4


def test_each_task_has_its_own_window(statistics):
    metrics = statistics.metrics()
    assert metrics["tasks", "old", "episode_return_mean"] == 9.0
    assert ("tasks", "old", "episode_success_rate") not in metrics
    assert metrics["tasks", "hunt", "episode_len_mean"] == 5.0
    assert metrics["tasks", "hunt", "episode_count"] == 2
    assert metrics["tasks", "hunt_far", "episode_success_rate"] == 0.0


@pytest.mark.parametrize(
    ("episode", "count"),
    [
        (make_episode(100.0, env_error="died"), "episodes_cut_short"),
        (make_episode(math.nan), "episodes_not_finite"),
    ],
    ids=["cut short", "not finite"],
)
def test_what_says_nothing_of_the_agent_is_only_counted(statistics, episode, count):
    before = statistics.metrics()
    statistics.add([episode])
    assert statistics.metrics() == {**before, (count,): 1}


def test_a_checkpoint_brings_everything_back(statistics):
    restored = EpisodeStatistics(window=3)
    restored.set_state(statistics.get_state())
    assert restored.metrics() == statistics.metrics()
    for each in (restored, statistics):
        each.add([make_episode(5.0, task="hunt")])
    assert restored.metrics() == statistics.metrics()
