"""It learns: what to do from what it sees, and from what it saw a while ago."""

from __future__ import annotations

import math

import numpy as np
import pytest

EPISODE_LENGTH = 20


def train(config, iterations, until=math.inf):
    """Mean episode return after each iteration, up to the third in a row above `until`."""
    algorithm = config.build_algo()
    returns = []
    try:
        while len(returns) < iterations and sum(r > until for r in returns[-3:]) < 3:
            returns.append(algorithm.train()["env_runners"]["episode_return_mean"])
        return returns
    finally:
        algorithm.stop()


def test_learns_to_attack_on_red(local_ray, make_config):
    returns = train(make_config(), iterations=16, until=0.85 * EPISODE_LENGTH)
    assert returns[0] < 0.65 * EPISODE_LENGTH
    assert min(returns[-3:]) > 0.85 * EPISODE_LENGTH


@pytest.mark.slow
def test_learns_what_only_memory_tells(local_ray, make_config):
    """The colour shows on every fourth step only: without memory 1/4 + 3/4 * 1/2 can be right."""
    returns = train(make_config({"delay": 4}), iterations=60, until=0.8 * EPISODE_LENGTH)
    assert min(returns[-3:]) > 0.8 * EPISODE_LENGTH


@pytest.mark.slow
def test_learns_from_reused_and_stale_fragments(local_ray, make_config):
    config = make_config(replay_buffer={"max_fragments": 64, "max_reuse": 2, "max_staleness": 2})
    returns = train(config, iterations=24, until=0.8 * EPISODE_LENGTH)
    assert min(returns[-3:]) > 0.8 * EPISODE_LENGTH


def test_one_seed_gives_one_run(local_ray, make_config):
    first, second = (train(make_config(), iterations=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
