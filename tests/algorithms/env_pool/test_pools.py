"""Both pools do the same; what a pool hands out is what the environments did."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from rllib_minestudio.algorithms.env_pool import EnvPoolOptions, InlineEnvs, ProcessEnvs
from rllib_minestudio.algorithms.env_pool.base import plain_info
from rllib_minestudio.algorithms.env_pool.process_handle import MAX_BYTES, bounded_info
from rllib_minestudio.errors import EnvPoolError, InvalidOptionsError
from rllib_minestudio.foundation.episode_seeds import EpisodeCounts
from rllib_minestudio.foundation.names import ENGINE_ERROR
from tests.algorithms.env_pool.faulty_envs import (
    ChattyEnv,
    CountingEnv,
    FaultyEnv,
    ModulesEnv,
    SurvivingEnv,
)
from tests.algorithms.env_pool.playing import play

NUM_ENVS, STEPS = 3, 120
PATIENT = EnvPoolOptions(max_restarts_per_hour=10**6)
MAKERS = [partial(CountingEnv, seed) for seed in range(NUM_ENVS)]


@pytest.fixture(params=[InlineEnvs, ProcessEnvs], ids=["inline", "process"])
def make_pool(request):
    pools = []

    def make(makers, **arguments):
        pools.append(request.param(makers, **{"gamma": 0.9, "seed": 3, **arguments}))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def trace(pool, steps=STEPS, min_ready=1):
    """What each environment did, as tuples, and its episodes but for their duration."""
    traces = [[] for _ in range(pool.num_envs)]
    episodes = [[] for _ in range(pool.num_envs)]
    received = play(pool, 10**9, min_ready)
    while min(map(len, traces)) < steps:
        step = next(received)
        for k, row in enumerate(step.rows.tolist()):
            final = step.final_obs.get(row)
            traces[row].append(
                (
                    int(step.obs["image"][k, 0, 0, 0]),
                    *(array[k].item() for array in step[2:6]),
                    None if final is None else int(final["image"][0, 0, 0]),
                )
            )
        for episode in step.episodes:
            episodes[episode.env_index].append(episode._replace(seconds=0.0))
    traces = [one[:steps] for one in traces]
    ended = [sum(row[3] or row[4] for row in one) for one in traces]
    return traces, [own[:n] for own, n in zip(episodes, ended, strict=True)]


def test_process_pool_equals_inline_pool():
    found = []
    for kind in (InlineEnvs, ProcessEnvs):
        pool = kind(MAKERS, gamma=0.9, seed=3)
        pool.reset()
        found.append(trace(pool))
        pool.close()
    assert found[0] == found[1]
    assert all(len(own) >= 4 for own in found[0][1])


def test_episodes_tell_task_success_and_plain_info(make_pool):
    pool = make_pool(MAKERS)
    pool.reset()
    _, episodes = trace(pool)
    for number, episode in enumerate(episodes[0], start=1):
        assert episode.task == f"task {number % 2}"
        assert episode.success is (number % 2 == 0)
        assert episode.info == {"success": episode.success, "inventory": {0: 3}}
        assert type(episode.info["inventory"][0]) is int
        assert episode.env_error is None


def test_final_observations_are_those_of_truncated_episodes_only(make_pool):
    pool = make_pool(MAKERS)
    pool.reset()
    for rows in trace(pool)[0]:
        for obs, answered, _, terminated, truncated, final in rows:
            assert (final is not None) == (truncated and not terminated)
            assert (obs == 0) == (not answered or terminated or truncated)


def test_an_episode_source_decides_every_episode(make_pool):
    asked = []

    def source(row):
        asked.append(row)
        return 1000 * row + asked.count(row) % 2, None

    pool = make_pool(MAKERS, episode_source=source)
    pool.reset()
    _, episodes = trace(pool)
    for row, own in enumerate(episodes):
        lengths = [int(np.random.default_rng(1000 * row + i).integers(5, 26)) for i in (1, 0)]
        assert [episode.length for episode in own] == (lengths * len(own))[: len(own)]


def test_an_episode_depends_on_its_number_alone(make_pool):
    """Environments go on where another pool's were, also those that it did not have."""
    whole = make_pool(MAKERS)
    whole.reset()
    assert whole.unplayed == [0] * NUM_ENVS
    lengths = [[episode.length for episode in own] for own in trace(whole)[1]]
    assert all(number > len(own) for number, own in zip(whole.unplayed, lengths, strict=True))
    resumed = make_pool(MAKERS, seed=0)
    resumed.reset(EpisodeCounts(3, (2, 1)))
    assert resumed.unplayed == [2, 1, 0]
    for skipped, own, again in zip((2, 1, 0), lengths, trace(resumed)[1], strict=True):
        found = [episode.length for episode in again]
        assert own[skipped:][: len(found)] == found[: len(own) - skipped]


def test_a_replaced_environment_begins_the_episode_that_comes_next(make_pool, tmp_path):
    faulty = partial(FaultyEnv, "raise", "step", tmp_path / "once")
    pool = make_pool([faulty])
    pool.reset()
    lengths = [episode.length for episode in trace(pool)[1][0]]
    sound = make_pool([CountingEnv])
    sound.reset()
    expected = [episode.length for episode in trace(sound)[1][0]]
    assert lengths[0] == 8
    assert lengths[1:4] == expected[1:4]


def test_an_exception_replaces_its_environment_alone(make_pool, tmp_path):
    faulty = partial(FaultyEnv, "raise", "step", tmp_path / "once")
    pool = make_pool([*MAKERS[1:], faulty], seed=4)
    pool.reset()
    rows, episodes = (found[-1] for found in trace(pool))
    # The eighth step is the one that raises: it counts for nothing and truncates.
    assert rows[8] == (0, True, 0.0, False, True, 7)
    assert "ValueError: the game makes no sense" in episodes[0].env_error
    assert (episodes[0].length, episodes[0].info) == (8, {})
    assert episodes[0].undiscounted_return == sum(row[2] for row in rows[:9])
    assert pool.restarts == {"error": 1}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (CountingEnv().observation_space["image"], r"must be a Dict, such as Dict\(image=Box"),
        (gym.spaces.Dict(), "must be a Dict, such as"),
        (gym.spaces.Dict(text=gym.spaces.Text(9)), "'text' of the .* must be a Box, Discrete"),
    ],
    ids=["no Dict", "no parts", "no numbers"],
)
def test_spaces_that_cannot_be_carried_are_refused(space, message):
    env = CountingEnv()
    env.observation_space = space
    with pytest.raises(InvalidOptionsError, match=message):
        InlineEnvs([lambda: env], gamma=1.0)


def test_environments_import_neither_ray_nor_torch():
    pool = ProcessEnvs([ModulesEnv], gamma=1.0, options=EnvPoolOptions())
    pool.reset()
    modules = trace(pool, steps=30)[1][0][0].task.split()
    pool.close()
    assert "rllib_minestudio.algorithms.env_pool.process_handle" in modules
    assert not {"ray", "torch"} & set(modules)


def test_an_info_too_large_to_send_keeps_what_an_episode_reads():
    read = {"task": "cow", "success": True, ENGINE_ERROR: "the game has crashed"}
    assert bounded_info({**read, "text": "x" * MAX_BYTES}) == read
    assert bounded_info({**read, "text": "x"}) == {**read, "text": "x"}


def test_infos_are_made_plain():
    info = {"n": np.float32(0.5), "a": np.arange(3), "big": np.zeros(1000), "o": object(), 1: (2,)}
    assert plain_info(info) == {"n": 0.5, "a": [0, 1, 2], "1": [2]}


def test_what_nobody_reads_need_not_be_as_promised(make_pool):
    """A policy of frames plays wherever there are frames."""
    pool = make_pool([ChattyEnv], read={"image"})
    pool.reset()
    assert list(pool.recv().obs) == ["image"]
    with pytest.raises((InvalidOptionsError, EnvPoolError), match="'word'"):
        make_pool([ChattyEnv])


@pytest.mark.parametrize("seldom", [True, False])
def test_an_environment_that_survives_its_errors_is_counted_and_limited_by_rate(
    make_pool, caplog, seldom
):
    pool = make_pool([partial(SurvivingEnv, every=2 if seldom else 1)], options=PATIENT)
    pool.reset()
    if not seldom:
        with pytest.raises(EnvPoolError, match=r"20 of the last 20 episodes.*KeyError: 'wood'"):
            for _ in play(pool, 10**6):
                pass
        return
    episodes = []
    for step in play(pool, 10**6):
        episodes += step.episodes
        if len(episodes) >= 60:
            break
    told = [record for record in caplog.records if "cut short" in record.message]
    assert pool.restarts["error"] == len(told) == 30
    assert sum(episode.env_error is not None for episode in episodes) == 30


def test_an_evaluation_goes_on_however_many_episodes_are_cut_short(make_pool):
    """It repeats and reports them; `max_restarts_per_hour` is the default."""
    pool = make_pool([partial(SurvivingEnv, every=1)], episode_source=lambda row: (row, None))
    pool.reset()
    episodes = []
    for step in play(pool, 10**6):
        episodes += step.episodes
        if len(episodes) >= 30:
            break
    assert all(episode.env_error == "KeyError: 'wood'" for episode in episodes)
    assert not pool.restarts["error"]
