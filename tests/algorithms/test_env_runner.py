"""What the env runner records is what happened."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_minestudio.algorithms.env_pool import InlineEnvs
from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from tests.algorithms.toy_envs import AttackOnRed

NUM_ENVS, LENGTH, EPISODE = 8, 32, 20


@pytest.fixture
def runner(make_config):
    config = make_config()
    config.validate()
    runner = MineStudioEnvRunner(config=config, worker_index=0, num_workers=0)
    yield runner
    runner.stop()


def test_fragments_are_contiguous_and_mark_episodes(runner):
    first, second = runner.sample(), runner.sample()
    for before, after in zip(first.fragments, second.fragments, strict=True):
        assert (before.env_id, before.index + 1) == (after.env_id, after.index)
        np.testing.assert_array_equal(before.last_obs, after.obs[0])
        assert before.last_first == after.first[0]
        first_flags = np.concatenate([before.first, after.first])
        ends = np.concatenate([before.truncated, after.truncated])
        np.testing.assert_array_equal(np.flatnonzero(first_flags), [0, 20, 40, 60])
        np.testing.assert_array_equal(np.flatnonzero(ends), [19, 39, 59])
        assert not before.terminated.any()


def test_rewards_belong_to_the_action_in_their_row(runner):
    for fragment in runner.sample().fragments:
        red = fragment.obs[:, 0, 0, 0] == 255
        token = fragment.action["buttons"]
        attacks = (token < 8640) & (token // 4 % 2 == 1)
        np.testing.assert_array_equal(fragment.reward, (attacks == red).astype(np.float32))


def test_every_number_was_written(runner):
    for fragment in runner.sample().fragments:
        for name in ("reward", "logp", "value"):
            assert np.isfinite(getattr(fragment, name)).all(), name
        np.testing.assert_array_equal(np.isfinite(fragment.bootstrap_value), fragment.truncated)


def test_episode_returns_add_up(runner):
    rollouts = [runner.sample() for _ in range(5)]
    episodes = [episode for rollout in rollouts for episode in rollout.report.episodes]
    assert len(episodes) == NUM_ENVS * (5 * LENGTH // EPISODE)
    assert all(episode.length == EPISODE for episode in episodes)
    recorded = sum(f.reward.sum() for rollout in rollouts for f in rollout.fragments)
    assert sum(episode.undiscounted_return for episode in episodes) == pytest.approx(recorded)


def test_environments_differ_and_follow_from_the_seed(make_config):
    def play():
        runner = MineStudioEnvRunner(config=make_config(), worker_index=0, num_workers=0)
        return np.stack([fragment.obs for fragment in runner.sample().fragments])

    first, second = play(), play()
    np.testing.assert_array_equal(first, second)
    assert len({obs.tobytes() for obs in first}) == NUM_ENVS


def test_decorrelated_environments_end_their_episodes_at_different_steps():
    pool = InlineEnvs([AttackOnRed] * NUM_ENVS, gamma=1.0)
    random_steps = np.random.default_rng(0).integers(EPISODE, size=NUM_ENVS)
    pool.reset(random_steps.tolist())
    rows = pool.recv().rows
    action = {name: np.zeros(NUM_ENVS, np.int64) for name in ("buttons", "camera")}
    ends = []
    for _ in range(EPISODE):
        pool.send(rows, action)
        ends.append(pool.recv().truncated.copy())
    np.testing.assert_array_equal(np.argmax(ends, axis=0), EPISODE - 1 - random_steps)
