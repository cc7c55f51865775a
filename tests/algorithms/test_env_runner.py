"""What the env runner records is what happened."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO

from rllib_minestudio.algorithms.env_runner import MineStudioEnvRunner
from tests.algorithms.env_pool.faulty_envs import SLOW_STEP_S, make_uneven_env

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
        assert before.last_obs.keys() == after.obs.keys() == {"image"}
        np.testing.assert_array_equal(before.last_obs["image"], after.obs["image"][0])
        assert before.last_first == after.first[0]
        first_flags = np.concatenate([before.first, after.first])
        ends = np.concatenate([before.truncated, after.truncated])
        np.testing.assert_array_equal(np.flatnonzero(first_flags), [0, 20, 40, 60])
        np.testing.assert_array_equal(np.flatnonzero(ends), [19, 39, 59])
        assert not before.terminated.any()


def test_rewards_belong_to_the_action_in_their_row(runner):
    for fragment in runner.sample().fragments:
        red = fragment.obs["image"][:, 0, 0, 0] == 255
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
        return np.stack([fragment.obs["image"] for fragment in runner.sample().fragments])

    first, second = play(), play()
    np.testing.assert_array_equal(first, second)
    assert len({obs.tobytes() for obs in first}) == NUM_ENVS


def test_decorrelated_environments_end_their_episodes_at_different_steps(make_config):
    config = make_config(decorrelation_steps=EPISODE)
    runner = MineStudioEnvRunner(config=config, worker_index=0, num_workers=0)
    fragments = runner.sample().fragments
    ends = [int(np.argmax(fragment.truncated)) for fragment in fragments]
    played = np.random.default_rng((config.seed, 0, 0)).integers(EPISODE + 1, size=NUM_ENVS)
    assert len(set(played)) > 2
    np.testing.assert_array_equal(ends, (EPISODE - 1 - played) % EPISODE)
    # The episode is that of the steps that were not recorded; the memory begins with what was.
    for fragment in fragments:
        assert fragment.first[0]
        assert not any(array.any() for array in fragment.state_in.values())
    assert {episode.length for episode in runner.sample().report.episodes} == {EPISODE}


@pytest.fixture
def uneven_runner(make_config):
    config = make_config(env_pool={"mode": "process", "inference_batch_size": 1})
    config.environment(make_uneven_env)
    config.env_runners(num_envs_per_env_runner=2, rollout_fragment_length=12)
    config.validate()
    runner = MineStudioEnvRunner(config=config, worker_index=0, num_workers=0)
    yield runner
    runner.stop()


def set_version(runner, version):
    """As if the weights had been updated so many times."""
    weights = runner.module.get_state()
    runner.set_state({COMPONENT_RL_MODULE: weights, WEIGHTS_SEQ_NO: version})


def test_a_slow_environment_does_not_hold_up_the_others(uneven_runner):
    fragments, set_at = [], {}
    for version in range(1, 100):
        set_version(uneven_runner, version)
        set_at[version] = time.monotonic()
        more = uneven_runner.sample(aligned=False).fragments
        assert len(more) == 2
        fragments += more
        if any(fragment.env_id == "0-0" for fragment in more):
            break
    ended = time.monotonic()
    counts = Counter(fragment.env_id for fragment in fragments)
    assert counts["0-0"] == 1
    assert counts["0-1"] > 2
    for env_id in counts:
        own = [fragment for fragment in fragments if fragment.env_id == env_id]
        assert [fragment.index for fragment in own] == list(range(len(own)))
    (slow,) = (fragment for fragment in fragments if fragment.env_id == "0-0")
    start = set_at[1]
    # What it did last was decided a step before it answered, by the newest weights of that time;
    # a busy machine may hand in the answer later, and begin later. The fragment's 12 steps take
    # 2.4 s, the first of which was decided 12 before its end.
    last, before_last, first = (
        max(
            version
            for version, at in set_at.items()
            if at <= max(ended - steps * SLOW_STEP_S, start)
        )
        for steps in (1, 8, 12)
    )
    assert 1 <= slow.weights_version_min <= first
    assert before_last <= slow.weights_version_max <= last


@pytest.mark.slow
def test_aligned_fragments_are_of_one_version_and_one_of_each_environment(uneven_runner):
    for version in range(1, 4):
        set_version(uneven_runner, version)
        report, fragments = uneven_runner.sample(aligned=True)
        assert sorted(fragment.key for fragment in fragments) == [
            ("0-0", version - 1),
            ("0-1", version - 1),
        ]
        for fragment, metadata in zip(fragments, report.fragments, strict=True):
            assert metadata == (fragment.key, version)
            assert fragment.weights_version_min == fragment.weights_version_max == version
    seconds = report.seconds
    assert seconds["sampling"] >= 12 * SLOW_STEP_S
    assert seconds["sampling"] >= seconds["waiting_for_envs"] + seconds["inference"] > 0


def test_a_reward_that_is_not_a_number_is_recorded_as_it_is(make_config):
    config = make_config(env_config={"nan_reward_at": 5})
    runner = MineStudioEnvRunner(config=config, worker_index=0, num_workers=0)
    report, fragments = runner.sample()
    for fragment in fragments:
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(fragment.reward)), [5])
    assert all(np.isnan(episode.undiscounted_return) for episode in report.episodes)
