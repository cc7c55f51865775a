"""The T-maze: what it shows, and what it takes to solve it."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_minestudio.env.t_maze import FORWARD, LEFT, PATIENCE, RIGHT, TMaze
from rllib_minestudio.errors import InvalidOptionsError

LENGTH = 5


def play(turn_by_sign, seed):
    """Walks to the junction and turns; returns what an episode's steps showed, and its return."""
    env = TMaze({"length": LENGTH})
    obs, _ = env.reset(seed=seed)
    shown = [obs]
    for _ in range(LENGTH):
        obs, reward, terminated, truncated, _ = env.step(FORWARD)
        shown.append(obs)
        assert (reward, terminated, truncated) == (0.0, False, False)
    _, reward, terminated, truncated, info = env.step(turn_by_sign[int(shown[0][0])])
    assert terminated and not truncated and info["success"] == bool(reward)
    return np.array(shown), reward


def test_it_keeps_gymnasiums_rules():
    check_env(TMaze({"length": 3}), skip_render_check=True)


def test_the_sign_decides_and_nothing_else_tells_it():
    first, seen = set(), []
    for seed in range(8):
        shown, reward = play({1: LEFT, -1: RIGHT}, seed)
        assert reward == 1.0
        assert play({1: RIGHT, -1: LEFT}, seed)[1] == 0.0
        first.add(shown[0][0])
        seen.append(shown[1:])
    assert first == {1.0, -1.0}
    np.testing.assert_array_equal(seen, [seen[0]] * len(seen))
    assert seen[0][-1].tolist() == [0, 0, 1] and seen[0][0].tolist() == [0, 1, 0]


def test_a_policy_without_a_memory_is_right_every_other_time():
    """At the junction, it turns one way with the same probability for both signs."""
    returns = [play({1: LEFT, -1: LEFT}, seed)[1] for seed in range(200)]
    assert abs(np.mean(returns) - 0.5) < 0.11  # three standard deviations


def test_who_never_turns_is_truncated():
    env = gym.wrappers.RecordEpisodeStatistics(TMaze({"length": LENGTH}))
    env.reset(seed=0)
    for step in range(1, PATIENCE * (LENGTH + 1) + 1):
        *_, terminated, truncated, info = env.step(LEFT)
        assert not terminated and truncated == (step == PATIENCE * (LENGTH + 1))
    assert info["success"] is False and info["episode"]["r"] == 0.0


@pytest.mark.parametrize("length", [0, 1.5, "long", 10**6])
def test_a_corridor_has_a_length(length):
    with pytest.raises(InvalidOptionsError, match="length must be an integer from 1"):
        TMaze({"length": length})
